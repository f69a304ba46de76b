"""Thousands of event types: `python -m load.bench scale`. What it takes to start, to idle, to work, in all processes.

A response time counts from the instant at which an event was due to its arrival at a consumer, however late it left.
"""

import asyncio
import json
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import psutil

from load import admin_view, machine
from load.crew import Crew
from load.kafka import KafkaView, commit
from load.many_types import CLASSES, ManyTypes, Place
from load.scale_traffic import Feed, Seen, Sink
from load.scale_verdict import Phase, cpu, goals, percentiles, tables
from load.stack import Stack, ports
from load.terminal import run, say
from load.wire import Wire
from load.worker import Worker

MOST_IMPORTANT = next(iter(CLASSES))
HELD = 0.1
"""What the consumers of a saturated class take, as a share of what is sent to it."""
HOT_PERCENT = 1
"""Of the types, that alone are written to."""
TOPIC_SETTINGS = {"index.interval.bytes": str(1024**2)}
"""Index entries are rare: on a machine where a page of a mapped file takes 10 ms they hold up a Kafka of thousands."""
ADDED = 10
"""Types that come and go."""
CALM_SECONDS = 15.0
"""From ready on, before anything is measured."""
IDLE_SECONDS, STEADY_SECONDS, HOT_SECONDS, SATURATED_SECONDS = 15.0, 25.0, 15.0, 25.0
WARM_SECONDS = 4.0
"""Of a phase, before it counts."""
STRAGGLING_SECONDS = 1.0
"""For which the last events of a phase may still arrive."""
TIMED_SECONDS = 12.0
"""For which steps are timed with nothing to do, and with everything: records of types are written every 10 s."""
STEPS_TOLD, KINDS_TOLD = 10, 40
LIVE_SECONDS = 5.0
"""For which types that were added are written to."""
READY_SECONDS = 180.0
"""All types may take so long to be read, or what waits to arrive."""


@dataclass(frozen=True)
class Shape:
    """What is measured."""

    types: int
    partitions: int
    """Of each."""
    rate: float
    """Events a second, over all."""
    processes: int
    """Of Tidegate, in one group."""


@dataclass
class Scale:
    """One run: its parts, and what it found."""

    stack: Stack
    folder: Path
    types: ManyTypes
    feed: Feed
    sinks: dict[str, Sink]
    """By class."""
    seen: Seen
    admins: Sequence[int]
    """Ports, one of each process."""
    start: dict[str, float] = field(default_factory=dict)
    """Seconds from the start of the process to `joined` and `ready`, and `cpu` seconds until then."""
    phases: list[Phase] = field(default_factory=list)
    churn: dict[str, float] = field(default_factory=dict)
    """Seconds until added types were `found` and removed ones `gone`."""
    steps: dict[str, Any] = field(default_factory=dict)
    """The longest steps of the loop, processor seconds, and what each kind of step took in all."""
    peak_rss_mb: float = 0.0

    @property
    def longest_ms(self) -> float:
        """Return the longest step of the loop once everything was read, in milliseconds of processor time."""
        return max((float(one["ms"]) for one in self.steps["ready"]), default=0.0)


def measure(stack: Stack, shape: Shape, file: Path) -> int:
    """Run everything, print the tables, write the JSON; return 1 if something was lost or a goal missed, else 0.

    Raises WorkerError, WireError or KafkaError when Tidegate or a broker fails.
    """
    about, types = machine.describe(stack), shape.types
    with tempfile.TemporaryDirectory(prefix="tidegate-scale-") as folder:
        seen, many = Seen(), ManyTypes(types, shape.partitions)
        sinks = {one: Sink(many.queue(one), seen) for one in CLASSES}
        admins = list(ports.choose([f"admin-{number}" for number in range(shape.processes)]).values())
        scale = Scale(stack, Path(folder), many, Feed(stack.kafka, shape.rate), sinks, seen, admins)
        run(_run(scale))
    lost = scale.feed.sent - scale.feed.refused - len(seen.events)
    faults = {"lost": lost, "repeated": seen.repeated, "disordered": seen.late, "refused": scale.feed.refused}
    judged = goals(types, scale.start, scale.phases, scale.longest_ms)
    record = about | {
        "measured": "scale", **asdict(shape),
        "command": f"python -m load.bench scale --types {types} --partitions {shape.partitions} "
        f"--rate {shape.rate:g} --processes {shape.processes}",
        "start": scale.start, "phases": [asdict(one) for one in scale.phases], "churn": scale.churn,
        "steps": scale.steps, "peak_rss_mb": scale.peak_rss_mb, "sent": scale.feed.sent, **faults,
        "judged": [asdict(one) for one in judged],
    }  # fmt: skip
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(tables(scale.phases, judged))
    print(f"{ADDED} types more were read after {scale.churn['found']:.1f} s, {scale.feed.sent:,} events sent, {faults}")
    is_whole = not any(faults[one] for one in ("lost", "repeated", "disordered"))
    return 0 if is_whole and all(one.is_met for one in judged) else 1


async def _run(scale: Scale) -> None:
    async with AsyncExitStack() as running:
        kafka = await running.enter_async_context(KafkaView(scale.stack.kafka))
        await _prepare(scale, kafka)
        running.push_async_callback(scale.feed.stop)
        consuming = [asyncio.create_task(sink.acknowledge()) for sink in scale.sinks.values()]
        for task in consuming:
            running.callback(task.cancel)
        files = [
            scale.types.write(scale.folder / f"tidegate-{number}.yaml", scale.stack, admin)
            for number, admin in enumerate(scale.admins)
        ]
        commands = [("run", "-c", str(file)) for file in files]
        with Crew([partial(Worker, "proxy", *one, output=scale.folder / "tidegate.txt") for one in commands]) as crew:
            scale.start = await _started(scale, crew, kafka)
            say(f"{scale.types.count:,} types: {scale.start}")
            await _phases(scale, crew, kafka)
            scale.peak_rss_mb = crew.peak_rss() / 1e6
            await crew.stop()
        await _steps(scale, kafka, commands[0])


async def _prepare(scale: Scale, kafka: KafkaView) -> None:
    types = scale.types
    say(f"{types.count:,} topics of {types.partitions} partitions are made")
    await kafka.create_all(types.topics, types.partitions, TOPIC_SETTINGS)
    await kafka.await_led(types.topics, READY_SECONDS)
    await scale.feed.start(types.places)
    await commit(scale.stack.kafka, types.group, await scale.feed.open(types.places))
    with Wire(scale.stack.amqp_port) as wire:
        for priority in CLASSES:
            wire.declare(types.queue(priority))
    for sink in scale.sinks.values():
        await sink.consume(scale.stack.amqp_port)


async def _started(scale: Scale, crew: Crew, kafka: KafkaView) -> dict[str, float]:
    """Wait until all is read; return how long it took."""
    began, wanted = crew.began(), len(scale.types.places)
    await crew.until(lambda: kafka.is_stable(scale.types.group), READY_SECONDS)
    joined = time.time() - began
    await crew.until(lambda: _owned(scale, wanted), READY_SECONDS)
    told = {"joined": joined, "ready": time.time() - began, "cpu": crew.cpu_seconds()}
    return {name: round(value, 2) for name, value in told.items()}


async def _phases(scale: Scale, crew: Crew, kafka: KafkaView) -> None:
    places, sinks = scale.types.places, scale.sinks
    await asyncio.sleep(CALM_SECONDS)
    async with _phase(scale, crew, "idle"):
        await asyncio.sleep(IDLE_SECONDS)
    async with _feeding(scale):
        await asyncio.sleep(WARM_SECONDS)
        async with _phase(scale, crew, "steady"):
            await asyncio.sleep(STEADY_SECONDS)
        hot = set(scale.types.topics[:: 100 // HOT_PERCENT])
        scale.feed.places = [place for place in places if place.topic in hot]
        await asyncio.sleep(WARM_SECONDS)
        async with _phase(scale, crew, f"hot {HOT_PERCENT} %"):
            await asyncio.sleep(HOT_SECONDS)
        scale.feed.places = places
        for priority, sink in sinks.items():
            sink.pace = None if priority == MOST_IMPORTANT else HELD * CLASSES[priority] * scale.feed.rate
        await asyncio.sleep(WARM_SECONDS)
        async with _phase(scale, crew, f"{1 - CLASSES[MOST_IMPORTANT]:.0%} held back", MOST_IMPORTANT):
            await asyncio.sleep(SATURATED_SECONDS)
        for sink in sinks.values():
            sink.pace = None
    await crew.until(lambda: _all_came(scale, scale.feed.sent), READY_SECONDS)
    async with _feeding(scale):
        await asyncio.sleep(WARM_SECONDS)
        async with _phase(scale, crew, f"{ADDED} come and go"):
            await _churn(scale, crew, kafka)
    await crew.until(lambda: _all_came(scale, scale.feed.sent), READY_SECONDS)


async def _churn(scale: Scale, crew: Crew, kafka: KafkaView) -> None:
    """Add types of the least important class, write to them, remove them."""
    types, least = scale.types, list(CLASSES)[-1]
    added = [types.topic(least, types.count + number) for number in range(ADDED)]
    more = [Place(topic, number) for topic in added for number in range(types.partitions)]
    began = time.monotonic()
    await kafka.create_all(added, types.partitions, TOPIC_SETTINGS)
    await scale.feed.learn(more)
    await crew.until(lambda: _owned(scale, len(types.places) + len(more)), READY_SECONDS)
    scale.churn["found"] = round(time.monotonic() - began, 2)
    scale.feed.places = [*types.places, *more]
    await asyncio.sleep(LIVE_SECONDS)
    scale.feed.places, sent = types.places, scale.feed.sent
    await crew.until(lambda: _all_came(scale, sent), READY_SECONDS)
    began = time.monotonic()
    for topic in added:
        await kafka.delete(topic)
    await crew.until(lambda: _owned(scale, len(types.places)), READY_SECONDS)
    scale.churn["gone"] = round(time.monotonic() - began, 2)
    await asyncio.sleep(LIVE_SECONDS)


async def _steps(scale: Scale, kafka: KafkaView, command: Sequence[str]) -> None:
    """Start it once more, each step of its loop timed, and let it idle and work for a while."""
    file = scale.folder / "steps.json"
    timed = partial(Worker, "load.timed_steps", str(file), *command, output=scale.folder / "timed.txt")
    with Crew([timed]) as crew:
        await _started(scale, crew, kafka)
        ready = time.monotonic()
        await asyncio.sleep(TIMED_SECONDS)
        async with _feeding(scale):
            await asyncio.sleep(TIMED_SECONDS)
        await crew.until(lambda: _all_came(scale, scale.feed.sent), READY_SECONDS)
        ended = time.monotonic()
        await crew.stop()
    told = json.loads(file.read_text(encoding="utf-8"))
    by_length = sorted(told["long"], key=itemgetter(1), reverse=True)
    scale.steps = {
        "start": [_step(one) for one in by_length if one[0] < ready][:STEPS_TOLD],
        "ready": [_step(one) for one in by_length if ready <= one[0] < ended][:STEPS_TOLD],
        "kinds": dict(sorted(told["kinds"].items(), key=lambda one: -one[1]["cpu_s"])[:KINDS_TOLD]),
    }


def _step(told: tuple[float, float, str]) -> dict[str, object]:
    return {"ms": round(1000 * told[1], 2), "of": told[2]}


@asynccontextmanager
async def _feeding(scale: Scale) -> AsyncIterator[None]:
    """Write to all types meanwhile."""
    feeding = asyncio.create_task(scale.feed.run(scale.types.places))
    try:
        yield
        scale.feed.halt()
        await asyncio.wait_for(feeding, READY_SECONDS)
    finally:
        feeding.cancel()
        await asyncio.wait([feeding])


@asynccontextmanager
async def _phase(scale: Scale, crew: Crew, name: str, only: str | None = None) -> AsyncIterator[None]:
    """Measure what happens meanwhile; response times of all queues, or of one class only."""
    brokers = [psutil.Process(pid) for pid in (scale.stack.rabbitmq_pid, scale.stack.kafka_pid) if pid is not None]
    watched = [*brokers, psutil.Process()]
    before, woken = [crew.cpu_seconds(), *map(cpu, watched)], crew.switches()
    began = time.monotonic()
    yield
    ended = time.monotonic()
    after, woken = [crew.cpu_seconds(), *map(cpu, watched)], crew.switches() - woken
    memory = crew.rss() / 1e6
    await asyncio.sleep(STRAGGLING_SECONDS)
    crew.check()
    took = ended - began
    own, rabbitmq, kafka, generator = ((now - then) / took for now, then in zip(after, before, strict=True))
    arrivals = [one for key, sink in scale.sinks.items() if key == (only or key) for one in sink.arrivals]
    times = [
        sorted(1000 * (end - due) for due, end in some if began <= due < ended)
        for some in (arrivals, scale.feed.answers)
    ]
    phase = Phase(
        name, took, own, rabbitmq, kafka, generator, memory, woken / took, len(times[0]), percentiles(times[0]),
        percentiles(times[1]),
    )  # fmt: skip
    say(f"{name}: {phase.cpu:.1%} of a core, {phase.response_ms} ms, {memory:.0f} MB")
    scale.phases.append(phase)


async def _owned(scale: Scale, partitions: int) -> bool:
    return await asyncio.to_thread(lambda: sum(map(admin_view.owned, scale.admins))) == partitions


async def _all_came(scale: Scale, sent: int) -> bool:
    return len(scale.seen.events) + scale.feed.refused >= sent
