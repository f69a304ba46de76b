"""What a person has asked of the group, obeyed and answered by this replica (docs/design/0043-interventions.md)."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import cast

import structlog

from proxy import records
from proxy.bridge.listener import Listener
from proxy.errors import LogError
from proxy.model import Cap, Mode, Note, Stance
from proxy.operations.board import Board
from proxy.operations.effect import Sorted, hides
from proxy.operations.intervention import Answer, Intervention, read
from proxy.operations.moves import Moves
from proxy.operations.plan import Plan
from proxy.settings import EventType, Policy
from proxy.steering.caps import Caps

_say = structlog.get_logger("tidegate.interventions")

LOOK_SECONDS = 1.0
"""Between two looks at the board, and at the clock."""
FIRST_LOOK_SECONDS = 5.0
"""A replica that starts waits so long at most to learn what holds."""
MOST_HELD = 1_000
"""Interventions at a time; of more the oldest are passed over."""


class Interventions:
    """Reads the board, tells listeners how to go on, answers.

    Of those that name an event type and have not ended the one pinned last counts.
    """

    def __init__(
        self,
        board: Board,
        listeners: Callable[[], Iterable[Listener]],
        member: Callable[[], str],
        *,
        record: Callable[[records.Record], None],
        wall: Callable[[], float],
        instance: str,
        moves: Moves,
        caps: Caps | None = None,
        steer: Callable[[Mapping[str, Policy]], None] = lambda _: None,
    ) -> None:
        """`member` tells what the group calls this replica, empty if it is in none; `wall` is in seconds since 1970.

        Without `caps` none is obeyed; `steer` is told the policies of routes that hold now, whenever they change.
        """
        self._board = board
        self._listeners = listeners
        self._member = member
        self._record = record
        self._wall = wall
        self._instance = instance
        self._moves = moves
        self._caps = caps
        self._steer = steer
        self._policies: Mapping[str, Policy] = {}
        """By route, as `steer` was told."""
        self._is_undivided = False
        """The last look at what waits in the group failed."""
        self._held: dict[str, Intervention] = {}
        """By id, in the order in which they were pinned last; some have ended, which is answered, too."""
        self._answered: dict[str, tuple[str, bool]] = {}
        """By id: as which member, and whether that it has ended."""
        self._begun: set[str] = set()
        """Ids of which it was told that they have begun, and not that they have ended."""
        self._is_settled = True
        """Every listener goes on as what holds says."""
        self._sorted = Sorted()
        self._effective: tuple[Sorted, dict[str, str], list[Intervention]] = (self._sorted, {}, [])
        """Of what was sorted, and of which class event types were then."""
        self._is_unread = False
        """The last look failed."""
        self._has_begun = False
        """What lay on the board before was read: whatever comes from now on was asked just now."""

    @property
    def held(self) -> list[Intervention]:
        """What holds now, the one that was pinned last at the end."""
        now_ms = self._now_ms()
        return [one for one in self._held.values() if one.holds(now_ms)]

    @property
    def effective(self) -> list[Intervention]:
        """What of `held` has an effect: neither replaced by a later one, nor taken back."""
        kinds = [one.event_type for one in self._listeners()] if self._held else []
        classes = {kind.name: kind.priority for kind in kinds}
        if self._effective[:2] != (self._sorted, classes):
            self._effective = self._sorted, classes, self._sorted.effective(classes.get)
        now_ms = self._now_ms()
        return [one for one in self._effective[2] if one.holds(now_ms)]

    def stance(self, event_type: EventType) -> Stance:
        """Return how an event type is to go on now."""
        name, priority = event_type.name, event_type.priority
        said, capped = self._sorted.modes.last(name, priority), self._sorted.caps.last(name, priority)
        cap = None if capped is None or capped.rate is None else Cap(capped.id, capped.rate)
        return Stance(cap=cap) if said is None else Stance(said.mode, said.by, said.why, cap)

    async def begin(self) -> None:
        """Learn what holds before anything is read; for some seconds at most, for without a board all runs."""
        try:
            async with asyncio.timeout(FIRST_LOOK_SECONDS):
                await self._read()
        except TimeoutError:
            self._failed(f"no answer within {FIRST_LOOK_SECONDS:g} s")
        self._settle()
        await self._divide_caps()

    async def run(self) -> None:
        """Look again every second until cancelled."""
        while True:
            await self._read()
            self._settle()
            await self._divide_caps()
            await self._answer()
            await self._moves.attend()
            await asyncio.sleep(LOOK_SECONDS)

    async def _read(self) -> None:
        try:
            news = await self._board.news()
        except LogError as error:
            self._failed(str(error))
            return
        if self._is_unread:
            self._is_unread = False
            _say.info("board_read")
        for note in news:
            asked = self._take(note) or self._moves.take(note)
            if self._has_begun and asked is not None:
                self._tell_if_past(asked)
        self._has_begun = True

    def _failed(self, why: str) -> None:
        if not self._is_unread:
            self._is_unread = True
            _say.warning("board_unread", why=why, effect="what was asked before still holds; tried again every second")

    def _tell_if_past(self, asked: Intervention | Plan) -> None:
        """Say that what came just now is over by this replica's clock: nothing of it is done here, nor answered."""
        if asked.is_past(now_ms := self._now_ms()):
            _say.warning(
                "asked_too_late",
                id=asked.id,
                by=asked.by,
                over_for_s=round((now_ms - asked.until_ms) / 1000, 1),
                effect="it is passed over here",
                remedy="if it was asked just now, this replica's clock is ahead: set the clocks right and ask again",
            )

    def _take(self, note: Note) -> Intervention | None:
        """Take what is new on the board; return what is asked for by it, if anything is."""
        try:
            said = read(note)
        except ValueError as error:
            _say.warning("note_not_understood", key=note.key[:100], why=str(error), effect="it is passed over")
            return None
        if isinstance(said, Intervention):
            self._is_settled = False
            self._held.pop(said.id, None)
            self._held[said.id] = said
        elif said is None and note.value is None:
            taken_back = next((one for one in self._held.values() if one.key == note.key), None)
            if taken_back is not None:
                self._drop(taken_back)
        while len(self._held) > MOST_HELD:
            now_ms, oldest = self._now_ms(), next(iter(self._held.values()))
            self._drop(next((one for one in self._held.values() if not one.holds(now_ms)), oldest))
        return said if isinstance(said, Intervention) and said.ended_by is None else None

    def _settle(self) -> None:
        """End what is over; if that, or news, has changed what holds, let every listener go on as it now has to."""
        now_ms = self._now_ms()
        for one in [one for one in self._held.values() if not one.holds(now_ms)]:
            if one.is_past(now_ms):
                self._drop(one)
            else:
                self._end(one)
        if self._is_settled:
            return
        self._is_settled = True
        self._sort()
        self._tell()
        for listener in self._listeners():
            stance = self.stance(listener.event_type)
            if stance != listener.stance:
                listener.take(stance)
        if self._caps is not None:
            self._caps.release()

    def _sort(self) -> None:
        """Find what says the mode of a type, what its cap, and what the policy of a route; have routes steered."""
        self._sorted = Sorted(self.held)
        steered = self._sorted.policies.of_routes
        policies = {route: cast("Policy", one.policy) for route, one in steered.items() if one.policy}
        if policies != self._policies:
            self._policies = policies
            self._steer(policies)

    def _tell(self) -> None:
        """Tell what begins to have an effect, and what has none any more, by whose later one."""
        effective = {one.id for one in self.effective}
        class_of = self._effective[1].get
        held = self.held
        for place, one in enumerate(held):
            has_effect = one.mode is Mode.RUN or one.id in effective
            if has_effect and one.id not in self._begun:
                self._begun.add(one.id)
                self._told(one, "begun")
            elif not has_effect:
                later = next(its for its in reversed(held[place + 1 :]) if hides(its, one, class_of))
                self._end(replace(one, ended_by=later.by, ended_why=later.why))

    def _drop(self, one: Intervention) -> None:
        del self._held[one.id]
        self._answered.pop(one.id, None)
        self._end(one)

    def _end(self, one: Intervention) -> None:
        if one.id in self._begun:
            self._is_settled = False
            self._begun.remove(one.id)
            self._told(one, "ended")

    def _told(self, one: Intervention, phase: str) -> None:
        names: dict[str, object] = {"types": list(one.types), "classes": list(one.classes)}
        if one.routes:
            names = {"routes": list(one.routes), "policy": one.policy}
        ended = {} if one.ended_by is None else {"ended_by": one.ended_by, "ended_why": one.ended_why}
        _say.warning(f"intervention_{phase}", id=one.id, mode=one.mode.value, **names, by=one.by, why=one.why, **ended)
        self._record(
            records.Intervention(
                id=one.id,
                mode=one.mode.value,
                types=list(one.types),
                classes=list(one.classes),
                by=one.by,
                why=one.why,
                until_ms=one.until_ms,
                phase=phase,
                ended_by=one.ended_by,
                ended_why=one.ended_why,
                rate=one.rate,
                routes=list(one.routes) or None,
                policy=one.policy,
            )
        )

    async def _divide_caps(self) -> None:
        if self._caps is None:
            return
        try:
            await self._caps.follow()
        except LogError as error:
            if not self._is_undivided:
                effect = "caps hold as they were divided last, new ones are not obeyed; tried again every second"
                _say.warning("caps_undivided", why=str(error), effect=effect)
            self._is_undivided = True
        else:
            self._is_undivided = False

    async def _answer(self) -> None:
        member = self._member()
        if not member:
            return
        for one in list(self._held.values()):
            has_ended = one.ended_by is not None
            if one.is_past(self._now_ms()) or self._answered.get(one.id) == (member, has_ended):
                continue
            if one.mode is Mode.CAP and not has_ended and self._caps is not None and not self._caps.holds(one.id):
                continue
            kinds = [it.event_type for it in self._listeners()]
            named = sum(one.names(kind.name, kind.priority, kind.route) for kind in kinds)
            said = Answer(one.id, self._instance, member, named, self._now_ms(), has_ended)
            try:
                await self._board.pin(said.key, said.as_json())
            except LogError as error:
                _say.warning("answer_not_pinned", id=one.id, why=str(error), effect="tried again in a second")
                return
            self._answered[one.id] = member, has_ended

    def _now_ms(self) -> int:
        return int(self._wall() * 1000)
