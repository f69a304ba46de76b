"""The queue of a scenario behaves as RabbitMQ's did when it was measured."""

from collections import Counter
from random import Random
from typing import Any

import pytest

from proxy.bridge.broker import Address
from proxy.model import Event, Partition
from proxy.settings import RoutingKey
from proxy.simulation.model_broker import ModelBroker
from proxy.simulation.model_queue import Message, ModelQueue
from proxy.simulation.scenario import Queue
from proxy.simulation.trace import Trace
from tests.support.recipient import Recorder

EVENT = Message(0.0, "orders", 0)


class Watched:
    """A queue whose begun work is noted."""

    def __init__(self, **given: Any) -> None:
        self.begun: list[tuple[float, Message]] = []
        settings = Queue(**{"capacity": 100.0, "consumers": 4, **given})
        self.queue = ModelQueue(settings, Random(7), lambda at, message: self.begun.append((at, message)))

    def fill(self, count: int, now: float = 0.0, message: Message = EVENT) -> int:
        """Offer messages; return how many were taken."""
        taken = 0
        for _ in range(count):
            self.queue.advance(now)
            if not self.queue.refuses():
                self.queue.put(message, now)
                taken += 1
        return taken


@pytest.mark.parametrize(("service", "tolerance"), [("uniform", 0.02), ("exponential", 0.05), ("constant", 0.01)])
def test_consumers_do_what_their_capacity_says_when_the_queue_is_always_full(service: str, tolerance: float) -> None:
    watched = Watched(service=service, bound=None)
    watched.fill(11_000)
    watched.queue.advance(100.0)
    assert sum(at <= 100 for at, _ in watched.begun) == pytest.approx(10_000, rel=tolerance)


def test_depth_counts_ready_messages_only_when_consumers_prefetch() -> None:
    watched = Watched(prefetch=0.4)  # 40 in all, 10 each
    watched.fill(50)
    assert (watched.queue.ready, watched.queue.consumers.held) == (10, 40)


def test_depth_stays_zero_and_nothing_is_refused_when_stalled_consumers_take_without_bound() -> None:
    watched = Watched(prefetch=None, bound_messages=10)
    watched.queue.set_capacity(0, 0.0)
    assert watched.fill(5_000) == 5_000
    assert watched.queue.ready == 0


def test_a_full_classic_queue_takes_one_again_when_one_was_consumed() -> None:
    watched = Watched(bound_messages=10)
    assert watched.fill(100) == 14  # four are in the consumers' hands
    watched.queue.advance(watched.queue.consumers.next_end)
    assert not watched.queue.refuses()


def test_a_quorum_queue_refuses_until_four_fifths_when_it_was_full() -> None:
    watched = Watched(bound_messages=100, kind="quorum")
    watched.fill(200)
    assert watched.queue.refuses()
    while watched.queue.ready >= 80:
        assert watched.queue.refuses()
        watched.queue.advance(watched.queue.consumers.next_end)
    assert not watched.queue.refuses()


def test_the_highest_class_is_begun_first_when_the_queue_has_priorities() -> None:
    watched = Watched(kind="priority")
    watched.fill(50, message=EVENT._replace(stream="campaign"))
    watched.fill(10, message=EVENT._replace(priority=2))
    watched.queue.advance(10.0)
    assert [message.stream for _, message in watched.begun[4:14]] == ["orders"] * 10


def test_the_order_stays_when_a_queue_with_priorities_gets_messages_without_one() -> None:
    watched = Watched(kind="priority")
    broker = ModelBroker(Random(7), Trace(10.0), begins=0.0, epoch=0.0)
    broker.leads["", "queue"] = (("work", watched.queue),)
    for stream, priority in (("campaign", None), ("orders", None), ("first", 1)):
        address = Address("", RoutingKey(constant="queue"), "", priority=priority)
        broker.streams[Partition(stream, 0)] = stream
        recorder = Recorder(address, Partition(stream, 0))
        events = [Event(f"{number:012}", 0, None, b"", (), 0) for number in range(10)]
        assert broker.store(recorder.batch(events), events, 0.0) == [True] * 10
    watched.queue.advance(10.0)
    begun = [message.stream for _, message in watched.begun]
    assert begun == ["campaign"] * 4 + ["first"] * 10 + ["campaign"] * 6 + ["orders"] * 10


def test_capacity_holds_from_the_next_message_on_when_it_changes() -> None:
    watched = Watched(bound=None)
    watched.fill(2_000)
    watched.queue.set_capacity(10, 5.0)
    watched.queue.advance(15.0)
    after = sum(5 < at <= 15 for at, _ in watched.begun)
    assert after == pytest.approx(100, abs=12)


def test_work_goes_on_where_it_stood_when_a_stall_ends() -> None:
    watched = Watched(bound=None)
    watched.fill(100)
    watched.queue.set_capacity(0, 0.1)
    watched.queue.advance(50.0)
    stalled = len(watched.begun)
    watched.queue.set_capacity(100, 50.0)
    watched.queue.advance(60.0)
    assert stalled < 20
    assert len(watched.begun) == 100


def test_what_consumers_held_is_worked_on_by_others_when_they_leave() -> None:
    watched = Watched(prefetch=0.4, bound=None)
    watched.fill(50)
    watched.queue.set_consumers(0, 0.0)
    assert watched.queue.ready == 50
    watched.queue.set_consumers(4, 1.0)
    watched.queue.advance(10.0)
    counted = Counter(bool(message.stream) for _, message in watched.begun)
    assert counted == {True: 50, False: 4}  # the four begun before are begun again, and not counted twice


def test_a_queue_that_sheds_refuses_nothing_and_keeps_the_youngest_when_it_is_full() -> None:
    watched = Watched(bound_messages=10, sheds=True)
    watched.queue.set_consumers(0, 0.0)
    assert sum(watched.fill(1, message=Message(float(due), "orders", 0)) for due in range(30)) == 30
    assert watched.queue.ready == 10
    watched.queue.set_consumers(1, 0.0)
    assert watched.begun[0][1].due == 20.0


def test_a_dear_message_keeps_a_consumer_busy_for_as_much_longer_and_counts_as_much() -> None:
    watched = Watched(service="constant", bound=None, consumers=1, prefetch=0.001)
    watched.fill(3, message=EVENT._replace(cost=10))
    watched.fill(2)
    assert (watched.queue.ready, watched.queue.work) == (4, 22)
    watched.queue.advance(0.35)
    assert [at for at, _ in watched.begun] == pytest.approx([0.0, 0.1, 0.2, 0.3, 0.31])
    assert watched.queue.work == 0


def test_what_consumers_that_leave_give_back_costs_what_it_did() -> None:
    watched = Watched(consumers=2, prefetch=0.001)
    watched.fill(3, message=EVENT._replace(cost=7))
    watched.queue.set_consumers(0, 0.0)
    assert (watched.queue.ready, watched.queue.work) == (3, 21)
