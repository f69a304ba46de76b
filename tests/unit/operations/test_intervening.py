"""Whoever asks waits for every replica that is in the group, and no longer than 10 s."""

import asyncio
from collections.abc import Callable

import pytest

from proxy.errors import LogError
from proxy.kafka_log.own_topic import Member
from proxy.model import Mode, Note
from proxy.operations import intervening
from proxy.operations.intervening import Replica, answered
from proxy.operations.intervention import Answer, Intervention
from proxy.operations.pinned import Pinned

ONE, OTHER = Member("member-1", "10.0.0.1"), Member("member-2", "10.0.0.2")
PAUSE = Intervention("1", Mode.PAUSE, (), ("P3",), "ann", None, 1_000, 100_000)


def answer(member: Member) -> Answer:
    return Answer("1", f"host of {member.id}", member.id, 2, 2_000)


class FakeGroup:
    """Each look tells what the next of `looks` does; the last one goes on for ever."""

    def __init__(self, *looks: Callable[[], tuple[list[Member], list[Answer]]]) -> None:
        self._looks = list(looks)
        self._answers: list[Answer] = []

    async def members(self) -> list[Member]:
        look = self._looks.pop(0) if len(self._looks) > 1 else self._looks[0]
        members, self._answers = look()
        return members

    async def news(self) -> list[Note]:
        return [Note(one.key, one.as_json()) for one in self._answers]

    async def pin(self, key: str, value: bytes | None) -> None:
        raise AssertionError(key, value)


def look(members: list[Member], *answers: Answer) -> Callable[[], tuple[list[Member], list[Answer]]]:
    return lambda: (members, list(answers))


def fail() -> tuple[list[Member], list[Answer]]:
    raise LogError("Kafka is away")


@pytest.fixture(autouse=True)
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intervening, "ANSWER_SECONDS", 0.2)
    monkeypatch.setattr(intervening, "_LOOK_SECONDS", 0.001)


async def ask(group: FakeGroup) -> list[Replica]:
    async with asyncio.timeout(10):
        return await answered(group, Pinned(lambda _: None), PAUSE)


async def test_it_is_done_when_every_member_has_answered_one_after_the_other_and_one_came_meanwhile() -> None:
    group = FakeGroup(look([ONE]), fail, look([ONE, OTHER], answer(ONE)), look([ONE, OTHER], answer(OTHER)))
    assert await ask(group) == [Replica(ONE, answer(ONE)), Replica(OTHER, answer(OTHER))]


async def test_the_silent_one_is_named_when_the_time_is_over() -> None:
    group = FakeGroup(look([ONE, OTHER], answer(ONE)))
    assert await ask(group) == [Replica(ONE, answer(ONE)), Replica(OTHER, None)]


async def test_a_member_that_has_left_is_waited_for_no_longer() -> None:
    group = FakeGroup(look([ONE, OTHER], answer(ONE)), look([ONE]))
    assert await ask(group) == [Replica(ONE, answer(ONE))]


async def test_there_is_nobody_to_wait_for_when_the_group_has_no_member() -> None:
    assert await ask(FakeGroup(look([], answer(ONE)))) == []


async def test_it_says_that_the_intervention_is_pinned_when_kafka_goes_away_for_good() -> None:
    with pytest.raises(LogError, match="it is pinned, but who has answered is not known: Kafka is away"):
        await ask(FakeGroup(look([ONE]), fail))
