"""The library's fetcher, which hands out slices instead of whole buffers, and lets what fails rest.

A slice is small enough for one step of the event loop. What is left of an answer lies in the fetcher's buffer until it
is wanted: its node is sent no other fetch meanwhile, unless the partition is paused, and then the buffer is kept as
long as all that is kept so fits into `log.batch_bytes`.

A partition that a node answers with an error is left out of its fetches for a while; in the library it would be asked
for again at once, thousands of times a second.

Before each fetch only those partitions are looked at to which something has happened, and only they are named in it
(`fetch_plan`, `fetch_sessions`); in the library a fetch costs some 30 µs for every partition there is.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Collection
from typing import Any

from aiokafka import TopicPartition, errors
from aiokafka.consumer.fetcher import Fetcher, FetchError
from aiokafka.consumer.subscription_state import SubscriptionState

from proxy.bridge.event_log import Standing
from proxy.kafka_log.answer import UNREADABLE, Answer, Room
from proxy.kafka_log.fetch_plan import FetchPlan, Place
from proxy.kafka_log.fetch_sessions import Wish
from proxy.kafka_log.network import Network
from proxy.kafka_log.nodes import CONNECT

SLICE_EVENTS = 1_000
SLICE_BYTES = 1024**2
"""A slice holds at most so many events, and ends with the one that exceeds so many bytes: some milliseconds of work."""
FIRST_REST = 0.1
LONGEST_REST = 2.0
"""Seconds for which a partition that fails is left out: the first time, doubled up to the longest."""
LONGEST_REST_MOVED = 0.4
"""The same where the error says that another node leads it by now: the metadata are on their way."""

_RAISED = {errors.OffsetOutOfRangeError.errno, errors.TopicAuthorizationFailedError.errno}
"""Errors that the library raises to the reader; nothing else it does say."""
_NAMES = {
    56: "KAFKA_STORAGE_ERROR",
    74: "FENCED_LEADER_EPOCH",
    75: "UNKNOWN_LEADER_EPOCH",
    78: "OFFSET_NOT_AVAILABLE",
    100: "UNKNOWN_TOPIC_ID",
    -1: "UNKNOWN_SERVER_ERROR",
}
"""Errors that the library has no name of its own for."""


class _Refusal:
    """A node's error for one partition."""

    def __init__(self, node: Any) -> None:
        self.node = node
        self.error = 0
        self.rest = 0.0
        self.until = 0.0


class Subscriptions(SubscriptionState):  # type: ignore[misc]  # the library is untyped
    """What is read; tells whose fetching begins or ends. Made by the library's consumer, in place of its own class."""

    on_changed: Callable[[TopicPartition], None] = staticmethod(lambda _: None)

    def pause(self, tp: TopicPartition) -> None:
        """See the library."""
        super().pause(tp)
        self.on_changed(tp)

    def resume(self, tp: TopicPartition) -> None:
        """See the library."""
        super().resume(tp)
        self.on_changed(tp)


class Slices(Fetcher):  # type: ignore[misc]  # the library is untyped
    """Fetches, and hands out what was fetched. Made by the library's consumer, in place of its own class."""

    batch_bytes: int = 64 * 1024**2
    """Bound of a batch, decompressed, and of all that is kept of paused partitions."""

    def __init__(self, client: Network, subscriptions: Any, **wanted: Any) -> None:
        super().__init__(client, subscriptions, **wanted)
        self._plan = FetchPlan()
        self._planned_for: Any = None
        """The assignment."""
        self._leaderless: dict[TopicPartition, None] = {}
        self._unplaced: dict[TopicPartition, None] = {}
        """Those whose offset the library still has to find."""
        self.unreadable: dict[TopicPartition, Exception] = {}
        """What could not be read, until the reader has seen it."""
        self._refusals: dict[TopicPartition, _Refusal] = {}
        client.on_fetched = self._on_fetched
        client.cluster.add_listener(lambda _: self._plan.touch_all())
        subscriptions.on_changed = self._on_changed

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
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        while True:
            if self._subscriptions.reassignment_in_progress:
                await self._subscriptions.wait_for_assignment()
            if taken := self._take(partitions):
                return taken
            if self.unreadable or self._closed or deadline <= (now := loop.time()):
                return {}
            news = self._create_fetch_waiter()
            resumed = [
                future
                for tp, held in self._records.items()
                if isinstance(held, Answer) and (future := self._resumed(tp)) is not None
            ]
            await asyncio.wait([news, *resumed], timeout=deadline - now, return_when=asyncio.FIRST_COMPLETED)
            if news.done():
                news.result()  # raises what coordination found out
            else:
                news.cancel()

    def hindrance(self, at: TopicPartition) -> Standing | None:
        """Return what keeps the partition from being read now; None if nothing is known to."""
        node = self._select_read_replica(at)
        if node in {None, -1}:
            return Standing("leaderless", "no node leads it")
        host = self._client.host(node)
        if (why := self._client.nodes.why(node, CONNECT, "Fetch")) is not None:
            return Standing("node", f"node {node} at {host}, which leads it, does not answer: {why}")
        refusal = self._refusals.get(at)
        if refusal is not None and refusal.node == node:
            return Standing("refused", f"node {node} at {host} answers {_name(refusal.error)}")
        state = self._state(at)
        if state is not None and self._isolation_level and _is_held_back(state):
            return Standing("transaction", f"a transaction open since offset {state.lso} holds back what follows")
        return None

    def _take(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, list[Any]]:
        taken: dict[TopicPartition, list[Any]] = {}
        room = Room(SLICE_EVENTS, SLICE_BYTES)
        kept = 0
        for tp in list(self._records):
            held = self._records[tp]
            if partitions and tp not in partitions:
                continue
            if isinstance(held, FetchError):
                if not taken:
                    self._drop(tp)
                    self._sort_out(tp, held)
            elif not held.is_wanted:
                self._drop(tp)
            elif held.is_paused:
                kept += held.size
            elif room.is_left:
                self._take_of(tp, held, room, taken)
        if kept > self.batch_bytes:
            self._make_room(kept)
        return taken

    def _take_of(self, tp: TopicPartition, held: Answer, room: Room, taken: dict[TopicPartition, list[Any]]) -> None:
        try:
            records, is_more = held.take(room, self.batch_bytes, self._wake)
        except UNREADABLE as error:
            self.unreadable[tp] = error
            records, is_more = [], False
        if not is_more:
            self._drop(tp)
        elif records:
            self._records.move_to_end(tp)  # the others first next time: an answer of one may take thousands of slices
        if records:
            taken[tp] = records

    def _sort_out(self, tp: TopicPartition, held: FetchError) -> None:
        try:
            held.check_raise()
        except UNREADABLE as error:
            self.unreadable[tp] = error

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

    def seek_to(self, tp: TopicPartition, offset: int) -> None:
        """See the library."""
        super().seek_to(tp, offset)
        self._on_changed(tp)

    def _on_changed(self, tp: TopicPartition) -> None:
        self._plan.touch(tp)
        self._notify(self._wait_consume_future)

    def _wake(self) -> None:
        for waiter in list(self._fetch_waiters):
            self._notify(waiter)

    def _state(self, tp: TopicPartition) -> Any:
        subscription = self._subscriptions.subscription
        assignment = subscription.assignment if subscription is not None else None
        return assignment.state_value(tp) if assignment is not None else None

    def _resumed(self, tp: TopicPartition) -> Any:
        state = self._state(tp)
        return state.resume_fut if state is not None else None

    async def _proc_fetch_request(self, assignment: Any, node_id: Any, request: Any) -> bool:
        """See the library, which wakes whoever waits for records some turns of the loop later."""
        is_new = bool(await super()._proc_fetch_request(assignment, node_id, request))
        if is_new:
            self._wake()
        return is_new

    # -- what is fetched next -----------------------------------------------------------------------------------------

    def _on_fetched(self, node: Any, request: Any, response: Any) -> None:
        now = self._loop.time()
        self._plan.on_answer(node, request, response, now)
        for topic, partitions in response.topics:
            for number, error, *_ in partitions:
                if error and error not in _RAISED:
                    self._refuse(TopicPartition(topic, number), node, error, now)
                elif self._refusals:
                    self._refusals.pop(TopicPartition(topic, number), None)

    def _refuse(self, tp: TopicPartition, node: Any, error: int, now: float) -> None:
        refusal = self._refusals.get(tp)
        if refusal is None or refusal.node != node:
            refusal = self._refusals[tp] = _Refusal(node)
        moved = getattr(errors.for_code(error), "invalid_metadata", False)
        refusal.error = error
        refusal.rest = min(2 * refusal.rest or FIRST_REST, LONGEST_REST_MOVED if moved else LONGEST_REST)
        refusal.until = now + refusal.rest

    def _get_actions_per_node(self, assignment: Any) -> Any:
        """See the library: return fetches, offsets to be looked for, how long to wait, whether a leader is missing."""
        now = self._loop.time()
        if assignment is not self._planned_for:
            self._planned_for = assignment
            self._leaderless.clear()
            self._unplaced.clear()
            self._refusals = {tp: refusal for tp, refusal in self._refusals.items() if tp in assignment.tps}
            self._plan.begin(assignment.tps)
        for tp in (*self._refusals, *self._unplaced):
            self._plan.touch(tp)
        self._plan.settle(self._place_of, now)
        held = {self._select_read_replica(tp) for tp, one in self._records.items() if one.calculate_backoff()}
        sought = defaultdict(list)
        for tp in self._unplaced:
            leader = self._client.cluster.leader_for_partition(tp)
            if leader not in {None, -1} and leader not in self._in_flight:
                sought[leader].append(tp)
        busy = self._in_flight | held | sought.keys()
        fetches = self._plan.fetches(lambda node: node not in busy, self._wish, now)
        seconds = self._prefetch_backoff if held else self._fetcher_timeout
        return fetches, sought, seconds, bool(self._leaderless), ()

    @property
    def _wish(self) -> Wish:
        return Wish(
            self._fetch_max_wait_ms,
            self._fetch_min_bytes,
            self._fetch_max_bytes,
            self._isolation_level,
            self._max_partition_fetch_bytes,
            self._client_rack or "",
        )

    def _place_of(self, tp: TopicPartition) -> Place | None:
        """Return from where the partition is to be fetched now; None: not at all."""
        state = self._planned_for.state_value(tp)
        if state is None:
            return None
        node = self._select_read_replica(tp)
        is_led, is_there = node not in {None, -1}, tp in self._records
        _note(self._leaderless, tp, on=not is_led and not is_there)
        _note(self._unplaced, tp, on=is_led and not is_there and not state.has_valid_position)
        if not is_led or is_there or state.paused or not state.has_valid_position:
            return None
        refusal = self._refusals.get(tp)
        rests = refusal is not None and refusal.node == node and refusal.until > self._loop.time()
        return None if rests else Place(node, state.position)


def _note(those: dict[TopicPartition, None], tp: TopicPartition, *, on: bool) -> None:
    if on:
        those[tp] = None
    else:
        those.pop(tp, None)


def _is_held_back(state: Any) -> bool:
    """Whether all that may be read is read, and the log has more."""
    known = state.has_valid_position and state.lso is not None and state.highwater is not None
    return bool(known and 0 <= state.lso <= state.position < state.highwater)


def _name(error: int) -> str:
    return f"{_NAMES.get(error) or errors.for_code(error).__name__} ({error})"
