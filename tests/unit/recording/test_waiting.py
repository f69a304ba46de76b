"""What waits is added up over thousands of event types, never many in one step, and nothing is lost by that."""

import asyncio
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from proxy.model import Partition
from proxy.recording.recorder import Recorder
from proxy.recording.waiting import Waiting, slices
from proxy.settings import BrokerSettings, LogSettings, MetricLogSettings, Route, Settings

TYPES, PARTITIONS = 1_000, 4
IN_A_STEP = 64
"""Types that may be looked at in one step: with their partitions some 256, or 64 that are recorded."""
SETTINGS = Settings(
    log=LogSettings(hosts=["kafka:9092"], group="g"),
    broker=BrokerSettings(hosts=["rabbit:5672"]),
    routes={"r": Route(exchange="x")},
    metric_log=MetricLogSettings(route_interval=0.1, type_interval=0.1),
)


class Inbox:
    """Tells what waits, and counts who asks."""

    asked = 0
    events, catching_up, is_paused = 2, 1, False

    def __init__(self, number: int, partitions: int, oldest_ms: int | None = 40_000) -> None:
        flow = SimpleNamespace(watermark=SimpleNamespace(ahead=3))
        self.flows = {Partition(f"t{number}", one): flow for one in range(partitions)}
        self._oldest_ms = oldest_ms

    def oldest_ms(self) -> int | None:
        """See `Inbox.oldest_ms`."""
        Inbox.asked += 1
        return self._oldest_ms


def listener(number: int, partitions: int = PARTITIONS, oldest_ms: int | None = 40_000) -> Any:
    kind = SimpleNamespace(name=f"t{number}", topic=f"t{number}", route="r", priority=f"P{number % 3 + 1}")
    throttle = SimpleNamespace(batch_size=None)
    return SimpleNamespace(event_type=kind, throttle=throttle, inbox=Inbox(number, partitions, oldest_ms))


def test_what_waits_is_the_sum_and_the_age_is_the_oldest_s_when_types_are_added() -> None:
    waiting = Waiting({Partition(f"t{number}", one): 10 for number in range(3) for one in range(2)})
    for number, oldest in enumerate((48_500, None, 49_000)):
        waiting.add(listener(number, 2, oldest))
    assert waiting.told(50.0) == {"waiting": 6, "catching_up": 3, "ahead": 18, "lag": 60, "lag_age_s": 1.5}


@pytest.mark.parametrize("lags", [None, {Partition("t0", 0): 10}, {}])
def test_the_lag_is_unknown_when_one_partition_s_is(lags: Mapping[Partition, int] | None) -> None:
    waiting = Waiting(lags)
    waiting.add(listener(0, 2))
    assert waiting.told(50.0)["lag"] is None


def test_what_nobody_has_counts_as_lag_when_the_log_tells_of_it() -> None:
    waiting = Waiting({Partition("t0", 0): 10}, {"t0": 7, "t1": 5, "other": 100})
    waiting.add(listener(0, 1))
    waiting.add(listener(1, 0))
    assert waiting.told(50.0)["lag"] == 22


def test_every_type_is_looked_at_once_and_few_together_when_there_are_thousands() -> None:
    many = [listener(number, number % 600) for number in range(1_500)]
    together = list(slices(many))
    assert [one for some in together for one in some] == many
    assert all(len(some) == 1 or sum(1 + len(one.inbox.flows) for one in some[:-1]) < 256 for some in together)
    assert [*slices([])] == []


@pytest.mark.parametrize("looked_at", [0, 1, 300, 999, 1_000, 1_001, 1_500, 1_999, 2_000])
async def test_few_types_are_looked_at_in_a_step_and_no_count_is_lost_when_it_is_cancelled_after_some(
    looked_at: int,
) -> None:
    records: list[Mapping[str, Any]] = []
    recorder = Recorder(SETTINGS, write=records.append, wall=lambda: 50.0, instance="i", place_of=lambda _: 0)
    every = {f"t{number}": listener(number) for number in range(TYPES)}
    for one in every.values():
        recorder.counts(one.event_type).on_received(1, 10)

    async def lags(_: object) -> dict[Partition, int]:
        return {}

    assignment: Any = SimpleNamespace(listeners=every, flows=list, lags=lags)
    lanes: Any = {"r": SimpleNamespace(state=SimpleNamespace(value="open"), in_flight=0)}
    Inbox.asked = most = 0
    recording = asyncio.create_task(recorder.run(assignment, assignment, lanes, lambda _: None))
    while Inbox.asked < looked_at:
        before = Inbox.asked
        await asyncio.sleep(0)
        most = max(most, Inbox.asked - before)
    recording.cancel()
    await asyncio.gather(recording, return_exceptions=True)
    await recorder.finish(assignment, assignment, lanes, lambda _: None)
    assert most <= IN_A_STEP
    for kind in ("class", "type"):
        assert sum(one["received"] for one in records if one["kind"] == kind) == TYPES
