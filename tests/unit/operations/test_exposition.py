"""Metrics as text: as the library writes them, in steps."""

import asyncio
from collections.abc import Iterator
from itertools import count

from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from proxy.operations.exposition import exposition
from proxy.operations.steps import PIECE, STEP_SECONDS, Steps


class Families(Collector):
    def collect(self) -> Iterator[Metric]:
        gauge = GaugeMetricFamily("tidegate_gauge", 'A \\ "gauge"\nof two lines.', labels=["type", "for"])
        for value in (0.0, -1.5, 1e20, 1234567.0, float("inf"), float("nan")):
            gauge.add_metric(['a"\\\nü{}', str(value)], value)
        yield gauge
        yield GaugeMetricFamily("tidegate_single", "Without labels.", value=3)
        yield GaugeMetricFamily("tidegate_empty", "Nothing is known.", labels=["route"])
        counter = CounterMetricFamily("tidegate_counted", "A counter.", labels=["class"])
        counter.add_metric(["P1"], 7)
        yield counter
        histogram = HistogramMetricFamily("tidegate_seconds", "A histogram.", labels=["route"])
        histogram.add_metric(["r"], [("0.5", 1.0), ("+Inf", 3.0)], 2.5)
        yield histogram


async def test_the_text_is_what_the_library_writes_when_all_kinds_of_families_are_told() -> None:
    registry = CollectorRegistry()
    registry.register(Families())
    assert await exposition(Families().collect(), Steps()) == generate_latest(registry)


async def test_everything_else_goes_on_between_two_pieces_when_an_answer_is_long() -> None:
    ticks = count()
    steps = Steps(lambda: next(ticks) * STEP_SECONDS)  # every piece takes a whole step
    family = GaugeMetricFamily("tidegate_gauge", "Many.", labels=["type"])
    for number in range(4 * PIECE):
        family.add_metric([str(number)], number)
    writing = asyncio.create_task(exposition([family, None], steps))
    others = 0
    while not writing.done():
        await asyncio.sleep(0)
        others += 1
    assert others >= 4
    assert (await writing).count(b"\n") == 4 * PIECE + 2
