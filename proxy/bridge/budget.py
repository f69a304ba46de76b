"""How much memory all inboxes may take together, and who pauses first as it fills up.

What catches up is paused first, then the lowest classes. What the lane was handed counts until it is through with it:
of each type some of it waits for a slot of the window, and with hundreds of types that is as much as what waits here.

Every inbox has some of it that no other may take. What waits for a queue that is full, or for whatever else stands
still, fills all the rest for as long as that lasts; without its own, every other type would be paused with it.
"""

from dataclasses import dataclass
from typing import Protocol

FIRST_PRESSURE = 0.8
"""Share of both, its own and what is in common, at which an inbox of the lowest class is paused; the highest at all of
it, the others evenly between."""
OWN_SHARE = 0.5
"""Of the budget, that inboxes have for themselves, evenly; the rest they have in common."""
OLD_PRESSURE = 0.7
"""... and at which what catches up is paused, of whatever class."""
KEPT_FOR_HIGHER = 0.05
"""Share of all of the budget that is left when every inbox of the lowest class is paused, whatever it holds: else first
fetches of many could pause the highest, which is paused at all of it; the others evenly between."""
MOST_UNDER_WAY = 0.25
"""Share of all of the budget that is kept for fetches under way: of each inbox one may come that nobody could stop when
what is in common ran short. Less is kept where less would come."""
OBJECTS = 272
"""Bytes of an event's objects, beside its own: the budget is of memory, and small events take more of it by these."""
RELIEF = 0.1
"""A class is resumed when the use of either has fallen this share below its pressure point."""


class Pressed(Protocol):
    """An inbox, as the budget sees it."""

    def press(self, cause: str, *, on: bool) -> None:
        """Pause all of the type's partitions, or no longer for this cause."""
        ...

    def press_old(self, *, on: bool) -> None:
        """Pause those that catch up, or no longer."""
        ...


class Budget:
    """Memory of what waits in all inboxes, and which of them must pause for it."""

    def __init__(self, limit: int, ranks: int) -> None:
        self.used = 0
        """Bytes that what waits takes now: the events' own, and `OBJECTS` for each."""
        step = (1 - FIRST_PRESSURE) / max(ranks - 1, 1)
        self._points = [FIRST_PRESSURE + step * (ranks - 1 - rank) for rank in range(ranks)]
        self._limit = limit
        self._holdings: list[dict[Holding, None]] = [{} for _ in range(ranks)]
        self._own, self._common, self._in_common = 0, limit, 0
        """Bytes that each inbox has for itself, that all have in common, and what is used of these."""
        self._steps, self._most_under_way = 0, 0
        """Bytes that come if each inbox has a fetch like its last, and how many of these are kept room for."""
        self._is_shared_out = False
        self._is_short = [False] * ranks
        """For each class whether too much is used of what is in common."""
        self._is_short_for_old = False
        self._full = [1 - KEPT_FOR_HIGHER * rank / max(ranks - 1, 1) for rank in range(ranks)]
        self._is_full = [False] * ranks
        """For each class whether as much is used as it may see: the first fetch of an inbox may exceed its part."""
        self._is_calm = False
        """No inbox is paused for it; so it stays while less is used than any point, in all and of what is in common."""
        self._calm_used = self._calm_common = 0

    def go_by(self, limit: int) -> None:
        """Have so many bytes in all from now on; inboxes are paused and resumed for it at once."""
        self._limit = limit
        self._share_out()

    def join(self, inbox: Pressed, rank: int) -> "Holding":
        """Let the budget pause and resume this inbox; return what counts its bytes."""
        holding = Holding(self, inbox, rank, self._points[rank])
        self._holdings[rank][holding] = None
        self._is_shared_out = False
        return holding

    def leave(self, holding: "Holding") -> None:
        """Forget an inbox in which nothing waits any more, once the lane is through with what it was handed of it."""
        holding.is_left = True
        if not holding.used:
            self._forget(holding)

    def count(self, holding: "Holding", size: int) -> None:
        """Count `size` bytes in, or out if negative, and pause or resume inboxes accordingly."""
        if not self._is_shared_out:  # once for the thousand that join together
            self._share_out()
        own = self._own
        before = holding.used
        after = holding.used = before + size
        self.used += size
        if size > 0:
            step = max(size, holding.step // 2)
            self._steps += step - holding.step
            holding.step = step
        if after > own or before > own:
            self._in_common += max(after - own, 0) - max(before - own, 0)
        taken = self._in_common + min(self._steps, self._most_under_way)
        if not self._is_calm or self.used >= self._calm_used or taken >= self._calm_common:
            self._look()
            self._press(holding)
        if holding.is_left and not after:
            self._forget(holding)

    def _forget(self, holding: "Holding") -> None:
        del self._holdings[holding.rank][holding]
        self._steps -= holding.step
        self._is_shared_out = False

    def _share_out(self) -> None:
        every = [holding for holdings in self._holdings for holding in holdings]
        self._is_shared_out = True
        self._own = int(OWN_SHARE * self._limit) // max(len(every), 1)
        self._common = self._limit - len(every) * self._own
        self._most_under_way = int(MOST_UNDER_WAY * self._limit)
        self._in_common = sum([max(holding.used - self._own, 0) for holding in every]) if self.used else 0
        self._calm_used = int(min(self._full) * self._limit)
        self._calm_common = int(min(OLD_PRESSURE, *self._points) * self._common)
        self._look()
        for holding in every:
            self._press(holding)

    def _look(self) -> None:
        """See whether what is in common is short, and have all inboxes hear of it for which that is new."""
        share = (self._in_common + min(self._steps, self._most_under_way)) / self._common
        for rank, point in enumerate(self._points):
            is_short = _is_reached(share, point, before=self._is_short[rank])
            is_full = self.used >= self._limit * self._full[rank]  # no distance: what stands still may hold nearly all
            if is_short != self._is_short[rank] or is_full != self._is_full[rank]:
                self._is_short[rank], self._is_full[rank] = is_short, is_full
                for holding in self._holdings[rank]:
                    self._press(holding)
        is_short = _is_reached(share, OLD_PRESSURE, before=self._is_short_for_old)
        if is_short != self._is_short_for_old:
            self._is_short_for_old = is_short
            for holdings in self._holdings:
                for holding in holdings:
                    self._press(holding)
        self._is_calm = not (any(self._is_short) or any(self._is_full) or self._is_short_for_old)

    def _press(self, holding: "Holding") -> None:
        if self._is_full[holding.rank]:
            holding.press(live=True, old=True)
        else:
            is_short = self._is_short[holding.rank]
            holding.press(
                live=is_short and holding.fills(self._own, holding.point, before=holding.is_pressed),
                old=self._is_short_for_old and holding.fills(self._own, OLD_PRESSURE, before=holding.is_old_pressed),
            )


@dataclass(eq=False, slots=True)
class Holding:
    """What one inbox takes of the budget."""

    budget: Budget
    inbox: Pressed
    rank: int
    point: float
    """Share of its own at which it may be paused."""
    used: int = 0
    """Bytes, as the budget counts."""
    step: int = 0
    """... that came at a time: the last, or half of what it was if that was less."""
    is_left: bool = False
    """Its type has no partition any more."""
    is_pressed: bool = False
    is_old_pressed: bool = False

    def add(self, size: int) -> None:
        """Count `size` bytes in, or out if negative."""
        self.budget.count(self, size)

    def leave(self) -> None:
        """Have no part in it any more."""
        self.budget.leave(self)

    def fills(self, own: int, point: float, *, before: bool) -> bool:
        """Return whether it holds its part of `own` bytes, or would after one more fetch like the last; empty: never.

        Without the next fetch a thousand parts would be exceeded by a thousand fetches.
        """
        return self.used > 0 and _is_reached(self.used + self.step, point * own, before=before, relief=RELIEF * own)

    def press(self, *, live: bool, old: bool) -> None:
        """Pause or resume the inbox, and what catches up in it."""
        if live != self.is_pressed:
            self.is_pressed = live
            self.inbox.press("budget", on=live)
        if old != self.is_old_pressed:
            self.is_old_pressed = old
            self.inbox.press_old(on=old)


def _is_reached(value: float, point: float, *, before: bool, relief: float = RELIEF) -> bool:
    return value > point - relief if before else value >= point
