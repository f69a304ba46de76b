"""Does to the scripted RabbitMQ of a wire history, and the network before it, what the faults of its plan say."""

import asyncio

from tests.histories.kafka_actions import KafkaActions
from tests.histories.plan import Fault
from tests.histories.wire_world import WireWorld
from tests.wire import network
from tests.wire.rabbit.cluster import Lie

RABBIT = "rabbit-*"
"""All addresses of the RabbitMQ cluster."""
_MOST_BYTES = 4_000
"""A connection is cut after so many bytes at most."""
SILENT_SECONDS = 7.0
"""For so long Erlang tries to reach a node."""
_SLOWEST = 0.3
_NARROWEST = 2_000.0
"""Bytes a second."""


class WireActions(KafkaActions):
    """See `FaultActions`."""

    def __init__(self, world: WireWorld) -> None:
        super().__init__(world)
        self._rabbit = world.broker

    def _host(self, fault: Fault) -> str:
        return self._rabbit.hosts[fault.who % len(self._rabbit.hosts)]

    def _process(self, fault: Fault) -> str:
        """Return one replica, or everybody."""
        replica = self._one(fault) if fault.who % 2 else None
        return replica.name if replica is not None else ""

    async def _for(self, fault: Fault, wrong: network.Fault) -> None:
        await asyncio.sleep(fault.seconds)
        self._wire.network.end(wrong)
        self._world.witness.note(f"{fault.kind} is over")

    async def _silence(self, fault: Fault) -> None:
        await self._for(fault, self._wire.network.silence(RABBIT, self._process(fault)))

    async def _node_silent(self, fault: Fault) -> None:
        await self._for(fault, self._wire.network.silence(self._host(fault)))

    async def _half_open(self, fault: Fault) -> None:
        inward = fault.amount < 0.5
        wrong = self._wire.network.silence(self._host(fault), self._process(fault), inward=inward, outward=not inward)
        await self._for(fault, wrong)

    async def _slow(self, fault: Fault) -> None:
        await self._for(fault, self._wire.network.slow(self._host(fault), delay=_SLOWEST * fault.amount))

    async def _narrow(self, fault: Fault) -> None:
        rate = _NARROWEST * (1 + 99 * fault.amount)
        await self._for(fault, self._wire.network.slow(self._host(fault), rate=rate))

    async def _cut_inward(self, fault: Fault) -> None:
        wrong = self._wire.network.cut(RABBIT, self._process(fault), inward=int(_MOST_BYTES * fault.amount**3))
        await self._for(fault, wrong)

    async def _cut_outward(self, fault: Fault) -> None:
        wrong = self._wire.network.cut(RABBIT, self._process(fault), outward=int(_MOST_BYTES * fault.amount**3))
        await self._for(fault, wrong)

    async def _node_down(self, fault: Fault) -> None:
        host = self._host(fault)
        self._rabbit.stop(host)
        await asyncio.sleep(fault.seconds)
        self._rabbit.start(host)

    async def _restart(self, fault: Fault) -> None:
        """Let everything end and begin again, without what nobody knows to be stored."""
        self._rabbit.trouble.loses_unconfirmed = True
        self._rabbit.stop()
        self._rabbit.trouble.loses_unconfirmed = False
        await asyncio.sleep(fault.seconds)
        self._rabbit.start()

    async def _power_loss(self, fault: Fault) -> None:
        self._wire.network.vanish(self._host(fault))

    async def _refuse_login(self, fault: Fault) -> None:
        rabbit = self._rabbit
        if fault.who % 2:
            rabbit.drop_connections()
        await self._last(
            fault,
            lambda: rabbit.passwords.update(guest="another"),
            lambda: rabbit.passwords.update(guest="guest"),
        )

    async def _lose_leader(self, fault: Fault, silent_seconds: float) -> None:
        """Let the node that leads the queues be gone until the end, and another lead them after a while."""
        await self._last(fault, lambda: self._rabbit.leaders.lose(silent_seconds), self._rabbit.leaders.elect)

    async def _leader_killed(self, fault: Fault) -> None:
        """... while connections come and go: only those that come just then will not find the next leader."""
        self._rabbit.drop_connections(self._process(fault))
        await self._lose_leader(fault, 0.0)

    async def _leader_silent(self, fault: Fault) -> None:
        self._rabbit.drop_connections(self._process(fault))
        await self._lose_leader(fault, SILENT_SECONDS)

    # -- one route ----------------------------------------------------------------------------------------------------

    async def _stall_queue(self, fault: Fault) -> None:
        """Let one queue confirm nothing for a while."""
        stalled, queues = self._rabbit.trouble.stalled, list(self._world.queues)
        await self._last(fault, lambda: stalled.add(queues[fault.who % len(queues)]), stalled.clear)

    async def _hold_lane(self, fault: Fault) -> None:
        """Read nothing from the connections of one lane, and tell nobody, as flow control does."""
        lanes = list(dict.fromkeys(self._world.plan.lanes.values()))
        name = f"tidegate {lanes[fault.who % len(lanes)]}"
        await self._last(fault, lambda: self._rabbit.hold(name), lambda: self._rabbit.hold(""))

    # -- the monitor --------------------------------------------------------------------------------------------------

    async def _lie(self, fault: Fault, lie: Lie) -> None:
        self._rabbit.begin_lie(lie)
        self._rabbit.trouble.lies = max(0.2, fault.amount)
        await asyncio.sleep(fault.seconds)
        self._rabbit.trouble.lie = None

    async def _depth_empty(self, fault: Fault) -> None:
        await self._lie(fault, Lie.EMPTY)

    async def _depth_stale(self, fault: Fault) -> None:
        await self._lie(fault, Lie.STALE)

    async def _depth_missing(self, fault: Fault) -> None:
        await self._lie(fault, Lie.MISSING)

    async def _depth_slow(self, fault: Fault) -> None:
        await self._set(fault, self._rabbit.trouble, "answer_seconds", 1.5 * fault.amount)
