"""Which log's cursors are moved, and whether it has a board for the replicas: the one place that asks."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from proxy.bridge.move import Direction
from proxy.cursor.carrying import Hands, Held
from proxy.cursor.choice import Cursors, Wanted, meant_by
from proxy.errors import SettingsError
from proxy.model import Partition
from proxy.settings import Settings

if TYPE_CHECKING:
    from proxy.kafka_log.board import KafkaBoard


class LogCursors(Cursors, Hands, Protocol):
    """What the command asks of a log; see `KafkaCursors` and `NakadiCursors`."""

    def range(self, first: int, end: int, before_ms: int | None) -> Any:
        """Return the count of a range, of which nothing is known yet: `events`, `newer`, `is_done`."""
        ...

    async def read_on(self, partition: Partition, count: Any) -> None:
        """Learn more of a range."""
        ...


class Opened(NamedTuple):
    """A log's cursors, and how they are moved while replicas run: by its board, or held still by the command."""

    cursors: LogCursors
    board: "KafkaBoard | None"
    held: Held | None


def demand_end(settings: Settings, wanted: Wanted) -> None:
    """Raise `SettingsError` if the log can't tell where that is to which cursors are to be moved."""
    if settings.log.nakadi is not None and wanted.time is not None and wanted.time >= 0:
        end = "--to-end" if wanted.direction is Direction.SKIP else "--to-start"
        raise SettingsError(
            [f"Nakadi does not tell what came when, so there is no --to TIME: say --to-offset, or {end}"]
        )


@asynccontextmanager
async def opened(settings: Settings, wanted: Wanted) -> AsyncIterator[Opened]:
    """Open what a log has. Raises `LogError`."""
    async with AsyncExitStack() as stack:
        if settings.log.nakadi is not None:
            from proxy.nakadi_log.cursors import NakadiCursors

            nakadi = NakadiCursors(settings.log, lambda topic: meant_by(wanted, settings, topic) is not None)
            stack.push_async_callback(nakadi.close)
            await nakadi.open()
            yield Opened(nakadi, None, nakadi.held)
            return
        from proxy.kafka_log.board import KafkaBoard
        from proxy.kafka_log.cursors import KafkaCursors

        board, kafka = KafkaBoard(settings.log), KafkaCursors(settings.log)
        stack.push_async_callback(board.close)
        stack.push_async_callback(kafka.close)
        await kafka.open()
        await board.open()
        yield Opened(kafka, board, None)
