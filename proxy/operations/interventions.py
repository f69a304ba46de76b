"""What a person has asked of the group, obeyed and answered by this replica (docs/design/0043-interventions.md)."""

import asyncio
from collections.abc import Callable, Iterable

import structlog

from proxy import records
from proxy.bridge.listener import Listener
from proxy.errors import LogError
from proxy.model import Note, Stance
from proxy.operations.board import Board
from proxy.operations.intervention import Answer, Intervention, read
from proxy.settings import EventType

_say = structlog.get_logger("tidegate.interventions")

LOOK_SECONDS = 1.0
"""Between two looks at the board, and at the clock."""
FIRST_LOOK_SECONDS = 5.0
"""A replica that starts waits so long at most to learn what holds."""
MOST_HELD = 1_000
"""Interventions at a time; of more the oldest are passed over."""
_RUN = Stance()


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
    ) -> None:
        """`member` tells what the group calls this replica, empty if it is in none; `wall` is in seconds since 1970."""
        self._board = board
        self._listeners = listeners
        self._member = member
        self._record = record
        self._wall = wall
        self._instance = instance
        self._held: dict[str, Intervention] = {}
        """By id, in the order in which they were pinned last; some may have ended since the last look."""
        self._answered: dict[str, str] = {}
        """As which member, by id."""
        self._begun: set[str] = set()
        """Ids of which it was told that they hold."""
        self._is_settled = True
        """Nothing holds, and every listener goes on by itself."""
        self._is_unread = False
        """The last look failed."""

    @property
    def held(self) -> list[Intervention]:
        """What holds now, the one that was pinned last at the end."""
        now_ms = self._now_ms()
        return [one for one in self._held.values() if one.holds(now_ms)]

    def stance(self, event_type: EventType) -> Stance:
        """Return how an event type is to go on now."""
        for one in reversed(self.held):
            if one.names(event_type.name, event_type.priority):
                return Stance(one.mode, one.by, one.why)
        return _RUN

    async def begin(self) -> None:
        """Learn what holds before anything is read; for some seconds at most, for without a board all runs."""
        try:
            async with asyncio.timeout(FIRST_LOOK_SECONDS):
                await self._read()
        except TimeoutError:
            self._failed(f"no answer within {FIRST_LOOK_SECONDS:g} s")

    async def run(self) -> None:
        """Look again every second until cancelled."""
        while True:
            await self._read()
            self._settle()
            await self._answer()
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
            self._take(note)

    def _failed(self, why: str) -> None:
        if not self._is_unread:
            self._is_unread = True
            _say.warning("board_unread", why=why, effect="what was asked before still holds; tried again every second")

    def _take(self, note: Note) -> None:
        try:
            said = read(note)
        except ValueError as error:
            _say.warning("note_not_understood", key=note.key[:100], why=str(error), effect="it is passed over")
            return
        if isinstance(said, Intervention):
            before = self._held.pop(said.id, None)
            self._held[said.id] = said
            if before != said and said.holds(self._now_ms()):
                self._begun.add(said.id)
                self._told(said, "begun")
        elif said is None and note.value is None:
            taken_back = next((one for one in self._held.values() if one.key == note.key), None)
            if taken_back is not None:
                self._end(taken_back)
        while len(self._held) > MOST_HELD:
            self._end(next(iter(self._held.values())))

    def _settle(self) -> None:
        """End what is over, and let every listener go on as it now has to."""
        now_ms = self._now_ms()
        for one in [one for one in self._held.values() if not one.holds(now_ms)]:
            self._end(one)
        if self._is_settled and not self._held:
            return
        self._is_settled = not self._held
        for listener in self._listeners():
            stance = self.stance(listener.event_type)
            if stance != listener.stance:
                listener.take(stance)

    def _end(self, one: Intervention) -> None:
        del self._held[one.id]
        self._answered.pop(one.id, None)
        if one.id in self._begun:
            self._begun.remove(one.id)
            self._told(one, "ended")

    def _told(self, one: Intervention, phase: str) -> None:
        names = {"types": list(one.types), "classes": list(one.classes)}
        _say.warning(f"intervention_{phase}", id=one.id, mode=one.mode.value, **names, by=one.by, why=one.why)
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
            )
        )

    async def _answer(self) -> None:
        member = self._member()
        if not member:
            return
        for one in self.held:
            if self._answered.get(one.id) == member:
                continue
            named = sum(one.names(kind.name, kind.priority) for kind in (it.event_type for it in self._listeners()))
            said = Answer(one.id, self._instance, member, named, self._now_ms())
            try:
                await self._board.pin(said.key, said.as_json())
            except LogError as error:
                _say.warning("answer_not_pinned", id=one.id, why=str(error), effect="tried again in a second")
                return
            self._answered[one.id] = member

    def _now_ms(self) -> int:
        return int(self._wall() * 1000)
