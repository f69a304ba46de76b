"""The production bridge under virtual time: one seed is one reproducible history of faults; after each nothing is lost.

Two replicas of one group, the real lanes, flows and committers; the log and the broker are in memory. A sequence of
faults drawn from the seed, then calm; then every event must have arrived, in the order that its type promises.
"""

import asyncio
from collections import Counter
from contextlib import suppress
from random import Random

import pytest

from proxy.app import App
from proxy.settings import Cap, EventType, Limits, LogSettings, Policy, Route, RoutingKey, Settings
from proxy.settings.broker import BrokerSettings
from proxy.simulation import virtual_time
from proxy.simulation.memory_broker import MemoryBroker
from proxy.simulation.memory_cluster import MemoryCluster
from proxy.simulation.memory_log import MemoryLog

PARTITIONS = 2
EVENTS = 150
"""Of each partition."""
ORDERS = ("partition", "strict", "none")
CAP = 60
"""Events ahead of the committed position: the bound on duplicates per fault and partition."""
CALM_DEADLINE = 300.0
"""Virtual seconds after the last fault within which everything must have arrived."""


def settings(policy: Policy, cap: Cap | None) -> Settings:
    return Settings(
        log=LogSettings(hosts=["memory:1"], group="g", session_timeout=6, topic_check_interval=1),
        broker=BrokerSettings(hosts=["memory:1"]),
        routes={"r": Route(exchange="", queues=("q",), policy=policy, cap=cap, in_flight_events=40)},
        event_types={
            order: EventType(
                name=order, topic=order, priority="P2", route="r", routing_key=RoutingKey(constant="q"), order=order
            )
            for order in ORDERS
        },
        limits=Limits(
            uncommitted_events=CAP, inbox_events=50, confirm_deadline=5, connect_deadline=2, drain_deadline=3
        ),
    )


class History:
    """One seed's life of log, broker and replicas."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.cluster = MemoryCluster(self.chance, fetch_events=30)
        self.broker = MemoryBroker(self.chance)
        self.queue = self.broker.declare_queue("q", bound=30)
        self.delivered: list[tuple[str, int, int]] = []
        self.faults: list[str] = []
        self.policy = self.chance.choice(["static", "per_type", "class_budget"])
        self.cap = self.chance.choice([None, Cap(events=200), Cap(bytes=1_000, strict=True)])
        self._settings = settings(self.policy, self.cap)
        self._replicas: dict[str, tuple[App, MemoryLog, asyncio.Task[None]]] = {}
        self._count = 0
        for order in ORDERS:
            self.cluster.create_topic(order, PARTITIONS)

    async def live(self) -> None:
        """Produce, suffer, recover, deliver everything."""
        side = [asyncio.create_task(self._produce()), asyncio.create_task(self._consume())]
        await self._start()
        await self._start()
        for _ in range(self.chance.randint(3, 8)):
            await asyncio.sleep(self.chance.uniform(0.05, 3))
            await self._fault()
        if not self._replicas:
            await self._start()
        loop = asyncio.get_running_loop()
        end = loop.time() + CALM_DEADLINE
        while len(set(self.delivered)) < len(ORDERS) * PARTITIONS * EVENTS and loop.time() < end:  # noqa: ASYNC110 - told by nobody
            await asyncio.sleep(0.5)
        for name in list(self._replicas):
            await self._stop(name)
        for task in side:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _produce(self) -> None:
        for number in range(EVENTS):
            for order in ORDERS:
                for partition in range(PARTITIONS):
                    self.cluster.produce(order, partition, value=b"%d" % number)
                    if self.chance.random() < 0.02:
                        self.cluster.leave_gap(order, partition, 1)
            await asyncio.sleep(self.chance.uniform(0, 0.05))

    async def _consume(self) -> None:
        while True:
            await asyncio.sleep(0.01)
            for message in self.queue.take(5):
                self.delivered.append(
                    (message.partition.topic, message.partition.number, int(message.event.value or b""))
                )

    async def _fault(self) -> None:
        fault = self.chance.choice(
            [
                self._drop,
                self._block,
                self._broker_down,
                self._log_down,
                self._kill,
                self._leave,
                self._join,
                self._zombie,
            ]
        )
        self.faults.append(fault.__name__)
        await fault()

    async def _drop(self) -> None:
        self.broker.drop_connections()

    async def _block(self) -> None:
        self.broker.block()
        await asyncio.sleep(self.chance.uniform(0.1, 8))
        self.broker.unblock()

    async def _broker_down(self) -> None:
        self.broker.stop()
        await asyncio.sleep(self.chance.uniform(0.1, 8))
        self.broker.start()

    async def _log_down(self) -> None:
        self.cluster.go_down()
        await asyncio.sleep(self.chance.uniform(0.1, 12))
        self.cluster.come_up()

    async def _zombie(self) -> None:
        """Cut one replica off from the log for longer than its session, then let it return."""
        if self._replicas:
            name = self.chance.choice(sorted(self._replicas))
            self.cluster.cut_off(name)
            await asyncio.sleep(self.chance.uniform(1, 15))
            self.cluster.reconnect(name)

    async def _kill(self) -> None:
        """A crash severs the adapters first, so that no `finally` can commit."""
        if self._replicas:
            _, log, task = self._replicas.pop(self.chance.choice(sorted(self._replicas)))
            await log.sever()
            task.cancel()
            await asyncio.wait([task])
        await self._start()

    async def _leave(self) -> None:
        if self._replicas:
            await self._stop(self.chance.choice(sorted(self._replicas)))

    async def _join(self) -> None:
        await self._start()

    async def _start(self) -> None:
        self._count += 1
        name = f"replica-{self._count}"
        log = MemoryLog(self.cluster, self._settings.log, self._settings.limits, name=name)
        route, limits = self._settings.routes["r"], self._settings.limits
        loop = asyncio.get_running_loop()
        app = App(
            self._settings,
            log,
            {"r": self.broker.lane("r", route, limits)},
            self.broker.lane("dead", route, limits),
            self.broker.monitor(),
            write=lambda _: None,
            wall=lambda: 1_000_000 + loop.time(),
            instance=name,
        )
        self._replicas[name] = (app, log, asyncio.create_task(app.run(), name=name))

    async def _stop(self, name: str) -> None:
        app, _, task = self._replicas.pop(name)
        app.stop()
        await task


@pytest.mark.parametrize("seed", range(60))
def test_nothing_is_lost_and_order_holds_when_faults_come_as_the_seed_has_them(seed: int) -> None:
    async def live() -> History:
        history = History(seed)
        await history.live()
        return history

    history = virtual_time.run(live())
    told = f"seed {seed}, {history.policy}, {history.cap}: {', '.join(history.faults)}"
    for order in ORDERS:
        for partition in range(PARTITIONS):
            got = [number for topic, at, number in history.delivered if (topic, at) == (order, partition)]
            assert set(got) == set(range(EVENTS)), f"{told}: {order}-{partition} lost {set(range(EVENTS)) - set(got)}"
            # every fault may make the whole uncommitted stretch come again, once for each replica it moves to
            assert max(Counter(got).values()) <= 2 + 2 * len(history.faults), told
            assert len(got) - EVENTS <= CAP * (len(history.faults) + 1) * 2, told
            first_deliveries = list(dict.fromkeys(got))
            if order == "strict":
                assert first_deliveries == sorted(first_deliveries), f"{told}: strict-{partition} out of order"
