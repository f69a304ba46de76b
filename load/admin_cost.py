"""What the admin address costs with many event types: `python -m load.admin_cost --types 1000 --partitions 4`.

The whole bridge in this process on a log in memory, in front of a lane that confirms nothing, so that every type has
something to tell; asked over HTTP by a thread beside it. Steps of the event loop are told in processor time of its
thread, on asyncio's own loop: only there they all go through one place.
"""

import argparse
import asyncio
import gc
import json
import os
import statistics
import time
import urllib.request
from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any

from load.timed_steps import step_name
from proxy.app import App
from proxy.bridge.broker import Batch, LaneState, QueueState
from proxy.memory import GC_THRESHOLDS
from proxy.operations.admin import Admin
from proxy.operations.stream import Stream
from proxy.settings import AdminSettings, BrokerSettings, EventType, LogSettings, Route, RoutingKey, Settings
from proxy.simulation.memory_cluster import MemoryCluster
from proxy.simulation.memory_log import MemoryLog

ROUTES, ASKED, PAUSE = 4, 20, 0.2
PATHS = ("/metrics", "/state", "/ready", "/health")
LISTENED = 15
"""Events of /stream that one reader hears."""
ANSWER_GOAL, STEP_GOAL = 0.1, 0.01
"""Seconds for /metrics, and of processor time for a step."""
_ANSWER = "RequestHandler._handle_request"
"""aiohttp's, which writes the answers."""
_TELLING = "Stream.run"
"""What writes /stream, once for all who look."""
_RUN = asyncio.Handle._run  # noqa: SLF001 - the one place through which every step goes


class _Steps:
    """The longest steps since somebody asked, by what they were of."""

    def __init__(self) -> None:
        self._longest: dict[str, float] = {}

    def time(self, handle: Any) -> None:
        """Run a step of the loop."""
        began = time.thread_time()
        _RUN(handle)
        took, name = time.thread_time() - began, step_name(handle._callback)  # noqa: SLF001 - named nowhere else
        if took > self._longest.get(name, 0.0):
            self._longest[name] = took

    def take(self, *whose: str) -> dict[str, Any]:
        """Return the longest step of those that answer, and of all others, in seconds; begin anew."""
        longest, self._longest = self._longest, {}
        answer = max(longest.pop(name, 0.0) for name in whose or (_ANSWER,))
        other = max(longest, key=longest.__getitem__)
        return {"step_s": answer, "other_step_s": longest[other], "other": other}


class _Lane:
    """Takes events and confirms none."""

    state, host, in_flight, window = LaneState.OPEN, "mail:5672", 200, 200

    def oldest(self, now: float) -> float:  # noqa: ARG002
        """Return 0."""
        return 0.0

    def unanswered(self, now: float) -> float:  # noqa: ARG002
        """Return 0."""
        return 0.0

    async def run(self) -> None:
        """Wait."""
        await asyncio.Event().wait()

    async def publish(self, batches: Sequence[Batch]) -> None:
        """Wait until all is called back."""
        while not all(batch.withdrawn for batch in batches):  # noqa: ASYNC110 - seen by looking
            await asyncio.sleep(1)

    def withdraw(self, batches: Collection[Batch]) -> None:
        """Call back."""
        for batch in batches:
            batch.called_back = True


class _Monitor:
    """Tells of a queue that is neither empty nor long."""

    def why(self, queue: str) -> str:  # noqa: ARG002
        """Return nothing."""
        return ""

    async def poll(self, queues: Collection[str]) -> Mapping[str, QueueState | None]:
        """Return the same of each."""
        return dict.fromkeys(queues, QueueState(10, 5))

    async def close(self) -> None:
        """Do nothing."""


def _settings(types: int) -> Settings:
    routes = {f"route-{number}": Route(exchange="x", queues=(f"queue-{number}",)) for number in range(ROUTES)}
    kinds = [
        EventType(
            name=f"shop.event-type-{number:05}",
            topic=f"shop.event-type-{number:05}",
            priority=f"P{number % 3 + 1}",
            route=f"route-{number % ROUTES}",
            routing_key=RoutingKey(constant="q"),
        )
        for number in range(types)
    ]
    return Settings(
        log=LogSettings(hosts=("kafka:9092",), group="g"),
        broker=BrokerSettings(hosts=["rabbit:5672"]),
        routes=routes,
        event_types={kind.name: kind for kind in kinds},
    )


async def _measure(types: int, partitions: int, steps: _Steps) -> dict[str, Any]:
    settings = _settings(types)
    cluster = MemoryCluster(Random(1))
    now_ms = int(time.time() * 1000)
    for name in settings.event_types:
        cluster.create_topic(name, partitions)
        cluster.produce(name, value=b"x" * 100, timestamp_ms=now_ms)
    log = MemoryLog(cluster, settings.log, settings.limits, name="replica")
    lanes = {name: _Lane() for name in settings.routes}
    app = App(settings, log, lanes, _Lane(), _Monitor(), write=lambda _: None)

    def families() -> Any:
        told: Any = chain(app.status.families(), app.totals.families())
        return told

    stream = Stream(app.view)
    admin = Admin(
        AdminSettings(listen="127.0.0.1:0"),
        status=app.status.ready,
        families=families,
        state=app.state.told,
        stream=stream,
    )
    works = (app.run(), admin.run(), stream.run())
    tasks = [asyncio.create_task(work) for work in works]
    while admin.port is None or sum(one.inbox.events for one in app.assignment.listeners.values()) < types // 2:  # noqa: ASYNC110
        await asyncio.sleep(0.5)
    await asyncio.sleep(3)
    found: dict[str, Any] = {}
    gc.freeze()  # as `run` does
    steps.take()
    await asyncio.sleep(ASKED * PAUSE)
    found["unasked"] = steps.take()
    for path in PATHS:
        took, size = [], 0
        for _ in range(ASKED):
            seconds, size = await asyncio.to_thread(_ask, f"http://127.0.0.1:{admin.port}{path}")
            took.append(seconds)
            await asyncio.sleep(PAUSE)
        found[path] = {
            "median_s": statistics.median(took),
            "most_s": max(took),
            "bytes": size,
            **steps.take(),
        }
    cpu, began = time.thread_time(), time.monotonic()
    await asyncio.sleep(ASKED * PAUSE)
    alone = (time.thread_time() - cpu) / (time.monotonic() - began)
    steps.take()
    cpu, began = time.thread_time(), time.monotonic()
    first, most = await asyncio.to_thread(_listen, f"http://127.0.0.1:{admin.port}/stream")
    share = (time.thread_time() - cpu) / (time.monotonic() - began) - alone
    found["/stream"] = {"bytes": first, "most_bytes_after": most, "cpu_share": share, **steps.take(_ANSWER, _TELLING)}
    app.stop()
    await tasks[0]
    for task in tasks[1:]:
        task.cancel()
    await asyncio.gather(*tasks[1:], return_exceptions=True)
    return found


def _ask(address: str) -> tuple[float, int]:
    began = time.monotonic()
    with urllib.request.urlopen(address, timeout=10) as answer:  # noqa: S310 - our own address
        size = len(answer.read())
    return time.monotonic() - began, size


def _listen(address: str) -> tuple[int, int]:
    """Return the bytes of the first event, and of the largest after it."""
    sizes: list[int] = []
    with urllib.request.urlopen(address, timeout=10) as answer:  # noqa: S310 - our own address
        while len(sizes) < LISTENED:
            line = answer.readline()
            if line.startswith(b"data: "):
                sizes.append(len(line))
    return sizes[0], max(sizes[1:])


def main() -> int:
    """Measure, print and save; return 0 if the goals are met."""
    parser = argparse.ArgumentParser(prog="python -m load.admin_cost", description=__doc__)
    parser.add_argument("--types", type=int, default=1_000)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    gc.set_threshold(*GC_THRESHOLDS)
    steps = _Steps()

    def timed(handle: asyncio.Handle) -> None:
        """Stand in for the loop's own way to run a step."""
        steps.time(handle)

    asyncio.Handle._run = timed  # type: ignore[method-assign,assignment]  # noqa: SLF001 - as above
    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        found = runner.run(_measure(options.types, options.partitions, steps))
    print(f"{options.types} types of {options.partitions} partitions, load {os.getloadavg()[0]:.1f}; milliseconds")
    for path, told in found.items():
        figures = ", ".join(
            f"{name.removesuffix('_s')} {value * 1e3:.1f}"
            if name.endswith("_s")
            else f"{name} {value:.4g}"
            if isinstance(value, float)
            else f"{name} {value}"
            for name, value in told.items()
        )
        print(f"  {path:10}{figures}")
    if options.json is not None:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(vars(options) | found, indent=1, default=str) + "\n", encoding="utf-8")
    longest = max(found[path]["step_s"] for path in (*PATHS, "/stream"))
    return 0 if found["/metrics"]["median_s"] <= ANSWER_GOAL and longest <= STEP_GOAL else 1


if __name__ == "__main__":
    raise SystemExit(main())
