"""The parts of the Kafka adapter that can be seen without a Kafka."""

import asyncio
import gc
import inspect
import logging
import ssl
import subprocess
from contextlib import suppress
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import aiokafka.client
import aiokafka.conn
import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition, errors
from aiokafka.consumer.group_coordinator import GroupCoordinator as LibraryCoordinator
from aiokafka.protocol.group import HeartbeatRequest
from aiokafka.structs import ConsumerRecord
from structlog.testing import capture_logs

from proxy.access import log_access
from proxy.errors import LogError, RefusedLoginError, SettingsError
from proxy.kafka_log import KafkaLog
from proxy.kafka_log.client import Reach, log_in, options, teach_manners
from proxy.kafka_log.events import events
from proxy.kafka_log.login import Credentials
from proxy.kafka_log.reader import Reader
from proxy.model import Event, Partition
from proxy.positions import Positions
from proxy.positions.share import Share
from proxy.settings import Limits, LogSettings
from proxy.simulation import virtual_time
from tests.contract.log_adapters import Owner, until
from tests.support.scripted_kafka import scripted_kafka
from tests.wire.chance import seeded
from tests.wire.kafka.cluster import ScriptedCluster
from tests.wire.kafka.messages import Api
from tests.wire.kafka.mischief import Rule, Trick
from tests.wire.kafka.node import Node
from tests.wire.loop import WireLoop

AT = TopicPartition("orders", 3)
PARTITION = Partition("orders", 3)


def record(**fields: Any) -> ConsumerRecord[bytes, bytes]:
    whole = {
        "topic": "orders",
        "partition": 3,
        "offset": 7,
        "timestamp": 1_700_000_000_000,
        "timestamp_type": 0,
        "key": b"key",
        "value": b"value",
        "checksum": None,
        "serialized_key_size": 3,
        "serialized_value_size": 5,
        "headers": (),
    }
    return ConsumerRecord(**whole | fields)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, Event(7, 1_700_000_000_000, b"key", b"value", (), 8)),
        ({"timestamp": -1}, Event(7, None, b"key", b"value", (), 8)),
        ({"timestamp": 0}, Event(7, 0, b"key", b"value", (), 8)),
        ({"key": None}, Event(7, 1_700_000_000_000, None, b"value", (), 5)),
        ({"key": b""}, Event(7, 1_700_000_000_000, b"", b"value", (), 5)),
        ({"value": None}, Event(7, 1_700_000_000_000, b"key", None, (), 3)),
        ({"value": b"\x00\xff"}, Event(7, 1_700_000_000_000, b"key", b"\x00\xff", (), 5)),
        (
            {"headers": (("a", b"12"), ("a", b""), ("é", None))},
            Event(7, 1_700_000_000_000, b"key", b"value", (("a", b"12"), ("a", b""), ("é", None)), 14),
        ),
    ],
)
def test_an_event_carries_what_the_record_holds_when_it_is_made(fields: dict[str, Any], expected: Event) -> None:
    assert events([record(**fields)]) == [expected]
    assert type(events([record(**fields)])[0]) is Event


async def test_a_write_is_a_lost_connection_when_its_transport_is_closed_unnoticed() -> None:
    def write(_: bytes) -> None:
        raise RuntimeError("the handler is closed")  # as uvloop does

    teach_manners()
    connection = aiokafka.conn.AIOKafkaConnection("broker", 9092)
    connection._reader = SimpleNamespace(at_eof=lambda: False)
    connection._read_task = SimpleNamespace(done=lambda: True)
    connection._writer = SimpleNamespace(is_closing=lambda: True, close=lambda: None, write=write)
    assert connection.connected()  # so it says
    with pytest.raises(errors.KafkaConnectionError):
        connection.send(HeartbeatRequest("group", 1, "member"))
    assert not connection.connected()


def test_the_library_keeps_its_level_when_someone_has_given_it_one() -> None:
    library = logging.getLogger("aiokafka")
    before = library.level
    try:
        library.setLevel(logging.NOTSET)
        teach_manners()
        assert not library.isEnabledFor(logging.CRITICAL)
        library.setLevel(logging.DEBUG)
        teach_manners()
        assert library.isEnabledFor(logging.DEBUG)
    finally:
        library.setLevel(before)


async def test_an_outage_is_said_once_when_several_callers_notice_it() -> None:
    reach = Reach(["broker:9092"])
    with capture_logs() as said:
        reach.found("inquiry")
        reach.lost("inquiry", "refused")
        reach.lost("group", "refused")
        reach.lost("inquiry", "refused")
        reach.found("inquiry")
        assert [entry["event"] for entry in said] == ["log_unavailable"]
        reach.found("group")
        reach.found("group")
    assert [entry["event"] for entry in said] == ["log_unavailable", "log_available"]


def test_the_private_names_the_adapter_reads_are_there_when_the_library_changes() -> None:
    source = Path(AIOKafkaConsumer.start.__code__.co_filename).read_text()
    assert "self._coordinator = GroupCoordinator(" in source
    assert "self._client = AIOKafkaClient(" in source
    assert "need_rejoin(subscription)" in inspect.getsource(LibraryCoordinator)
    assert {"generation", "member_id"} <= set(LibraryCoordinator.reset_generation.__code__.co_names)


def test_the_file_is_named_when_a_certificate_can_not_be_read() -> None:
    settings = LogSettings.model_validate(
        {"hosts": ["h:1"], "group": "g", "security": {"protocol": "SSL", "ca_file": "/no/such/ca.pem"}}
    )
    with pytest.raises(SettingsError, match=r"log\.security"):
        log_access(settings.security)


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A file with a certificate for localhost that nobody vouches for, and its key."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        [
            "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost",
            "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate,
        ],
        check=True,
        capture_output=True,
    )  # fmt: skip
    certificate.write_text(certificate.read_text() + key.read_text())
    return certificate


async def test_the_login_is_refused_when_the_certificate_is_not_trusted(certificate: Path) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)

    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(hang_up, "localhost", ssl=context) as server:
        host = f"localhost:{server.sockets[0].getsockname()[1]}"

        async def attempt(**security: str) -> None:
            settings = LogSettings.model_validate(
                {"hosts": [host], "group": "g", "security": {"protocol": "SSL", **security}}
            )
            await log_in(settings, options(settings, Credentials(log_access(settings.security)), request_seconds=5))

        with pytest.raises(RefusedLoginError, match=host):
            await attempt()
        with pytest.raises(errors.KafkaConnectionError):
            await attempt(ca_file=str(certificate))


async def test_a_host_that_answers_is_found_in_time_when_those_before_it_are_silent() -> None:
    async with scripted_kafka(3) as kafka, asyncio.timeout(10):
        for node in kafka.nodes[:2]:
            node.is_silent = True
        settings = LogSettings(hosts=kafka.hosts, group="g")
        client = options(settings, Credentials(log_access(settings.security)), request_seconds=600)
        assert await log_in(settings, client) == kafka.hosts[2]
        first = options(settings, Credentials(log_access(settings.security)), request_seconds=1, first=kafka.hosts[2])
        assert first["bootstrap_servers"] == [kafka.hosts[2], *kafka.hosts[:2]]


class _Consumer:
    """Raises what a test has put in, once each and not at once; if it is over, it raises at once and for ever."""

    def __init__(self, *failures: Exception, is_over: bool = False, keeps: bool = False) -> None:
        self.failures = list(failures)
        self.is_over = is_over
        self.keeps = keeps
        """What it raised to one who waited it raises once more, at once."""

    async def getmany(self, *_: TopicPartition, timeout_ms: int) -> dict[TopicPartition, list[Any]]:
        if self.is_over:
            raise errors.KafkaError("Unexpected error during coordination")
        if self.failures and (timeout_ms or self.keeps):
            self.keeps = self.keeps and bool(timeout_ms)
            raise self.failures[0] if self.keeps else self.failures.pop(0)
        await asyncio.sleep(timeout_ms / 1000)
        return {}


class _Full(_Consumer):
    """Has one record of the partition, and remembers what is paused."""

    def __init__(self) -> None:
        super().__init__()
        self.paused: list[TopicPartition] = []
        self.pause = self.paused.append

    async def getmany(self, *_: TopicPartition, timeout_ms: int) -> dict[TopicPartition, list[Any]]:
        del timeout_ms
        return {AT: [record()]}


def _reader(consumer: _Consumer, left: list[str], unreadable: dict[TopicPartition, Exception] | None = None) -> Reader:
    slices: Any = SimpleNamespace(unreadable={} if unreadable is None else unreadable, take_passed=dict)
    return Reader(
        slices,
        consumer,
        Reach(["broker:9092"]),
        on_passed=lambda *_: None,
        on_unavailable=lambda share, offset: left.append(f"{share.partition} {offset}"),
        on_refused=left.append,
        on_left=lambda: left.append("left"),
    )


async def test_the_group_is_joined_again_when_its_heartbeats_have_failed() -> None:
    left: list[str] = []
    reader = _reader(_Consumer(errors.UnknownError("heartbeat")), left)
    with capture_logs() as said:
        assert await reader.read(lambda: {PARTITION: Share(PARTITION, is_paused=False)}, 0.01) == {}
    assert left == ["left"]
    assert [entry["event"] for entry in said] == ["log_unavailable"]


async def test_the_group_is_joined_again_when_the_library_tells_a_failure_twice() -> None:
    left: list[str] = []
    reader = _reader(_Consumer(errors.UnknownError("heartbeat"), keeps=True), left)
    assert await reader.read(lambda: {PARTITION: Share(PARTITION, is_paused=False)}, 0.01) == {}
    assert left == ["left"]


def test_the_bridge_does_not_spin_when_the_consumer_fails_at_every_read() -> None:
    async def story() -> None:
        consumer = _Consumer(*(errors.UnknownError("heartbeat") for _ in range(1_000)), keeps=True)
        reader = _reader(consumer, [])
        with suppress(TimeoutError):
            async with asyncio.timeout(1):
                while True:
                    await reader.read(dict, 0.05)
        assert len(consumer.failures) > 980

    virtual_time.run(story())


@pytest.mark.parametrize("is_placed", [True, False])
async def test_records_are_handed_out_only_when_the_partition_is_placed(*, is_placed: bool) -> None:
    share = Share(PARTITION, is_paused=False, is_placed=is_placed)
    taken = await _reader(_Full(), []).read(lambda: {PARTITION: share}, 0.01)
    assert (list(taken), share.next) == (([PARTITION], 8) if is_placed else ([], 0))


def test_no_task_and_no_connection_is_left_when_the_log_is_stopped_while_joining_is_not_answered() -> None:
    async def history() -> None:
        loop: Any = asyncio.get_running_loop()
        cluster = ScriptedCluster(Random(1), [("kafka", 9092)])
        cluster.create_topic("orders")
        node = Node(1, cluster)
        loop.network.serve("kafka:9092", node.serve)
        settings = LogSettings(hosts=["kafka:9092"], group="g", session_timeout=1.2)
        log = KafkaLog(settings, Limits(drain_deadline=0.1, commit_deadline=0.4))
        await log.start(Owner())
        await log.subscribe(frozenset({"orders"}))
        while not cluster.group("g").generation:
            await log.poll(0.05)
        cluster.mischief.begin(Rule(Trick.MUTE, 1, frozenset({Api.JOIN_GROUP})))
        cluster.group("g").rebalance()
        while not cluster.mischief.struck:
            await log.poll(0.05)
        await log.stop()
        await asyncio.sleep(1)
        assert not node.connections
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert [task.get_coro().__qualname__ for task in left if "Node" not in task.get_coro().__qualname__] == []
        await node.close()
        cluster.close()
        await asyncio.sleep(1)
        gc.collect()

    with seeded(Random(1)):
        virtual_time.run(history(), lambda: WireLoop(Random(1), turn_seconds=0.0002))


def test_reading_ends_with_the_reason_when_what_its_keeper_waits_for_is_cancelled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def strays(_positions: Positions, _join: object) -> None:
        other = asyncio.get_running_loop().create_future()
        other.cancel()
        await other

    monkeypatch.setattr(Positions, "keep", strays)

    async def history() -> None:
        loop: Any = asyncio.get_running_loop()
        cluster = ScriptedCluster(Random(1), [("kafka", 9092)])
        node = Node(1, cluster)
        loop.network.serve("kafka:9092", node.serve)
        log = KafkaLog(LogSettings(hosts=["kafka:9092"], group="g"), Limits())
        await log.start(Owner())
        await asyncio.sleep(0.1)
        with pytest.raises(LogError, match="kafka-keeper: what it waited for was cancelled, by nobody who ends it"):
            await log.poll(0.05)
        await log.stop()
        await node.close()
        cluster.close()

    with seeded(Random(1)):
        virtual_time.run(history(), lambda: WireLoop(Random(1), turn_seconds=0.0002))


def test_an_event_is_read_at_once_when_hundreds_of_topics_were_silent() -> None:
    topics = [f"type-{number:03}" for number in range(300)]

    async def history() -> None:
        loop: Any = asyncio.get_running_loop()
        cluster = ScriptedCluster(Random(1), [("kafka", 9092)])
        for topic in topics:
            cluster.create_topic(topic)
        node = Node(1, cluster)
        loop.network.serve("kafka:9092", node.serve)
        log = KafkaLog(LogSettings(hosts=["kafka:9092"], group="g"), Limits())
        owner = Owner()
        await log.start(owner)
        await log.subscribe(frozenset(topics))
        while len(owner.beginnings) < len(topics):
            await log.poll(0.05)
        silent_until = loop.time() + 3.0
        while loop.time() < silent_until:
            assert await log.poll(0.05) == {}
        named = cluster.named
        for topic in topics[::30]:
            cluster.produce(topic, value=b"first")
            produced = loop.time()
            while not (taken := await log.poll(0.05)):
                pass
            assert list(taken) == [Partition(topic, 0)]
            assert loop.time() - produced < 0.05, "the wait of one fetch"
        assert cluster.named - named <= len(topics[::30]), "each was read on"
        await log.stop()
        await node.close()
        cluster.close()

    with seeded(Random(1)):
        virtual_time.run(history(), lambda: WireLoop(Random(1), turn_seconds=0.0002))


async def test_no_connection_is_left_when_starting_is_given_up_before_the_first_node_has_told_of_the_others() -> None:
    cluster = ScriptedCluster(Random(1), [("", 0)])
    cluster.mischief.begin(Rule(Trick.MUTE, 1, frozenset({Api.METADATA})))
    node = Node(1, cluster)
    async with await asyncio.start_server(node.serve, "127.0.0.1") as server:
        host = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        log = KafkaLog(LogSettings(hosts=[host], group="g"), Limits())
        owner: Any = None  # nothing is told it
        starting = asyncio.create_task(log.start(owner))
        await until(lambda: bool(cluster.mischief.struck))
        starting.cancel()
        await asyncio.wait([starting])
        await until(lambda: not node.connections)
        assert starting.cancelled()


async def test_the_library_is_left_to_join_by_itself_when_nothing_is_owned() -> None:
    left: list[str] = []
    failures = [errors.UnknownError("join"), errors.GroupAuthorizationFailedError("g"), errors.UnknownError("join")]
    reader = _reader(_Consumer(*failures), left)
    with capture_logs() as said:
        for _ in failures:
            assert await reader.read(dict, 0.01) == {}
    assert not left
    assert [entry["event"] for entry in said] == ["log_unavailable"]


async def test_the_process_is_told_when_the_consumer_has_come_to_an_end() -> None:
    reader = _reader(_Consumer(is_over=True), [])
    with pytest.raises(LogError, match="come to an end"):
        await reader.read(dict, 0.01)


async def test_the_mistake_is_named_when_the_log_refuses_the_session_timeout() -> None:
    reader = _reader(_Consumer(errors.InvalidSessionTimeoutError()), [])
    with pytest.raises(LogError, match=r"log\.session_timeout"):
        await reader.read(dict, 0.01)


async def test_stopping_does_nothing_when_the_log_was_never_started() -> None:
    log = KafkaLog(LogSettings(hosts=["h:1"], group="g"), Limits())
    for _ in range(2):
        await log.stop()
        assert asyncio.all_tasks() == {asyncio.current_task()}
    assert await log.poll(0.01) == {}
    with pytest.raises(LogError, match="has been left"):
        await log.progress()
