"""One partition's flow under any history of outcomes: nothing lost, order as promised, never beyond its cap."""

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from proxy.bridge.broker import Batch
from proxy.bridge.flow import PartitionFlow
from proxy.model import Order, Outcome
from tests.support.bridge_fakes import CountingHost
from tests.support.events import ADDRESS, PARTITION, events

CAP = 20


class FlowMachine(RuleBasedStateMachine):
    """A lane that does whatever Hypothesis likes, and a queue that remembers what it was given."""

    order = Order.PARTITION

    def __init__(self) -> None:
        super().__init__()
        self.host = CountingHost()
        self.flow = PartitionFlow(PARTITION, self.order, ADDRESS, 0, CAP, self.host)
        self.received = 0
        self.open: list[tuple[Batch, int, int]] = []
        self.delivered: list[int] = []
        self.dead: set[int] = set()
        self.trouble = False

    @rule(count=st.integers(1, 15))
    def receive(self, count: int) -> None:
        batch = events(self.received, self.received + count)
        self.flow.offer(batch, count)
        self.received += count

    @rule(limit=st.integers(1, 30), written=st.integers(0, 30))
    def send(self, limit: int, written: int) -> None:
        before = self.flow.ready(self.host.now)
        batch = self.flow.take(limit, self.host.now)
        assert (batch is None) == (before == 0)
        if batch is None:
            return
        assert 1 <= len(batch.events) <= limit
        if self.order is not Order.NONE:
            assert [e.position for e in batch.events] == [f"p{batch.first + n}" for n in range(len(batch.events))]
        self.host.sending = [batch]
        batch.done = min(written, len(batch.events))
        if batch.done:
            self.open.append((batch, 0, batch.done))
        self.flow.settle(batch)
        self.host.sending = []

    @precondition(lambda self: self.open)
    @rule(data=st.data(), outcome=st.sampled_from(Outcome))
    def hear(self, data: st.DataObject, outcome: Outcome) -> None:
        index = data.draw(st.integers(0, len(self.open) - 1))
        batch, start, end = self.open.pop(index)
        cut = data.draw(st.integers(start + 1, end))
        if cut < end:
            self.open.append((batch, cut, end))
        if outcome is Outcome.CONFIRMED:
            self.delivered += range(batch.first + start, batch.first + cut)
        self.trouble |= outcome in {Outcome.NACKED, Outcome.UNKNOWN}
        self.flow.on_outcome(batch, start, cut, outcome, seconds=0.001, reason=None)

    @precondition(lambda self: self.host.parked)
    @rule()
    def confirm_dead_letter(self) -> None:
        flow, first, lost = self.host.parked.pop()
        self.dead |= set(range(first, first + len(lost)))
        flow.park_done(first, lost)

    @rule(seconds=st.floats(0.01, 1))
    def wait(self, seconds: float) -> None:
        self.host.now += seconds

    @rule()
    def commit(self) -> None:
        self.flow.watermark.committed = self.flow.watermark.resolved

    @invariant()
    def nothing_below_the_watermark_is_unresolved(self) -> None:
        done = set(self.delivered) | self.dead
        assert all(number in done for number in range(self.flow.watermark.resolved))
        assert self.flow.watermark.resolved == next(n for n in range(self.received + 1) if n not in done)

    @invariant()
    def nothing_is_delivered_twice_when_every_outcome_is_told(self) -> None:
        assert len(self.delivered) == len(set(self.delivered))

    @invariant()
    def every_event_is_in_exactly_one_place(self) -> None:
        written = sum(end - start for _, start, end in self.open)
        parked = sum(len(lost) for _, _, lost in self.host.parked)
        done = len(self.delivered) + len(self.dead)
        held_back = sum(len(chunk.events) - chunk.start for chunk in self.flow._failed)
        assert self.flow.out == written
        assert self.received == self.flow.waiting + written + parked + done + held_back

    @invariant()
    def the_cap_bounds_what_is_ahead_of_the_commit(self) -> None:
        assert self.flow.sent - self.flow.watermark.committed <= CAP

    @invariant()
    def what_waits_is_in_the_order_of_the_log(self) -> None:
        firsts = [chunk.first + chunk.start for chunk in self.flow._queue]
        assert self.order is Order.NONE or firsts == sorted(firsts)

    @invariant()
    def order_holds_as_promised(self) -> None:
        is_sorted = self.delivered == sorted(self.delivered)
        if self.order is Order.STRICT:
            assert self.flow.out <= 1
            assert is_sorted

    def teardown(self) -> None:
        """Everything is delivered once the broker behaves."""
        for _ in range(10 * self.received + 10):
            self.flow.watermark.committed = self.flow.watermark.resolved
            self.host.now += 1
            while self.open:
                batch, start, end = self.open.pop(0)
                self.delivered += range(batch.first + start, batch.first + end)
                self.flow.on_outcome(batch, start, end, Outcome.CONFIRMED, seconds=0.001)
            while self.host.parked:
                self.confirm_dead_letter()
            if (taken := self.flow.take(CAP, self.host.now)) is not None:
                taken.done = len(taken.events)
                self.open.append((taken, 0, taken.done))
                self.flow.settle(taken)
            elif self.flow.watermark.resolved == self.received:
                break
        assert self.flow.watermark.resolved == self.received


class StrictFlowMachine(FlowMachine):
    """`order: strict`."""

    order = Order.STRICT


class UnorderedFlowMachine(FlowMachine):
    """`order: none`."""

    order = Order.NONE


_SETTINGS = hypothesis_settings(max_examples=40, stateful_step_count=30)
TestPartitionOrder = FlowMachine.TestCase
TestPartitionOrder.settings = _SETTINGS
TestStrictOrder = StrictFlowMachine.TestCase
TestStrictOrder.settings = _SETTINGS
TestNoOrder = UnorderedFlowMachine.TestCase
TestNoOrder.settings = _SETTINGS


def test_nothing_newer_is_taken_when_an_event_was_nacked_and_others_are_still_out() -> None:
    host = CountingHost()
    flow = PartitionFlow(PARTITION, Order.PARTITION, ADDRESS, 0, CAP, host)
    flow.offer(events(0, 10), 10)
    batch = flow.take(4, 0.0)
    assert batch is not None
    batch.done = 4
    flow.settle(batch)
    flow.on_outcome(batch, 1, 2, Outcome.NACKED)
    assert host.called_back == [flow]
    assert flow.take(4, 10.0) is None
    flow.on_outcome(batch, 0, 1, Outcome.CONFIRMED)
    flow.on_outcome(batch, 2, 4, Outcome.CONFIRMED)
    again = flow.take(4, 10.0)
    assert again is not None
    assert ([e.position for e in again.events], again.retry) == (["p1"], True)
    again.done = 1
    flow.settle(again)
    flow.on_outcome(again, 0, 1, Outcome.CONFIRMED)
    assert host.overtaken == 1
    following = flow.take(4, 10.0)
    assert following is not None
    assert following.first == 4


def test_the_pause_before_a_resend_doubles_when_nacks_repeat_and_starts_anew_when_one_gets_through() -> None:
    host = CountingHost()
    flow = PartitionFlow(PARTITION, Order.PARTITION, ADDRESS, 0, CAP, host)
    flow.offer(events(0, 2), 2)
    pauses = []
    for outcome in (Outcome.NACKED, Outcome.NACKED, Outcome.CONFIRMED, Outcome.NACKED):
        batch = flow.take(1, host.now)
        assert batch is not None
        batch.done = 1
        flow.settle(batch)
        flow.on_outcome(batch, 0, 1, outcome)
        pauses.append(flow.not_before - host.now)
        host.now = max(host.now, flow.not_before)
    assert pauses == pytest.approx([0.05, 0.1, 0.0, 0.05])


def test_everything_is_sent_again_in_the_order_of_the_log_when_failures_come_one_by_one() -> None:
    flow = PartitionFlow(PARTITION, Order.PARTITION, ADDRESS, 0, CAP, CountingHost())
    flow.offer(events(0, 6), 6)
    batch = flow.take(4, 0.0)
    assert batch is not None
    batch.done = 4
    flow.settle(batch)
    for number, outcome in ((0, Outcome.NACKED), (3, Outcome.UNKNOWN), (1, Outcome.NACKED), (2, Outcome.CONFIRMED)):
        flow.on_outcome(batch, number, number + 1, outcome)
        assert (flow.ready(10.0) == 0) is (flow.out > 0)
    sent = []
    while (again := flow.take(10, 10.0)) is not None:
        sent += [one.position for one in again.events]
    assert sent == ["p0", "p1", "p3", "p4", "p5"]
