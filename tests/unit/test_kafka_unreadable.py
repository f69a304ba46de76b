"""What becomes of a partition of which something can't be read."""

import asyncio
import itertools
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

from aiokafka import TopicPartition, errors
from structlog.testing import capture_logs

from proxy.kafka_log.client import Reach
from proxy.kafka_log.reader import Reader
from proxy.kafka_log.unreadable import LONGEST_PAUSE
from proxy.model import Partition
from proxy.positions.share import Share
from proxy.simulation import virtual_time

AT = TopicPartition("orders", 3)
PARTITION = Partition("orders", 3)
RECORD: dict[str, Any] = {
    "offset": 7,
    "timestamp": 0,
    "key": None,
    "value": b"value",
    "headers": (),
    "serialized_key_size": 0,
    "serialized_value_size": 5,
}


class _Damaged:
    """A consumer and its fetcher: what stands at the offset can be read once it was tried so often."""

    def __init__(self, whole_after: float) -> None:
        self.unreadable: dict[TopicPartition, Exception] = {}
        self.is_paused = False
        self.tried: list[float] = []
        self._whole_after = whole_after

    def pause(self, _: TopicPartition) -> None:
        self.is_paused = True

    def resume(self, _: TopicPartition) -> None:
        self.is_paused = False

    def seek(self, _: TopicPartition, offset: int) -> None:
        assert offset == 7

    async def getmany(self, *_: TopicPartition, timeout_ms: int) -> dict[TopicPartition, list[Any]]:
        if self.is_paused:
            await asyncio.sleep(timeout_ms / 1000)
            return {}
        self.tried.append(asyncio.get_running_loop().time())
        if len(self.tried) > self._whole_after:
            self.is_paused = True  # there is no more
            return {AT: [SimpleNamespace(**RECORD)]}
        self.unreadable[AT] = errors.CorruptRecordException("its checksum is wrong")
        return {}


def _reader(consumer: Any) -> Reader:
    slices: Any = SimpleNamespace(unreadable=consumer.unreadable, take_passed=dict)
    return Reader(
        slices,
        consumer,
        Reach(["broker:9092"]),
        on_passed=lambda *_: None,
        on_unavailable=lambda *_: None,
        on_refused=lambda _: None,
        on_left=lambda: None,
    )


def _damaged(whole_after: float, seconds: float, share: Share, wait: float = 0.05) -> tuple[_Damaged, list[str]]:
    """Read for so long; return what was tried and said."""
    consumer: Any = _Damaged(whole_after)

    async def story() -> None:
        reader = _reader(consumer)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while True:
                    await reader.read(lambda: {PARTITION: share}, wait)

    with capture_logs() as said:
        virtual_time.run(story())
    return consumer, [entry["event"] for entry in said]


def test_a_partition_is_read_again_and_nothing_said_when_it_was_damaged_on_its_way() -> None:
    share = Share(PARTITION, is_paused=False, is_placed=True, next=7)
    consumer, said = _damaged(2, 10, share)
    assert (len(consumer.tried), share.next, share.is_placed, said) == (3, 8, True, [])
    assert consumer.tried[-1] < 1


def test_a_partition_is_said_once_to_be_unreadable_and_tried_ever_more_seldom_until_it_can_be_read() -> None:
    share = Share(PARTITION, is_paused=False, is_placed=True, next=7)
    consumer, said = _damaged(10, 400, share)
    assert said == ["partition_unreadable", "partition_readable"]
    pauses = [round(later - before) for before, later in itertools.pairwise(consumer.tried)]
    assert pauses == sorted(pauses)
    assert pauses[-1] == LONGEST_PAUSE
    assert share.next == 8


def test_a_partition_is_tried_for_as_long_as_it_takes_when_it_can_not_be_read_for_a_day() -> None:
    share = Share(PARTITION, is_paused=False, is_placed=True, next=7)
    consumer, said = _damaged(2_880, 90_000, share, wait=5.0)
    assert said == ["partition_unreadable", "partition_readable"]
    assert (len(consumer.tried), share.next) == (2_881, 8)


def test_a_partition_stands_still_when_something_in_it_can_not_be_read_and_its_owner_has_no_room() -> None:
    share = Share(PARTITION, is_paused=True, is_placed=True, next=7)
    consumer, _ = _damaged(1, 10, share)
    assert (len(consumer.tried), share.is_placed, consumer.is_paused) == (1, True, True), "it waits for `resume`"


def test_nothing_is_read_again_when_the_partition_is_being_moved_or_was_given_away() -> None:
    moved = Share(PARTITION, is_paused=False, is_placed=True, next=7, unavailable=9)
    assert len(_damaged(1, 10, moved)[0].tried) == 1
    consumer: Any = _Damaged(1)

    async def story() -> None:
        share = Share(PARTITION, is_paused=False, is_placed=True, next=7)
        reader = _reader(consumer)
        await reader.read(lambda: {PARTITION: share}, 0.05)
        for _ in range(100):
            await reader.read(dict, 0.05)

    virtual_time.run(story())
    assert len(consumer.tried) == 1
