"""Where reading goes on when the log has changed under an epoch."""

from collections.abc import Collection, Mapping

from aiokafka import TopicPartition

from proxy.kafka_log.inquiry import EARLIEST
from proxy.kafka_log.shares import Placing, Share
from proxy.model import Partition, Position
from proxy.settings import LogSettings

AT = TopicPartition("orders", 0)


class Log:
    """A consumer, an inquiry and an owner in one, as far as placing asks them."""

    def __init__(self, first: int, end: int) -> None:
        self.bounds = (first, end)
        self.sought: list[int] = []
        self.flowing = False
        self.epochs: list[Partition] = []
        self.lost = 0

    def seek(self, _: TopicPartition, offset: int) -> None:
        self.sought.append(offset)

    def pause(self, _: TopicPartition) -> None:
        self.flowing = False

    def resume(self, _: TopicPartition) -> None:
        self.flowing = True

    async def offsets(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        return {at: self.bounds[0 if time == EARLIEST else 1] for at, time in times.items()}

    async def committed(self) -> dict[TopicPartition, int]:
        return {}

    def on_assigned(self, partitions: Collection[Partition]) -> Collection[Partition]:
        self.epochs += partitions
        return []

    async def on_revoked(self, _: Collection[Partition]) -> Mapping[Partition, Position]:
        return {}

    def on_truncated(self, _: Partition, lost: int) -> None:
        self.lost += lost


async def attended(log: Log, wanted: int) -> Share:
    share = Share(at=AT, is_paused=True, began=0, done=wanted, unavailable=wanted)
    placing = Placing(LogSettings(hosts=["h:1"], group="g"), log, log, log, log)  # type: ignore[arg-type]
    shares = {AT: share}
    assert await placing.attend(lambda: shares)
    return share


async def test_a_new_epoch_begins_when_the_topic_was_deleted_and_made_anew_unnoticed() -> None:
    log = Log(first=0, end=5)
    share = await attended(log, wanted=50)
    assert log.epochs == [Partition("orders", 0)]
    assert (share.began, share.done, log.sought, log.flowing, log.lost) == (0, 0, [0], True, 0)


async def test_the_epoch_goes_on_and_the_loss_is_counted_when_the_log_was_truncated() -> None:
    log = Log(first=70, end=100)
    share = await attended(log, wanted=50)
    assert (log.epochs, log.lost, log.sought) == ([], 20, [70])
    assert share.done == 50
