"""Observes what is published and has spans made of it (docs/design/0058-traces.md). Looks, never acts, never fails."""

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Sequence
from random import random
from typing import Protocol

import structlog
from prometheus_client.core import CounterMetricFamily

from proxy.bridge.broker import Address, Batch
from proxy.bridge.flow import PartitionFlow
from proxy.errors import SettingsError
from proxy.model import Outcome, Reason
from proxy.settings.traces import TraceSettings
from proxy.tracing import words
from proxy.tracing.contexts import Context, context, sampled

_say = structlog.get_logger("tidegate.traces")

CLOSE_SECONDS = 2.0
"""What the collector may take at the stop; then what is left is lost."""


class Spans(Protocol):
    """Makes and exports spans."""

    def add(
        self,
        destination: str,
        begin_ns: int,
        end_ns: int,
        parent: Context | None,
        links: Sequence[Context],
        attributes: dict[str, str | int],
        error: str | None,
    ) -> None:
        """Make a span that has ended; times in nanoseconds since 1970."""
        ...

    def close(self, then: Callable[[], None]) -> None:
        """Export what is left and call back, from another thread."""
        ...


class Traces:
    """An `Observer` of the bridge. `wall` gives seconds since 1970, `chance` a number from 0 to 1."""

    def __init__(
        self,
        settings: TraceSettings,
        spans: Callable[[Callable[[int, bool], None]], Spans],
        *,
        wall: Callable[[], float],
        clock: Callable[[], float],
        chance: Callable[[], float] = random,
    ) -> None:
        """Make one; `spans` makes what makes spans, and is given whom to tell of exports."""
        self._settings = settings
        self._wall = wall
        self._clock = clock
        self._chance = chance
        self._left = float(settings.spans_per_second)
        """Spans that may begin now."""
        self._looked = clock()
        self.counts = dict.fromkeys(("exported", "lost", "limited", "failed"), 0)
        """Spans taken by the collector, and not; ranges not looked at, as too many had one; errors of our own."""
        self._is_lost = False
        self._spans = spans(self._on_exported)

    def on_outcome(
        self,
        flow: PartitionFlow,  # noqa: ARG002 -- see `Observer`
        batch: Batch,
        start: int,
        end: int,
        outcome: Outcome,
        seconds: float | None,
    ) -> None:
        """See `Observer`."""
        now = self._clock()
        most = self._settings.spans_per_second
        self._left = min(most, self._left + (now - self._looked) * most)
        self._looked = now
        if self._left < 1:
            self.counts["limited"] += 1
            return
        found = sampled(batch.events[start:end])
        if not found and self._chance() >= self._settings.sample:
            return
        self._left -= 1
        try:
            told = [one for event in found[: self._settings.links + 1] if (one := context(event.headers)) is not None]
            ended = self._wall()
            destination = _destination(batch.address)
            attributes: dict[str, str | int] = {
                words.SYSTEM: "rabbitmq",
                words.OPERATION_NAME: words.OPERATION,
                words.OPERATION_TYPE: "send",
                words.DESTINATION: destination,
                words.COUNT: end - start,
                words.TOPIC: batch.partition.topic,
                words.PARTITION: batch.partition.number,
                words.CONTEXTS: len(found),
            }
            error = None if outcome is Outcome.CONFIRMED else outcome.value
            if error is not None:
                attributes[words.ERROR] = error
            times = int((ended - (seconds or 0.0)) * 1e9), int(ended * 1e9)
            self._spans.add(destination, *times, told[0] if told else None, told[1:], attributes, error)
        except Exception as fault:  # noqa: BLE001 -- whatever is wrong with spans is no matter of the data's
            self.counts["failed"] += 1
            if self.counts["failed"] == 1:
                _say.warning("span_failed", why=repr(fault), effect="no span of it; data goes on")

    def on_letter_outcome(
        self, flow: PartitionFlow, batch: Batch, start: int, end: int, outcome: Outcome, reason: Reason
    ) -> None:
        """Do nothing: the publication that failed has its span."""

    def on_discarded(self, flow: PartitionFlow, batch: Batch) -> None:
        """Do nothing."""

    def on_used(self, route: str, events: int, work: float, size: int) -> None:
        """Do nothing."""

    async def close(self) -> None:
        """Wait for the collector to have what is left, for `CLOSE_SECONDS` at most."""
        loop, ended = asyncio.get_running_loop(), asyncio.Event()

        def tell() -> None:
            with contextlib.suppress(RuntimeError):  # the loop may be closed by then
                loop.call_soon_threadsafe(ended.set)

        self._spans.close(tell)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await ended.wait()

    def families(self) -> Iterable[CounterMetricFamily]:
        """Yield what /metrics tells."""
        family = CounterMetricFamily("tidegate_spans", "Of traces, and what became of them.", labels=["outcome"])
        for outcome, count in self.counts.items():
            family.add_metric([outcome], count)
        yield family

    def _on_exported(self, count: int, is_taken: bool) -> None:
        """Count, and say when the collector begins or ceases to take spans; called by the thread that exports."""
        self.counts["exported" if is_taken else "lost"] += count
        if is_taken is self._is_lost:
            self._is_lost = not is_taken
            if self._is_lost:
                _say.warning("traces_lost", endpoint=self._settings.endpoint, effect="spans are lost; data goes on")
            else:
                _say.info("traces_taken_again", endpoint=self._settings.endpoint)


def made(settings: TraceSettings, instance: str, *, wall: Callable[[], float]) -> Traces:
    """Return the traces of a process; inside a running loop. Raises `SettingsError` without the packages."""
    try:
        from proxy.tracing.spans import SdkSpans
    except ImportError as error:
        remedy = "pip install 'tidegate[traces]', or leave `traces` out"
        raise SettingsError([f"traces: OpenTelemetry can't be used ({error}): {remedy}"]) from error
    clock = asyncio.get_running_loop().time
    return Traces(settings, lambda told: SdkSpans(settings, instance, told), wall=wall, clock=clock)


def _destination(address: Address) -> str:
    """Return exchange:routing key, or what there is of it; a key that each event has of its own is left out."""
    key = address.routing_key.constant or ""
    return ":".join(part for part in (address.exchange, key) if part)
