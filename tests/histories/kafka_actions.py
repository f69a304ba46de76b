"""The faults that only real bytes can show: what Kafka's brokers and the network between do wrong."""

import asyncio
from collections.abc import Callable
from random import Random

from tests.histories.fault_actions import FaultActions
from tests.histories.kafka_world import KAFKA, KafkaWorld
from tests.histories.plan import Fault
from tests.wire.kafka.cluster import NOBODY
from tests.wire.kafka.messages import Api
from tests.wire.kafka.mischief import ERRORS, Rule, Trick
from tests.wire.network import Fault as NetworkFault

_TAKEOVER_SECONDS = 0.3
"""After a broker's death others lead its partitions and keep its groups."""
_MOST_BYTES = 3_000
_COMMITS = frozenset({Api.OFFSET_COMMIT})


class KafkaActions(FaultActions):
    """Works on a wire world."""

    def __init__(self, world: KafkaWorld) -> None:
        super().__init__(world)
        self._wire = world
        self._kafka = world.cluster

    # -- brokers ------------------------------------------------------------------------------------------------------

    async def _play(self, fault: Fault, trick: Trick, apis: frozenset[Api] | None, share: float) -> None:
        """Let brokers play a trick, all of them or one."""
        chance = Random(f"{fault}")
        nodes = None if fault.who % 2 else frozenset({self._node(fault)})
        if apis is None and chance.random() < 0.7:
            apis = frozenset(chance.sample(list(ERRORS), chance.randint(1, 3)))
        mischief = self._kafka.mischief
        rule = mischief.begin(Rule(trick, share, apis, nodes, seconds=4 * fault.amount))
        await asyncio.sleep(fault.seconds)
        mischief.end(rule)
        self._world.witness.note(f"{fault.kind} is over")

    async def _errors(self, fault: Fault) -> None:
        await self._play(fault, Trick.ERROR, None, max(0.05, fault.amount))

    async def _refusals(self, fault: Fault) -> None:
        await self._play(fault, Trick.REFUSED, None, max(0.1, fault.amount))

    async def _parts(self, fault: Fault) -> None:
        await self._play(fault, Trick.PART, frozenset({Api.FETCH, Api.METADATA}), max(0.2, fault.amount))

    async def _late_answers(self, fault: Fault) -> None:
        if fault.who % 3:
            await self._play(fault, Trick.LATE, None, 0.3)
        else:  # a quota: fetches alone are held back by it
            await self._play(fault, Trick.THROTTLE, frozenset({Api.FETCH}), 0.3)

    async def _mute(self, fault: Fault) -> None:
        await self._play(fault, Trick.MUTE, None, 0.3 * fault.amount)

    async def _hang_up(self, fault: Fault) -> None:
        await self._play(fault, Trick.HANG_UP, None, 0.5 * fault.amount)

    async def _drop(self, fault: Fault) -> None:
        await self._play(fault, Trick.DROP, None, 0.5 * fault.amount)

    async def _spoil(self, fault: Fault) -> None:
        """Let records be unreadable for a while; who gave a partition up for that takes it again in a rebalance."""
        await self._play(fault, Trick.SPOIL, None, max(0.1, fault.amount))
        self._wire.coordinated.rebalance()

    async def _refuse_commits(self, fault: Fault) -> None:
        await self._play(fault, Trick.REFUSED, _COMMITS, max(0.3, fault.amount))

    async def _lose_answers(self, fault: Fault) -> None:
        await self._play(fault, Trick.DROP if fault.who % 3 else Trick.MUTE, _COMMITS, max(0.3, fault.amount))

    async def _move_leaders(self, fault: Fault) -> None:
        """Give some partitions other leaders, after a moment in which they have none."""
        cluster, chance = self._kafka, Random(f"{fault}")
        moved = [at for at in sorted(cluster.tracks) if chance.random() < max(0.3, fault.amount)]
        if fault.who % 2:
            for at in moved:
                cluster.move_leader(at, NOBODY)
            await asyncio.sleep(fault.seconds)
        for at in moved:
            if cluster.exists(at):
                cluster.move_leader(at, chance.choice(sorted(cluster.addresses)))

    async def _move_coordinator(self, fault: Fault) -> None:
        await self._coordinate_at(self._node(fault), fault.seconds)

    async def _coordinate_at(self, node: int, seconds: float) -> None:
        group = self._wire.coordinated
        group.coordinator, group.is_loading = node, True
        await asyncio.sleep(seconds)
        group.is_loading = False
        group.renew_sessions()

    async def _stale_leaders(self, fault: Fault) -> None:
        """Let one broker go on telling of leaders that are none any more."""
        node, cluster = self._node(fault), self._kafka
        cluster.freeze_belief(node)
        await self._move_leaders(fault)
        await asyncio.sleep(fault.seconds)
        cluster.beliefs.pop(node, None)

    async def _wrong_address(self, fault: Fault) -> None:
        """Let brokers tell of an address of one of them at which nobody listens, or nobody answers."""
        node, cluster = self._node(fault), self._kafka
        cluster.advertised[node] = ("nowhere", 1)
        await self._strike(fault, lambda: self._wire.network.silence("nowhere:1") if fault.who % 2 else None)
        cluster.advertised[node] = cluster.addresses[node]

    # -- the network --------------------------------------------------------------------------------------------------

    def _node(self, fault: Fault) -> int:
        numbers = sorted(self._kafka.addresses)
        return numbers[fault.who // 2 % len(numbers)]

    async def _strike(self, fault: Fault, begin: Callable[[], NetworkFault | None]) -> None:
        struck = begin()
        await asyncio.sleep(fault.seconds)
        if struck is not None:
            self._wire.network.end(struck)
        self._world.witness.note(f"{fault.kind} is over")

    async def _silent_node(self, fault: Fault) -> None:
        await self._strike(fault, lambda: self._wire.network.silence(self._kafka.at(self._node(fault))))

    async def _half_open_node(self, fault: Fault) -> None:
        """Let requests reach a broker, and no answer come back."""
        at = self._kafka.at(self._node(fault))
        await self._strike(fault, lambda: self._wire.network.silence(at, inward=False))

    async def _slow_node(self, fault: Fault) -> None:
        at = self._kafka.at(self._node(fault))
        await self._strike(
            fault, lambda: self._wire.network.slow(at, delay=fault.amount, rate=200 + 10_000 * fault.amount)
        )

    async def _stall_log(self, fault: Fault) -> None:
        await self._strike(fault, lambda: self._wire.network.slow(KAFKA, delay=0.4 * fault.amount))

    async def _cut_bytes(self, fault: Fault) -> None:
        """Break a connection in the middle of a request or an answer."""
        at, count = self._kafka.at(self._node(fault)), round(_MOST_BYTES * fault.amount**3)
        inward, outward = (count, None) if fault.who % 2 else (None, count)
        await self._strike(fault, lambda: self._wire.network.cut(at, inward=inward, outward=outward))

    async def _reset_node(self, fault: Fault) -> None:
        self._wire.network.reset(self._kafka.at(self._node(fault)))

    async def _dead_node(self, fault: Fault) -> None:
        """Let a broker die; others take over what it led, until it is back."""
        node, cluster, network = self._node(fault), self._kafka, self._wire.network
        others = [one for one in sorted(cluster.addresses) if one != node]
        refusing = network.refuse(cluster.at(node))
        (network.vanish if fault.who % 2 else network.reset)(cluster.at(node))
        if others:
            await asyncio.sleep(_TAKEOVER_SECONDS)
            for at in sorted(cluster.tracks):
                if cluster.place(at).leader == node:
                    cluster.move_leader(at, others[at.number % len(others)])
            if self._wire.coordinated.coordinator == node:
                await self._coordinate_at(others[0], 0.1)
        await asyncio.sleep(fault.seconds)
        network.end(refusing)
        if not others:
            self._wire.coordinated.renew_sessions()
