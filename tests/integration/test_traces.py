"""Trace context through the whole bridge, on real brokers, and the spans that a collector gets of it."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from load.stack import Stack
from tests.support.collector import Collector
from tests.support.tidegate import Ends, Tidegate, until

pytestmark = pytest.mark.timeout(120)
TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
CONTEXT = {"traceparent": f"00-{TRACE}-{SPAN}-01", "tracestate": "vendor=1,other=2", "baggage": "user=7;ttl=1"}


async def send(ends: Ends, topic: str, **context: str) -> None:
    headers = [(name, text.encode()) for name, text in context.items()]
    await ends.producer.send_and_wait(topic, b"x", headers=headers)


@pytest.mark.parametrize("is_on", [False, True])
async def test_context_reaches_the_message_unchanged_and_a_span_the_collector_when_traces_are_on(
    stack: Stack, tmp_path: Path, *, is_on: bool
) -> None:
    collector = Collector()
    async with Ends.open(stack) as ends, collector.open() as endpoint:
        topic, queue = await ends.topic(), await ends.queue()
        more: dict[str, Any] = {"traces": {"endpoint": endpoint, "sample": 0}} if is_on else {}
        with Tidegate(tmp_path, ends.settings({topic: {"routing_key": queue}}, **more)) as tidegate:
            await send(ends, topic, **CONTEXT)
            await send(ends, topic, traceparent=f"00-{TRACE[::-1]}-{SPAN}-00")
            first, second = await ends.receive(queue, 2)
            assert {name: first.headers.get(name) for name in CONTEXT} == CONTEXT
            assert dict(second.headers) == {"traceparent": f"00-{TRACE[::-1]}-{SPAN}-00"}, "lean, but for its own"
            if is_on:
                # The collector has it before its answer is back and counted.
                await until(lambda: tidegate.metrics()['tidegate_spans_total{outcome="exported"}'] >= 1)
                assert collector.spans
            assert await tidegate.stop() == 0
        spans = [(span.name, span.trace_id.hex(), span.parent_span_id.hex()) for span in collector.spans]
        assert spans == ([(f"publish {queue}", TRACE, SPAN)] if is_on else [])


async def test_events_arrive_when_the_collector_is_not_there(stack: Stack, tmp_path: Path) -> None:
    async with Ends.open(stack) as ends:
        topic, queue = await ends.topic(), await ends.queue()
        settings = ends.settings(
            {topic: {"routing_key": queue}}, traces={"endpoint": "http://127.0.0.1:9/v1/traces", "sample": 1}
        )
        with Tidegate(tmp_path, settings) as tidegate:
            for _ in range(20):
                await send(ends, topic, **CONTEXT)
            await ends.receive(queue, 20)
            await until(lambda: tidegate.events("traces_lost"))
            assert await tidegate.stop() == 0
            assert len(tidegate.events("traces_lost")) == 1
            assert await ends.committed(topic) == 20


def test_it_ends_with_2_and_the_remedy_when_the_packages_are_missing(tmp_path: Path) -> None:
    (tmp_path / "opentelemetry.py").write_text("raise ImportError('No module named opentelemetry')\n")
    file = tmp_path / "tidegate.yaml"
    document = {
        "log": {"hosts": ["127.0.0.1:9"], "group": "g"},
        "broker": {"hosts": ["127.0.0.1:9"]},
        "routes": {"main": {"exchange": "", "policy": "static"}},
        "defaults": {"route": "main", "class": "P1", "routing_key": "q"},
        "event_types": {"t": {}},
        "traces": {"endpoint": "http://127.0.0.1:9/v1/traces"},
        "admin": {"listen": None},
    }
    file.write_text(yaml.safe_dump(document))
    done = subprocess.run(
        [sys.executable, "-m", "proxy", "run", "-c", str(file)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])},
        check=False, capture_output=True, text=True, timeout=60, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 2
    assert "pip install 'tidegate[traces]'" in done.stderr
    assert "Traceback" not in done.stderr
