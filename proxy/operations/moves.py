"""What people want of cursors, handed to the log and answered by this replica (docs/design/0045)."""

from collections.abc import Callable, Collection, Mapping

import structlog

from proxy.bridge.move import Move, serial
from proxy.errors import LogError
from proxy.model import Note, Partition
from proxy.operations.board import Board
from proxy.operations.intervention import Answer
from proxy.operations.plan import Plan, read_plan

_say = structlog.get_logger("tidegate.moves")

MOST_HELD = 100
"""Plans at a time; of more the oldest are passed over."""


class Moves:
    """Keeps the plans that are alive; of two that name a partition only the later one counts."""

    def __init__(
        self,
        board: Board,
        move: Callable[[Mapping[Partition, Move]], Collection[Partition]],
        topics: Callable[[], Collection[str]],
        member: Callable[[], str],
        *,
        wall: Callable[[], float],
        instance: str,
    ) -> None:
        """`move` is `EventLog.move`, `topics` tells what is read here, `wall` is in seconds since 1970."""
        self._board = board
        self._move = move
        self._topics = topics
        self._member = member
        self._wall = wall
        self._instance = instance
        self._plans: dict[str, Plan] = {}
        """By key."""
        self._answered: dict[str, str] = {}
        """As which member, by key."""

    def take(self, note: Note) -> Plan | None:
        """Take what is new on the board; return the plan in it, if it is one."""
        self._plans.pop(note.key, None)
        self._answered.pop(note.key, None)
        try:
            plan = read_plan(note)
        except ValueError as error:
            _say.warning("note_not_understood", key=note.key[:100], why=str(error), effect="it is passed over")
            return None
        if plan is not None:
            self._plans[plan.key] = plan
            if len(self._plans) > MOST_HELD:
                del self._plans[next(iter(self._plans))]
        return plan

    async def attend(self) -> None:
        """Let the log make what is wanted, and answer the plans of which nothing is left to do here."""
        now_ms = int(self._wall() * 1000)
        self._plans = {key: plan for key, plan in self._plans.items() if not plan.is_past(now_ms)}
        wanted: dict[Partition, Move] = {}
        for plan in sorted(self._plans.values(), key=lambda plan: serial(plan.id)):
            wanted |= plan.moves()
        left = self._move(wanted)
        open_ids = {wanted[partition].id for partition in left}
        member = self._member()
        for plan in [plan for plan in self._plans.values() if member and plan.id not in open_ids]:
            if self._answered.get(plan.key) != member:
                await self._answer(plan, member, now_ms)

    async def _answer(self, plan: Plan, member: str, now_ms: int) -> None:
        topics = self._topics()
        served = [one.topic for one in plan.topics if one.topic in topics]
        said = Answer(plan.id, self._instance, member, len(served), now_ms)
        try:
            await self._board.pin(said.key, said.as_json())
        except LogError as error:
            _say.warning("answer_not_pinned", id=plan.id, why=str(error), effect="tried again in a second")
        else:
            if plan.key not in self._answered:  # the answer of another member of the same process is no news
                told = {"topics": len(served), "topic": served[0] if len(served) == 1 else None}
                _say.warning(f"{plan.direction}_done", id=plan.id, by=plan.by, why=plan.why, **told)
            self._answered[plan.key] = member
