"""The production bridge under virtual time: hard caps under every policy, and nothing left behind by faults."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from random import Random

import pytest

from proxy.app import App
from proxy.settings import (
    BrokerSettings,
    Cap,
    ClassBudget,
    EventType,
    Limits,
    LogSettings,
    Policy,
    Route,
    RoutingKey,
    Settings,
)
from proxy.simulation import virtual_time
from proxy.simulation.memory_cluster import MemoryCluster
from proxy.simulation.memory_log import MemoryLog
from proxy.steering.gate import Gate
from tests.histories.memory_broker import MemoryBroker

SECONDS = 20
SIZES = {"P1": 100, "P2": 300, "P3": 4_000}
"""Bytes of an event of each class."""


def settings(route: Route, types: Mapping[str, str], tick: float) -> Settings:
    """Return the settings of one route, controlled every `tick` seconds; `types` names each event type's class."""
    return Settings(
        log=LogSettings(hosts=["memory:1"], group="g", session_timeout=6),
        broker=BrokerSettings(hosts=["memory:1"], depth_interval=tick),
        routes={"r": route},
        event_types={
            name: EventType(
                name=name, topic=name, priority=priority, route="r", routing_key=RoutingKey(constant="q"), order="none"
            )
            for name, priority in types.items()
        },
        class_budget=ClassBudget(tick=tick),
        limits=Limits(commit_interval=2, confirm_deadline=5, connect_deadline=2, drain_deadline=3),
    )


class Bridge:
    """A log, a broker whose consumers are quick, and replicas that may come and go."""

    def __init__(self, route: Route, types: Mapping[str, str], *, partitions: int = 1, tick: float = 0.1) -> None:
        self.settings = settings(route, types, tick)
        self._tick = tick
        self.cluster = MemoryCluster(Random(1), fetch_events=100)
        self.broker = MemoryBroker(Random(2))
        self.queue = self.broker.declare_queue("q")
        self.queue.consumers = 1
        self.arrived: list[tuple[float, str, int]] = []
        """When which type's event of how many bytes was found in the queue."""
        self.replicas: dict[str, tuple[App, asyncio.Task[None]]] = {}
        self.ended: list[App] = []
        self._count = 0
        for topic in types:
            self.cluster.create_topic(topic, partitions)

    def start(self) -> None:
        """Let one more replica join."""
        self._count += 1
        name, limits, loop = f"replica-{self._count}", self.settings.limits, asyncio.get_running_loop()
        app = App(
            self.settings,
            MemoryLog(self.cluster, self.settings.log, limits, name=name),
            {"r": self.broker.lane("r", self.settings.routes["r"], limits)},
            self.broker.lane("dead", self.settings.routes["r"], limits),
            self.broker.monitor(),
            write=lambda _: None,
            wall=lambda: 1_000_000 + loop.time(),
            instance=name,
        )
        self.replicas[name] = (app, asyncio.create_task(app.run()))

    async def stop(self, name: str) -> None:
        """Let a replica leave in order."""
        app, task = self.replicas.pop(name)
        app.stop()
        await task
        self.ended.append(app)

    async def consume(self, capacity: float) -> None:
        """Take so many a second for ever."""
        loop, owed = asyncio.get_running_loop(), 0.0
        while True:
            await asyncio.sleep(self._tick / 5)
            owed = min(owed + capacity * self._tick / 5, capacity)
            for message in self.queue.take(int(owed)):
                owed -= 1
                self.arrived.append((loop.time(), message.partition.topic, message.event.size))


async def capped(policy: Policy, cap: Cap, *, is_urgent_endless: bool) -> Bridge:
    """Let three types send for a while, P2 and P3 as much as they may, P1 20/s or as much as it may."""
    route = Route(exchange="", queues=("q",), policy=policy, cap=cap)
    bridge = Bridge(route, {priority: priority for priority in SIZES})
    for priority, size in SIZES.items():
        if priority != "P1" or is_urgent_endless:
            for _ in range(12_000):
                bridge.cluster.produce(priority, value=b"x" * size)
    bridge.start()
    consuming = asyncio.create_task(bridge.consume(100_000))
    for _ in range(SECONDS * 20):
        await asyncio.sleep(0.05)
        if not is_urgent_endless:
            bridge.cluster.produce("P1", value=b"x" * SIZES["P1"])
    consuming.cancel()
    await bridge.stop("replica-1")
    return bridge


def most_in_a_second(arrivals: list[tuple[float, float]]) -> float:
    """Return the most that came within any second."""
    most = within = start = 0
    for at, amount in arrivals:
        within += amount
        while arrivals[start][0] <= at - 1:
            within -= arrivals[start][1]
            start += 1
        most = max(most, within)
    return most


@pytest.mark.parametrize("policy", ["static", "per_type", "class_budget"])
@pytest.mark.parametrize(
    ("cap", "strict"),
    [
        pytest.param(Cap(events=150), True, id="strict-events"),
        pytest.param(Cap(bytes=60_000), False, id="bytes"),
        pytest.param(Cap(events=150), False, id="events", marks=pytest.mark.long),
        pytest.param(Cap(bytes=60_000), True, id="strict-bytes", marks=pytest.mark.long),
    ],
)
def test_a_route_reaches_its_cap_and_never_exceeds_it_whatever_its_policy(
    policy: Policy, cap: Cap, strict: bool
) -> None:
    cap = cap.model_copy(update={"strict": strict})
    bridge = virtual_time.run(capped(policy, cap, is_urgent_endless=strict))
    arrivals = [(at, 1 if cap.events else size) for at, _, size in bridge.arrived]
    largest = 1 if cap.events else max(SIZES.values())
    slack = 0.03 * cap.rate  # the queue is looked at every 20 ms
    assert most_in_a_second(arrivals) <= cap.rate * (1 + 2 * cap.burst) + largest + slack  # saved up and overdrawn
    late = sum(amount for at, amount in arrivals if at >= SECONDS / 2)
    assert late == pytest.approx(cap.rate * SECONDS / 2, rel=0.04)
    counted = Counter(topic for at, topic, _ in bridge.arrived if at >= SECONDS / 2)
    if not strict:
        assert counted["P1"] == pytest.approx(20 * SECONDS / 2, abs=3)
        assert counted["P2"] > 0
    else:
        # One request of a type waits at a time; what it leaves of a refill is set aside for the next class.
        assert counted["P1"] > 1.9 * counted["P2"]
        assert counted["P3"] == 0


def gates(app: App) -> list[Gate]:
    return [gate for _, gate, _ in app.steering.policies.gates]


def test_no_request_and_no_future_is_left_when_everything_is_delivered_after_ten_minutes_of_faults() -> None:
    chance = Random(7)
    classes = ["P1", "P2", "P3"] * 4
    types = {f"t{number}": priority for number, priority in enumerate(classes)}

    async def live() -> tuple[Bridge, Counter[str]]:
        route = Route(exchange="", queues=("q",), policy="class_budget", cap=Cap(events=80), in_flight_events=40)
        bridge, produced = Bridge(route, types, partitions=2, tick=0.5), Counter[str]()
        bridge.start()
        bridge.start()
        consuming = asyncio.create_task(bridge.consume(60))
        faults: list[Callable[[], object]] = [bridge.broker.drop_connections, bridge.broker.block, bridge.broker.stop]
        loop = asyncio.get_running_loop()
        while loop.time() < 600:
            for topic in chance.sample(sorted(types), 4):
                for _ in range(chance.randint(1, 150)):
                    bridge.cluster.produce(topic, chance.randrange(2), value=b"x" * chance.randint(1, 3_000))
                    produced[topic] += 1
            await asyncio.sleep(chance.uniform(1, 20))
            chance.choice(faults)()
            await asyncio.sleep(chance.uniform(0, 8))
            bridge.broker.unblock()
            bridge.broker.start()
            if chance.random() < 0.3:
                await bridge.stop(chance.choice(sorted(bridge.replicas)))
                bridge.start()
            await asyncio.sleep(chance.uniform(1, 40))
        while len(bridge.arrived) < produced.total():
            await asyncio.sleep(5)
            assert loop.time() < 2_400, "not everything is delivered"
        await asyncio.sleep(10)
        for app, _ in bridge.replicas.values():
            assert [gate._waiting for gate in gates(app)] == [{}, {}]
            assert [gate._divider.waiting(tier) for gate in gates(app) for tier in range(3)] == [0] * 6
            assert [gate._timer for gate in gates(app)] == [None, None]
        for name in list(bridge.replicas):
            await bridge.stop(name)
        consuming.cancel()
        with suppress(asyncio.CancelledError):
            await consuming
        return bridge, produced

    bridge, produced = virtual_time.run(live())
    arrived = Counter(topic for _, topic, _ in bridge.arrived)
    assert all(arrived[topic] >= produced[topic] for topic in types)
    assert len(bridge.ended) > 2
    for app in bridge.ended:
        assert [gate._waiting for gate in gates(app)] == [{}, {}]
        assert [gate._divider.waiting(tier) for gate in gates(app) for tier in range(3)] == [0] * 6
