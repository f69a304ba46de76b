"""Does to log, broker, host and replicas what the faults of a plan say."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from random import Random
from typing import Any

from proxy.bridge.move import Direction
from proxy.model import Mode, Partition
from proxy.settings import Limits, Route
from proxy.simulation.virtual_time import StoppableLoop
from tests.histories.plan import DEAD_QUEUE, LAWS, POLICIES, ROUTE, TOPICS, Fault
from tests.histories.replica import Replica
from tests.histories.world import World

SEAM_PATIENCE = 1.0
"""Seconds that a fault waits for what it should strike at; then it strikes anyway."""
_TAKES_BACK = 0.5
"""Share of interventions that are taken back."""
_MOVE_A_TOPIC = 3
"""Of six, whose moves are of a whole topic."""
_JUMP = 20.0
"""Seconds that the wall clock jumps at most, either way."""
_DISPUTED, _MOMENT = 0.5, 0.8
"""Share of the absences in which nodes only lose sight of each other, and for how many seconds at most."""


class FaultActions:
    """Works on one world. Faults of one kind may overlap: what lasts, lasts until the last of them ends."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._cluster = world.cluster
        self._broker = world.broker
        self._lasting: Counter[str] = Counter()
        self._struck: dict[Fault, str] = {}
        """In whose process each fault's seam was passed."""
        self._was_disputed = False

    async def strike(self, fault: Fault) -> None:
        """Wait for a fault's moment, do it, undo it."""
        loop = asyncio.get_running_loop()
        await asyncio.sleep(fault.at - loop.time())
        if fault.seam:
            self._struck[fault] = await self._world.witness.seam(fault.seam, fault.nth, SEAM_PATIENCE)
        for _ in range(fault.turns):
            await asyncio.sleep(0)
        self._world.witness.pairs.append(f"{self._world.state_of(self._one(fault))}/{fault.kind}")
        self._world.witness.note(f"fault {fault.kind} for {fault.seconds:.2f} s, {fault.amount:.2f}")
        strike: Callable[[Fault], Awaitable[None]] = getattr(self, f"_{fault.kind}")
        await strike(fault)

    async def _last(self, fault: Fault, begin: Callable[[], object], end: Callable[[], object]) -> None:
        self._lasting[fault.kind] += 1
        begin()
        await asyncio.sleep(fault.seconds)
        self._lasting[fault.kind] -= 1
        if not self._lasting[fault.kind]:
            end()
            self._world.witness.note(f"{fault.kind} is over")

    async def _set(self, fault: Fault, at: object, name: str, value: float) -> None:
        await self._last(fault, lambda: setattr(at, name, value), lambda: setattr(at, name, 0.0))

    # -- connections --------------------------------------------------------------------------------------------------

    async def _reset(self, _: Fault) -> None:
        self._broker.drop_connections()

    async def _reset_one(self, fault: Fault) -> None:
        replica = self._one(fault)
        if replica is not None:
            self._broker.drop_connections(replica.name)

    async def _block(self, fault: Fault) -> None:
        await self._last(fault, self._broker.block, self._broker.unblock)

    async def _silence(self, fault: Fault) -> None:
        await self._last(fault, self._broker.fall_silent, self._broker.speak)

    async def _slow(self, fault: Fault) -> None:
        await self._set(fault, self._world, "slowness", 0.3 * fault.amount)

    async def _lose_confirms(self, fault: Fault) -> None:
        await self._set(fault, self._broker.trouble, "loses_confirms", fault.amount)

    async def _late_confirms(self, fault: Fault) -> None:
        self._broker.trouble.late_seconds = fault.amount
        await self._set(fault, self._broker.trouble, "late_confirms", max(0.3, fault.amount))

    async def _broker_down(self, fault: Fault) -> None:
        await self._last(fault, self._broker.stop, self._broker.start)

    # -- answers ------------------------------------------------------------------------------------------------------

    async def _nack(self, fault: Fault) -> None:
        await self._set(fault, self._broker, "nacks", max(0.05, fault.amount))

    async def _unbind(self, fault: Fault) -> None:
        exchange = self._exchange(fault)
        await self._last(fault, lambda: self._broker.unbind(exchange), self._world.bind_all)

    async def _forbid(self, fault: Fault) -> None:
        forbidden, exchange = self._broker.forbidden, self._exchange(fault)
        await self._last(fault, lambda: forbidden.add(exchange), forbidden.clear)

    def _exchange(self, fault: Fault) -> str:
        exchanges = self._world.exchanges
        return exchanges[fault.who % len(exchanges)]

    async def _no_letters(self, fault: Fault) -> None:
        """Let the dead-letter queue be missing."""
        queues, queue = self._broker.queues, self._world.letters
        await self._last(fault, lambda: queues.pop(DEAD_QUEUE, None), lambda: queues.setdefault(DEAD_QUEUE, queue))

    async def _away(self, fault: Fault) -> None:
        """Let the node of a queue be down, that of the dead letters, too, in one of six.

        Or let the others not see it for a moment, and whoever is asked say that it is there: once, for two such moments
        together may last for longer than anybody insists.
        """
        away, queues = self._broker.away, [*self._world.queues, DEAD_QUEUE]
        queue = queues[-1 if fault.who == 0 else fault.who % (len(queues) - 1)]
        if fault.amount < _DISPUTED and not self._was_disputed and not away:
            self._was_disputed, fault = True, replace(fault, seconds=min(fault.seconds, _MOMENT))
            self._broker.disputed.add(queue)
        await self._last(fault, lambda: away.add(queue), away.clear)
        self._broker.disputed.discard(queue)

    async def _no_consumer(self, fault: Fault) -> None:
        idle, queues = self._world.idle, list(self._world.queues)
        await self._last(fault, lambda: idle.add(queues[fault.who % len(queues)]), idle.clear)

    # -- the log ------------------------------------------------------------------------------------------------------

    async def _rebalance(self, _: Fault) -> None:
        self._world.group.rebalance()

    async def _refuse_commits(self, fault: Fault) -> None:
        await self._set(fault, self._cluster, "refuses_commits", max(0.3, fault.amount))

    async def _leave_out_commits(self, fault: Fault) -> None:
        await self._set(fault, self._cluster, "leaves_out", max(0.3, fault.amount))

    async def _lose_answers(self, fault: Fault) -> None:
        await self._set(fault, self._cluster, "loses_answers", max(0.3, fault.amount))

    async def _fence(self, fault: Fault) -> None:
        """Remove a living replica from the group, as an operator can; it learns of that with its next word."""
        replica = self._one(fault)
        if replica is not None:
            self._world.witness.removed[replica.name] = asyncio.get_running_loop().time()
            self._world.group.leave(replica.name)

    async def _cut_off(self, fault: Fault) -> None:
        """Let nothing of a replica reach the log; for longer than its session if it lasts."""
        replica = self._one(fault)
        if replica is not None:
            self._cluster.cut_off(replica.name)
            await asyncio.sleep(fault.seconds)
            if not replica.crashed:
                self._cluster.reconnect(replica.name)

    async def _log_down(self, fault: Fault) -> None:
        await self._last(fault, self._cluster.go_down, self._cluster.come_up)

    async def _stall_log(self, fault: Fault) -> None:
        await self._set(fault, self._cluster, "slowness", 0.4 * fault.amount)

    # -- records ------------------------------------------------------------------------------------------------------

    def _place(self, fault: Fault) -> Partition | None:
        partitions = sorted(self._cluster.tracks)
        return partitions[fault.who % len(partitions)] if partitions else None

    async def _truncate(self, fault: Fault) -> None:
        place = self._place(fault)
        if place is not None:
            track = self._cluster.tracks[place]
            before = track.first + round(fault.amount * (track.end - track.first))
            self._cluster.truncate(*place, before)
            committed = self._world.group.committed.get(place)
            if committed is None or committed.topic_id != track.topic_id:  # nobody could know what there was before
                facts = self._world.witness.facts
                facts.forget(fact for fact in facts.tracks[place].facts if fact.offset < before)
            self._world.witness.note(f"{place} begins at {before} now")

    async def _compact(self, fault: Fault) -> None:
        place = self._place(fault)
        if place is not None:
            facts = self._world.witness.facts
            facts.forget(facts.of(event) for event in self._cluster.compact(*place, fault.amount))

    async def _recreate(self, fault: Fault) -> None:
        """Delete a topic, make it anew after a while."""
        topic = TOPICS[fault.who % len(TOPICS)]
        if not self._cluster.partitions({topic}):
            return
        self._cluster.delete_topic(topic)
        self._world.witness.on_deleted(topic)
        await asyncio.sleep(fault.seconds)
        self._world.create(topic)
        self._world.witness.note(f"{topic} is back")
        for _ in range(round(10 * fault.amount)):
            self._world.produce(topic)

    async def _refill(self, fault: Fault) -> None:
        """Delete a topic, make it anew at once, and fill it beyond every offset that was known of the old one."""
        topic = TOPICS[fault.who % len(TOPICS)]
        ends = {partition: self._cluster.tracks[partition].end for partition in self._cluster.partitions({topic})}
        if not ends:
            return
        self._cluster.recreate_topic(topic, len(ends))
        self._world.witness.on_deleted(topic)
        self._world.witness.note(f"{topic} is another")
        while any(self._cluster.tracks[partition].end <= end for partition, end in ends.items()):
            self._world.produce(topic)

    async def _refetch(self, fault: Fault) -> None:
        replica, place = self._one(fault), self._place(fault)
        if replica is not None and place is not None:
            replica.log.rewind(place, 1 + round(8 * fault.amount))

    async def _grow(self, fault: Fault) -> None:
        """Add a partition."""
        topic = TOPICS[fault.who % len(TOPICS)]
        count = len(self._cluster.partitions({topic}))
        if count:
            self._cluster.create_topic(topic, count + 1)
            for _ in range(5):
                self._world.produce(topic)

    # -- processes and host -------------------------------------------------------------------------------------------

    def _one(self, fault: Fault) -> Replica | None:
        replicas = [replica for replica in self._world.replicas if not replica.is_stopping]
        there = [replica for replica in replicas if fault.who % 2 and replica.name == self._struck.get(fault)]
        return (there or replicas)[fault.who % len(there or replicas)] if replicas else None

    async def _stop_process(self, fault: Fault) -> None:
        replica, loop = self._one(fault), asyncio.get_running_loop()
        assert isinstance(loop, StoppableLoop)
        if replica is not None and replica.name not in loop.stopped:
            self._world.witness.note(f"{replica.name} is stopped")
            loop.stop_process(replica.name)
            await asyncio.sleep(fault.seconds)
            loop.resume_process(replica.name)
            self._world.witness.note(f"{replica.name} goes on")

    async def _stop_joining(self, fault: Fault) -> None:
        await self._stop_process(fault)

    async def _crash(self, fault: Fault) -> None:
        replica = self._one(fault)
        if replica is not None:
            await replica.crash()
            await self._replace(replica, fault)

    async def _leave(self, fault: Fault) -> None:
        replica = self._one(fault)
        if replica is not None:
            await replica.stop()
            await self._replace(replica, fault)

    async def _replace(self, replica: Replica, fault: Fault) -> None:
        self._world.retire(replica)
        await asyncio.sleep(fault.seconds)
        self._world.start()

    async def _join(self, _: Fault) -> None:
        self._world.start()

    async def _pause(self, fault: Fault) -> None:
        await self._intervene(fault, Mode.PAUSE)

    async def _discard(self, fault: Fault) -> None:
        await self._intervene(fault, Mode.DISCARD)

    async def _intervene(self, fault: Fault, mode: Mode) -> None:
        """Have some event types go on otherwise for a while; then it is taken back, or they are told to run."""
        types = TOPICS if fault.who == 0 else (TOPICS[fault.who % len(TOPICS)],)
        asked = self._world.ask(mode, types)
        await asyncio.sleep(fault.seconds)
        if fault.amount < _TAKES_BACK:
            self._world.take_back(asked)
        else:
            self._world.ask(Mode.RUN, types)

    async def _skip(self, fault: Fault) -> None:
        self._move(fault, Direction.SKIP)

    async def _rewind(self, fault: Fault) -> None:
        self._move(fault, Direction.REWIND)

    def _move(self, fault: Fault, direction: Direction) -> None:
        """Have a partition's cursor moved, or those of its whole topic; how far is up to the fault."""
        place = self._place(fault)
        if place is not None:
            places = self._cluster.partitions({place.topic}) if fault.who < _MOVE_A_TOPIC else [place]
            self._world.move(direction, dict.fromkeys(places, fault.amount))

    async def _reload(self, fault: Fault) -> None:
        """Have one replica go by settings that say something else of a type, or of all."""
        replica = self._one(fault)
        if replica is not None:
            topics = TOPICS if fault.amount < _TAKES_BACK else (TOPICS[fault.who % len(TOPICS)],)
            replica.go_by({topic: {"content_type": f"text/{fault.at}"} for topic in topics})

    async def _drop_type(self, fault: Fault) -> None:
        """Have one replica go by settings without a type for a while."""
        replica, topic = self._one(fault), TOPICS[fault.who % len(TOPICS)]
        if replica is not None:
            replica.go_by({topic: None})
            await asyncio.sleep(fault.seconds)
            replica.go_by({topic: {}})

    async def _steer(self, fault: Fault) -> None:
        """Have one replica hold the route's events back otherwise for a while; never more is in flight than before."""
        replica = self._one(fault)
        if replica is None:
            return
        plan, chance = self._world.plan.settings, Random(f"{fault}")
        route = plan.routes[ROUTE]
        narrow = max(1, round(route.most_in_flight * chance.choice((1.0, 1.0, 0.3))))
        policy, law = chance.choice(POLICIES), chance.choice(LAWS)
        change: dict[str, Any] = {
            "policy": policy,
            "in_flight_events": narrow,
            "untether": chance.choice((True, False)),
            "shadow": route.shadow and policy != "static",
        }
        change |= {"law": law} if policy == "class_budget" else {}
        said = {key: getattr(route, key) for key in route.model_fields_set - {"law", "in_flight_bound"}}
        delay = chance.choice((None, 0.05, 2.0))
        classes = {name: one.model_copy(update={"queue_delay": delay}) for name, one in plan.classes.items()}
        replica.steer({"routes": {ROUTE: Route.model_validate(said | change)}, "classes": classes})
        await asyncio.sleep(fault.seconds)
        replica.steer({"routes": {ROUTE: route}, "classes": plan.classes})

    async def _reroute(self, fault: Fault) -> None:
        """Have one replica send a type over a route of its own for a while, which leads where the other one does.

        What a cap lets through is judged over all routes, so one that is capped is only steered.
        """
        replica, topic = self._one(fault), TOPICS[fault.who % len(TOPICS)]
        route, own = self._world.plan.settings.routes[ROUTE], f"of-{topic}"
        if route.cap is not None:
            await self._steer(fault)
        elif replica is not None:
            self._world.witness.windows.setdefault(own, self._world.witness.windows[ROUTE])
            replica.steer({"routes": {own: route}})
            replica.go_by({topic: {"route": own}})
            await asyncio.sleep(fault.seconds)
            replica.go_by({topic: {"route": ROUTE}}, without=own)

    async def _shadow(self, fault: Fault) -> None:
        """Have one replica only watch the route's policy for a while, or obey it where it was watched."""
        replica, route = self._one(fault), self._world.plan.settings.routes[ROUTE]
        if replica is None:
            return
        said = {key: getattr(route, key) for key in route.model_fields_set}
        decides = {"policy": "class_budget"} if route.policy == "static" else {}
        replica.steer({"routes": {ROUTE: Route.model_validate(said | decides | {"shadow": not route.shadow})}})
        await asyncio.sleep(fault.seconds)
        replica.steer({"routes": {ROUTE: route}})

    async def _tighten(self, fault: Fault) -> None:
        """Have one replica go by closer bounds of inboxes and of what is ahead of the commit, for a while."""
        replica, limits = self._one(fault), self._world.plan.settings.limits
        if replica is None:
            return
        closer = {
            "inbox_events": max(2, round(limits.inbox_events * fault.amount)),
            "uncommitted_events": max(1, round(limits.uncommitted_events * fault.amount)),
            "inbox_bytes": max(limits.event_bytes, round(limits.inbox_bytes * fault.amount)),
            "inboxes_bytes": max(limits.inbox_bytes, round(limits.inboxes_bytes * fault.amount)),
        }
        said = {key: getattr(limits, key) for key in limits.model_fields_set}
        replica.bound(Limits.model_validate(said | closer))
        await asyncio.sleep(fault.seconds)
        replica.bound(limits)

    async def _jump_clock(self, fault: Fault) -> None:
        self._world.jump((fault.amount - 0.5) * 2 * _JUMP)

    async def _disk_full(self, fault: Fault) -> None:
        replica = self._one(fault)
        if replica is not None:
            replica.metrics.disk.is_full = True
            await asyncio.sleep(fault.seconds)
            replica.metrics.disk.is_full = replica.crashed
