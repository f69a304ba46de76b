"""Spans of batches, with a real collector's door (OTLP over HTTP) and with none."""

import asyncio
import builtins
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from proxy.bridge.broker import Address, Batch
from proxy.errors import SettingsError
from proxy.model import Event, Outcome, Partition
from proxy.settings import RoutingKey, TraceSettings
from proxy.tracing import made
from proxy.tracing.contexts import Context
from proxy.tracing.traces import Traces
from tests.support.collector import Collector

TRACES = [f"{number:032x}" for number in range(1, 100)]
NOW = 1_700_000_000.0
WITHIN = 20.0


@pytest.fixture(autouse=True)
def nobody_exports_on() -> Iterator[None]:
    """Wait for threads that are left: what they try again they try by chance, which properties take for their own."""
    yield
    for thread in threading.enumerate():
        if thread.name.startswith(("OtelBatch", "traces end")):
            thread.join(WITHIN)
            assert not thread.is_alive()


class Recorded:
    """Makes no spans; notes them."""

    def __init__(self) -> None:
        self.spans: list[dict[str, Any]] = []
        self.fails = False

    def add(self, *told: Any) -> None:
        if self.fails:
            raise RuntimeError("no room")
        names = ("destination", "begin_ns", "end_ns", "parent", "links", "attributes", "error")
        self.spans.append(dict(zip(names, told, strict=True)))

    def close(self, then: Callable[[], None]) -> None:
        then()


class World:
    """Traces in front of `Recorded`."""

    def __init__(self, *, chance: float = 0.5, **settings: Any) -> None:
        self.now = 0.0
        self.recorded = Recorded()
        self.told: list[Callable[[int, bool], None]] = []

        def spans(told: Callable[[int, bool], None]) -> Recorded:
            self.told.append(told)
            return self.recorded

        chosen = TraceSettings(endpoint="http://localhost:1/v1/traces", **settings)
        self.traces = Traces(chosen, spans, wall=lambda: NOW, clock=lambda: self.now, chance=lambda: chance)

    def ends(self, events: Sequence[Event], outcome: Outcome = Outcome.CONFIRMED, **where: Any) -> None:
        ends(self.traces, events, outcome, **where)


def ends(
    traces: Traces,
    events: Sequence[Event],
    outcome: Outcome = Outcome.CONFIRMED,
    *,
    key: RoutingKey | None = None,
    seconds: float | None = 0.25,
) -> None:
    address = Address("shop", key or RoutingKey(constant="mail"), "text/plain")
    batch = Batch(Partition("orders", 3), events, 0, address, 0, recipient=None)  # type: ignore[arg-type]
    traces.on_outcome(None, batch, 0, len(events), outcome, seconds)  # type: ignore[arg-type]


def event(trace: str | None = None, flags: str = "01") -> Event:
    headers = () if trace is None else (("traceparent", f"00-{trace}-{'1' * 16}-{flags}".encode()),)
    return Event(0, None, None, b"x", headers, 1)


def context(trace: str) -> Context:
    return Context(int(trace, 16), int("1" * 16, 16), "")


def test_a_batch_has_one_span_with_links_when_events_of_it_are_sampled() -> None:
    world = World(links=2)
    world.ends([event(), event(TRACES[0], "00"), *(event(trace) for trace in TRACES[1:6])])
    (span,) = world.recorded.spans
    assert span["parent"] == context(TRACES[1])
    assert span["links"] == [context(TRACES[2]), context(TRACES[3])]
    assert (span["destination"], span["error"]) == ("shop:mail", None)
    assert span["end_ns"] - span["begin_ns"] == pytest.approx(0.25e9, abs=1000)
    assert span["end_ns"] == int(NOW * 1e9)
    assert span["attributes"] == {
        "messaging.system": "rabbitmq",
        "messaging.operation.name": "publish",
        "messaging.operation.type": "send",
        "messaging.destination.name": "shop:mail",
        "messaging.batch.message_count": 7,
        "tidegate.topic": "orders",
        "tidegate.partition": 3,
        "tidegate.sampled_contexts": 5,
    }


@pytest.mark.parametrize(("chance", "spans"), [(0.009, 1), (0.01, 0)])
def test_chance_decides_when_nothing_is_sampled(chance: float, spans: int) -> None:
    world = World(chance=chance)
    world.ends([event(), event(TRACES[0], "00")])
    assert len(world.recorded.spans) == spans
    assert all(one["parent"] is None and not one["links"] for one in world.recorded.spans)


def test_no_object_is_made_of_what_is_not_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("proxy.tracing.traces.context", never)
    world = World()
    world.ends([event(TRACES[0], "00")] * 50)
    assert world.recorded.spans == []


def test_no_more_begin_than_may_and_the_rest_is_counted() -> None:
    world = World(spans_per_second=3)
    for _ in range(10):
        world.ends([event(TRACES[0])])
    assert (len(world.recorded.spans), world.traces.counts["limited"]) == (3, 7)
    world.now = 1 / 3 + 1e-6
    for _ in range(2):
        world.ends([event(TRACES[0])])
    assert (len(world.recorded.spans), world.traces.counts["limited"]) == (4, 8)
    world.now = 1_000.0
    for _ in range(10):
        world.ends([event(TRACES[0])])
    assert len(world.recorded.spans) == 7


@pytest.mark.parametrize("outcome", [Outcome.NACKED, Outcome.UNKNOWN, Outcome.UNDELIVERABLE])
def test_the_span_tells_of_an_error_when_the_broker_did_not_take_it(outcome: Outcome) -> None:
    world = World()
    world.ends([event(TRACES[0])], outcome, seconds=None)
    (span,) = world.recorded.spans
    assert (span["error"], span["attributes"]["error.type"]) == (outcome.value, outcome.value)
    assert span["begin_ns"] == span["end_ns"]


def test_the_destination_has_no_key_when_each_event_has_its_own() -> None:
    world = World()
    world.ends([event(TRACES[0])], key=RoutingKey(header="channel"))
    assert world.recorded.spans[0]["destination"] == "shop"


def test_data_goes_on_when_no_span_can_be_made() -> None:
    world = World()
    world.recorded.fails = True
    for _ in range(3):
        world.ends([event(TRACES[0])])
    assert world.traces.counts["failed"] == 3


def test_it_is_said_once_when_the_collector_takes_none_and_when_it_does_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    world = World()
    for count, is_taken in ((5, True), (5, False), (5, False), (2, True), (2, True)):
        world.told[0](count, is_taken)
    told = capsys.readouterr().out
    assert (told.count("traces_lost"), told.count("traces_taken_again")) == (1, 1)
    assert {name: world.traces.counts[name] for name in ("exported", "lost")} == {"exported": 9, "lost": 10}


# -- the SDK of OpenTelemetry


def sdk(endpoint: str) -> Traces:
    return made(TraceSettings(endpoint=endpoint, sample=0.0), "host-1-2", wall=lambda: NOW)


async def test_a_collector_has_every_span_when_it_is_closed() -> None:
    collector = Collector()
    async with collector.open() as endpoint:
        traces = sdk(endpoint)
        ends(traces, [event(TRACES[0]), event(TRACES[1])])
        ends(traces, [event(TRACES[2])], Outcome.NACKED)
        ends(traces, [event(TRACES[3], "00")])
        await traces.close()
    first, second = sorted(collector.spans, key=lambda span: bytes(span.trace_id))
    assert (first.name, first.trace_id.hex(), first.parent_span_id.hex()) == ("publish shop:mail", TRACES[0], "1" * 16)
    assert [link.trace_id.hex() for link in first.links] == [TRACES[1]]
    assert first.end_time_unix_nano - first.start_time_unix_nano == pytest.approx(0.25e9, abs=1000)
    assert first.kind == 3, "a client's"
    assert second.status.code == 2
    assert second.trace_id.hex() == TRACES[2]
    assert collector.resource["service.name"] == "tidegate"
    assert collector.resource["service.instance.id"] == "host-1-2"
    assert collector.schemas == {"https://opentelemetry.io/schemas/1.44.0"}
    assert traces.counts["exported"] == 2


def nowhere() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}/v1/traces"


@pytest.mark.parametrize("how", ["nobody there", "hangs", "refuses"])
async def test_data_and_stop_go_on_when_the_collector_takes_nothing(how: str) -> None:
    collector = Collector(status=400, hangs=how == "hangs")
    async with collector.open() as endpoint:
        traces = sdk(nowhere() if how == "nobody there" else endpoint)
        for _ in range(40):
            ends(traces, [event(TRACES[0])])
        async with asyncio.timeout(WITHIN):
            await traces.close()
        if how == "hangs":
            await collector.asked.wait()
    assert traces.counts["exported"] == 0
    assert traces.counts["failed"] == 0
    if how == "refuses":
        assert traces.counts["lost"] == 40


@pytest.mark.parametrize(("status", "lost"), [(200, 0), (302, 2), (400, 2)])
async def test_an_answer_is_read_no_further_than_its_status_when_it_has_no_end(status: int, lost: int) -> None:
    collector = Collector(status=status, is_endless=True)
    async with collector.open() as endpoint:
        traces = sdk(endpoint)
        ends(traces, [event(TRACES[0])])
        ends(traces, [event(TRACES[1])])
        async with asyncio.timeout(WITHIN):
            await traces.close()
    assert traces.counts["lost"] == lost
    assert collector.told_bytes < 16 * 1024**2, "what two sockets hold"


async def test_a_queue_that_nobody_empties_is_bounded() -> None:
    from proxy.tracing import spans

    collector = Collector(hangs=True)
    async with collector.open() as endpoint:
        traces = made(TraceSettings(endpoint=endpoint, spans_per_second=10_000), "i", wall=lambda: NOW)
        for _ in range(spans.QUEUE + spans.AT_ONCE + 500):
            ends(traces, [event(TRACES[0])])
        assert isinstance(traces._spans, spans.SdkSpans)
        (processor,) = traces._spans._provider._active_span_processor._span_processors
        assert len(processor._batch_processor._queue) <= spans.QUEUE  # type: ignore[attr-defined]
        processor._batch_processor._exporter.shutdown()  # type: ignore[attr-defined]  # or it tries for a minute
        async with asyncio.timeout(WITHIN):
            await traces.close()


async def test_the_remedy_is_named_when_the_packages_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.startswith("opentelemetry"):
            raise ModuleNotFoundError(f"No module named '{name}'")
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.delitem(sys.modules, "proxy.tracing.spans", raising=False)
    with pytest.raises(SettingsError, match=r"pip install 'tidegate\[traces\]'"):
        sdk("http://localhost:4318/v1/traces")


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({"endpoint": "localhost:4318"}, "endpoint"),
        ({"endpoint": "http://localhost:4318"}, "endpoint"),
        ({"endpoint": "http://user@localhost:4318/v1/traces"}, "endpoint"),
        ({"endpoint": "http://localhost:4318/v1/traces", "sample": 1.1}, "sample"),
        ({"endpoint": "http://localhost:4318/v1/traces", "links": 0}, "links"),
        ({"endpoint": "http://localhost:4318/v1/traces", "spans_per_second": 10_001}, "spans_per_second"),
    ],
)
def test_settings_are_refused_when_they_are_out_of_bounds(given: dict[str, Any], wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        TraceSettings.model_validate(given)
