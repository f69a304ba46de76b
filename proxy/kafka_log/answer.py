"""What one fetch brought of one partition, read in slices.

The library reads an answer as a whole: 4 MiB of small events, compressed, hold the event loop for a second. Here batch
after batch is opened, on a thread if it is large, and as many records are taken as there is room for. Where an answer
stands is known after every slice, so that whatever drops it, reading begins again there.
"""

import asyncio
import struct
from dataclasses import dataclass
from typing import Any

from aiokafka import errors
from aiokafka.consumer.fetcher import READ_COMMITTED, PartitionRecords
from aiokafka.record.control_record import ABORT_MARKER, ControlRecord

from proxy.kafka_log.leader_epochs import LeaderEpochs, NewLeaderError
from proxy.kafka_log.opening import LARGE, Opened, Opener, Records

UNREADABLE = (
    errors.CorruptRecordException,
    errors.UnsupportedCodecError,
    errors.RecordTooLargeError,
    UnicodeDecodeError,
    NewLeaderError,
)
"""What a batch raises that can't be read, or not yet."""


@dataclass(slots=True)
class Room:
    """What one slice may still hold."""

    events: int
    bytes: int

    @property
    def is_left(self) -> bool:
        """Whether one more event may be taken."""
        return self.events > 0 and self.bytes > 0


class Batches(PartitionRecords):  # type: ignore[misc]  # the library is untyped
    """The batches of one answer."""

    def __init__(self, leaders: LeaderEpochs, tp: Any, records: Any, *wanted: Any) -> None:
        super().__init__(tp, records, *wanted)
        self._leaders = leaders
        # It holds this, and would keep the whole answer in memory until Python's collector comes by.
        self._records_iterator = None
        self.next_fetch_offset: int
        self.wire_bytes: int = records.size_in_bytes()
        """As they came."""
        self.kept_bytes: int = records.kept_bytes
        """What lies in memory for them."""
        self.is_large = self.wire_bytes >= LARGE
        """Its batches are opened on a thread."""
        self.open_bytes = 0
        """The batch that is open, decompressed."""
        self._batch: Any = None
        """To be opened, or open."""
        self._open: Records | None = None
        self._failure: Exception | None = None

    def take(self, room: Room, opener: Opener) -> tuple[list[Any], bool]:
        """Return records for which there is room, and whether there is more to come, now or once a batch is open.

        Raises one of `UNREADABLE` once all before it are taken.
        """
        taken: list[Any] = []
        while room.events > 0 and room.bytes > 0 and self._failure is None:
            try:
                if not self._advance(opener):
                    return taken, self._batch is not None
                self._read(taken, room)
                if self._batch is None and not self._records.has_next():
                    return taken, False
            except UNREADABLE as error:
                self._failure = error
        if self._failure is not None and not taken:
            raise self._failure
        return taken, True

    def _advance(self, opener: Opener) -> bool:
        """Have a batch open; return whether one is now."""
        if self._open is not None:
            return True
        if self._batch is None:
            self._batch = self._next()
        if self._batch is not None:
            opened = opener.open(self._batch, self)
            if opened is not None:
                self._open, self.open_bytes = opened
        return self._open is not None

    def on_opened(self, opening: asyncio.Future[Opened]) -> None:
        """Take what a thread has opened."""
        if opening.cancelled():
            return
        try:
            self._open, self.open_bytes = opening.result()
        except Exception as error:  # noqa: BLE001  # raised again by whoever takes
            self._failure = error

    def _read(self, taken: list[Any], room: Room) -> None:
        """Take records of the open batch; at its end it is closed."""
        assert self._open is not None
        position = self.next_fetch_offset
        size = 0
        try:
            for record in iter(self._open.__next__, None):  # the library's own can't be begun a second time
                if record.offset < position:
                    continue  # a batch is fetched as a whole, also if only its end is wanted
                taken.append(record)
                position = record.offset + 1
                size += len(record.key or b"") + len(record.value or b"")
                room.events -= 1
                if size >= room.bytes or not room.events:
                    return
            # The last records may be gone by compaction. An old message that holds others may tell less than they do.
            position = max(position, self._batch.next_offset)
            self._batch = self._open = None
            self.open_bytes = 0
        finally:
            self.next_fetch_offset = position
            room.bytes -= size

    def _next(self) -> Any:
        """Return the next batch with events, as the library finds it: its checksum holds, and it was not aborted."""
        while self._records.has_next():
            batch = self._records.next_batch()
            if self._check_crcs and not self._records.is_intact(batch):
                raise errors.CorruptRecordException(f"Invalid CRC - {self._tp}")
            self._leaders.pass_on(self._tp, self._records.leader_epoch, batch.next_offset)
            is_passed = batch.is_control_batch
            if self._isolation_level == READ_COMMITTED and batch.producer_id is not None:
                if self._aborted_transactions:
                    self._consume_aborted_up_to(batch.base_offset)
                if batch.is_control_batch:
                    if self._contains_abort_marker(batch):
                        self._aborted_producers.discard(batch.producer_id)
                elif batch.is_transactional and batch.producer_id in self._aborted_producers:
                    is_passed = True
            if not is_passed:
                return batch
            self.next_fetch_offset = batch.next_offset
        return None

    def _contains_abort_marker(self, batch: Any) -> bool:
        """Whether it ends an aborted transaction. Compaction may leave a batch without its marker, which ends none."""
        marker = next(batch, None)
        try:
            return marker is not None and ControlRecord.parse(marker.key) == ABORT_MARKER
        except (struct.error, TypeError) as error:
            raise errors.CorruptRecordException(f"no marker of a transaction: {error}") from error


class Answer:
    """One buffer of the library's fetcher.

    A node is sent no new fetch while something of its last answer waits to be taken, so that one answer of each node at
    most lies in memory; what is paused does not count for that, or one paused partition would stop all.
    """

    def __init__(self, tp: Any, *, assignment: Any, partition_records: Batches, backoff: float) -> None:
        self.batches = partition_records
        self._assignment = assignment
        self._state = assignment.state_value(tp)
        self._backoff = backoff

    @property
    def is_paused(self) -> bool:
        """Whether nothing may be taken now."""
        return bool(self._state.paused)

    @property
    def is_wanted(self) -> bool:
        """Whether reading still stands where this answer begins."""
        return bool(self._assignment.active and self._state.position == self.batches.next_fetch_offset)

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return self.batches.kept_bytes + self.batches.open_bytes

    def calculate_backoff(self) -> float:
        """Return how many seconds its node is sent no fetch, as the library asks it."""
        return 0.0 if self.is_paused else self._backoff

    def take(self, room: Room, opener: Opener) -> tuple[list[Any], bool]:
        """Take what there is room for, see `Batches.take`; reading stands behind it then."""
        try:
            return self.batches.take(room, opener)
        finally:
            self._state.consumed_to(self.batches.next_fetch_offset)
