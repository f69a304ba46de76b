"""What a type is said to wait for."""

from types import SimpleNamespace
from typing import Any

import pytest

from proxy.bridge.awaited import awaited
from proxy.bridge.flow import PartitionFlow
from proxy.model import Mode, Order, Outcome, Reason, Stance
from tests.support.bridge_fakes import CountingHost
from tests.support.events import ADDRESS, PARTITION, events

CAP = 4


def flow(order: Order = Order.PARTITION) -> PartitionFlow:
    made = PartitionFlow(PARTITION, order, ADDRESS, 0, CAP, CountingHost())
    made.offer(events(0, 9), 9)
    return made


def told(one: PartitionFlow | None, **listener: Any) -> str:
    letters = SimpleNamespace(is_full=False, open=0)
    facts = {"is_stopped": False, "stance": Stance(), "stage": "", "dead_letters": letters, "may_send": lambda: True}
    inbox = SimpleNamespace(
        events=sum(f.waiting for f in [one] if f), flows={} if one is None else {one.partition: one}
    )
    whole: Any = SimpleNamespace(inbox=inbox, **(facts | listener))
    return awaited(whole, 0.0)


def test_nothing_is_awaited_when_nothing_waits_or_all_may_go() -> None:
    assert told(None) == ""
    assert told(flow()) == ""


@pytest.mark.parametrize("stage", ["rate", "lease", "lane"])
def test_the_step_on_the_way_to_the_lane_is_awaited_when_events_are_on_it(stage: str) -> None:
    assert told(flow(), stage=stage) == stage


def test_the_commit_is_awaited_when_the_partition_is_at_its_cap() -> None:
    one = flow()
    batch = one.take(9, 0.0)
    assert batch is not None
    one.on_outcome(batch, 0, CAP, Outcome.CONFIRMED)
    assert told(one) == "commit"


def test_outcomes_are_awaited_when_order_lets_nothing_more_out() -> None:
    one = flow(Order.STRICT)
    assert one.take(9, 0.0) is not None
    assert told(one) == "outcomes"


def test_the_retry_is_awaited_when_an_event_was_nacked() -> None:
    one = flow(Order.NONE)
    batch = one.take(1, 0.0)
    assert batch is not None
    one.on_outcome(batch, 0, 1, Outcome.NACKED)
    assert told(one) == "retry"


def test_dead_letters_are_awaited_when_the_way_is_barred_by_them() -> None:
    one = flow(Order.STRICT)
    batch = one.take(1, 0.0)
    assert batch is not None
    one.on_outcome(batch, 0, 1, Outcome.UNDELIVERABLE, reason=Reason.UNROUTABLE)
    assert told(one) == "dead_letters"
    assert told(flow(), dead_letters=SimpleNamespace(is_full=True, open=9)) == "dead_letters"


@pytest.mark.parametrize("is_full", [True, False])
def test_the_lease_is_awaited_when_dead_letters_wait_for_it(*, is_full: bool) -> None:
    letters = SimpleNamespace(is_full=is_full, open=9)
    assert told(None, dead_letters=letters) == "dead_letters"
    assert told(None, dead_letters=letters, may_send=lambda: False) == "lease"


def test_a_restart_is_awaited_when_the_type_has_stopped() -> None:
    assert told(flow(), is_stopped=True, stage="lane") == "restart"


def test_a_person_is_awaited_when_one_has_paused_the_type() -> None:
    assert told(flow(), stance=Stance(Mode.PAUSE)) == "resume"
    assert told(None, stance=Stance(Mode.PAUSE)) == ""
