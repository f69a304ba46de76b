"""The event log on a real Kafka that restarts, refuses, forgets and changes under it."""

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, MutableMapping
from typing import Any
from uuid import uuid4

import aiokafka.record._crecords.default_records as library_records
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.producer import message_accumulator
from aiokafka.producer import producer as library_producer
from aiokafka.record.default_records import _DefaultRecordBatchBuilderPy
from structlog.testing import capture_logs

from load.stack import Stack, probes
from load.stack.kafka_settings import FORBIDDEN_PREFIX, USERS
from proxy.bridge.event_log import EventLog
from proxy.errors import AssignmentLostError, LogError, RefusedLoginError
from proxy.kafka_log import KafkaLog
from proxy.kafka_log.unpacking import DECODERS
from proxy.model import Partition
from proxy.settings import Limits, LogSettings
from tests.contract.log_adapters import DEADLINE, KafkaWorld, Owner, poll_until, receive, until

LIMITS = Limits(commit_deadline=2.0, drain_deadline=5.0)

RESTART_SECONDS = 240
"""A Kafka alone on a busy machine takes up to a minute to be back."""

Said = list[MutableMapping[str, Any]]
Join = Callable[..., Awaitable[tuple[EventLog, Owner]]]


@pytest.fixture
async def world(stack: Stack) -> AsyncIterator[KafkaWorld]:
    async with KafkaWorld.open(stack.kafka) as world:
        yield world


@pytest.fixture
def topic() -> str:
    return f"orders.{uuid4().hex[:8]}"


@pytest.fixture
def said() -> Iterator[Said]:
    with capture_logs() as said:
        yield said


@pytest.fixture
async def join(stack: Stack, topic: str) -> AsyncIterator[Join]:
    """Start a member of one group that reads the topic; all are stopped at the end."""
    logs: list[EventLog] = []
    group = f"group-{uuid4().hex[:8]}"

    async def start(owner: Owner | None = None, **settings: Any) -> tuple[EventLog, Owner]:
        topics, owner = settings.pop("topics", {topic}), owner or Owner()
        chosen = {"hosts": [stack.kafka], "group": group, "session_timeout": 2.0, "metadata_age": 0.5} | settings
        log = KafkaLog(LogSettings.model_validate(chosen), LIMITS)
        logs.append(log)
        await log.start(owner)
        await log.subscribe(frozenset(topics))
        return log, owner

    yield start
    for log in logs:
        await log.stop()


def numbered(count: int, first: int = 0) -> list[bytes]:
    return [b"event %d" % number for number in range(first, first + count)]


def named(said: Said, event: str) -> Said:
    return [entry for entry in said if entry["event"] == event]


def login(stack: Stack, user: str = "tidegate", **security: Any) -> dict[str, Any]:
    return {
        "hosts": [stack.kafka_sasl],
        "security": {"protocol": "SASL_PLAINTEXT", "username": user, "password": USERS.get(user, "none")} | security,
    }


READ, DESCRIBE = 3, 8
"""What may be denied, as Kafka numbers it."""


def rights(stack: Stack, topic: str, *, deny: bool, what: int = READ) -> None:
    """Deny user tidegate to do something with the topic, or take the denial back; who may read may describe."""

    def text(value: str) -> bytes:
        return struct.pack(">h", len(value)) + value.encode()

    of_topic, literal, denied = 2, 3, 2
    create, delete = 30, 31
    rule = struct.pack(">b", of_topic) + text(topic) + struct.pack(">b", literal)
    rule += text("User:tidegate") + text("*") + struct.pack(">bb", what, denied)
    port = int(stack.kafka.partition(":")[2])
    probes.kafka_call(port, create if deny else delete, 1, struct.pack(">i", 1) + rule)


async def is_member(log: EventLog) -> bool:
    """Ask; a Kafka that came back late may have let the session expire, and the log joins anew."""
    try:
        return await log.affirm()
    except AssignmentLostError:
        return False


@pytest.mark.timeout(RESTART_SECONDS)
async def test_nothing_is_lost_and_it_is_said_once_when_kafka_restarts(
    stack: Stack, world: KafkaWorld, topic: str, join: Join, said: Said
) -> None:
    await world.create(topic, 2)
    await world.produce(topic, numbered(100))
    log, owner = await join()
    partition = Partition(topic, 0)
    await receive(log, owner, 100)
    await log.commit({partition: owner.received[partition][49].position})
    await asyncio.to_thread(stack.stop_kafka, kill=True)
    try:
        assert await log.lags({partition: None}) == {}
        assert await log.poll(0.1) == {}
        async with asyncio.timeout(3 * LIMITS.commit_deadline):
            with pytest.raises(LogError):
                await log.commit({partition: owner.received[partition][79].position})
            assert not await log.affirm()
        assert await log.lags({partition: None}) == {}
        assert len(named(said, "log_unavailable")) == 1
        assert not named(said, "log_available")
    finally:
        await asyncio.to_thread(stack.start_kafka)
    async with asyncio.timeout(DEADLINE):
        while not await log.lags({partition: None}) or not await is_member(log):
            owner.take(await log.poll(0.05))
    assert len(named(said, "log_unavailable")) == len(named(said, "log_available")) == 1
    async with KafkaWorld.open(stack.kafka) as restarted:
        await restarted.produce(topic, numbered(50, first=100))
    await poll_until(log, owner, lambda: b"event 149" in owner.values(partition))
    again = owner.values(partition)[100:]
    assert again in (numbered(50, first=100), numbered(100, first=50))
    await log.commit(owner.finish())
    assert (await log.lags(owner.final))[partition] == 0


@pytest.mark.timeout(RESTART_SECONDS)
async def test_it_waits_and_says_so_once_when_kafka_is_absent_at_the_start(
    stack: Stack, world: KafkaWorld, topic: str, join: Join, said: Said
) -> None:
    await world.create(topic)
    await world.produce(topic, numbered(3))
    await asyncio.to_thread(stack.stop_kafka)
    try:
        starting = asyncio.ensure_future(join())
        await until(lambda: bool(named(said, "log_unavailable")))
    finally:
        await asyncio.to_thread(stack.start_kafka)
    log, owner = await starting
    await receive(log, owner, 3)
    assert len(named(said, "log_unavailable")) == len(named(said, "log_available")) == 1


@pytest.mark.timeout(RESTART_SECONDS)
async def test_a_log_stops_in_time_when_kafka_is_gone_before_or_after_its_start(
    stack: Stack, world: KafkaWorld, topic: str, join: Join, said: Said
) -> None:
    await world.create(topic)
    running, owner = await join()
    await poll_until(running, owner, lambda: bool(owner.owned))
    await asyncio.to_thread(stack.stop_kafka)
    try:
        waiting = KafkaLog(LogSettings(hosts=[stack.kafka], group="never"), LIMITS)
        starting = asyncio.ensure_future(waiting.start(Owner()))
        await until(lambda: bool(named(said, "log_unavailable")))
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        async with asyncio.timeout(5):
            await waiting.stop()
            await running.stop()
    finally:
        await asyncio.to_thread(stack.start_kafka)


@pytest.mark.parametrize(
    "security",
    [
        {"mechanism": "PLAIN", "password": "wrong"},
        {"mechanism": "SCRAM-SHA-256", "password": "wrong"},
        {"mechanism": "SCRAM-SHA-512"},
        {"mechanism": "PLAIN", "username": "nobody"},
    ],
)
async def test_the_login_is_refused_by_name_when_credentials_are_wrong(stack: Stack, security: dict[str, str]) -> None:
    log = KafkaLog(LogSettings.model_validate({"group": "refused"} | login(stack, **security)), LIMITS)
    with pytest.raises(RefusedLoginError, match=r"log\.security") as refusal:
        async with asyncio.timeout(DEADLINE):
            await log.start(Owner())
    assert stack.kafka_sasl in str(refusal.value)
    await log.stop()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
async def test_events_are_read_when_the_login_is_right(
    stack: Stack, world: KafkaWorld, topic: str, join: Join, mechanism: str
) -> None:
    await world.create(topic)
    await world.produce(topic, numbered(3))
    log, owner = await join(**login(stack, mechanism=mechanism))
    await receive(log, owner, 3)
    assert owner.values(Partition(topic, 0)) == numbered(3)
    await log.commit(owner.finish())
    assert await log.affirm()


async def test_a_survey_tells_refused_topics_when_they_may_not_be_described_or_not_be_read(
    stack: Stack, world: KafkaWorld, topic: str, join: Join
) -> None:
    hidden, unreadable = f"{FORBIDDEN_PREFIX}{topic}", f"{topic}.unreadable"
    for name in (topic, hidden, unreadable):
        await world.create(name)
    await asyncio.to_thread(rights, stack, unreadable, deny=True)
    log, _ = await join(topics=(), **login(stack))
    wanted = [topic, hidden, unreadable, "no.such.topic"]

    async def are_refused() -> bool:
        return (await log.survey(wanted)).refused == {hidden, unreadable}

    await until(are_refused)
    survey = await log.survey(wanted)
    assert topic in survey.readable
    assert survey.missing == {"no.such.topic"}
    assert not survey.readable & {hidden, unreadable}


async def test_the_others_flow_on_when_reading_a_topic_is_refused(
    stack: Stack, world: KafkaWorld, topic: str, join: Join, said: Said
) -> None:
    other = f"{topic}.other"
    for name in (topic, other):
        await world.create(name)
        await world.produce(name, numbered(10))
    log, owner = await join(topics=(topic, other), **login(stack))
    await receive(log, owner, 20)
    await log.commit(owner.finish())
    await asyncio.to_thread(rights, stack, topic, deny=True)
    await poll_until(log, owner, lambda: owner.owned == {Partition(other, 0)})
    for name in (topic, other):
        await world.produce(name, numbered(10, first=10))
    await receive(log, owner, 30)
    assert owner.values(Partition(other, 0)) == numbered(20)
    assert (await log.survey([topic])).refused == {topic}
    await log.commit(owner.finish())
    await asyncio.to_thread(rights, stack, topic, deny=False)

    async def is_readable() -> bool:
        return topic in (await log.survey([topic])).readable

    await until(is_readable)
    await log.subscribe(frozenset({topic, other}))
    await receive(log, owner, 40)
    assert owner.values(Partition(topic, 0)) == numbered(20)
    assert [entry["topic"] for entry in named(said, "topic_dropped")] == [topic]


@pytest.mark.parametrize("denied", [(DESCRIBE,), (READ, DESCRIBE)], ids=["describe", "all"])
async def test_it_is_noticed_when_rights_of_a_topic_are_gone_whose_events_are_held_back(
    stack: Stack, world: KafkaWorld, topic: str, join: Join, denied: tuple[int, ...]
) -> None:
    other = f"{topic}.other"
    for name in (topic, other):
        await world.create(name)
        await world.produce(name, numbered(10))
    log, owner = await join(topics=(topic, other), metadata_age=0.5, **login(stack))
    await receive(log, owner, 20)
    await log.commit(owner.finish())
    log.pause([Partition(topic, 0)])
    assert not log.doubts_topics()
    for what in denied:
        await asyncio.to_thread(rights, stack, topic, deny=True, what=what)
    await poll_until(log, owner, log.doubts_topics)
    assert (await log.survey([topic, other])).refused == {topic}
    await log.subscribe(frozenset({other}))
    await poll_until(log, owner, lambda: owner.owned == {Partition(other, 0)})
    for what in denied:
        await asyncio.to_thread(rights, stack, topic, deny=False, what=what)


async def test_reading_begins_anew_when_a_topic_was_recreated_with_fewer_events(
    world: KafkaWorld, topic: str, join: Join
) -> None:
    await world.create(topic)
    await world.produce(topic, numbered(50))
    log, owner = await join()
    await receive(log, owner, 50)
    await log.commit(owner.finish())
    await world.delete(topic)
    await asyncio.sleep(0)
    async with asyncio.timeout(DEADLINE):
        while topic in (await log.survey([topic])).readable:
            owner.take(await log.poll(0.02))
    await world.create(topic)
    await world.produce(topic, [b"new %d" % number for number in range(5)])
    await poll_until(log, owner, lambda: len(owner.received[Partition(topic, 0)]) == 55)
    assert owner.values(Partition(topic, 0))[50:] == [b"new %d" % number for number in range(5)]
    assert not owner.lost
    await log.commit(owner.finish())
    assert await log.lags(owner.final) == {Partition(topic, 0): 0}


async def test_the_others_commit_when_one_topic_is_deleted(world: KafkaWorld, topic: str, join: Join) -> None:
    other = f"{topic}.other"
    for name in (topic, other):
        await world.create(name)
        await world.produce(name, numbered(5))
    log, owner = await join(topics=(topic, other), metadata_age=30.0)
    await receive(log, owner, 10)
    await world.delete(topic)
    async with asyncio.timeout(LIMITS.commit_deadline):
        await log.commit(owner.finish())
    assert (await log.lags(owner.final))[Partition(other, 0)] == 0


async def test_new_partitions_are_read_when_a_topic_grows(world: KafkaWorld, topic: str, join: Join) -> None:
    await world.create(topic)
    log, owner = await join()
    await poll_until(log, owner, lambda: len(owner.owned) == 1)
    await world.create(topic, 3)
    await poll_until(log, owner, lambda: len(owner.owned) == 3)
    for number in range(3):
        await world.produce(topic, numbered(5), number)
    await receive(log, owner, 15)
    assert all(owner.values(Partition(topic, number)) == numbered(5) for number in range(3))


async def test_a_topic_is_read_when_it_appears_after_it_was_asked_for(
    world: KafkaWorld, topic: str, join: Join
) -> None:
    log, owner = await join()
    assert (await log.survey([topic])).missing == {topic}
    assert await log.poll(0.2) == {}
    await world.create(topic)
    await world.produce(topic, numbered(5))
    await receive(log, owner, 5)


async def test_the_final_commit_counts_when_the_owner_takes_longer_than_a_session(
    world: KafkaWorld, topic: str, join: Join, said: Said
) -> None:
    await world.create(topic, 2)
    log, owner = await join(session_timeout=1.0)
    for number in (0, 1):
        await world.produce(topic, numbered(10), number)
    await receive(log, owner, 20)
    owner.finish()
    owner.revoking = asyncio.Event()
    second, other = await join(session_timeout=1.0)
    asyncio.get_running_loop().call_later(2.5, owner.revoking.set)
    async with asyncio.timeout(DEADLINE):
        while not (len(owner.owned) == len(other.owned) == 1):
            owner.take(await log.poll(0.05))
            other.take(await second.poll(0.05))
    assert not named(said, "final_commit_failed")
    assert await log.lags(owner.final) == {Partition(topic, 0): 0, Partition(topic, 1): 0}
    for _ in range(4):
        owner.take(await log.poll(0.05))
        other.take(await second.poll(0.05))
    assert sum(map(len, owner.received.values())) == 20
    assert not other.received


async def test_no_rebalance_happens_when_a_static_member_returns_in_time(
    world: KafkaWorld, topic: str, join: Join
) -> None:
    await world.create(topic, 2)
    log, owner = await join(group_instance_id="one", session_timeout=10.0)
    await poll_until(log, owner, lambda: len(owner.owned) == 2)
    second, other = await join(group_instance_id="two", session_timeout=10.0)
    async with asyncio.timeout(DEADLINE):
        while not (len(owner.owned) == len(other.owned) == 1):
            owner.take(await log.poll(0.05))
            other.take(await second.poll(0.05))
    before = len(owner.assignments)
    await second.stop()
    third, other = await join(group_instance_id="two", session_timeout=10.0)
    await poll_until(third, other, lambda: len(other.owned) == 1)
    assert len(owner.assignments) == before
    assert await log.affirm()
    assert await third.affirm()


async def test_new_partitions_are_read_when_the_leader_is_a_static_member_that_has_returned(
    world: KafkaWorld, topic: str, join: Join, said: Said
) -> None:
    await world.create(topic)
    log, owner = await join(group_instance_id="one", session_timeout=10.0)
    await poll_until(log, owner, lambda: len(owner.owned) == 1)
    await log.stop()
    log, owner = await join(group_instance_id="one", session_timeout=10.0, metadata_age=0.5)
    await poll_until(log, owner, lambda: len(owner.owned) == 1)
    await world.create(topic, 2)
    await world.produce(topic, [b"come"], 1)
    await poll_until(log, owner, lambda: owner.values(Partition(topic, 1)) == [b"come"])
    assert len(named(said, "partitions_unshared")) == 1


async def test_the_others_lose_nothing_when_one_partition_can_not_be_decoded(
    stack: Stack, world: KafkaWorld, topic: str, join: Join, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.create(topic, 3)

    def fail(_: bytes) -> bytes:
        raise library_records.UnsupportedCodecError("no such codec")

    monkeypatch.setattr(library_records, "gzip_decode", fail)
    monkeypatch.setitem(DECODERS, "gzip_decode", fail)
    async with AIOKafkaProducer(bootstrap_servers=stack.kafka, compression_type="gzip") as producer:
        await producer.send_and_wait(topic, b"packed " * 100, partition=1)
    for number in (0, 2):
        await world.produce(topic, numbered(100), number)
    log, owner = await join()
    await receive(log, owner, 200)
    for number in (0, 2):
        await world.produce(topic, numbered(100, first=100), number)
    await receive(log, owner, 400)
    assert all(owner.values(Partition(topic, number)) == numbered(200) for number in (0, 2))
    async with asyncio.timeout(DEADLINE):
        while not named(said, "partition_unreadable"):
            await log.poll(0.05)
    assert [entry["partition"] for entry in named(said, "partition_unreadable")] == [f"{topic}-1"]


async def test_all_before_it_and_all_others_come_when_a_header_of_one_record_has_a_name_that_is_no_text(
    stack: Stack, world: KafkaWorld, topic: str, join: Join, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Bytes(str):  # as clients in C write them
        __slots__ = ()

        def encode(self, *_: str) -> bytes:  # type: ignore[override]
            return b"\xff\xfe"

    await world.create(topic, 2)
    await world.produce(topic, numbered(50), 0)
    for module in (message_accumulator, library_producer):
        monkeypatch.setattr(module, "DefaultRecordBatchBuilder", _DefaultRecordBatchBuilderPy)
    async with AIOKafkaProducer(bootstrap_servers=stack.kafka, linger_ms=200) as producer:
        sent = [await producer.send(topic, value, partition=1) for value in numbered(20)]
        sent.append(await producer.send(topic, b"poison", partition=1, headers=[(Bytes("name"), b"")]))
        sent.append(await producer.send(topic, b"behind it", partition=1))
        await asyncio.gather(*sent)
    log, owner = await join()
    await receive(log, owner, 70)
    async with asyncio.timeout(DEADLINE):
        while not named(said, "partition_unreadable"):
            owner.take(await log.poll(0.05))
    await world.produce(topic, numbered(50, first=50), 0)
    await receive(log, owner, 120)
    assert owner.values(Partition(topic, 0)) == numbered(100)
    assert owner.values(Partition(topic, 1)) == numbered(20)
    (entry,) = named(said, "partition_unreadable")
    assert (entry["partition"], entry["position"]) == (f"{topic}-1", 20)


async def test_the_mistake_is_named_when_the_group_is_used_by_another_kind_of_consumer(
    stack: Stack, world: KafkaWorld, topic: str, join: Join
) -> None:
    await world.create(topic)
    group = f"foreign-{uuid4().hex[:8]}"
    foreign = AIOKafkaConsumer(
        topic,
        bootstrap_servers=stack.kafka,
        group_id=group,
        partition_assignment_strategy=(RangePartitionAssignor,),
    )
    async with foreign:
        log, _ = await join(group=group)
        with pytest.raises(LogError, match=r"log\.group"):
            await poll_until(log, Owner(), lambda: False)


async def test_it_is_said_that_events_are_taken_when_another_consumer_was_in_the_group_before(
    world: KafkaWorld, topic: str, stack: Stack, join: Join, said: Said
) -> None:
    await world.create(topic, 2)
    group = f"group-{uuid4().hex[:8]}"
    stranger = AIOKafkaConsumer(topic, bootstrap_servers=stack.kafka, group_id=group, client_id="billing")
    await stranger.start()
    try:
        log, owner = await join(group=group)
        await poll_until(log, owner, lambda: len(owner.owned) == 1)
        (told,) = named(said, "group_has_strangers")
    finally:
        await stranger.stop()
    assert told["members"][0].startswith("billing-")
    assert "leads the group" in told["effect"]


async def test_every_event_is_read_when_there_are_many_partitions_and_few_have_something(
    world: KafkaWorld, topic: str, join: Join
) -> None:
    partitions = 260
    await world.create(topic, partitions)
    log, owner = await join()
    await world.produce(topic, numbered(1))
    await receive(log, owner, 1)
    for number in range(partitions):
        await world.produce(topic, numbered(2, first=number), number)
    await receive(log, owner, 1 + 2 * partitions)
    for number in range(partitions):
        got = [event.value for event in owner.received[Partition(topic, number)]]
        assert got == numbered(1) * (number == 0) + numbered(2, first=number)


async def test_the_lag_shows_what_a_transaction_holds_back_when_it_does_not_end(
    world: KafkaWorld, topic: str, join: Join
) -> None:
    await world.create(topic)
    await world.produce(topic, numbered(5))
    log, owner = await join(isolation_level="read_committed")
    await receive(log, owner, 5)
    done = owner.finish()
    assert await log.lags(done) == {Partition(topic, 0): 0}
    async with AIOKafkaProducer(bootstrap_servers=world.host, transactional_id=f"hangs-{uuid4()}") as producer:
        await producer.begin_transaction()
        for number in range(3):
            await producer.send_and_wait(topic, b"%d" % number, partition=0)
        assert await log.lags(done) == {Partition(topic, 0): 3}
        await producer.commit_transaction()
    await receive(log, owner, 8)
