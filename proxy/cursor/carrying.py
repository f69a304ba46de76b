"""Has a plan carried out: by the replicas, or where there is none by the command itself (docs/design/0045)."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol

import structlog

from proxy.bridge.move import NEVER_MOVED, Move, Moved, serial
from proxy.cursor.choice import Plans
from proxy.errors import AssignmentLostError, LogError
from proxy.kafka_log.own_topic import Member
from proxy.model import Partition
from proxy.operations.intervening import GroupBoard
from proxy.operations.plan import Plan
from proxy.positions.identity import Committed

_say = structlog.get_logger("tidegate.moves")

_LOOK_SECONDS = 0.25

Held = Callable[[Collection[Partition]], AbstractAsyncContextManager[None]]
"""Within it nobody else reads or commits partitions of one topic. Raises `LogError` if that can't be had."""


class Hands(Protocol):
    """Who may commit for an empty group; see `KafkaCursors` and `NakadiCursors`."""

    async def committed(self) -> Mapping[Partition, Committed | None]:
        """Return everything that the group has committed; None is what can't be told now."""
        ...

    async def commit(self, offsets: Mapping[Partition, Committed]) -> Collection[Partition]:
        """Commit for a group without members; return what was taken. Raises `AssignmentLostError` if it has one."""
        ...


class Carried(NamedTuple):
    """What became of it."""

    left: list[Partition]
    """Of which the move was not made in time."""
    silent: list[Member]
    """Replicas that did not answer in time."""
    members: list[Member]
    moved: list[Moved]
    """By this command, the group having no member."""


async def carry_out(
    wanted: Mapping[Partition, str],
    alive: Sequence[Plan],
    hands: Hands,
    board: GroupBoard,
    plans: Plans,
    seconds: float,
) -> Carried:
    """Wait until each partition's move is made, or a later one; `wanted`: ids; `alive`: their plans.

    Raises `LogError` if Kafka does not tell at the end.
    """
    clock = asyncio.get_running_loop().time
    end = clock() + seconds
    moved: list[Moved] = []
    while True:
        try:
            members = await board.members()
            for plan in [] if members else alive:
                moved += await _commit(plan.moves(), hands)
            committed = await hands.committed()
            members = await board.members()
            plans.take(await board.news())
        except LogError as error:
            if clock() >= end:
                raise LogError(f"it is pinned, but whether it is made is not known: {error}") from error
        else:
            left = [at for at, plan_id in wanted.items() if not is_made(committed.get(at), plan_id)]
            heard = plans.answered(set(wanted.values()))
            silent = [one for one in members if one.id not in heard]
            if clock() >= end or not (left or silent):
                return Carried(sorted(left), silent, members, moved)
        await asyncio.sleep(_LOOK_SECONDS)


async def make(plan: Plan, hands: Hands, held: Held) -> Carried:
    """Make a plan at a log that has no board, one topic after the other, each held still meanwhile."""
    moved: list[Moved] = []
    moves = plan.moves()
    for topic in plan.topics:
        ours = {at: move for at, move in moves.items() if at.topic == topic.topic}
        try:
            async with held(ours):
                moved += await _commit(ours, hands)
        except LogError as error:
            _say.error("cursors_not_moved", topic=topic.topic, why=str(error))
    return Carried(sorted(moves.keys() - {one.partition for one in moved}), [], [], moved)


async def _commit(moves: Mapping[Partition, Move], hands: Hands) -> list[Moved]:
    """Make what is left of a plan; nothing if somebody has joined."""
    committed = await hands.committed()
    due: list[Moved] = []
    for at, move in moves.items():
        known = committed.get(at)
        if at in committed and known is None:
            continue  # it can't be told now
        if known is not None and (serial(known.move) >= serial(move.id) or _is_of_another(known, move.topic_id)):
            if serial(known.move) >= serial(move.id):
                continue
            known = None
        done = move.first if known is None else known.offset
        due.append(Moved(at, move, done, move.end(done)))
    if not due:
        return []
    try:
        taken = await hands.commit({one.partition: Committed(one.to, one.move.topic_id, one.move.id) for one in due})
    except AssignmentLostError:
        return []  # a replica has come, and finds the plan on the board
    return [one for one in due if one.partition in taken]


def _is_of_another(known: Committed, topic_id: str) -> bool:
    return bool(known.topic_id and topic_id and known.topic_id != topic_id)


def is_made(committed: Committed | None, plan_id: str) -> bool:
    """Return whether what is committed carries a plan's move, or a later one."""
    return committed is not None and serial(committed.move or NEVER_MOVED) >= serial(plan_id)
