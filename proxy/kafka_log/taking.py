"""What an answer to a fetch brings: records to be taken, or an error that the reader gets."""

from collections.abc import Sequence
from typing import Any

from aiokafka import TopicPartition, errors
from aiokafka.consumer.fetcher import Fetcher

from proxy.kafka_log.answer import Answer, Batches
from proxy.kafka_log.fetch_sessions import Fetch
from proxy.kafka_log.fetch_wire import Told
from proxy.kafka_log.leader_epochs import LeaderEpochs
from proxy.kafka_log.raw_batches import RawBatches
from proxy.kafka_log.refusals import NO_SUCH_ID

RAISED = {errors.OffsetOutOfRangeError.errno, errors.TopicAuthorizationFailedError.errno}
"""Errors that are raised to the reader."""
_MOVED = {
    errors.NotLeaderForPartitionError.errno,
    errors.UnknownTopicOrPartitionError.errno,
    *NO_SUCH_ID,
}
"""Errors after which the metadata are asked for at once."""


class Taking(Fetcher):  # type: ignore[misc]  # the library is untyped
    """A fetcher that takes answers into `_records`, one for each partition, and wakes who waits for them."""

    def __init__(self, client: Any, subscriptions: Any, **wanted: Any) -> None:
        super().__init__(client, subscriptions, **wanted)
        self._behind: dict[TopicPartition, None] = {}
        """Those of which a node told last that the log has more than may be read."""
        self.leaders = LeaderEpochs()

    def _wake(self) -> None:
        """Let whoever waits for records look."""
        for waiter in list(self._fetch_waiters):
            self._notify(waiter)

    def _take_some(self, assignment: Any, request: Fetch, some: Sequence[Told]) -> None:
        if assignment.active:
            is_new = [self._take_in(assignment, told, request) for told in some]
            if any(is_new):
                self._wake()

    def _take_in(self, assignment: Any, told: Told, fetch: Fetch) -> bool:
        """Keep what a node tells of a partition until it is taken; return whether there is something to take."""
        at = told.at
        state, offset = assignment.state_value(at), fetch.told.get(at)
        if state is None or offset is None or not state.has_valid_position or state.position != offset:
            return False  # reading has moved meanwhile
        if told.error:
            return self._take_error(at, told.error, offset)
        if self._client_rack:
            self._update_preferred_read_replica(at, told.replica)
        state.highwater, state.lso = told.highwater, told.stable
        if self._isolation_level:
            note(self._behind, at, on=told.stable is not None and told.stable < told.highwater)
        if not told.records:
            return False
        records = RawBatches(told.records)
        if records.has_next():
            wanted = told.aborted, offset, None, None, self._check_crcs, self._isolation_level
            batches = Batches(self.leaders, at, records, *wanted)
            self._records[at] = Answer(
                at, assignment=assignment, partition_records=batches, backoff=self._prefetch_backoff
            )
        else:
            why = f"a record at {at.topic}/{at.partition}@{offset} is larger than a fetch may bring of one partition"
            self._set_error(at, errors.RecordTooLargeError(why))
            state.consumed_to(offset + 1)
        return True

    def _take_error(self, at: TopicPartition, error: int, offset: int) -> bool:
        self._preferred_read_replica.pop(at, None)
        if error in _MOVED:
            self._client.force_metadata_update()
        elif error == errors.OffsetOutOfRangeError.errno:
            self._set_error(at, errors.OffsetOutOfRangeError({at: offset}))
        elif error == errors.TopicAuthorizationFailedError.errno:
            self._set_error(at, errors.TopicAuthorizationFailedError(at.topic))
        return error in RAISED


def note(those: dict[TopicPartition, None], tp: TopicPartition, *, on: bool) -> None:
    """Put the partition among those, or take it away; cheap where there are none."""
    if on:
        those[tp] = None
    elif those:
        those.pop(tp, None)
