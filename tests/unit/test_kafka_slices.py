"""What a fetch brought, handed out in slices: how much at a time, how much in memory, and what is left of errors."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import Any

import cramjam
import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition, codec, errors
from aiokafka.consumer.fetcher import READ_COMMITTED
from aiokafka.protocol.fetch import FetchResponse_v4
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.util import calc_crc32c
from hypothesis import given
from hypothesis import strategies as st

from proxy.access import log_access
from proxy.kafka_log import unpacking
from proxy.kafka_log.answer import UNREADABLE, Batches, Room
from proxy.kafka_log.assignor import Assignor
from proxy.kafka_log.client import teach_manners
from proxy.kafka_log.consumer import new_consumer
from proxy.kafka_log.fetching import LEAST_SHARE
from proxy.kafka_log.leader_epochs import LeaderEpochs
from proxy.kafka_log.login import Credentials
from proxy.kafka_log.nodes import Bounds, Nodes
from proxy.kafka_log.opening import LARGE, Opener
from proxy.kafka_log.raw_batches import RawBatches
from proxy.kafka_log.slices import SLICE_BYTES, SLICE_EVENTS, SLICE_PARTITIONS, Slices
from proxy.settings import Limits, LogSettings
from tests.support.scripted_kafka import ScriptedKafka, scripted_kafka
from tests.wire.kafka import records

ONE, TWO = TopicPartition("orders", 0), TopicPartition("orders", 1)
GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
ENCODERS: dict[str, Callable[..., bytes]] = {
    "gzip_decode": codec.gzip_encode,
    "snappy_decode": codec.snappy_encode,
    "lz4_decode": codec.lz4_encode,
    "zstd_decode": codec.zstd_encode,
}
ENOUGH = 20.0


def batch(first: int, count: int, value: bytes = b"value", compression: int = ZSTD) -> bytes:
    builder = DefaultRecordBatchBuilder(2, compression, 0, -1, -1, -1, 1 << 30)
    for number in range(count):
        builder.append(number, 1_700_000_000_000, b"%d" % (first + number), value, [])
    built = bytearray(builder.build())
    built[:8] = first.to_bytes(8, "big")  # not covered by the checksum
    return bytes(built)


def an_opener() -> Opener:
    """One for whom nothing lies open."""
    return Opener(lambda: 0, lambda: None)


def unpacked(decode: str, payload: bytes, most: int) -> bytes:
    unpacking._bound.most = most
    return unpacking.DECODERS[decode](payload)


@pytest.mark.parametrize("decode", ENCODERS)
@pytest.mark.parametrize("most", [4096, unpacking.AT_ONCE + 1])
def test_content_is_what_it_was_when_it_fits_and_refused_when_it_is_one_byte_too_much(decode: str, most: int) -> None:
    content = (b"0123456789abcdef" * (most // 16 + 1))[:most]
    packed = ENCODERS[decode](content)
    assert unpacked(decode, packed, most) == content
    with pytest.raises(errors.RecordTooLargeError, match="batch_bytes"):
        unpacked(decode, packed, most - 1)


@pytest.mark.parametrize("decode", ENCODERS)
def test_content_is_said_to_be_damaged_when_it_is_cut_or_never_was_any(decode: str) -> None:
    packed = ENCODERS[decode](bytes(range(256)) * 16)
    for damaged in (packed[:-9], b"nothing of the kind" * 9):
        with pytest.raises(errors.CorruptRecordException):
            unpacked(decode, damaged, 1 << 20)


@pytest.mark.parametrize("size", [-4, 0, 1 << 30])
def test_content_is_said_to_be_damaged_when_a_block_has_a_size_that_can_not_be(size: int) -> None:
    packed = bytearray(codec.snappy_encode(b"content"))
    packed[16:20] = size.to_bytes(4, "big", signed=True)
    with pytest.raises(errors.CorruptRecordException):
        unpacked("snappy_decode", bytes(packed), 1 << 20)


def test_both_forms_of_snappy_are_understood_when_a_client_writes_the_plain_one() -> None:
    assert unpacked("snappy_decode", bytes(cramjam.snappy.compress_raw(b"content")), 7) == b"content"


class _Waiting:
    """A batch that a thread begins to open and goes on with when it may."""

    def __init__(self, payload: bytes) -> None:
        self.has_begun, self.may_go_on = threading.Event(), threading.Event()
        self._payload = payload

    def __iter__(self) -> Iterator[bytes]:
        self.has_begun.set()
        assert self.may_go_on.wait(ENOUGH)
        return iter([unpacking.DECODERS["gzip_decode"](self._payload)])


def test_a_thread_keeps_its_bound_when_another_opens_a_batch_meanwhile() -> None:
    content = bytes(5_000)
    slow, quick = _Waiting(codec.gzip_encode(content)), _Waiting(codec.gzip_encode(b"small"))
    quick.may_go_on.set()
    with ThreadPoolExecutor(1) as pool:
        opening = pool.submit(unpacking.unpack, slow, len(content))
        assert slow.has_begun.wait(ENOUGH)
        assert unpacking.unpack(quick, 5)[1] == 5
        slow.may_go_on.set()
        records, size = opening.result(ENOUGH)
    assert (next(records), size) == (content, len(content))


@pytest.mark.parametrize("decode", ["lz4_decode", "zstd_decode"])
def test_no_content_is_mixed_with_another_when_two_threads_open_small_batches_at_once(decode: str) -> None:
    contents = [bytes([digit]) * (1 << 20) for digit in range(4)]
    packed = [ENCODERS[decode](content) for content in contents]
    with ThreadPoolExecutor(len(contents)) as threads:
        opened = [threads.submit(unpacked, decode, packed[turn % 4], 1 << 20) for turn in range(400)]
        assert all(one.result() == contents[turn % 4] for turn, one in enumerate(opened))


SMALLEST_RECORD = 7
"""Bytes of a record with nothing in it: length, attributes, time, offset, key, value, headers."""
MALFORMED = st.lists(st.tuples(st.integers(21, 1 << 20), st.integers(0, 255)), min_size=1, max_size=3)


@given(st.integers(1, 4), MALFORMED)
def test_a_batch_is_read_or_called_unreadable_when_it_is_malformed_under_a_right_checksum(
    count: int, changes: list[tuple[int, int]]
) -> None:
    teach_manners()
    built = bytearray(batch(0, count, compression=0))
    for at, byte in changes:
        built[21 + at % (len(built) - 21)] = byte
    built[17:21] = calc_crc32c(bytes(built[21:])).to_bytes(4, "big")
    check_crcs = True
    batches = Batches(LeaderEpochs(), ONE, RawBatches(bytes(built)), None, 0, None, None, check_crcs, READ_COMMITTED)
    taken, goes_on = 0, True
    with suppress(*UNREADABLE):
        while goes_on:
            found, goes_on = batches.take(Room(SLICE_EVENTS, SLICE_BYTES), an_opener())
            taken += len(found)
    assert taken <= len(built) // SMALLEST_RECORD


def test_what_follows_is_read_when_compaction_has_left_an_empty_batch_where_a_transaction_ended() -> None:
    emptied = records.batch(0, 3, [], attributes=records.CONTROL | records.TRANSACTIONAL, producer=7)
    check_crcs = True
    content = RawBatches(emptied.data + batch(4, 2))
    batches = Batches(LeaderEpochs(), ONE, content, None, 0, None, None, check_crcs, READ_COMMITTED)
    taken, _ = batches.take(Room(SLICE_EVENTS, SLICE_BYTES), an_opener())
    assert [record.offset for record in taken] == [4, 5]


@asynccontextmanager
async def consumer(
    kafka: ScriptedKafka, *partitions: TopicPartition, fetches: int = 1, first_fetches: int | None = None
) -> AsyncIterator[Any]:
    """One that reads the partitions from their beginning, once so many fetches were answered."""
    teach_manners()
    made = AIOKafkaConsumer(bootstrap_servers=kafka.hosts, auto_offset_reset="none", isolation_level="read_committed")
    made._client.bounds = Bounds(2.0, first_fetches=first_fetches)
    made.assign(partitions)
    try:
        async with asyncio.timeout(ENOUGH):
            await made.start()
            for at in partitions:
                made.seek(at, 0)
            await kafka.nodes[0].hears("FetchRequest", fetches)
            yield made
    finally:
        stopping = asyncio.ensure_future(made.stop())
        await asyncio.wait({stopping})  # the library's stop may end in a cancellation of its own making


def log(kafka: ScriptedKafka, content: dict[int, bytes], high: int = 1 << 40) -> None:
    """Let the only node lead the topic, and give each fetch from the beginning of a partition what it holds."""
    kafka.leaders = {("orders", number): 1 for number in content}

    def answer(request: Any) -> FetchResponse_v4:
        wanted = {number: offset for _, partitions in request.topics for number, offset, _ in partitions}
        given = [(n, 0, high, high, None, content[n] if offset == 0 else b"") for n, offset in wanted.items()]
        return FetchResponse_v4(0, [("orders", given)])

    kafka.nodes[0].answers["FetchRequest"] = answer
    kafka.nodes[0].delays["FetchRequest"] = 0.01


async def read(made: Any, events: int) -> list[dict[TopicPartition, list[Any]]]:
    slices = []
    while sum(len(records) for one in slices for records in one.values()) < events:
        if taken := await made.getmany(timeout_ms=200):
            slices.append(taken)
    return slices


async def test_a_slice_is_small_when_an_answer_holds_a_hundred_thousand_events() -> None:
    count = 100_000
    async with scripted_kafka(1) as kafka:
        log(kafka, {0: batch(0, count, b"small")})
        async with consumer(kafka, ONE) as made:
            slices = await read(made, count)
            assert [record.offset for one in slices for record in one[ONE]] == list(range(count))
            assert max(len(one[ONE]) for one in slices) == SLICE_EVENTS


async def test_every_partition_has_its_turn_when_the_answer_for_one_is_long() -> None:
    async with scripted_kafka(1) as kafka:
        log(kafka, {0: batch(0, 20 * SLICE_EVENTS, b"small"), 1: batch(0, 20 * SLICE_EVENTS, b"small")})
        async with consumer(kafka, ONE, TWO) as made:
            slices = await read(made, 10 * SLICE_EVENTS)
            assert {len([one for one in slices if at in one]) for at in (ONE, TWO)} == {5}


async def test_a_slice_has_few_partitions_when_an_answer_has_many() -> None:
    count = 2 * SLICE_PARTITIONS + 50
    places = [TopicPartition("orders", number) for number in range(count)]
    async with scripted_kafka(1) as kafka:
        log(kafka, {at.partition: batch(0, 2) for at in places})
        async with consumer(kafka, *places) as made:
            slices = await read(made, 2 * count)
            assert max(map(len, slices)) == SLICE_PARTITIONS
            assert sorted(at for one in slices for at in one) == places, "each once"


@pytest.mark.parametrize(
    ("count", "first_fetches", "each"),
    [(2, 8 << 20, 1 << 20), (40, 8 << 20, (8 << 20) // 40), (1_000, 8 << 20, LEAST_SHARE), (40, None, 1 << 20)],
)
async def test_a_fetch_brings_less_of_each_partition_when_there_are_many(
    count: int, first_fetches: int | None, each: int
) -> None:
    places = [TopicPartition("orders", number) for number in range(count)]
    asked = set[int]()
    async with scripted_kafka(1) as kafka:
        log(kafka, {at.partition: b"" for at in places})
        give: Any = kafka.nodes[0].answers["FetchRequest"]

        def answer(request: Any) -> Any:
            asked.update(most for _, partitions in request.topics for *_, most in partitions)
            return give(request)

        kafka.nodes[0].answers["FetchRequest"] = answer
        async with consumer(kafka, *places, fetches=2, first_fetches=first_fetches):
            assert asked == {each}


async def test_no_more_of_a_partition_is_in_a_slice_than_a_fetch_brings_of_each_when_a_batch_is_larger() -> None:
    size, places = 1_000, [TopicPartition("orders", number) for number in range(40)]
    async with scripted_kafka(1) as kafka:
        log(kafka, {at.partition: b"" for at in places} | {0: batch(0, 500, b"x" * size)})
        async with consumer(kafka, *places, first_fetches=1) as made:
            slices = await read(made, 500)
            assert [record.offset for one in slices for record in one[ONE]] == list(range(500))
            assert max(len(one[ONE]) for one in slices) == LEAST_SHARE // size + 1


async def test_an_answer_is_taken_in_in_steps_when_it_has_many_partitions() -> None:
    count = 450
    places = [TopicPartition("orders", number) for number in range(count)]
    async with scripted_kafka(1) as kafka:
        log(kafka, {at.partition: batch(0, 1) for at in places})
        kafka.nodes[0].delays["FetchRequest"] = 0.1
        async with consumer(kafka, *places) as made:
            seen = {0}
            while max(seen) < count:
                await asyncio.sleep(0)
                seen.add(len(made._fetcher._records))
            assert seen >= {0, 200, 400, count}
            assert kafka.nodes[0].asked["FetchRequest"] == 1
            assert len({at for one in await read(made, count) for at in one}) == count


async def test_a_slice_ends_in_bytes_when_events_are_large() -> None:
    async with scripted_kafka(1) as kafka:
        log(kafka, {0: batch(0, 40, bytes(SLICE_BYTES // 4))})
        async with consumer(kafka, ONE) as made:
            slices = await read(made, 40)
            assert {len(one[ONE]) for one in slices} == {4}


async def test_a_batch_is_opened_on_a_thread_when_it_is_large_on_the_wire_or_grows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads: list[tuple[bool, int]] = []
    unpack = unpacking.unpack

    def watched(one: Any, most: int) -> Any:
        is_ours = threading.current_thread() is threading.main_thread()
        opened = unpack(one, most)
        threads.append((is_ours, opened[1]))
        return opened

    monkeypatch.setattr("proxy.kafka_log.opening.unpack", watched)
    large = batch(0, 80_000, b"", compression=GZIP)
    assert len(large) > LARGE
    async with scripted_kafka(1) as kafka:
        for content, count in ((batch(0, 10), 10), (large, 80_000), (batch(0, 3, bytes(SLICE_BYTES)), 3)):
            log(kafka, {0: content})
            async with consumer(kafka, ONE) as made:
                await read(made, count)
    assert [is_ours for is_ours, _ in threads] == [True, False, False]
    assert threads[0][1] < unpacking.AT_ONCE < threads[2][1]


async def test_nothing_more_is_fetched_from_a_node_while_a_slice_of_its_answer_is_left() -> None:
    async with scripted_kafka(1) as kafka:
        log(kafka, {0: batch(0, 3 * SLICE_EVENTS), 1: b""})
        async with consumer(kafka, ONE, TWO) as made:
            await read(made, SLICE_EVENTS)
            asked = kafka.nodes[0].asked["FetchRequest"]
            await asyncio.sleep(0.3)  # three of the library's turns
            assert kafka.nodes[0].asked["FetchRequest"] == asked
            await read(made, 2 * SLICE_EVENTS)
            assert await made.getmany(timeout_ms=0) == {}, "that was all of it"
            await kafka.nodes[0].hears("FetchRequest", asked + 1)


async def test_the_others_are_fetched_and_what_is_left_is_kept_when_a_partition_is_paused() -> None:
    async with scripted_kafka(1) as kafka:
        log(kafka, {0: batch(0, 2 * SLICE_EVENTS), 1: b""})
        async with consumer(kafka, ONE, TWO) as made:
            await read(made, SLICE_EVENTS)
            made.pause(ONE)
            await kafka.nodes[0].hears("FetchRequest", kafka.nodes[0].asked["FetchRequest"] + 2)
            assert await made.getmany(timeout_ms=0) == {}
            waiting = asyncio.ensure_future(made.getmany(timeout_ms=round(1000 * ENOUGH)))
            await asyncio.sleep(0)
            made.resume(ONE)
            assert [record.offset for record in (await waiting)[ONE]] == list(range(SLICE_EVENTS, 2 * SLICE_EVENTS))


async def test_the_oldest_is_dropped_and_fetched_again_when_too_much_is_kept_of_paused_partitions() -> None:
    async with scripted_kafka(1) as kafka:
        log(kafka, {0: batch(0, 3, bytes(SLICE_BYTES)), 1: batch(0, 3, bytes(SLICE_BYTES))})
        async with consumer(kafka, ONE, TWO) as made:
            slices: Slices = made._fetcher
            for at in (ONE, TWO):
                while not await made.getmany(at, timeout_ms=200):
                    pass
            made.pause(ONE, TWO)
            assert set(slices._records) == {ONE, TWO}
            slices.batch_bytes = 4 * SLICE_BYTES
            assert await made.getmany(timeout_ms=0) == {}
            assert len(slices._records) == 1


@pytest.mark.parametrize("value", [SLICE_BYTES, SLICE_BYTES // 2 + 1], ids=["thread", "here"])
async def test_little_lies_open_at_a_time_when_many_packed_batches_have_come(value: int) -> None:
    places = [TopicPartition("orders", number) for number in range(20)]
    async with scripted_kafka(1) as kafka:
        log(kafka, {at.partition: batch(0, 3, bytes(value)) for at in places})
        async with consumer(kafka, *places) as made:
            slices: Slices = made._fetcher
            slices.batch_bytes = 4 * SLICE_BYTES
            missing, most = {(at, offset) for at in places for offset in range(3)}, 0
            while missing:
                for at, records in (await made.getmany(timeout_ms=200)).items():
                    missing -= {(at, record.offset) for record in records}
                most = max(most, sum(held.batches.open_bytes for held in slices._records.values()))
            assert 0 < most < 8 * SLICE_BYTES


async def test_all_before_it_is_read_and_it_alone_stands_when_a_batch_holds_more_than_it_may() -> None:
    async with scripted_kafka(1) as kafka:
        log(kafka, {0: batch(0, 5) + batch(5, 1, bytes(4 * SLICE_BYTES)), 1: batch(0, 7)})
        async with consumer(kafka, ONE, TWO) as made:
            made._fetcher.batch_bytes = 3 * SLICE_BYTES
            slices = await read(made, 12)
            assert sorted(len(records) for one in slices for records in one.values()) == [5, 7]
            while not made._fetcher.unreadable:
                assert await made.getmany(timeout_ms=200) == {}
            assert isinstance(made._fetcher.unreadable[ONE], errors.RecordTooLargeError)
            assert await made.position(ONE) == 5


async def test_what_is_left_is_dropped_when_reading_goes_on_elsewhere() -> None:
    async with scripted_kafka(1) as kafka:
        log(kafka, {0: batch(0, 2 * SLICE_EVENTS)})
        async with consumer(kafka, ONE) as made:
            await read(made, SLICE_EVENTS)
            made.seek(ONE, 0)
            (again,) = await read(made, SLICE_EVENTS)
            assert again[ONE][0].offset == 0


@pytest.mark.parametrize(("sought", "told"), [(None, {ONE: 5}), (0, {})])
async def test_what_is_no_event_is_told_once_unless_reading_goes_on_elsewhere_when_it_stands_at_the_end(
    sought: int | None, told: dict[TopicPartition, int]
) -> None:
    markers = [records.marker(at, 7, commits=at > 3).data for at in (3, 4)]
    async with scripted_kafka(1) as kafka:
        log(kafka, {0: batch(0, 3) + b"".join(markers)})
        async with consumer(kafka, ONE) as made:
            await read(made, 3)
            await made.getmany(timeout_ms=0)
            if sought is not None:
                made.seek(ONE, sought)
            assert [made._fetcher.take_passed() for _ in range(2)] == [told, {}]


@pytest.mark.parametrize(
    ("error", "name"), [(56, "KAFKA_STORAGE_ERROR"), (-1, "UNKNOWN_SERVER_ERROR"), (6, "NotLeader")]
)
async def test_a_partition_rests_and_its_neighbour_flows_when_its_node_answers_with_an_error(
    error: int, name: str
) -> None:
    fetched: list[tuple[int, ...]] = []

    def answer(request: Any) -> FetchResponse_v4:
        wanted = sorted(number for _, partitions in request.topics for number, _, _ in partitions)
        fetched.append(tuple(wanted))
        return FetchResponse_v4(0, [("orders", [(n, 0 if n else error, 5, 5, None, b"") for n in wanted])])

    async with scripted_kafka(1) as kafka:
        log(kafka, {0: b"", 1: b""})
        kafka.nodes[0].answers["FetchRequest"] = answer
        async with consumer(kafka, ONE, TWO, fetches=100) as made:
            assert 0 < len([one for one in fetched if 0 in one]) < 40
            assert all(1 in one for one in fetched)
            standing = made._fetcher.hindrance(ONE)
            assert made._fetcher.suspects == {ONE}
            assert standing.cause == "refused"
            assert name in standing.why
            assert f"127.0.0.1:{kafka.nodes[0].port}" in standing.why
            assert made._fetcher.hindrance(TWO) is None


async def test_the_reason_is_known_when_a_partition_has_no_leader_or_one_that_is_not_where_it_is_said_to_be() -> None:
    async with scripted_kafka(2) as kafka:
        kafka.places[2] = ("127.0.0.1", 1)
        kafka.leaders = {("orders", 0): 2, ("orders", 1): -1}
        kafka.nodes[0].answers["FetchRequest"] = lambda _: FetchResponse_v4(0, [])
        async with consumer(kafka, ONE, TWO, fetches=0) as made:
            while (standing := made._fetcher.hindrance(ONE)) is None:
                await made.getmany(timeout_ms=50)
            assert standing.cause == "node"
            assert "node 2 at 127.0.0.1:1" in standing.why
            assert made._fetcher.hindrance(TWO) == ("leaderless", "no node leads it")
            assert made._fetcher.suspects is None, "a node is failing"
            made._client.nodes._failing.clear()
            assert made._fetcher.suspects == {TWO}
            kafka.leaders["orders", 1] = 0
            await made._client.force_metadata_update()
            made._client.nodes._failing.clear()
            assert made._fetcher.suspects == set()


async def test_no_reason_is_left_when_the_node_answers_without_an_error_again() -> None:
    async with scripted_kafka(1) as kafka:
        log(kafka, {0: b""})
        errors_left = [56, 56]

        def answer(_: Any) -> FetchResponse_v4:
            error = errors_left.pop() if errors_left else 0
            return FetchResponse_v4(0, [("orders", [(0, error, 5, 5, None, b"")])])

        kafka.nodes[0].answers["FetchRequest"] = answer
        async with consumer(kafka, ONE, fetches=2) as made:
            while made._fetcher.hindrance(ONE) is None:
                await made.getmany(timeout_ms=10)
            await kafka.nodes[0].hears("FetchRequest", 4)
            assert made._fetcher.hindrance(ONE) is None


async def test_the_reason_is_known_when_an_open_transaction_holds_back_what_follows() -> None:
    async with scripted_kafka(1) as kafka:
        log(kafka, {0: b""})
        kafka.nodes[0].answers["FetchRequest"] = lambda _: FetchResponse_v4(0, [("orders", [(0, 0, 9, 0, None, b"")])])
        async with consumer(kafka, ONE, fetches=2) as made:
            standing = made._fetcher.hindrance(ONE)
            assert standing.cause == "transaction"
            assert made._fetcher.suspects == {ONE}


@pytest.mark.parametrize("rack", [None, "zone-a"])
async def test_the_rack_is_told_to_the_library_when_one_is_set(rack: str | None) -> None:
    settings = LogSettings(hosts=["h:1"], group="g", client_rack=rack)
    teach_manners()
    credentials = Credentials(log_access(settings.security))
    made = new_consumer(settings, Limits(), Nodes(asyncio.get_running_loop().time), credentials, Assignor())
    assert made._client_rack == rack
    await made.stop()


async def test_reading_ends_with_the_reason_when_the_routine_that_fetches_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with scripted_kafka(1) as kafka:
        log(kafka, {0: b""})
        async with consumer(kafka, ONE) as made:
            monkeypatch.setattr(made._fetcher, "_begin_what_is_due", _fail)
            with pytest.raises(ArithmeticError, match="a fault of our own"):
                await made.getmany(timeout_ms=1000 * ENOUGH)


def _fail(_: Any) -> float:
    raise ArithmeticError("a fault of our own")


async def test_fetching_goes_on_when_a_fetch_is_cancelled_by_somebody_else() -> None:
    async with scripted_kafka(1) as kafka:
        log(kafka, {0: b""})
        async with consumer(kafka, ONE) as made:
            gone = asyncio.create_task(asyncio.sleep(ENOUGH))
            made._fetcher._pending_tasks.add(gone)
            gone.cancel()
            await kafka.nodes[0].hears("FetchRequest", kafka.nodes[0].asked["FetchRequest"] + 3)
            assert not made._fetcher._fetch_task.done()


@pytest.mark.parametrize("is_joining", [False, True])
async def test_a_wait_for_records_ends_with_nothing_when_it_is_interrupted(
    is_joining: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scripted_kafka(1) as kafka:
        log(kafka, {0: b""})
        async with consumer(kafka, ONE) as made:
            state = type(made._subscription)
            monkeypatch.setattr(state, "reassignment_in_progress", property(lambda _: is_joining))
            reading = asyncio.create_task(made._fetcher.fetched_records([], timeout=10 * ENOUGH))
            await asyncio.sleep(0)  # one turn: it waits
            assert made._fetcher._awaited is not None
            made._fetcher.interrupt()
            assert await reading == {}
