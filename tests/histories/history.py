"""One history: the world of a plan, its events, its replicas, the faults, the calm after them, the verdict."""

import asyncio
import gc
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from random import Random

from proxy.simulation import virtual_time
from proxy.simulation.memory_cluster import MemoryCluster
from tests.histories import checks
from tests.histories.memory_broker import MemoryBroker
from tests.histories.plan import (
    DEAD_QUEUE,
    EXCHANGE,
    HEADER,
    LONGEST,
    MOST_HEADERS,
    POISON,
    QUEUE,
    TOPICS,
    Plan,
)
from tests.histories.replica import Replica
from tests.histories.witness import Witness

EPOCH = 1_700_000_000
"""Wall time, in seconds since 1970, at which every history begins."""
CALM_DEADLINE = 60.0
"""Virtual seconds after the last fault within which everything must have gone its way."""
LOOK = 0.05
"""Virtual seconds between two looks at the bounds."""
MOST_TURNS = 1_000_000
"""Turns of the event loop; ten times what the longest histories take."""
_AFTERWARDS = 2.0
"""Virtual seconds from the last stop until nobody's timer may be left: the world's own have run out by then."""
_GAPS = 0.03
"""Share of events before which, and behind which, offsets are left out."""
_TAKES = 25
"""Messages that the consumer takes at every look."""


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a history."""

    violations: tuple[str, ...]
    steps: tuple[tuple[float, str], ...]
    digest: str
    """The same for the same seed, byte for byte."""
    events: int
    stored: int
    letters: int
    writes: int
    seconds: float
    """Virtual ones."""

    def without_steps(self) -> "Result":
        """Return it without what nobody reads of a history that went well."""
        return replace(self, steps=())


def live(plan: Plan) -> Result:
    """Run one history."""
    thresholds = gc.get_threshold()
    gc.set_threshold(100_000, 50, 100)
    history = History(plan)
    try:
        stops = any(fault.kind.startswith("stop_") for fault in plan.faults)
        loop = virtual_time.StoppableLoop if stops else virtual_time.VirtualTimeLoop  # the quicker one
        virtual_time.run(history.live(), partial(loop, MOST_TURNS))
    except (virtual_time.DeadlockError, virtual_time.EndlessError, ExceptionGroup) as error:
        history.failure = f"{type(error).__name__}: {error}"
    finally:
        gc.set_threshold(*thresholds)
    return history.result()


class History:
    """Made outside the virtual loop, lived inside."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.failure: str | None = None
        self.slowness = 0.0
        """Seconds that every way over a broker's connection takes longer."""
        self.idle = 0.0
        """Not 0 while nobody consumes."""
        self.is_calm = False
        """The faults are over."""
        self.replicas: list[Replica] = []
        """Those that run."""
        self.retired: list[Replica] = []
        self._chance = Random(f"{plan.seed} world")
        self._jumped = 0.0
        self._count = 0
        self._seconds = 0.0

    async def live(self) -> None:
        """Begin, suffer, recover, end, and judge."""
        from tests.histories.hands import Hands

        self._make_world()
        side = [asyncio.create_task(work) for work in (self._produce_all(), self._consume(), self._look())]
        producing = side[0]
        for _ in range(self.plan.replicas):
            self.start()
        hands = Hands(self)
        async with asyncio.TaskGroup() as tasks:
            for fault in self.plan.faults:
                tasks.create_task(hands.strike(fault))
        self.is_calm = True
        self.witness.note("calm")
        await producing
        await self._settle()
        for replica in list(self.replicas):
            await replica.stop()
            self.retire(replica)
        for task in side:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await asyncio.sleep(_AFTERWARDS)
        checks.judge_end(self)
        self._seconds = asyncio.get_running_loop().time()

    def result(self) -> Result:
        """Return what came of it."""
        witness = self.witness
        violations = [*witness.violations, *([self.failure] if self.failure else [])]
        facts = witness.facts.all
        return Result(
            tuple(violations),
            tuple(witness.steps),
            witness.digest,
            len(facts),
            sum(fact.stored for fact in facts),
            sum(fact.letters for fact in facts),
            sum(told.written.total() for told in witness.told.values()),
            self._seconds,
        )

    # -- what the hands use -------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start a replica."""
        self._count += 1
        name = f"replica-{self._count}"
        self.witness.note(f"{name} starts")
        self.replicas.append(Replica(name, self.plan, self.cluster, self.broker, self.witness, self.wall))

    def retire(self, replica: Replica) -> None:
        """Note that a replica has ended."""
        if replica in self.replicas:
            self.replicas.remove(replica)
            self.retired.append(replica)

    def wall(self) -> float:
        """Return the wall time."""
        return EPOCH + asyncio.get_running_loop().time() + self._jumped

    def jump(self, seconds: float) -> None:
        """Let the wall clock jump."""
        before = self.wall()
        self._jumped += seconds
        self.witness.newest_wall = max(self.witness.newest_wall, before, self.wall())

    def create(self, topic: str) -> None:
        """Make a topic."""
        self.cluster.create_topic(topic, self.plan.partitions)

    def produce(self, topic: str) -> None:
        """Append one event to each partition of a topic; sometimes offsets are used up by what is no event."""
        for partition in self.cluster.partitions({topic}):
            fits, value, headers = self._event(topic)
            if self._chance.random() < _GAPS:
                self.cluster.leave_gap(topic, partition.number, self._chance.randint(1, 3))
            self.cluster.produce(
                topic, partition.number, value=value, headers=headers, timestamp_ms=int(self.wall() * 1000)
            )
            track = self.cluster.tracks[partition]
            self.witness.facts.produce(partition, track.topic_id, track.events[-1], fits=fits)
            if self._chance.random() < _GAPS:
                self.cluster.leave_gap(topic, partition.number, 1)

    def _event(self, topic: str) -> tuple[bool, bytes, list[tuple[str, bytes | None]]]:
        kind = self.plan.settings.event_types[topic]
        value = b"%d." % len(self.witness.facts.all) + b"x" * self._chance.randrange(40)
        headers: list[tuple[str, bytes | None]] = [] if kind.routing_key.constant else [(HEADER, QUEUE.encode())]
        if kind.dead_letter is None or self._chance.random() >= self.plan.odd:
            return True, value, headers
        match self._chance.randrange(6):
            case 0:
                value += b"x" * LONGEST
            case 1:
                headers += [("x", b"")] * (MOST_HEADERS + 1)
            case 2 if headers:
                headers = [(HEADER, b"nowhere")]
            case 3 if headers:
                headers = []
            case 4 | 5:
                headers.append((POISON, b""))
            case _:
                return True, value, headers
        return False, value, headers

    # -- the world ----------------------------------------------------------------------------------------------------

    def _make_world(self) -> None:
        chance = self._chance
        self.cluster = MemoryCluster(chance, fetch_events=self.plan.fetch_events)
        most = self.plan.latency
        self.broker = MemoryBroker(chance, latency=lambda: chance.uniform(most / 10, most) + self.slowness)
        self.witness = Witness(self.plan.settings, self.cluster, self.wall)
        self.group = self.cluster.group(self.plan.settings.log.group)
        self.queue = self.broker.declare_queue(QUEUE, bound=self.plan.queue_bound)
        self.queue.consumers = 1
        self.letters = self.broker.declare_queue(DEAD_QUEUE)
        self.broker.declare_exchange(EXCHANGE)
        self.broker.bind(EXCHANGE, QUEUE, QUEUE)
        self.broker.refuses = lambda address, event: address.exchange == EXCHANGE and (POISON, b"") in event.headers
        self.broker.on_write, self.broker.on_published = self.witness.on_write, self.witness.on_published
        self.cluster.on_commit = self.witness.on_commit
        for topic in TOPICS:
            self.create(topic)

    async def _produce_all(self) -> None:
        for _ in range(self.plan.events):
            for topic in TOPICS:
                self.produce(topic)
            await asyncio.sleep(self._chance.uniform(0, self.plan.pace))

    async def _consume(self) -> None:
        while True:
            await asyncio.sleep(LOOK)
            if not self.idle:
                self.queue.take(_TAKES)

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK)
            for replica in self.replicas:
                checks.judge_bounds(self, replica)

    async def _settle(self) -> None:
        """Wait until everything has gone its way; restart whoever stopped a type, as its message asks for."""
        loop = asyncio.get_running_loop()
        end = loop.time() + CALM_DEADLINE
        if not self.replicas:
            self.start()
        while (left := checks.unfinished(self)) is not None:
            for replica in [one for one in self.replicas if checks.has_stopped_type(one)]:
                await replica.stop()
                self.retire(replica)
                self.start()
            if loop.time() > end:
                self.witness.accuse(f"{left} {CALM_DEADLINE:g} s after the last fault")
                return
            await asyncio.sleep(LOOK)
        checks.judge_rest(self)
        for replica in self.replicas:
            replica.was_at_rest = True
