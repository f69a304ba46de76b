"""What must hold of a replica at every look, of all when calm has returned, and of a history when it has ended."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from proxy.app import App
from proxy.bridge.budget import OBJECTS
from proxy.bridge.listener import Listener
from proxy.kafka_log.slices import SLICE_EVENTS
from proxy.model import Outcome, Partition
from proxy.simulation.virtual_time import StoppableLoop, VirtualTimeLoop
from proxy.steering.gate import Gate
from tests.histories.facts import Fact
from tests.histories.plan import ROUTE
from tests.histories.replica import Replica
from tests.histories.world import World


def _gates(replica: Replica) -> list[Gate]:
    return [] if replica.app is None else [gate for _, gate, _ in replica.app.steering.policies.gates]


def has_stopped_type(replica: Replica) -> bool:
    """Tell whether one of its event types waits for an operator."""
    return (
        replica.app is not None
        and not replica.is_stopping
        and any(one.is_stopped for one in replica.app.assignment.listeners.values())
    )


# -- at every look ----------------------------------------------------------------------------------------------------


def judge_bounds(world: World, replica: Replica) -> None:
    """Accuse what is beyond its bound."""
    if replica.app is None or replica.crashed:
        return
    for wrong in _beyond(world, replica):
        world.witness.accuse(f"{replica.name}: {wrong}")


def _held(listener: Listener) -> int:
    """Return how many bytes of memory the budget must count of one event type."""
    if listener.event_type.max_age is not None:
        return listener.inbox.held  # what expired is counted, too, until the lane is through with the rest
    ways, inbox = listener._ways, listener.inbox
    batches = [batch for way in (ways.live, ways.old) if way is not None for batch in way.batches]
    with_lane = sum(OBJECTS + event.size for batch in batches for event in batch.events)
    return inbox.bytes + OBJECTS * inbox.events + with_lane


def _beyond(world: World, replica: Replica) -> Iterator[str]:
    assert replica.app is not None
    plan, app = world.plan, replica.app
    limits, routes = plan.settings.limits, plan.settings.routes
    listeners = app.assignment.listeners
    for listener in listeners.values():
        inbox = listener.inbox
        # What failed comes back to the inbox, so that what is in flight and what waits for it add to it.
        fetched = max(1, len(inbox.flows)) * plan.fetch_events if plan.wire is None else SLICE_EVENTS
        route = routes.get(listener.event_type.route, routes[ROUTE])
        bound = limits.inbox_events - 1 + fetched + 2 * route.most_in_flight
        waiting = sum(flow.waiting for flow in inbox.flows.values())
        if waiting > bound:
            yield f"{waiting} events wait in the inbox of {listener.event_type.name}, at most {bound} may"
    held = sum(_held(one) for one in listeners.values())
    if app.budget.used != held:
        yield f"the budget counts {app.budget.used} bytes, {held} are held"
    for name, lane in app.lanes.items():
        if not 0 <= lane.in_flight <= world.witness.windows[plan.lanes.get(name, name)][0]:
            yield f"{lane.in_flight} events are in flight on {name}"
    loop = asyncio.get_running_loop()  # whoever is stopped hears of the shadow when it goes on
    is_stopped = isinstance(loop, StoppableLoop) and replica.name in loop.stopped
    yield from (
        f"{one.event_type.name} waits for a rate although its route is in shadow"
        for one in listeners.values()
        if not is_stopped and _is_watched(app, one) and one.stage == "rate"
    )
    for gate in _gates(replica):
        if gate.requests > 3 * len(listeners):  # of what is live, of what is old, of dead letters
            yield f"{gate.requests} requests wait for tokens of {len(listeners)} event types"
        if gate.requests != gate.callers:
            yield f"{gate.requests} requests wait for tokens, {gate.callers} callers do"
    if replica.metrics.waiting > plan.settings.metric_log.buffer_records:
        yield f"{replica.metrics.waiting} metric records wait"


def _is_watched(app: App, listener: Listener) -> bool:
    """Return whether nothing may hold a type's events back, but for the bounds."""
    route = app.in_force.settings.routes.get(listener.event_type.route)
    return route is not None and route.shadow and route.cap is None and listener.stance.cap is None


# -- when calm has returned -------------------------------------------------------------------------------------------


def unfinished(world: World) -> str | None:
    """Return what has not gone its way yet; None if all has."""
    for partition, track in world.cluster.tracks.items():
        left = world.witness.facts.unsettled(partition, track.first)
        if left is not None:
            return f"{left} is not delivered"
    for partition, track in world.cluster.tracks.items():
        committed = _committed(world, partition)
        if track.offsets and committed <= track.offsets[-1]:
            return f"{partition} is committed up to {committed} only, there is {track.offsets[-1]}"
    for partition, track in world.cluster.tracks.items():
        if (move := world.witness.cursors.left(track.topic_id, partition)) is not None:
            return f"{partition} does not make move {move}"
    return next((busy for replica in world.replicas if (busy := _busy(replica))), None)


def _committed(world: World, partition: Partition) -> int:
    """Return how far the group has come in the topic that there is now."""
    track, committed = world.cluster.tracks[partition], world.group.committed.get(partition)
    return committed.offset if committed is not None and committed.topic_id == track.topic_id else track.first


def _busy(replica: Replica) -> str | None:
    app = replica.app
    if app is None:
        return f"{replica.name} has not begun"
    if any(gate.callers for gate in _gates(replica)):
        return f"{replica.name} waits for tokens"
    # Who has no partitions has no lease, and keeps what it was granted until it has some.
    is_held = app.lease.left(asyncio.get_running_loop().time()) > 0
    wrong = next(replica.observer.tokens.wrong(app), None) if is_held else None
    if wrong is not None:
        return f"{replica.name}: {wrong}"
    for listener in app.assignment.listeners.values():
        if listener.dead_letters.waiting[0]:
            return f"{listener.event_type.name} has dead letters to send"
        for flow in listener.inbox.flows.values():
            if flow.watermark.received > flow.watermark.committed or flow.out or flow.letters_out:
                return f"{flow.partition} has unresolved events"
    # Flows that are gone leave what they sent to the lane; a lost confirm keeps it open until its deadline.
    return next(
        (f"{replica.name} has events open on {name}" for name, lane in app.lanes.items() if lane.in_flight), None
    )


def judge_rest(world: World) -> None:
    """Accuse what is left over although nothing is to be done."""
    for replica in world.replicas:
        for wrong in _left_over(replica):
            world.witness.accuse(f"{replica.name}, at rest: {wrong}")


def _left_over(replica: Replica) -> Iterator[str]:
    assert replica.app is not None
    app = replica.app
    if app.budget.used:
        yield f"the budget counts {app.budget.used} bytes"
    for listener in app.assignment.listeners.values():
        letters = listener.dead_letters
        if listener.inbox.events or listener.inbox.bytes or letters.open:
            yield f"{listener.event_type.name} holds {listener.inbox.events} events, {letters.open} dead letters"
        if any(map(listener.inbox.pauses, listener.inbox.flows)) and not listener.is_stopped:
            yield f"{listener.event_type.name} is paused"
        yield from (
            f"{flow.partition} has {flow.parked} dead letters open"
            for flow in listener.inbox.flows.values()
            if flow.parked
        )
    yield from (f"{lane.in_flight} in flight on {name}" for name, lane in app.lanes.items() if lane.in_flight)


# -- when all has ended -----------------------------------------------------------------------------------------------


def judge_end(world: World) -> None:
    """Judge the history as a whole."""
    witness = world.witness
    for fact in witness.facts.all:
        if wrong := _wrong_end(world, fact):
            witness.accuse(wrong)
    _judge_duplicates(world)
    _judge_told_duplicates(world)
    for replica in world.retired:
        for wrong in _wrong_sums(world, replica):
            witness.accuse(f"{replica.name}'s metric log: {wrong}")
        if any(gate.is_armed or gate.callers for gate in _gates(replica)):
            witness.accuse(f"{replica.name} has left a timer or a request for tokens")
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    if timers := loop.timers_of_processes():
        witness.accuse(f"timers are left: {[round(one.when(), 3) for one in timers]}")
    left = [task for task in asyncio.all_tasks() - {asyncio.current_task()} if not world.is_of_dead(task)]
    if left:
        witness.accuse(f"tasks are left: {sorted(_work(task) for task in left)}")


def _work(task: asyncio.Task[Any]) -> str:
    """Return what a task does; its name may be a number of the whole process."""
    return str(getattr(task.get_coro(), "__qualname__", task.get_name()))


def _wrong_end(world: World, fact: Fact) -> str | None:
    if fact.is_settled or fact.skipped:
        return None
    track = world.cluster.tracks.get(fact.partition)
    if track is not None and fact.offset >= track.first:
        return f"{fact} is lost"
    return f"{fact} was dropped by the log, and nobody has counted it"


def _judge_duplicates(world: World) -> None:
    """Every copy but the first is of another epoch or follows a failure, and an epoch has no more than the cap."""
    witness, cap = world.witness, world.plan.settings.limits.uncommitted_events
    copies: Counter[object] = Counter()
    for fact in witness.facts.all:
        copies[fact.partition] += max(0, fact.stored - 1)
    bounds: Counter[object] = Counter()
    rewound = set()
    for epoch in (*witness.ended, *witness.epochs.values()):
        bounds[epoch.partition] += cap + epoch.failures + epoch.strayed
        if epoch.rewound:
            rewound.add(epoch.partition)
    bounds.update(witness.cursors.come_again)
    for partition, count in copies.items():
        if count > bounds[partition] and partition not in rewound:
            witness.accuse(f"{partition} has {count} duplicates, at most {bounds[partition]} may be")


def _judge_told_duplicates(world: World) -> None:
    """Where every replica could write all its records, they tell of every copy that nobody asked for.

    But for those of a topic made anew: an epoch of the old one may have read, and committed, events of the new one.
    """
    witness = world.witness
    epochs = (*witness.ended, *witness.epochs.values())
    topics_by_name = {(epoch.partition.topic, epoch.topic_id) for epoch in epochs}
    is_sure = len(topics_by_name) == len({name for name, _ in topics_by_name})
    if not is_sure or not all(map(_is_whole, world.retired)) or any(epoch.rewound for epoch in epochs):
        return
    copies = sum(max(0, fact.stored - 1) for fact in witness.facts.all) - sum(witness.cursors.come_again.values())
    told = 0
    for replica in world.retired:
        sums = _sums([json.loads(line) for line in replica.metrics.disk.lines], "class")
        told += sums["resent_unknown"] + sums["uncommitted"]
    if copies > told:
        twice = [str(fact) for fact in witness.facts.all if fact.stored > 1]
        witness.accuse(f"{copies} events came twice, the metric logs tell of {told}: {twice}")


def _is_whole(replica: Replica) -> bool:
    return not replica.crashed and not replica.metrics.dropped_records and not replica.metrics.waiting


def _wrong_sums(world: World, replica: Replica) -> Iterator[str]:
    """Compare the records with what the replica was told; a crashed one, or a full disk, may have recorded less."""
    told = world.witness.told[replica.name]
    records: list[dict[str, Any]] = [json.loads(line) for line in replica.metrics.disk.lines]
    sums = {kind: _sums(records, kind) for kind in ("route", "class", "type")}
    is_whole = _is_whole(replica)
    outcomes = told.outcomes
    failed = outcomes[Outcome.NACKED] + outcomes[Outcome.UNKNOWN]
    truth = {
        "confirmed": outcomes[Outcome.CONFIRMED],
        "confirmed_bytes": told.confirmed_bytes,
        "nacked": outcomes[Outcome.NACKED],
        "unknown": outcomes[Outcome.UNKNOWN],
        "undeliverable": outcomes[Outcome.UNDELIVERABLE],
        "resent": failed,
        "resent_unknown": outcomes[Outcome.UNKNOWN],
        "dead_lettered": told.letters.total(),
        "publish_us": outcomes[Outcome.CONFIRMED],
        "bridge_us": outcomes[Outcome.CONFIRMED],
    }
    for kind, found in sums.items():
        for name, value in found.items():
            if name in truth and (value != truth[name] if is_whole else value > truth[name]):
                yield f"{name} of all {kind} records is {value}, it was {truth[name]}"
        if found["received"] > told.fetched:
            yield f"received of all {kind} records is {found['received']}, {told.fetched} were fetched"
    stops = [record for record in records if record["kind"] == "stop"]
    for stop in stops if is_whole else ():
        if stop["confirmed"] != truth["confirmed"] or stop["dead_lettered"] != truth["dead_lettered"]:
            yield f"the stop record says {stop['confirmed']} and {stop['dead_lettered']}"
    truncated = sum(record["count"] for record in records if record.get("name") == "truncated")
    if truncated != told.truncated if is_whole else truncated > told.truncated:
        yield f"{truncated} records are said to be dropped by the log, it was {told.truncated}"
    yield from world.witness.ranges.wrong(replica.name, records, is_whole=is_whole)
    if stops and is_whole and replica.was_at_rest:
        yield from _wrong_lags(world, records)
    open_at_end = {} if replica.crashed else +told.out
    yield from (f"{count} of what was sent on {lane} never ended" for lane, count in open_at_end.items())


def _wrong_lags(world: World, records: list[dict[str, Any]]) -> Iterator[str]:
    """At rest nothing lies ahead, also not what is no event."""
    last = {record["class"]: record["lag"] for record in records if record["kind"] == "class"}
    lag = sum(value for value in last.values() if value is not None)
    left = {str(at): track.end - _committed(world, at) for at, track in world.cluster.tracks.items()}
    if lag or any(left.values()):
        yield f"the lag at rest is {lag}, uncommitted is {left}"


def _sums(records: list[dict[str, Any]], kind: str) -> Counter[str]:
    sums: Counter[str] = Counter()
    for record in records:
        if record["kind"] == kind:
            for name, value in record.items():
                if isinstance(value, dict) and (name.endswith("_us") or name == "dead_lettered"):
                    sums[name] += sum(value.values())
                elif isinstance(value, int) and not isinstance(value, bool):
                    sums[name] += value
    return sums
