"""How much memory all inboxes may take together, and who pauses first as it fills up.

What catches up is paused first, then the lowest classes. What the lane was handed counts until it is through with it:
of each type some of it waits for a slot of the window, and with hundreds of types that is as much as what waits here.
"""

from typing import Protocol

FIRST_PRESSURE = 0.8
"""Share of the budget at which the lowest class is paused; the highest at all of it, the others evenly between."""
OLD_PRESSURE = 0.7
"""... and at which what catches up is paused, of whatever class."""
OBJECTS = 272
"""Bytes of an event's objects, beside its own: the budget is of memory, and small events take more of it by these."""
RELIEF = 0.1
"""A class is resumed when the budget's use has fallen this share below its pressure point."""


class Pressed(Protocol):
    """An inbox, as the budget sees it."""

    def press(self, cause: str, *, on: bool) -> None:
        """Pause all of the type's partitions, or no longer for this cause."""
        ...

    def press_old(self, *, on: bool) -> None:
        """Pause those that catch up, or no longer."""
        ...


class Budget:
    """Memory of what waits in all inboxes, and which classes must pause for it."""

    def __init__(self, limit: int, ranks: int) -> None:
        self.used = 0
        """Bytes that what waits takes now: the events' own, and `OBJECTS` for each."""
        self._limit = limit
        step = (1 - FIRST_PRESSURE) / max(ranks - 1, 1)
        self._points = [FIRST_PRESSURE + step * (ranks - 1 - rank) for rank in range(ranks)]
        self._inboxes: list[list[Pressed]] = [[] for _ in range(ranks)]
        self._pressed = [False] * ranks
        self._old_pressed = False

    def go_by(self, limit: int) -> None:
        """Have so many bytes in all from now on; classes are paused and resumed for it at once."""
        self._limit = limit
        self.add(0)

    def join(self, inbox: Pressed, rank: int) -> None:
        """Let the budget pause and resume this inbox."""
        self._inboxes[rank].append(inbox)
        inbox.press("budget", on=self._pressed[rank])
        inbox.press_old(on=self._old_pressed)

    def leave(self, inbox: Pressed, rank: int) -> None:
        """Forget an inbox in which nothing waits any more."""
        self._inboxes[rank].remove(inbox)

    def add(self, size: int) -> None:
        """Count `size` bytes in, or out if negative, and pause or resume classes accordingly."""
        self.used += size
        share = self.used / self._limit
        for rank, point in enumerate(self._points):
            pressed = share >= point if not self._pressed[rank] else share > point - RELIEF
            if pressed != self._pressed[rank]:
                self._pressed[rank] = pressed
                for inbox in self._inboxes[rank]:
                    inbox.press("budget", on=pressed)
        pressed = share >= OLD_PRESSURE if not self._old_pressed else share > OLD_PRESSURE - RELIEF
        if pressed != self._old_pressed:
            self._old_pressed = pressed
            for inboxes in self._inboxes:
                for inbox in inboxes:
                    inbox.press_old(on=pressed)
