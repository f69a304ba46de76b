"""What the faults of a history with Nakadi do."""

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from typing import cast

from proxy.bridge.move import Direction
from proxy.simulation.virtual_time import PROCESS
from tests.histories.nakadi.judge import Asked
from tests.histories.nakadi.people import move
from tests.histories.nakadi.plan import MISCHIEF
from tests.histories.nakadi.world import Replica, World
from tests.histories.plan import Fault
from tests.nakadi.mischief import Kind
from tests.wire.nakadi import AT
from tests.wire.network import Fault as NetworkFault

RABBIT = "rabbit-*"
_MOST_BYTES = 4_000
_LONG_HOLD = 40.0
"""Seconds for which a queue confirms nothing, longer than any commit timeout here."""
_REQUESTS = frozenset({"slow", "refused", "unheard", "unanswered", "conflict"})
_REQUEST_RATE, _LINE_RATE = 0.6, 0.2


class Actions:
    """Does to a world what a plan says."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._network = world.network

    async def strike(self, fault: Fault) -> None:
        """Wait for its time, and do it."""
        await asyncio.sleep(fault.at)
        self._world.judge.note(f"{fault}")
        if fault.kind in MISCHIEF:
            await self._misbehave(fault)
        else:
            act: Callable[[Fault], Awaitable[None]] = getattr(self, f"_{fault.kind}")
            await act(fault)
        self._world.judge.interruptions.update(list(self._world.nakadi.bus.event_types))
        self._world.judge.note(f"{fault.kind} is over")

    async def _misbehave(self, fault: Fault) -> None:
        rates, kind = self._world.nakadi.mischief.rates, cast("Kind", fault.kind)
        rates[kind] = max(0.05, fault.amount) * (_REQUEST_RATE if kind in _REQUESTS else _LINE_RATE)
        await asyncio.sleep(fault.seconds)
        rates.pop(kind, None)

    async def _last(self, fault: Fault, struck: NetworkFault, seconds: float = 0.0) -> None:
        await asyncio.sleep(seconds or fault.seconds)
        self._network.end(struck)

    def _one(self, fault: Fault) -> Replica | None:
        awake = [one for one in self._world.replicas if not one.is_stopping]
        return awake[fault.who % len(awake)] if awake else None

    # -- Nakadi -------------------------------------------------------------------------------------------------------

    async def _nakadi_silent(self, fault: Fault) -> None:
        one = self._one(fault) if fault.who % 2 else None
        await self._last(fault, self._network.silence(AT, one.name if one is not None else ""))

    async def _nakadi_deaf(self, fault: Fault) -> None:
        inward = fault.amount < 0.5
        await self._last(fault, self._network.silence(AT, inward=inward, outward=not inward))

    async def _nakadi_reset(self, _: Fault) -> None:
        self._network.reset(AT)

    async def _nakadi_slow(self, fault: Fault) -> None:
        await self._last(fault, self._network.slow(AT, delay=0.3 * fault.amount, rate=300 + 20_000 * fault.amount))

    async def _nakadi_cut(self, fault: Fault) -> None:
        count = round(_MOST_BYTES * fault.amount**3)
        inward, outward = (count, None) if fault.who % 2 else (None, count)
        await self._last(fault, self._network.cut(AT, inward=inward, outward=outward))

    async def _nakadi_down(self, fault: Fault) -> None:
        await self._world.nakadi.close()
        await asyncio.sleep(fault.seconds)
        await self._world.nakadi.start()

    async def _timeline(self, fault: Fault) -> None:
        for place, each in enumerate(self._world.nakadi.bus.event_types.values()):
            if fault.who >> place & 1 or not fault.who:
                for log in each.partitions:
                    log.switch_timeline()

    async def _leave_gap(self, fault: Fault) -> None:
        for each in self._world.nakadi.bus.event_types.values():
            each.partitions[0].leave_gap(1 + fault.who)

    async def _more_partitions(self, fault: Fault) -> None:
        bus = self._world.nakadi.bus
        name = list(bus.event_types)[fault.who % len(bus.event_types)]
        bus.repartition(name, len(bus.event_types[name].partitions) + 1)
        await self._end_streams(fault)  # only a new balance gives them to somebody

    async def _end_streams(self, _: Fault) -> None:
        for found in self._world.nakadi.bus.subscriptions.values():
            for stream in list(found.streams.values()):
                found.close(stream, "Ended by a fault", self._world.nakadi.wall())

    async def _move_to_committed(self, fault: Fault) -> None:
        """Move cursors to where they are: all streams end, and nobody may open one meanwhile."""
        for place, found in enumerate(self._world.nakadi.bus.subscriptions.values()):
            if fault.who % 2 or place == fault.who // 2:
                found.advance(self._world.nakadi.wall())
                if found.reset is None and found.parts:
                    first = next(iter(found.parts))
                    self._world.judge.ask(first, Asked(is_skip=False, first=0, to=found.parts[first].committed))
                    found.move({first: found.parts[first].committed}, self._world.nakadi.wall())

    # -- people -------------------------------------------------------------------------------------------------------

    async def _skip(self, fault: Fault) -> None:
        await self._move(fault, Direction.SKIP)

    async def _rewind(self, fault: Fault) -> None:
        await self._move(fault, Direction.REWIND)

    async def _move(self, fault: Fault, direction: Direction) -> None:
        """Do as the command does, in a process of its own."""
        context = copy_context()
        context.run(PROCESS.set, "somebody")
        await self._world.loop.create_task(move(self._world, fault, direction), context=context)

    # -- replicas -----------------------------------------------------------------------------------------------------

    async def _crash(self, fault: Fault) -> None:
        one = self._one(fault)
        if one is not None:
            await one.crash()
            await asyncio.sleep(fault.seconds)
            self._world.start()

    async def _leave(self, fault: Fault) -> None:
        one = self._one(fault)
        if one is not None:
            await one.stop()
            await asyncio.sleep(fault.seconds)
            self._world.start()

    async def _join(self, _: Fault) -> None:
        self._world.start()

    async def _visit(self, fault: Fault) -> None:
        one = self._world.start()
        await asyncio.sleep(fault.seconds)
        if one in self._world.replicas and not one.is_stopping:
            await one.stop()

    async def _unsubscribe(self, fault: Fault) -> None:
        found = list(self._world.nakadi.bus.subscriptions.values())
        if found:
            gone = found[fault.who % len(found)]
            self._world.judge.unsubscribed.update(gone.event_types)
            self._world.nakadi.bus.unsubscribe(gone.id, self._world.nakadi.wall())

    async def _stop_process(self, fault: Fault) -> None:
        one = self._one(fault)
        if one is not None and one.name not in self._world.loop.stopped:
            self._world.loop.stop_process(one.name)
            await asyncio.sleep(fault.seconds)
            self._world.loop.resume_process(one.name)

    # -- RabbitMQ -----------------------------------------------------------------------------------------------------

    async def _nack(self, fault: Fault) -> None:
        self._world.broker.nacks = max(0.1, fault.amount)
        await asyncio.sleep(fault.seconds)
        self._world.broker.nacks = 0.0

    async def _reset(self, _: Fault) -> None:
        self._network.reset(RABBIT)

    async def _block(self, fault: Fault) -> None:
        self._world.broker.block()
        await asyncio.sleep(fault.seconds)
        self._world.broker.unblock()

    async def _silence(self, fault: Fault) -> None:
        await self._last(fault, self._network.silence(RABBIT))

    async def _lose_confirms(self, fault: Fault) -> None:
        self._world.broker.trouble.loses_confirms = max(0.1, fault.amount)
        await asyncio.sleep(fault.seconds)
        self._world.broker.trouble.loses_confirms = 0.0

    async def _stall_queue(self, fault: Fault) -> None:
        stalled, names = self._world.broker.trouble.stalled, list(self._world.queues)
        stalled.add(names[fault.who % len(names)])
        await asyncio.sleep(fault.seconds)
        stalled.clear()

    async def _hold_back(self, _: Fault) -> None:
        """Take nothing for longer than Nakadi waits for a commit."""
        self._world.broker.block()
        await asyncio.sleep(_LONG_HOLD)
        self._world.broker.unblock()

    async def _broker_down(self, fault: Fault) -> None:
        self._world.broker.stop()
        await asyncio.sleep(fault.seconds)
        self._world.broker.start()
