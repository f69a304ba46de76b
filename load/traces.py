"""What traces cost: 200,000 events through the bridge in memory, with and without, in turn, in CPU of the process.

The lane confirms at once and encodes nothing: what a process on real brokers takes comes on top, with and without.
"""

import argparse
import asyncio
import contextlib
import json
import logging
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

import structlog

from load.admin_cost import _Lane as IdleLane
from load.admin_cost import _Monitor as Monitor
from proxy.app import App
from proxy.bridge.broker import Batch
from proxy.bridge.observer import UNOBSERVED
from proxy.event_loop import PreciseLoop
from proxy.model import Outcome
from proxy.settings import BrokerSettings, EventType, LogSettings, Route, RoutingKey, Settings, TraceSettings
from proxy.simulation.memory_cluster import MemoryCluster
from proxy.simulation.memory_log import MemoryLog
from proxy.tracing import made

TYPES, PARTITIONS = 4, 4
AT_ONCE = 50
"""Events that are confirmed together at most."""
TICK = 0.005
WARM, SETTLE = 2.0, 3.0
"""Seconds before the measurement in which everything is loaded, and in which what is exported late is awaited."""
_SINK = """
import http.server
class Taken(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200); self.send_header("Content-Length", "0"); self.end_headers()
    def log_message(self, *_): pass
server = http.server.HTTPServer(("127.0.0.1", 0), Taken)
print(server.server_port, flush=True)
server.serve_forever()
"""


class _Lane(IdleLane):
    """Confirms everything within the step in which it is handed on."""

    window = 2_000

    async def publish(self, batches: Sequence[Batch]) -> None:
        """Confirm in pieces."""
        for batch in batches:
            batch.done = len(batch.events)
            for start in range(0, batch.done, AT_ONCE):
                end = min(batch.done, start + AT_ONCE)
                batch.recipient.on_outcome(batch, start, end, Outcome.CONFIRMED, seconds=0.001)
        await asyncio.sleep(0)


def _headers(share: float) -> list[list[tuple[str, bytes | None]]]:
    """Return the headers of some thousand events, of which a share is sampled."""
    chance = Random(2)
    flags = ["01" if chance.random() < share else "00" for _ in range(10_000)]
    parents = [f"00-{chance.getrandbits(128) | 1:032x}-{chance.getrandbits(64) | 1:016x}-{flag}" for flag in flags]
    return [[("content-type", b"application/json"), ("traceparent", parent.encode())] for parent in parents]


async def _feed(cluster: MemoryCluster, events: int, rate: float, share: float) -> None:
    """Let events come in time, some each `TICK` and in one partition after the other."""
    headers, loop = _headers(share), asyncio.get_running_loop()
    began, made_ = loop.time(), 0
    while made_ < events:
        await asyncio.sleep(TICK)
        due = min(events, int((loop.time() - began) * rate))
        now, place = int(time.time() * 1000), made_ // max(1, int(rate * TICK))
        for number in range(made_, due):
            kind, partition = f"type-{place % TYPES}", place // TYPES % PARTITIONS
            cluster.produce(kind, partition, value=b"x" * 200, headers=headers[number % 10_000], timestamp_ms=now)
        made_ = due


async def _run(events: int, rate: float, share: float, traces: TraceSettings | None) -> dict[str, Any]:
    kinds = [
        EventType(
            name=f"type-{n}", topic=f"type-{n}", priority="P2", route="main", routing_key=RoutingKey(constant="q")
        )
        for n in range(TYPES)
    ]
    settings = Settings(
        log=LogSettings(hosts=("memory:1",), group="g"),
        broker=BrokerSettings(hosts=["memory:1"]),
        routes={"main": Route(exchange="x", policy="static")},
        event_types={kind.name: kind for kind in kinds},
    )
    cluster = MemoryCluster(Random(1))
    for kind in kinds:
        cluster.create_topic(kind.topic, PARTITIONS)
    log = MemoryLog(cluster, settings.log, settings.limits, name="replica")
    observer = None if traces is None else made(traces, "load", wall=time.time)
    app = App(
        settings,
        log,
        {"main": _Lane()},
        _Lane(),
        Monitor(),
        write=lambda _: None,
        observer=observer or UNOBSERVED,
    )
    running = asyncio.create_task(app.run())
    await _feed(cluster, int(WARM * rate), rate, share)
    await asyncio.sleep(SETTLE)
    cpu, began = time.process_time(), time.monotonic()
    await _feed(cluster, events, rate, share)
    await asyncio.sleep(SETTLE)  # what is exported late is paid for, too
    seconds = time.monotonic() - began
    share_of_core = (time.process_time() - cpu) / seconds
    assert sum(flow.watermark.resolved for flow in app.assignment.flows()) == events + int(WARM * rate)
    if observer is not None:
        await observer.close()
    app.stop()
    await running
    return {"core": round(share_of_core, 4), "seconds": round(seconds, 2)} | (observer.counts if observer else {})


@contextlib.contextmanager
def _collector() -> Iterator[str]:
    with subprocess.Popen([sys.executable, "-c", _SINK], stdout=subprocess.PIPE, text=True) as sink:
        assert sink.stdout is not None
        try:
            yield f"http://127.0.0.1:{sink.stdout.readline().strip()}/v1/traces"
        finally:
            sink.kill()


def _alone(options: argparse.Namespace, traces: Mapping[str, Any] | None) -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    with asyncio.Runner(loop_factory=PreciseLoop) as runner:
        settings = None if traces is None else TraceSettings(**traces)
        print(json.dumps(runner.run(_run(options.events, options.rate, options.share, settings))))


def main() -> None:
    """Measure, each run in a process of its own."""
    parser = argparse.ArgumentParser(prog="python -m load.traces", description=__doc__)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--rate", type=float, default=10_000, help="events a second")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--share", type=float, default=0.01, help="of the events that their producers have sampled")
    parser.add_argument("--alone", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.alone is not None:
        _alone(options, json.loads(options.alone))
        return
    found: dict[str, list[float]] = {}
    with _collector() as endpoint:
        ways = {
            "off": None,
            "on": {"endpoint": endpoint},
        }
        for number in range(options.rounds):
            for name, traces in ways.items():
                command = [sys.executable, "-m", "load.traces", "--alone", json.dumps(traces)]
                for option in ("events", "rate", "share"):
                    command += [f"--{option}", str(getattr(options, option))]
                told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
                found.setdefault(name, []).append(told["core"])
                print(f"round {number + 1} {name}: {told}", flush=True)
    off, on = (statistics.median(found[name]) for name in ("off", "on"))
    print(f"off {off:.1%} of a core, on {on:.1%}: {on - off:+.1%}")


if __name__ == "__main__":
    main()
