"""One partition of one event type in one assignment epoch: what waits, what is out, what must be sent again.

Order (design decision 4). `partition`: after a nack or an unknown outcome nothing more is sent until everything out
has its outcome; then the unresolved go again, in order, before anything else. `strict`: one unresolved event at a time.
`none`: only what failed is sent again, nothing waits for it.
"""

from collections import deque
from collections.abc import Iterable, Sequence

from proxy.bridge.broker import Address, Batch
from proxy.bridge.chunks import Chunk, joined
from proxy.bridge.flow_host import FlowHost
from proxy.bridge.offsets import Watermark
from proxy.model import PASSING, Event, Order, Outcome, Partition, Position, Reason

FIRST_PAUSE = 0.05
LONGEST_PAUSE = 0.5
"""Seconds before nacked events are sent again; doubles from the first to the longest while nothing gets through."""


class PartitionFlow:
    """Takes events in, gives batches out, takes their outcomes, keeps the watermark. A `Recipient`."""

    def __init__(
        self,
        partition: Partition,
        order: Order,
        address: Address,
        rank: int,
        cap: int,
        host: FlowHost,
        old_rank: int | None = None,
    ) -> None:
        """Make one; `rank` is that of its batches, `old_rank` while it catches up; None: the same."""
        self.partition = partition
        self.topic_id = ""
        """Of the topic that the positions belong to, known before the first event; empty if the log tells none."""
        self.watermark = Watermark()
        self.waiting = 0
        """Events in the queue."""
        self.waiting_bytes = 0
        self.sent = 0
        """Every sequence number below has been handed on at least once."""
        self.out = 0
        """Events handed to a lane without an outcome yet, whether written or not."""
        self.parked = 0
        """Undeliverable events whose dead letter is not confirmed yet."""
        self.letters_out = 0
        """Dead letters handed to a lane without an outcome yet; `DeadLetters` counts them."""
        self.letters_due = 0
        """... and those about to be handed to it."""
        self.doubtful = 0
        """Events with an unknown outcome since it was let go: the broker may have them."""
        self.read_ms: int | None = None
        """Timestamp of the first of the records offered last."""
        self.closing = False
        """It was let go: nothing more is sent."""
        self.tries_anew = False
        """Dead letters were refused, and since they were taken back nothing was confirmed."""
        self.not_before = 0.0
        """Time on the loop's clock before which nothing is sent."""
        self.is_old = False
        """It stands in the inbox's row of those that catch up."""
        self.again_until: int | None = None
        """What stands before it, as the log counts, is sent again because a person wants it."""
        self._order = order
        self._address = address
        self.stand(rank, old_rank)
        self._cap = cap
        self._host = host
        self._queue: deque[Chunk] = deque()
        self._old_until = 0
        """Sequence number behind the last event that was read with a backlog."""
        self._highest = 0
        """One above the highest confirmed sequence number."""
        self._failed: list[Chunk] = []
        self._holding = False
        self._is_asking = False
        """A dead letter is to show whether letters are taken by now; nothing is sent before its outcome."""
        self._pause = FIRST_PAUSE

    def offer(self, events: Sequence[Event], size: int, *, is_old: bool = False) -> None:
        """Take in the next records of the partition, `size` bytes in all; `is_old`: they begin with an old one."""
        first = self.watermark.receive(len(events))
        self._queue.append(Chunk(first, events))
        self.read_ms = events[0].timestamp_ms if events else self.read_ms
        self._old_until = first + len(events) if is_old else self._old_until
        self.waiting += len(events)
        self.waiting_bytes += size

    def let_go(self) -> None:
        """Send nothing more and drop what waits: the log has it. What is out still gets its outcome."""
        self.closing = True
        self._queue.clear()
        self.waiting = self.waiting_bytes = 0

    def ready(self, now: float) -> int:
        """Return how many events may be taken at `now`; 0 on hold, in a pause, at the uncommitted cap."""
        if not self._queue or self.closing or self._holding or now < self.not_before:
            return 0
        if self._order is Order.STRICT and (self.out or self.parked):
            return 0
        if self._is_asking or (self.tries_anew and (self.letters_out or self.letters_due)):
            return 0
        front = self._queue[0]
        if front.first + front.start < self.sent:
            count = len(front.events) - front.start
        else:
            count = max(0, min(self.waiting, self._cap - (self.sent - self.watermark.committed)))
        return min(count, 1) if self._order is Order.STRICT else count

    def hindrance(self, now: float) -> str:
        """Return what keeps its waiting events from being taken; "" if nothing does, or none waits."""
        if not self.waiting or self.ready(now):
            return ""
        if now < self.not_before:
            return "retry"
        if self._holding or (self._order is Order.STRICT and self.out):
            return "outcomes"
        return "dead_letters" if self.parked else "commit"

    @property
    def catches_up(self) -> bool:
        """Whether what goes next was read with a backlog, or comes before such."""
        return bool(self._queue) and self._queue[0].first + self._queue[0].start < self._old_until

    @property
    def sends_again(self) -> bool:
        """Whether the next events to be taken were sent before, in vain."""
        return bool(self._queue) and self._queue[0].retry

    def front_ms(self) -> int | None:
        """Return the timestamp of the next event to be taken; None if none waits or it has none."""
        return self._queue[0].events[self._queue[0].start].timestamp_ms if self._queue else None

    def go_by(self, cap: int) -> None:
        """Send so many events ahead of the commit at most, from now on; what is out beyond it gets its outcome."""
        self._cap = cap

    def stand(self, rank: int, old_rank: int | None) -> None:
        """Give batches that are taken from now on these ranks."""
        self._rank, self._old_rank = rank, rank if old_rank is None else old_rank

    def take(self, limit: int, now: float) -> Batch | None:
        """Take up to `limit` waiting events of contiguous sequence numbers; None if nothing may go."""
        count = min(self.ready(now), limit)
        if count <= 0:
            return None
        front = self._queue[0]
        end = min(len(front.events), front.start + count)
        first, events = front.first + front.start, front.events[front.start : end]
        rank = self._old_rank if self.is_old else self._rank
        batch = Batch(self.partition, events, first, self._address, rank, self, retry=front.retry, is_old=self.is_old)
        front.start = end
        if end == len(front.events):
            self._queue.popleft()
        self.sent = max(self.sent, batch.first + len(events))
        self.out += len(events)
        self.waiting -= len(events)
        self.waiting_bytes -= sum([event.size for event in events])
        return batch

    def be_done(self, batch: Batch) -> None:
        """Take note that a batch was discarded as it was taken."""
        self.out -= len(batch.events)
        self._resolve(batch.first, batch.first + len(batch.events), batch.events[-1].position)
        self._release_if_all_back()

    def settle(self, batch: Batch) -> None:
        """Put back what the lane left unwritten; call once when the lane is through with the batch."""
        left = len(batch.events) - batch.done
        if left:
            self.out -= left
            self._failed.append(Chunk(batch.first, batch.events, batch.done, retry=batch.retry))
            self._holding |= self._order is not Order.NONE
        self._release_if_all_back()

    def may_send(self) -> bool:
        """See `Recipient.may_send`."""
        return not self.closing and self._host.may_send()

    def on_outcome(
        self,
        batch: Batch,
        start: int,
        end: int,
        outcome: Outcome,
        *,
        seconds: float | None = None,
        reason: Reason | None = None,
        detail: str = "",
    ) -> None:
        """See `Recipient.on_outcome`."""
        if reason is Reason.UNROUTABLE and self._host.asks(self, batch, start, end, seconds, detail):
            self._hold(always=True)
            return
        self._host.on_outcome(self, batch, start, end, outcome, seconds)
        first, count = batch.first + start, end - start
        self.out -= count
        if outcome is Outcome.CONFIRMED:
            self._resolve(first, first + count, batch.events[end - 1].position)
            overtaken = max(0, min(first + count, self._highest) - first) if batch.retry else 0
            self._highest = max(self._highest, first + count)
            self._pause = FIRST_PAUSE
            self._host.on_confirmed(batch, batch.events[start:end], seconds, overtaken)
            if self.tries_anew:
                self.tries_anew = self._is_asking = False
                self._host.on_going_again(self)
        elif outcome is Outcome.UNDELIVERABLE:
            self._host.on_undeliverable(count)
            self._on_undeliverable(first, batch.events[start:end], reason or Reason.INTERNAL, detail)
        else:
            self._on_failed(batch, start, end, outcome, congestion=reason is None)
        self._release_if_all_back()

    def wait(self, until: float) -> None:
        """Send nothing before that time on the loop's clock, and no longer wait for an earlier or later one."""
        self.not_before = until
        self._host.wake()

    def park_done(self, first: int, events: Sequence[Event]) -> None:
        """Take note that the dead letters of these undeliverable events are confirmed."""
        self.parked -= len(events)
        self._is_asking = False
        self._resolve(first, first + len(events), events[-1].position)
        self._host.wake()

    def is_passed(self, sent: int) -> bool:
        """Return whether an event was confirmed that was first sent at `sent` or later."""
        return self._highest > sent

    def take_back(self, letters: Iterable[tuple[int, Sequence[Event]]], not_before: float) -> None:
        """Send undeliverable events again by their own route, from `not_before` on: their dead letters were refused.

        `letters` are first sequence numbers and events. As after a nack nothing else is sent before them. What
        fails then for the same reasons stays here and goes again with them, but for one that is dead-lettered to see
        whether letters are taken by now; so it goes on until an event is confirmed.
        """
        self._is_asking = False
        for first, events in letters:
            self.parked -= len(events)
            self._failed.append(Chunk(first, events, retry=True))
        self.tries_anew = not self.closing
        self.not_before = max(self.not_before, not_before)
        while self._queue and self._queue[0].first + self._queue[0].start < self.sent:
            again = self._queue.popleft()  # it goes in with them, in order
            self.waiting -= len(again.events) - again.start
            self.waiting_bytes -= sum(event.size for event in again.events[again.start :])
            self._failed.append(again)
        self._hold()
        self._release_if_all_back()

    def _on_undeliverable(self, first: int, events: Sequence[Event], reason: Reason, detail: str) -> None:
        if self.tries_anew and reason in PASSING:
            if self._is_asking:
                self._failed.append(Chunk(first, events, retry=True))
                return
            self._is_asking = True
            self._hold()
        self.parked += len(events)
        self._host.dead_letter(self, first, events, reason, detail)

    def _hold(self, *, always: bool = False) -> None:
        """Send nothing more until everything out has its outcome, if the order asks for it."""
        if (always or self._order is not Order.NONE) and not self._holding:
            self._holding = True
            self._host.withdraw(self)

    def _resolve(self, start: int, end: int, position: Position) -> None:
        before = self.watermark.resolved
        self.watermark.resolve(start, end, position)
        if self.watermark.resolved > before:
            self._host.on_resolved(self, self.watermark.resolved - before)

    def _on_failed(self, batch: Batch, start: int, end: int, outcome: Outcome, *, congestion: bool) -> None:
        self._failed.append(Chunk(batch.first + start, batch.events[start:end], retry=True))
        now = self._host.on_failed(outcome, end - start, congestion=congestion)
        self.doubtful += (end - start) * (self.closing and outcome is Outcome.UNKNOWN)
        if outcome is Outcome.NACKED and now >= self.not_before:
            self.not_before = now + self._pause
            self._pause = min(2 * self._pause, LONGEST_PAUSE)
        self._hold()

    def _release_if_all_back(self) -> None:
        if self.closing:
            self._failed.clear()
        elif self._failed and (self._order is Order.NONE or not self.out):
            for chunk in reversed(joined(self._failed)):
                self._queue.appendleft(chunk)
                self.waiting += len(chunk.events)
                self.waiting_bytes += sum([event.size for event in chunk.events])
            self._failed.clear()
            self._host.wake()
        if not self.out:
            self._holding = False
            if self.waiting:
                self._host.wake()
            else:
                self._host.on_settled()
