"""How many events a range of a partition holds, from the heads of its batches (docs/design/0045). Pure.

A batch is opened only where its head can't tell: it stands across an end of the range, or may hold events of both sides
of a time. Events of aborted transactions and the markers of their ends are none.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from aiokafka import errors
from aiokafka.record.control_record import ABORT_MARKER, ControlRecord

from proxy.kafka_log.raw_batches import RawBatches
from proxy.kafka_log.unpacking import unpack

_HEAD = struct.Struct(">qiibihiqqqhii")
"""Base offset, length, leader's epoch, magic, checksum, attributes, last offset, first and last time, producer and its
epoch, first sequence, number of records."""
_BEGIN = struct.Struct(">qiib")
_LENGTH_BEFORE = 12
"""Bytes of a batch that its length does not count."""
_MAGIC = 2
_TRANSACTIONAL, _CONTROL = 1 << 4, 1 << 5


@dataclass(slots=True)
class RangeCount:
    """The range `[first, end)`, as far as it is read; `before_ms`: newer than that is counted apart."""

    first: int
    end: int
    before_ms: int | None
    most_bytes: int
    """Of one batch, decompressed."""
    next: int = field(init=False)
    """The offset from which to read on."""
    events: int = 0
    newer: int = 0
    """Of these, events at or after `before_ms`."""
    _aborted: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Begin at the range's beginning."""
        self.next = self.first

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to read."""
        return self.next >= self.end

    def take(self, records: bytes, aborted: Sequence[tuple[int, int]]) -> None:
        """Count what a fetch from `next` on has brought; `aborted`: producers and first offsets of what is none.

        Raises what the library raises of a batch that can't be read.
        """
        waiting = sorted(aborted, key=lambda one: one[1], reverse=True)
        at = 0
        while not self.is_done and len(records) - at >= _BEGIN.size:
            base, length, _, magic = _BEGIN.unpack_from(records, at)
            after = at + _LENGTH_BEFORE + length
            if after > len(records):
                return  # cut off; it comes whole with the next fetch
            data, at = records[at:after], after
            if magic < _MAGIC:
                self._open(data)
                continue
            *_, attributes, last, _, latest, producer, _, _, count = _HEAD.unpack_from(data)
            while waiting and waiting[-1][1] <= base:
                self._aborted.add(waiting.pop()[0])
            if base + last < self.next:
                continue
            if attributes & _CONTROL:
                self._end_transaction(data, producer)
            elif not (attributes & _TRANSACTIONAL and producer in self._aborted):
                is_within = self.next <= base and base + last < self.end
                if is_within and (self.before_ms is None or latest < self.before_ms):
                    self.events += count
                else:
                    self._open(data)
            self.next = max(self.next, base + last + 1)

    def _open(self, data: bytes) -> None:
        """Count the events of a batch one by one."""
        opened, _ = unpack(RawBatches(data).next_batch(), self.most_bytes)
        last = self.next
        for record in opened:
            last = max(last, record.offset + 1)
            if self.next <= record.offset < self.end:
                self.events += 1
                stamp = record.timestamp  # None where the format has none
                self.newer += self.before_ms is not None and stamp is not None and stamp >= self.before_ms
        self.next = last

    def _end_transaction(self, data: bytes, producer: int) -> None:
        marker = next(RawBatches(data).next_batch(), None)
        try:
            if marker is not None and ControlRecord.parse(marker.key) == ABORT_MARKER:
                self._aborted.discard(producer)
        except (struct.error, TypeError) as error:
            raise errors.CorruptRecordException(f"no marker of a transaction: {error}") from error
