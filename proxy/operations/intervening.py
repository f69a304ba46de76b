"""Waits until every replica of the group has answered an intervention."""

import asyncio
from typing import TYPE_CHECKING, NamedTuple, Protocol

from proxy.errors import LogError
from proxy.operations.board import Board
from proxy.operations.intervention import Answer, Intervention
from proxy.operations.pinned import Pinned

if TYPE_CHECKING:
    from collections.abc import Iterable

    from proxy.kafka_log.own_topic import Member

ANSWER_SECONDS = 10.0
"""A replica looks every second for what is new on a board, and every 5 s for a board."""
_LOOK_SECONDS = 0.25


class GroupBoard(Board, Protocol):
    """The board, and who is in the group whose board it is."""

    async def members(self) -> "list[Member]":
        """Return the replicas that are in the group now. Raises `LogError`."""
        ...


class Replica(NamedTuple):
    """A member of the group, and what it answered."""

    member: "Member"
    answer: Answer | None


async def answered(board: GroupBoard, pinned: Pinned, intervention: Intervention) -> list[Replica]:
    """Return every member of the group with its answer, after 10 s those that gave none, too.

    Raises `LogError` if Kafka does not tell at the end who has answered.
    """
    clock = asyncio.get_running_loop().time
    end = clock() + ANSWER_SECONDS
    while True:
        try:
            found = await replicas(board, pinned, intervention)
        except LogError as error:
            if clock() >= end:
                raise LogError(f"it is pinned, but who has answered is not known: {error}") from error
        else:
            if clock() >= end or all(replica.answer is not None for replica in found):
                return found
        await asyncio.sleep(_LOOK_SECONDS)


async def replicas(board: GroupBoard, pinned: Pinned, intervention: Intervention) -> list[Replica]:
    """Return every member of the group with its answer to the intervention. Raises `LogError`."""
    members = await board.members()
    pinned.take(await board.news())
    return given(members, pinned, intervention)


def given(members: "Iterable[Member]", pinned: Pinned, intervention: Intervention) -> list[Replica]:
    """Return each of these members with what it is known to have answered."""
    answers = pinned.answers(intervention)
    return [Replica(member, answers.get(member.id)) for member in members]
