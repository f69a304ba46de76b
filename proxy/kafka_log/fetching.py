"""The library's fetcher, with a routine of our own: what is fetched next, and from whom.

Before each fetch only those partitions are looked at to which something has happened, and only they are named in it
(`fetch_plan`, `fetch_sessions`); in the library a fetch costs some 30 µs for every partition there is.

A partition that a node answers with an error is left out of its fetches for a while; in the library it would be asked
for again at once, thousands of times a second.
"""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from aiokafka import TopicPartition, errors

from proxy.kafka_log.connection import UnderWay
from proxy.kafka_log.fetch_plan import FetchPlan, Place
from proxy.kafka_log.fetch_sessions import Fetch, Wish
from proxy.kafka_log.fetch_wire import FetchAnswer, Told
from proxy.kafka_log.network import Network
from proxy.kafka_log.refusals import Refusals
from proxy.kafka_log.taking import RAISED, Taking, note

TAKEN_AT_ONCE = 200
"""Partitions of an answer that are taken in in one step; of 1,000 it would be a long one."""
LEAST_SHARE = 64 * 1024
"""Bytes that a fetch may bring of a partition, however many there are: producers' batches should fit."""


class Fetching(Taking):
    """Fetches into `_records`, an answer for each partition."""

    def __init__(self, client: Network, subscriptions: Any, **wanted: Any) -> None:
        super().__init__(client, subscriptions, **wanted)
        self._wish = Wish(
            self._fetch_max_wait_ms,
            self._fetch_min_bytes,
            self._fetch_max_bytes,
            self._isolation_level,
            self._max_partition_fetch_bytes,
            self._client_rack or "",
        )
        self._plan = FetchPlan()
        self._planned_for: Any = None
        """The assignment."""
        self._leaderless: dict[TopicPartition, None] = {}
        self._unplaced: dict[TopicPartition, None] = {}
        """Those whose offset the library still has to find."""
        self._refusals = Refusals()
        self._answers: set[asyncio.Future[Any]] = set()
        """Of fetches under way that no task waits for."""
        client.on_fetched = self._on_fetched
        client.on_metadata.append(self._plan.touch_all)
        subscriptions.on_changed = self._on_changed
        self._fetch_task.add_done_callback(lambda _: self._wake())

    def seek_to(self, tp: TopicPartition, offset: int) -> None:
        """See the library."""
        super().seek_to(tp, offset)
        self.leaders.move(tp, offset)
        self._on_changed(tp)

    async def close(self) -> None:
        """See the library."""
        for answer in list(self._answers):
            answer.cancel()
        await super().close()

    def _on_changed(self, tp: TopicPartition) -> None:
        self._plan.touch(tp)
        self._notify(self._wait_consume_future)
        if tp in self._records:
            self._wake()  # it may have been resumed

    # -- the routine ---------------------------------------------------------------------------------------------------

    async def _fetch_requests_routine(self) -> None:
        """Fetch until cancelled. The library's waits for a set of tasks and futures, anew for each fetch."""
        assignment: Any = None
        try:
            while True:
                if assignment is None or not assignment.active:
                    assignment = await self._next_assignment()
                    continue
                self._wait_consume_future = news = self._loop.create_future()
                self._look_after_tasks()
                timer = self._loop.call_later(self._begin_what_is_due(assignment), self._notify, news)
                try:
                    await news
                finally:
                    timer.cancel()
        except asyncio.CancelledError:
            pass

    async def _next_assignment(self) -> Any:
        """Give up what is under way for the last one; return the next; None if it has to be looked for again."""
        for answer in list(self._answers):
            answer.cancel()
        for task in self._pending_tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        self._pending_tasks.clear()
        self._records.clear()
        subscription = self._subscriptions.subscription
        if subscription is None or subscription.assignment is None:
            try:
                await self._subscriptions.wait_for_assignment()
            except errors.KafkaError:
                return None  # the reader gets it
        assignment = self._subscriptions.subscription.assignment
        if assignment is not None:
            assignment.unassign_future.add_done_callback(lambda _: self._notify(self._wait_consume_future))
        return assignment

    def _look_after_tasks(self) -> None:
        """Forget those that are through; what one has raised ends the routine, and so reading."""
        for task in [one for one in self._pending_tasks if one.done()]:
            self._pending_tasks.discard(task)
            if not task.cancelled() and task.result():
                self._wake()

    def _begin_what_is_due(self, assignment: Any) -> float:
        """Begin fetches and searches for offsets; return for how many seconds to wait for news."""
        fetches, sought, seconds = self._due(assignment)
        for node, fetch in fetches:
            self._fetch(assignment, node, fetch)
        for node, partitions in sought.items():
            self._begin(node, self._update_fetch_positions(assignment, node, partitions))
        if self._leaderless:
            self._client.force_metadata_update().add_done_callback(lambda _: self._notify(self._wait_consume_future))
        return seconds

    def _fetch(self, assignment: Any, node: Any, request: Fetch) -> None:
        """Fetch from a node; without a task, as long as nothing has to be waited for but the answer."""
        try:
            under_way = self._client.begin_fetch(node, request)
        except errors.KafkaError:  # it is known by now that the connection is lost
            under_way = None
        if under_way is None:
            self._begin(node, self._proc_fetch_request(assignment, node, request))
            return
        self._in_flight.add(node)
        self._answers.add(under_way.answer)

        under_way.answer.add_done_callback(lambda _: self._on_answer(assignment, node, request, under_way))

    def _on_answer(self, assignment: Any, node: Any, request: Fetch, under_way: UnderWay) -> None:
        self._answers.discard(under_way.answer)
        further = None
        try:
            if not under_way.answer.cancelled():
                told = self._client.end_fetch(node, request, under_way).told
                if len(told) > TAKEN_AT_ONCE:
                    further = self._take_all(assignment, request, told)
                else:
                    self._take_some(assignment, request, told)
        except errors.KafkaError:
            further = None if self._closed else self._after_failure(node, request)
        except Exception as error:  # noqa: BLE001  # ends the routine, and so reading
            further = _raise(error)
        if further is None:
            self._end(node)
        else:
            self._begin(node, further)

    def _begin(self, node: Any, doing: Any) -> None:
        task = self._loop.create_task(doing)
        self._pending_tasks.add(task)
        self._in_flight.add(node)
        task.add_done_callback(lambda _: self._end(node))

    def _end(self, node: Any) -> None:
        self._in_flight.discard(node)
        self._notify(self._wait_consume_future)

    # -- what an answer brings -----------------------------------------------------------------------------------------

    async def _proc_fetch_request(self, assignment: Any, node_id: Any, request: Fetch) -> bool:
        """See the library. Returns False always: who waits is woken here, some turns of the loop earlier."""
        try:
            answer = await self._client.fetch(node_id, request)
        except errors.KafkaError:
            await self._after_failure(node_id, request)
        except asyncio.CancelledError:
            pass
        else:
            await self._take_all(assignment, request, answer.told)
        return False

    async def _after_failure(self, node: Any, request: Fetch) -> None:
        self._invalidate_preferred_read_replica_for_node(node, request)
        await asyncio.sleep(self._retry_backoff)

    async def _take_all(self, assignment: Any, request: Fetch, all_told: Sequence[Told]) -> None:
        for first in range(0, len(all_told), TAKEN_AT_ONCE):
            some = all_told[first : first + TAKEN_AT_ONCE]
            if first:
                await asyncio.sleep(0)
                for told in some:  # a look at it may have come between
                    self._plan.touch(told.at)
            self._take_some(assignment, request, some)

    # -- what is fetched next -----------------------------------------------------------------------------------------

    def _on_fetched(self, node: Any, request: Fetch, answer: FetchAnswer) -> None:
        now = self._loop.time()
        self._plan.on_answer(node, request, answer, now)
        for told in answer.told:
            if told.error and told.error not in RAISED:
                self._refusals.add(told.at, node, told.error, now)
            elif self._refusals:
                self._refusals.pop(told.at, None)

    def _due(self, assignment: Any) -> tuple[list[tuple[Any, Fetch]], dict[Any, list[TopicPartition]], float]:
        """Return fetches, offsets to be looked for, both by node, and how many seconds to wait for news."""
        now = self._loop.time()
        if assignment is not self._planned_for:
            self._planned_for = assignment
            self._leaderless.clear()
            self._unplaced.clear()
            self._behind.clear()
            self._refusals.keep(assignment.tps)
            self._wish = self._wish._replace(partition_bytes=self._share(len(assignment.tps)))
            self._plan.begin(assignment.tps)
        for tp in (*self._refusals, *self._unplaced):
            self._plan.touch(tp)
        self._plan.settle(self._place_of, now)
        held = {self._select_read_replica(tp) for tp, one in self._records.items() if one.calculate_backoff()}
        sought: dict[Any, list[TopicPartition]] = defaultdict(list)
        for tp in self._unplaced:
            leader = self._client.cluster.leader_for_partition(tp)
            if leader not in {None, -1} and leader not in self._in_flight:
                sought[leader].append(tp)
        busy = self._in_flight | held | sought.keys()
        fetches = self._plan.fetches(lambda node: node not in busy, self._wish, self._client.leaders.ids, now)
        seconds = self._prefetch_backoff if held else self._fetcher_timeout
        return fetches, sought, min(seconds, self._plan.rest(now))

    def _share(self, partitions: int) -> int:
        """Return how many bytes a fetch may bring of each of so many partitions."""
        most: int = self._max_partition_fetch_bytes
        in_all = self._client.bounds.first_fetches
        return most if in_all is None or not partitions else min(most, max(LEAST_SHARE, in_all // partitions))

    def _place_of(self, tp: TopicPartition) -> Place | None:
        """Return from where the partition is to be fetched now; None: not at all."""
        state = self._planned_for.state_value(tp)
        if state is None:
            return None
        # Each partition comes here every second, whatever happens.
        leader_of = self._client.cluster.leader_for_partition
        node = self._select_read_replica(tp) if self._preferred_read_replica else leader_of(tp)
        is_led, is_placed = node is not None and node != -1, state.has_valid_position
        is_held = tp in self._records
        if self._leaderless or not is_led:
            note(self._leaderless, tp, on=not is_led and not is_held)
        if self._unplaced or not is_placed:
            note(self._unplaced, tp, on=is_led and not is_placed and not is_held)
        if is_held or not is_led or not is_placed or state.paused:
            return None
        if self._refusals and self._refusals.rests(tp, node, self._loop.time()):
            return None
        return Place(node, state.position)


async def _raise(error: Exception) -> None:
    raise error
