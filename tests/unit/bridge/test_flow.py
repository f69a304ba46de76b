"""How one partition's events go again; what holds for any history is in tests/properties/test_flow.py."""

import pytest

from proxy.bridge.flow import PartitionFlow
from proxy.model import Order, Outcome
from tests.support.bridge_fakes import CountingHost
from tests.support.events import ADDRESS, PARTITION, events


@pytest.mark.parametrize("order", [Order.PARTITION, Order.NONE])
def test_events_nacked_one_by_one_go_again_in_one_batch_when_all_have_their_outcome(order: Order) -> None:
    host = CountingHost()
    flow = PartitionFlow(PARTITION, order, ADDRESS, 0, 100, host)
    flow.offer(events(0, 10), 10)
    batch = flow.take(10, host.now)
    assert batch is not None
    batch.done = 10
    for number in (3, 1, 0, 2, 4):
        flow.on_outcome(batch, number, number + 1, Outcome.NACKED)
    flow.on_outcome(batch, 7, 8, Outcome.NACKED)
    for number in (5, 6, 8, 9):
        flow.on_outcome(batch, number, number + 1, Outcome.CONFIRMED)
    host.now = flow.not_before
    again = []
    while (taken := flow.take(100, host.now)) is not None:
        again.append([event.position for event in taken.events])
    if order is Order.PARTITION:
        assert again == [["p0", "p1", "p2", "p3", "p4"], ["p7"]]
    assert sorted(position for batch in again for position in batch) == ["p0", "p1", "p2", "p3", "p4", "p7"]
