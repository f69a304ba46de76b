"""Hands out slices of what was fetched instead of whole buffers.

A slice is small enough for one step of the event loop. What is left of an answer lies in the fetcher's buffer until it
is wanted: its node is sent no other fetch meanwhile, unless the partition is paused, and then the buffer is kept as
long as all that is kept so fits into `log.batch_bytes`.
"""

import asyncio
from collections.abc import Collection
from typing import Any

from aiokafka import TopicPartition, errors
from aiokafka.consumer.fetcher import FetchError

from proxy.bridge.event_log import Standing
from proxy.kafka_log.answer import UNREADABLE, Answer, Room
from proxy.kafka_log.fetching import Fetching
from proxy.kafka_log.network import Network
from proxy.kafka_log.nodes import CONNECT
from proxy.kafka_log.opening import Opener

SLICE_EVENTS = 1_000
SLICE_BYTES = 1024**2
SLICE_PARTITIONS = 100
"""A slice holds at most so many events, of so many partitions, and ends with the one that exceeds so many bytes: some
milliseconds of work."""

_NAMES = {
    56: "KAFKA_STORAGE_ERROR",
    74: "FENCED_LEADER_EPOCH",
    75: "UNKNOWN_LEADER_EPOCH",
    78: "OFFSET_NOT_AVAILABLE",
    100: "UNKNOWN_TOPIC_ID",
    103: "INCONSISTENT_TOPIC_ID",
    -1: "UNKNOWN_SERVER_ERROR",
}
"""Errors that the library has no name of its own for."""


class Slices(Fetching):
    """Fetches, and hands out what was fetched. Made by the library's consumer, in place of its own class."""

    def __init__(self, client: Network, subscriptions: Any, **wanted: Any) -> None:
        super().__init__(client, subscriptions, **wanted)
        self._opener = Opener(self._lying_open, self._wake)
        self.unreadable: dict[TopicPartition, Exception] = {}
        """What could not be read, until the reader has seen it."""
        self._passed: dict[TopicPartition, int] = {}
        """Up to where some were read behind their last record: markers, aborted transactions, what is compacted."""
        self._without_leader: tuple[Any, set[TopicPartition]] | None = None
        """Of an assignment; None: to be looked for, leaders may be others."""
        client.on_metadata.append(self._forget_leaders)
        self._is_interrupted = False
        self._awaited: asyncio.Future[None] | None = None

    @property
    def batch_bytes(self) -> int:
        """Bound of a batch, decompressed, and of all that is kept of paused partitions."""
        return self._opener.most

    @batch_bytes.setter
    def batch_bytes(self, most: int) -> None:
        self._opener.most = most

    async def fetched_records(
        self,
        partitions: Collection[TopicPartition],
        timeout: float = 0,  # noqa: ASYNC109  # as the library has it
        max_records: int | None = None,
    ) -> dict[TopicPartition, list[Any]]:
        """Return a slice of what was fetched; wait up to `timeout` seconds for the first of it.

        Raises what the library raises for a partition, once everything before it is handed out.
        """
        del max_records
        deadline = self._loop.time() + timeout
        self._is_interrupted = False
        if self._records:
            await asyncio.sleep(0)  # it may lie ready, and then nothing below gives the loop a turn
        while True:
            is_joining = self._subscriptions.reassignment_in_progress
            if not is_joining and (taken := self._take(partitions)):
                return taken
            if self._fetch_task.done() and not self._closed:
                self._fetch_task.result()  # raises what has ended it
            if self.unreadable or self._closed or self._is_interrupted or deadline <= self._loop.time():
                return {}
            news = self._subscriptions.wait_for_assignment() if is_joining else self._create_fetch_waiter()
            await self._until(deadline, news)

    def take_passed(self) -> dict[TopicPartition, int]:
        """Return where reading stands that passed offsets without a record since this was asked last."""
        if not self._passed:
            return {}
        passed, self._passed = self._passed, {}
        return {at: end for at, end in passed.items() if (state := self._state(at)) is not None and _is_at(state, end)}

    def interrupt(self) -> None:
        """Let a wait for records end, with nothing."""
        self._is_interrupted = True
        self._notify(self._awaited)

    async def _until(self, deadline: float, news: asyncio.Future[None]) -> None:
        """Wait for news until the deadline. Raises what coordination found out."""
        self._awaited = news
        timer = self._loop.call_at(deadline, self._notify, news)
        try:
            await news
        finally:
            timer.cancel()

    @property
    def suspects(self) -> Collection[TopicPartition] | None:
        """Those that something may keep from being read now; None: it may be any of them."""
        if self._client.nodes.is_any_failing or self._preferred_read_replica:
            return None
        assigned, leader = self._subscriptions.assigned_partitions(), self._client.cluster.leader_for_partition
        if self._without_leader is None or self._without_leader[0] is not assigned:
            self._without_leader = assigned, {at for at in assigned if leader(at) in {None, -1}}
        return {*self._without_leader[1], *self._refusals, *self._behind}

    def _forget_leaders(self) -> None:
        self._without_leader = None

    def hindrance(self, at: TopicPartition) -> Standing | None:
        """Return what keeps the partition from being read now; None if nothing is known to."""
        node = self._select_read_replica(at)
        if node in {None, -1}:
            return Standing("leaderless", "no node leads it")
        if (why := self._client.nodes.why(node, CONNECT, "Fetch")) is not None:
            where = f"node {node} at {self._client.host(node)}"
            return Standing("node", f"{where}, which leads it, does not answer: {why}")
        refusal = self._refusals.get(at)
        if refusal is not None and refusal.node == node:
            return Standing("refused", f"node {node} at {self._client.host(node)} answers {_name(refusal.error)}")
        state = self._state(at)
        if state is not None and self._isolation_level and _is_held_back(state):
            return Standing("transaction", f"a transaction open since offset {state.lso} holds back what follows")
        return None

    def _take(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, list[Any]]:
        taken: dict[TopicPartition, list[Any]] = {}
        room = Room(SLICE_EVENTS, SLICE_BYTES)
        self._opener.begin()
        kept = 0
        for tp in list(self._records):
            held = self._records[tp]
            if partitions and tp not in partitions:
                continue
            if isinstance(held, FetchError):
                if not taken:
                    self._drop(tp)
                    self._sort_out(tp, held)
            elif held.is_paused:
                if held.is_wanted:
                    kept += held.size
                else:
                    self._drop(tp)
            elif room.is_left and len(taken) < SLICE_PARTITIONS:
                if held.is_wanted:
                    self._take_of(tp, held, room, taken)
                else:
                    self._drop(tp)
        if kept > self.batch_bytes:
            self._make_room(kept)
        return taken

    def _take_of(self, tp: TopicPartition, held: Answer, room: Room, taken: dict[TopicPartition, list[Any]]) -> None:
        most = min(room.bytes, self._most_of_one)
        own, begin = Room(room.events, most), held.batches.next_fetch_offset
        try:
            records, is_more = held.take(own, self._opener)
        except UNREADABLE as error:
            self.unreadable[tp] = error
            records, is_more = [], False
        if held.batches.next_fetch_offset > (records[-1].offset + 1 if records else begin):
            self._passed[tp] = held.batches.next_fetch_offset
        room.events, room.bytes = own.events, room.bytes - (most - own.bytes)
        if not is_more:
            self._drop(tp)
        elif records:
            self._records.move_to_end(tp)  # the others first next time: an answer of one may take thousands of slices
        if records:
            taken[tp] = records

    @property
    def _most_of_one(self) -> int:
        """Bytes of a slice that are of one partition: where there are many, no more than a fetch brings of each.

        A batch comes whole, however large; what is not taken of it waits as it came.
        """
        share: int = self._wish.partition_bytes
        return share if share < self._max_partition_fetch_bytes else SLICE_BYTES

    def _sort_out(self, tp: TopicPartition, held: FetchError) -> None:
        try:
            held.check_raise()
        except UNREADABLE as error:
            self.unreadable[tp] = error

    def _lying_open(self) -> int:
        return sum(held.batches.open_bytes for held in self._records.values() if isinstance(held, Answer))

    def _make_room(self, kept: int) -> None:
        """Drop what is kept of paused partitions, the oldest first; it is fetched again when they are resumed."""
        for tp, held in list(self._records.items()):
            if kept <= self.batch_bytes:
                return
            if isinstance(held, Answer) and held.is_paused:
                kept -= held.size
                self._drop(tp)

    def _drop(self, tp: TopicPartition) -> None:
        del self._records[tp]
        self._on_changed(tp)

    def _state(self, tp: TopicPartition) -> Any:
        subscription = self._subscriptions.subscription
        assignment = subscription.assignment if subscription is not None else None
        return assignment.state_value(tp) if assignment is not None else None


def _is_at(state: Any, offset: int) -> bool:
    """Whether reading goes on at the offset."""
    return bool(state.has_valid_position and state.position == offset)


def _is_held_back(state: Any) -> bool:
    """Whether all that may be read is read, and the log has more."""
    known = state.has_valid_position and state.lso is not None and state.highwater is not None
    return bool(known and 0 <= state.lso <= state.position < state.highwater)


def _name(error: int) -> str:
    return f"{_NAMES.get(error) or errors.for_code(error).__name__} ({error})"
