"""What one history plays in: log, broker, replicas, their judge, and what the hands do to them."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from random import Random
from typing import Any

from proxy.bridge.broker import LaneState
from proxy.bridge.move import Direction
from proxy.model import Mode, Note, Partition
from proxy.operations.intervention import LONGEST_MS, Intervention
from proxy.operations.plan import LIFE_MS, PlannedTopic
from proxy.operations.plan import Plan as MovePlan
from proxy.simulation.memory_cluster import MemoryCluster
from tests.histories.board import WatchedBoard
from tests.histories.memory_broker import MemoryBroker
from tests.histories.plan import (
    DEAD_QUEUE,
    HEADER,
    LONGEST,
    MOST_HEADERS,
    POISON,
    TOPICS,
    Plan,
)
from tests.histories.replica import Replica
from tests.histories.watched import WatchedLog
from tests.histories.watched_kafka import WatchedKafkaLog
from tests.histories.witness import Witness

EPOCH = 1_700_000_000
"""Wall time, in seconds since 1970, at which every history begins."""
OLD = 3_600.0
"""Seconds that old events are old."""
OLD = 3_600.0
"""Seconds by which old events are older than they are."""
_GAPS = 0.03
"""Share of events before which, and behind which, offsets are left out."""


_UNUSUAL = (LaneState.BLOCKED, LaneState.LOST, LaneState.CONNECTING)


class World:
    """Made inside the virtual loop."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.slowness = 0.0
        """Seconds that every way over a broker's connection takes longer."""
        self.idle: set[str] = set()
        """Queues that nobody consumes."""
        self.is_calm = False
        """The faults are over."""
        self.replicas: list[Replica] = []
        """Those that run."""
        self.retired: list[Replica] = []
        self.notes: list[Note] = []
        """What people have pinned to the board, and replicas have answered."""
        self._pinned: dict[str, Intervention] = {}
        self._asked = 0
        self.chance = Random(f"{plan.seed} world")
        self._jumped = 0.0
        self._count = 0
        self.cluster = self.new_cluster()
        self.witness = Witness(plan, self.cluster, self.wall)
        self.broker: Any = self._make_broker()
        self.group = self.cluster.group(plan.settings.log.group)
        self.queues: dict[str, Any] = {}
        """Where events go, by name."""
        for route in plan.settings.routes.values():
            for name in route.queue_names:
                self.queues[name] = self.broker.declare_queue(name, bound=plan.queue_bound)
                self.queues[name].consumers = 1
        self.letters = self.broker.declare_queue(DEAD_QUEUE)
        for exchange in self.exchanges:
            self.broker.declare_exchange(exchange)
        self.bind_all()
        self.cluster.on_commit = self.witness.on_commit
        for topic in TOPICS:
            self.create(topic)

    def new_cluster(self) -> MemoryCluster:
        """Return the log of this world."""
        return MemoryCluster(self.chance, fetch_events=self.plan.fetch_events)

    def new_log(self, name: str) -> WatchedLog | WatchedKafkaLog:
        """Return a replica's view of it."""
        settings = self.plan.settings
        return WatchedLog(self.cluster, settings.log, settings.limits, name=name, witness=self.witness)

    def board_of(self, name: str) -> WatchedBoard:
        """Return a replica's view of the board."""
        return WatchedBoard(self.notes, lambda: self.cluster.answers(name))

    async def close(self) -> None:
        """End what the world itself does."""

    def start(self) -> None:
        """Start a replica."""
        self._count += 1
        name = f"replica-{self._count}"
        self.witness.note(f"{name} starts")
        self.replicas.append(self._make_replica(name))

    def retire(self, replica: Replica) -> None:
        """Note that a replica has ended."""
        if replica in self.replicas:
            self.replicas.remove(replica)
            self.retired.append(replica)

    def is_of_dead(self, task: asyncio.Task[Any]) -> bool:  # noqa: ARG002 -- here nothing outlives a crash
        """Tell whether a task is what is left of a process that was killed: how it is cleared away is no matter."""
        return False

    def is_awake(self, replica: Replica) -> bool:
        """Tell whether a replica could say something: its process runs, and is not to end."""
        return not (replica.is_stopping or replica.crashed)

    def state_of(self, replica: Replica | None) -> str:
        """Return what a replica is doing, in a word."""
        if replica is None or replica.app is None:
            return "starting" if replica is not None else "nobody"
        app, now = replica.app, asyncio.get_running_loop().time()
        states = {lane.state for lane in app.lanes.values()}
        flows = app.assignment.flows()
        windows = self.witness.windows
        full = any(lane.in_flight >= windows[self.plan.lanes.get(name, name)][0] for name, lane in app.lanes.items())
        doing = {
            **{state.value: state in states for state in _UNUSUAL},
            "joining": not flows,
            "dead-lettering": any(flow.parked for flow in flows),
            "held-back": any(flow.hindrance(now) in {"retry", "commit"} for flow in flows),
            "full": full,
            "publishing": any(flow.out for flow in flows),
        }
        return next((word for word, is_so in doing.items() if is_so), "idle")

    def wall(self) -> float:
        """Return the wall time."""
        return EPOCH + asyncio.get_running_loop().time() + self._jumped

    @property
    def exchanges(self) -> list[str]:
        """Those of the routes."""
        return list(dict.fromkeys(route.exchange for route in self.plan.settings.routes.values()))

    def bind_all(self) -> None:
        """Lead every exchange to the queues of its routes."""
        for route in self.plan.settings.routes.values():
            for queue in route.queues:
                self.broker.bind(route.exchange, queue, queue)

    def ask(self, mode: Mode, types: tuple[str, ...]) -> Intervention:
        """Let somebody ask for a mode, without an end: clocks jump here."""
        now_ms, self._asked = int(self.wall() * 1000), self._asked + 1
        one = Intervention(f"no-{self._asked}", mode, types, (), "hand", None, now_ms, now_ms + LONGEST_MS)
        self._pinned[one.id] = one
        self.notes.append(Note(one.key, one.as_json()))
        self.witness.on_asked({topic: self._wanted(topic) for topic in types})
        return one

    def take_back(self, one: Intervention) -> None:
        """Let somebody take back what was asked for."""
        del self._pinned[one.id]
        self.notes.append(Note(one.key, None))
        self.witness.on_asked({topic: self._wanted(topic) for topic in one.types})

    def move(self, direction: Direction, shares: Mapping[Partition, float]) -> None:
        """Let somebody ask for cursors to be moved: by so much of what lies ahead, or behind, in the log.

        As the command does it: what is committed is asked first.
        """
        by_topic: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
        for partition, share in shares.items():
            track, committed = self.cluster.tracks[partition], self.group.committed.get(partition)
            known = committed is not None and committed.topic_id == track.topic_id
            first = committed.offset if committed is not None and known else track.first
            if direction is Direction.SKIP:
                to = first + round(share * max(0, track.end - first))
            else:
                to = track.first + round(share * max(0, first - track.first))
            by_topic[partition.topic].append((partition.number, first, to))
        now_ms, self._asked = int(self.wall() * 1000), self._asked + 1
        topics = [
            PlannedTopic(topic, self.cluster.tracks[Partition(topic, 0)].topic_id, tuple(places))
            for topic, places in by_topic.items()
        ]
        plan = MovePlan(f"{self._asked}-ab", direction, "hand", None, now_ms, now_ms + LIFE_MS, tuple(topics))
        self.notes.append(Note(plan.key, plan.as_json()))
        self.witness.cursors.on_planned(plan)

    def _wanted(self, topic: str) -> Mode:
        return next((one.mode for one in reversed(self._pinned.values()) if topic in one.types), Mode.RUN)

    def consume(self, count: int) -> None:
        """Let the consumers take so many messages of each queue that has any."""
        for name, queue in self.queues.items():
            if name not in self.idle:
                queue.take(count)

    def queue_of(self, topic: str) -> str:
        """Return where the events of a topic are to go."""
        settings = self.plan.settings
        return settings.routes[settings.by_topic[topic].route].queue_names[0]

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
            if self.chance.random() < _GAPS:
                self.cluster.leave_gap(topic, partition.number, self.chance.randint(1, 3))
            is_old = partition.number == 0 and self.cluster.tracks[partition].end < self.plan.old * self.plan.events
            key, timestamp_ms = self._key(), int((self.wall() - (OLD if is_old else 0.0)) * 1000)
            self.cluster.produce(
                topic, partition.number, value=value, key=key, headers=headers, timestamp_ms=timestamp_ms
            )
            track = self.cluster.tracks[partition]
            self.witness.facts.produce(partition, track.topic_id, track.events[-1], fits=fits)
            if self.chance.random() < _GAPS:
                self.cluster.leave_gap(topic, partition.number, 1)

    def _key(self) -> bytes | None:
        return None

    def _make_broker(self) -> Any:
        chance, most = self.chance, self.plan.latency
        broker = MemoryBroker(chance, latency=lambda: chance.uniform(most / 10, most) + self.slowness)
        broker.refuses = lambda address, event: address.exchange in self.exchanges and (POISON, b"") in event.headers
        broker.on_write, broker.on_published = self.witness.on_write, self.witness.on_published
        return broker

    def _make_replica(self, name: str) -> Replica:
        return Replica(name, self.plan, self.new_log(name), self.broker, self.witness, self.wall, self.board_of(name))

    def _event(self, topic: str) -> tuple[bool, bytes, list[tuple[str, bytes | None]]]:
        kind = self.plan.settings.event_types[topic]
        value = b"%d." % len(self.witness.facts.all) + b"x" * self.chance.randrange(40)
        headers: list[tuple[str, bytes | None]] = (
            [] if kind.routing_key.constant else [(HEADER, self.queue_of(topic).encode())]
        )
        if kind.dead_letter is None or self.chance.random() >= self.plan.odd:
            return True, value, headers
        match self.chance.randrange(6):
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
