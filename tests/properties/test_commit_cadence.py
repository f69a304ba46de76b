"""How much a crash may cost at any instant, and how often the log is asked for that, whatever the flow and the log."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from proxy.bridge.broker import Address
from proxy.bridge.committer import SPACING, Committer
from proxy.bridge.flow import PartitionFlow
from proxy.bridge.lease import Lease
from proxy.bridge.stake import Stake
from proxy.errors import LogError
from proxy.model import Order, Outcome, Partition, Position
from proxy.settings import RoutingKey
from proxy.simulation import virtual_time
from tests.support.bridge_fakes import CountingHost, ScriptedLog
from tests.support.events import PARTITION, events

CAP = 100_000
MOST_LOST = 500
"""Events that a crash may always cost, or as many as come in a tenth of a second."""


class _Host(CountingHost):
    def __init__(self, stake: Stake) -> None:
        super().__init__()
        self.stake = stake

    def on_resolved(self, flow: PartitionFlow, count: int) -> None:
        self.stake.add(flow, count)


class _Log(ScriptedLog):
    """Notes how many commits are under way at once."""

    def __init__(self) -> None:
        super().__init__()
        self.most_at_once = self.at_once = 0

    async def commit(self, positions: Mapping[Partition, Position | None]) -> Mapping[Partition, int]:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            return await super().commit(positions)
        finally:
            self.at_once -= 1


@dataclass
class Run:
    """What came of a flow of events."""

    log: _Log = field(default_factory=_Log)
    most_at_stake: int = 0
    """Events done with that the log did not know of."""


async def flowing(run: Run, *, rate: float, chunk: int, seconds: float, interval: float) -> None:
    """Let events be confirmed, `chunk` at a time, while the production committer runs."""
    lease = Lease(1_000.0)
    lease.renew(0.0)
    stake = Stake(lease.asked, CAP)
    flow = PartitionFlow(PARTITION, Order.NONE, Address("x", RoutingKey(constant="q"), ""), 0, CAP, _Host(stake))
    listeners = {PARTITION.topic: SimpleNamespace(wake=lambda: None)}
    assignment: Any = SimpleNamespace(listeners=listeners, owns=lambda _: True, owns_any=True, flows=lambda: [flow])
    account: Any = SimpleNamespace(on_committed=lambda *_: None)
    committing = asyncio.create_task(Committer(run.log, assignment, lease, stake, interval, account).run())
    loop = asyncio.get_running_loop()
    done = 0
    while loop.time() < seconds:
        await asyncio.sleep(chunk / rate)
        flow.offer(events(done, done + chunk), 0)
        batch = flow.take(chunk, loop.time())
        assert batch is not None
        before = done - run.log.place(run.log.committed.get(PARTITION, "p-1")) - 1
        run.most_at_stake = max(run.most_at_stake, before)
        flow.on_outcome(batch, 0, chunk, Outcome.CONFIRMED)
        done += chunk
    assert not committing.done()
    committing.cancel()


def run(*, rate: float, chunk: int, delay: float, seconds: float = 0.8, interval: float = 0.5, **told: Any) -> Run:
    """Return what came of it under virtual time."""
    result = Run()
    result.log.commit_delay = delay
    result.log.__dict__.update(told)
    virtual_time.run(flowing(result, rate=rate, chunk=chunk, seconds=seconds, interval=interval))
    return result


@given(
    rate=st.floats(1, 20_000),
    chunk=st.integers(5, 200),
    delay=st.floats(0, 0.2),
    interval=st.sampled_from([0.05, 0.5, 10.0]),
)
@example(rate=20_000, chunk=5, delay=0.0, interval=10.0)
@example(rate=20_000, chunk=200, delay=0.2, interval=10.0)
@example(rate=4_999, chunk=7, delay=0.05, interval=10.0)
@example(rate=690, chunk=46, delay=0.0, interval=0.05)
@settings(max_examples=12)
def test_a_crash_costs_no_more_than_the_bound_and_no_commit_is_made_too_often(
    rate: float, chunk: int, delay: float, interval: float
) -> None:
    found = run(rate=rate, chunk=chunk, delay=delay, interval=interval)
    assert found.most_at_stake <= chunk + max(MOST_LOST, 0.1 * rate) + rate * delay
    assert found.log.most_at_once <= 1
    gaps = [later - earlier for earlier, later in pairwise(found.log.commits)]
    assert all(gap >= SPACING - 1e-9 for gap in gaps)


def test_little_at_stake_waits_for_the_interval_when_it_comes_slowly() -> None:
    found = run(rate=100, chunk=1, delay=0.0, seconds=10, interval=0.5)
    assert 18 <= len(found.log.commits) <= 21


def test_nothing_is_asked_when_nothing_is_at_stake() -> None:
    found = run(rate=0.1, chunk=1, delay=0.0, seconds=9)
    assert found.log.commits == []


def test_a_log_that_refuses_is_asked_once_an_interval_when_much_is_at_stake() -> None:
    found = run(rate=5_000, chunk=10, delay=0.01, seconds=5, failure=LogError("no"))
    assert 8 <= len(found.log.commits) <= 12


def test_a_type_at_a_small_cap_is_committed_before_it_stands_still() -> None:
    asked = asyncio.Event()
    stake = Stake(asked, cap=20)
    flow: Any = object()
    stake.add(flow, 9)
    assert not asked.is_set()
    stake.add(flow, 1)
    assert asked.is_set()
