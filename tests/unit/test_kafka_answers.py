"""What the Kafka adapter makes of answers that a healthy Kafka rarely gives."""

import asyncio
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition, errors
from aiokafka.client import ConnectionGroup

from proxy.errors import AssignmentLostError, LogError
from proxy.kafka_log import KafkaLog
from proxy.kafka_log import group as group_module
from proxy.kafka_log.assignor import Assignor
from proxy.kafka_log.client import Reach
from proxy.kafka_log.group import GroupCoordinator
from proxy.kafka_log.inquiry import Inquiry
from proxy.kafka_log.questions import Question
from proxy.kafka_log.rebalances import Rebalances
from proxy.model import Partition
from proxy.positions.identity import Committed
from proxy.positions.port import LATEST, Membership, Taken
from proxy.settings import Limits, LogSettings

SETTINGS = LogSettings(hosts=["h:1"], group="g")
ONE, TWO, THREE = (Partition("orders", number) for number in range(3))
UNKNOWN_TOPIC = errors.UnknownTopicOrPartitionError.errno
UNSTABLE = 88
NOT_LEADER = errors.NotLeaderForPartitionError.errno

Answer = Callable[[int], Any]


class Client:
    """A cluster of two brokers: `answers` says what each gives, an exception is raised."""

    def __init__(self, answer: Answer, leaders: Mapping[Partition, int | None] | None = None) -> None:
        self.asked: list[int] = []
        self.refreshed = 0
        self._answer = answer
        self._leaders = leaders or {}
        nodes = [SimpleNamespace(nodeId=1), SimpleNamespace(nodeId=2)]
        self.on_metadata: list[Callable[[], None]] = []
        self.cluster = SimpleNamespace(brokers=lambda: nodes, leader_for_partition=self._leaders.get)

    async def send(self, node: int, request: Any, group: ConnectionGroup = ConnectionGroup.DEFAULT) -> Any:
        del group
        self.asked.append(node)
        answer = self._answer(node)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(request, Question):
            return SimpleNamespace(response=answer, keep=lambda _: None)
        return answer

    async def ask_any(self, request: Any, kind: str) -> Any:
        del kind
        return await self.send(1, request)

    async def set_topics(self, topics: set[str]) -> None: ...

    async def coordinator_lookup(self, _kind: Any, _group: str) -> int:
        return 1

    def force_metadata_update(self) -> None:
        self.refreshed += 1


def inquiry(client: Client) -> Inquiry:
    made: Any = client
    return Inquiry(made, SETTINGS, Reach(["h:1"]))


def offsets(*answers: tuple[Partition, int, int]) -> Any:
    return SimpleNamespace(topics=[("orders", [(at.number, error, -1, offset) for at, error, offset in answers])])


async def test_the_question_fails_when_no_broker_answers() -> None:
    with pytest.raises(LogError, match="does not tell its topics"):
        await inquiry(Client(lambda _: errors.NodeNotReadyError())).survey(["orders"])


async def test_partitions_are_left_out_and_looked_up_when_their_leader_is_gone_or_silent() -> None:
    def answer(node: int) -> Any:
        return errors.KafkaConnectionError() if node == 2 else offsets((ONE, 0, 70), (THREE, NOT_LEADER, -1))

    client = Client(answer, {ONE: 1, TWO: 2, THREE: 1, Partition("orders", 3): None})
    found = await inquiry(client).offsets(dict.fromkeys([ONE, TWO, THREE, Partition("orders", 3)], LATEST))
    assert found == {ONE: 70}
    assert client.refreshed == 2, "for the one without a leader and the one whose leader is another now"


async def test_a_second_question_waits_too_when_the_first_has_the_leaders_looked_up() -> None:
    leaders: dict[Partition, int | None] = {ONE: None}

    class Learning(Client):
        async def set_topics(self, topics: set[str]) -> None:
            await asyncio.sleep(0)
            leaders[ONE] = len(topics)

    client = inquiry(Learning(lambda _: offsets((ONE, 0, 70)), leaders))
    assert await asyncio.gather(client.offsets({ONE: LATEST}), client.ends([ONE])) == [{ONE: 70}, {ONE: 70}]


async def test_a_partition_is_left_out_without_looking_up_when_its_error_is_another() -> None:
    refused = errors.TopicAuthorizationFailedError.errno
    client = Client(lambda _: offsets((ONE, 0, 70), (TWO, refused, -1)), {ONE: 1, TWO: 1})
    assert await inquiry(client).offsets({ONE: LATEST, TWO: LATEST}) == {ONE: 70}
    assert client.refreshed == 0


@pytest.mark.parametrize("failure", [errors.KafkaConnectionError(), ZeroDivisionError()])
async def test_the_question_fails_when_no_leader_answers(failure: Exception) -> None:
    client = Client(lambda _: failure, {ONE: 1, TWO: 2})
    with pytest.raises(LogError if isinstance(failure, errors.KafkaError) else ZeroDivisionError):
        await inquiry(client).offsets({ONE: LATEST, TWO: LATEST})


def coordinator(answer: Answer, deadline: float = 5.0, instance: str | None = None) -> GroupCoordinator:
    made: Any = Client(answer)
    settings = LogSettings(hosts=["h:1"], group="g", group_instance_id=instance)
    return GroupCoordinator(made, settings, Reach(["h:1"]), deadline)


@pytest.mark.parametrize(("instance", "is_asked"), [(None, False), ("one", True)])
async def test_the_instance_id_is_asked_about_when_a_static_member_is_fenced(
    instance: str | None, is_asked: bool
) -> None:
    unknown = SimpleNamespace(error_code=errors.UnknownMemberIdError.errno)
    with pytest.raises(AssignmentLostError) as told:
        await coordinator(lambda _: unknown, instance=instance).affirm(Membership(5, "me"))
    assert ("group_instance_id" in str(told.value)) is is_asked


async def test_the_progress_is_a_log_error_when_the_coordinator_refuses() -> None:
    with pytest.raises(LogError, match="does not tell its progress"):
        await coordinator(lambda _: errors.GroupAuthorizationFailedError()).progress()


async def test_the_progress_is_a_log_error_when_the_coordinator_is_sought_for_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(group_module, "_PROGRESS_SECONDS", 0.02)
    with pytest.raises(LogError, match=r"not told within 0\.02 s"):
        await coordinator(lambda _: errors.CoordinatorNotAvailableError()).progress()


async def test_no_partition_counts_as_never_committed_when_the_answer_can_not_tell_of_it() -> None:
    told = [("orders", [(0, 7, 3, "", 0), (1, -1, -1, "", UNSTABLE)]), ("gone", [(0, -1, -1, "", UNKNOWN_TOPIC)])]
    with pytest.raises(LogError, match="refuses"):
        await coordinator(lambda _: SimpleNamespace(topics=told, error_code=0)).committed()
    del told[0][1][1]
    answer = await coordinator(lambda _: SimpleNamespace(topics=told, error_code=0)).committed()
    assert answer == {ONE: Committed(7, "", leader_epoch=3), Partition("gone", 0): None}


async def test_a_commit_is_a_log_error_when_it_is_refused_or_takes_too_long() -> None:
    membership = Membership(1, "me")
    with pytest.raises(LogError, match="coordinator refuses"):
        await coordinator(lambda _: errors.GroupAuthorizationFailedError()).commit(membership, {ONE: Committed(5, "")})
    with pytest.raises(LogError, match=r"no answer .* within 0\.02 s"):
        await coordinator(lambda _: errors.CoordinatorNotAvailableError(), 0.02).commit(
            membership, {ONE: Committed(5, "")}
        )


async def test_a_commit_counts_for_what_the_answer_says_when_a_topic_is_unknown_or_refused() -> None:
    unknown, refused = errors.UnknownTopicOrPartitionError.errno, errors.TopicAuthorizationFailedError.errno
    answer = SimpleNamespace(topics=[("orders", [(0, 0), (1, unknown)]), ("secret", [(0, refused)])])
    wanted = {ONE: Committed(5, ""), TWO: Committed(5, ""), Partition("secret", 0): Committed(5, "")}
    taken = await coordinator(lambda _: answer).commit(Membership(1, "me"), wanted)
    assert taken == Taken(frozenset({ONE}), frozenset({"secret"}))


async def test_nothing_is_asked_when_the_log_has_been_left() -> None:
    log = KafkaLog(SETTINGS, Limits())
    await log.stop()
    for question in (log.survey(["orders"]), log.progress()):
        with pytest.raises(LogError, match="has been left"):
            await question
    assert await log.lags({Partition("orders", 0): 5}) == {}
    assert await log.poll(0.0) == {}


async def test_poll_raises_what_went_wrong_in_a_rebalance_or_in_the_keeper() -> None:
    log = KafkaLog(SETTINGS, Limits())
    owner_s = ZeroDivisionError("in the owner")

    def begin(*_: object) -> None:
        raise owner_s

    consumer: Any = SimpleNamespace(_coordinator=Membership(5, "me"))
    positions: Any = SimpleNamespace(begin=begin)
    unshared: Any = SimpleNamespace(begin=lambda _: None)
    rebalances = Rebalances(consumer, Assignor(), positions, unshared, Reach([]), log._on_failure)
    rebalances.on_partitions_assigned({TopicPartition(*ONE)})
    with pytest.raises(ZeroDivisionError, match="in the owner"):
        await log.poll(0.0)


class Leaving:
    """A consumer whose stop goes wrong in a way."""

    def __init__(self, stop: Callable[[], Any]) -> None:
        self.closed = 0
        self.stop = stop
        self._client = SimpleNamespace(close=self._close)
        self._coordinator = self._fetcher = None

    async def _close(self) -> None:
        self.closed += 1


async def forever() -> None:
    await asyncio.Event().wait()


async def failing(error: Exception) -> None:
    raise error


async def test_the_connections_are_closed_when_leaving_the_group_hangs_or_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("proxy.kafka_log.consumer._STOP_SECONDS", 0.02)
    for stop in (forever, lambda: failing(errors.KafkaConnectionError())):
        log, consumer = KafkaLog(SETTINGS, Limits()), Leaving(stop)
        log._consumer = consumer
        await log.stop()
        assert consumer.closed == 1
    log, consumer = KafkaLog(SETTINGS, Limits()), Leaving(lambda: failing(ZeroDivisionError()))
    log._consumer = consumer
    with pytest.raises(ZeroDivisionError):
        await log.stop()
    assert consumer.closed == 1
