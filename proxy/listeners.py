"""The listeners of all event types: opened as topics are found, begun anew as settings change, ended with the type."""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping
from dataclasses import replace
from typing import Any

from proxy.bridge.addresses import address_of
from proxy.bridge.assignment import Assignment
from proxy.bridge.broker import Lane
from proxy.bridge.catch_up import CatchUp
from proxy.bridge.listener import Listener
from proxy.bridge.shared import Shared
from proxy.bridge.throttle import Throttle
from proxy.config import InForce
from proxy.model import Stance
from proxy.recording.recorder import Recorder
from proxy.settings import EventType
from proxy.steering.budgeted import HeldThrottle
from proxy.steering.caps import Caps
from proxy.steering.steering import Steering


class Listeners:
    """Makes and runs them. `spawn` starts a task by its name, `retire` ends one; `stance` is how a type is to go on."""

    def __init__(
        self,
        in_force: InForce,
        lanes: Mapping[str, Lane],
        steering: Steering,
        caps: Caps,
        recorder: Recorder,
        assignment: Assignment,
        around: Shared,
        *,
        stance: Callable[[EventType], Stance],
        leave_lanes: Callable[[Collection[Lane]], None],
        spawn: Callable[[Coroutine[Any, Any, None], str], asyncio.Task[None]],
        retire: Callable[[asyncio.Task[None]], None],
    ) -> None:
        self._in_force = in_force
        self._lanes = lanes
        self._steering = steering
        self._caps = caps
        self._recorder = recorder
        self._assignment = assignment
        self._around = around
        self._stance = stance
        self._leave_lanes = leave_lanes
        self._spawn = spawn
        self._retire = retire
        self._tasks: dict[str, list[asyncio.Task[None]]] = {}
        """By topic, the one that runs last; those before it end."""
        assignment.on_replaced = self._on_replaced

    def open(self, event_type: EventType) -> None:
        """Listen to an event type from now on."""
        listener = self._made(event_type)
        self._assignment.listeners[event_type.topic] = listener
        self._tasks[event_type.topic] = [self._spawn(listener.run(), f"listener {event_type.name}")]

    def close(self, topic: str) -> None:
        """Listen no more to a topic of which nothing is owned any more."""
        listener = self._assignment.listeners.pop(topic)
        self._assignment.successors.pop(topic, None)
        self._leave(listener)
        self._retire(self._tasks.pop(topic)[-1])
        self.leave_lanes()

    def leave_lanes(self) -> None:
        """Let go the lanes over which nobody sends any more."""
        every = [*self._assignment.listeners.values(), *self._assignment.successors.values()]
        self._leave_lanes([one.lane for one in every])

    def steer(self, routes: Collection[str]) -> None:
        """Have all types on these routes be held back as the settings in force say; none of them pauses for it."""
        if not routes:
            return
        done: set[int] = set()
        for one in [*self._assignment.listeners.values(), *self._assignment.successors.values()]:
            if one.event_type.route in routes:
                self._steer(one, done)

    def _steer(self, listener: Listener, done: set[int]) -> None:
        """Give one of them what its route's policy means now; `done` are throttles that have it already."""
        kind, policies = listener.event_type, self._steering.policies
        route, control = self._in_force.settings.routes[kind.route], self._steering.control
        if id(listener.throttle) not in done:  # one that takes over may have the throttle of the one before
            done.add(id(listener.throttle))
            self._replace(listener.throttle, kind)
        old, catch_up = listener.old_throttle, policies.catch_up(kind)
        if old is not None:
            self._replace(old, kind, catches_up=True)
        if catch_up is not None:
            held = old or self._caps.around(kind, catch_up.throttle, catches_up=True)
            catch_up = replace(catch_up, throttle=held)
        listener.steer(route, control.statistics[kind.route], catch_up)

    def _replace(self, held: Throttle, kind: EventType, *, catches_up: bool = False) -> None:
        assert isinstance(held, HeldThrottle)
        policies, before = self._steering.policies, held.inner
        held.replace(policies.throttle(kind, catches_up=catches_up, before=before))
        policies.forget(kind, before)

    def look_anew(self) -> Collection[str]:
        """Have every type that the settings in force say something else of begin anew; return their topics."""
        policies = self._steering.policies
        before, self._around = self._around, self._around.going_by(self._in_force.settings)
        if self._around.limits != before.limits:
            for listener in [*self._assignment.listeners.values(), *self._assignment.successors.values()]:
                listener.go_by(self._around)
        changed = []
        for topic, listener in list(self._assignment.listeners.items()):
            then = self._in_force.event_type(topic)
            if then is None:
                continue  # the catalogue drops it
            if not self._is_other(then, self._assignment.latest(topic)):
                continue
            changed.append(topic)
            if (unused := self._assignment.successors.pop(topic, None)) is not None:
                unused.leave()
                if unused.throttle is not listener.throttle:
                    policies.forget(unused.event_type, unused.throttle)
            like = listener if _paced(then) == _paced(listener.event_type) else None
            self._assignment.replace(self._made(then, like=like))
        return changed

    def _is_other(self, then: EventType, now: Listener) -> bool:
        """Return whether a type says something else than its listener goes by, or its route leads elsewhere."""
        settings = self._in_force.settings
        if then != now.event_type or self._lanes[then.route] is not now.lane:
            return True
        rank, route = settings.rank(then.priority), settings.routes[then.route]
        return address_of(then, rank, route, self._around) != now.address

    def _made(self, event_type: EventType, like: Listener | None = None) -> Listener:
        """Make a listener; with the throttle of the one before where nothing that it goes by has changed."""
        settings = self._in_force.settings
        listener = Listener(
            event_type,
            settings.rank(event_type.priority),
            settings.routes[event_type.route],
            lane=self._lanes[event_type.route],
            throttle=like.throttle if like is not None else self._throttle(event_type),
            catch_up=self._catch_up(event_type),
            statistics=self._steering.control.statistics[event_type.route],
            counts=self._recorder.counts(event_type),
            around=self._around,
        )
        listener.take(self._stance(event_type))
        return listener

    def _throttle(self, event_type: EventType) -> Throttle:
        return self._caps.around(event_type, self._steering.policies.throttle(event_type))

    def _catch_up(self, event_type: EventType) -> CatchUp | None:
        made = self._steering.policies.catch_up(event_type)
        if made is None:
            return None
        return replace(made, throttle=self._caps.around(event_type, made.throttle, catches_up=True))

    def _on_replaced(self, before: Listener, after: Listener) -> None:
        """Let the new one go as soon as the old one's task has ended: they may have one throttle."""
        after.take(self._stance(after.event_type))  # it may have changed since it was made
        after.lift(None)  # so may its throttle, if it is that of the one before
        tasks = self._tasks[after.event_type.topic]
        self._leave(before, keeps_throttle=after.throttle is before.throttle)
        self._retire(tasks[-1])
        ending = [task for task in tasks if not task.done()]
        running = self._spawn(_after(ending, after), f"listener {after.event_type.name}")
        self._tasks[after.event_type.topic] = [*ending, running]
        self.leave_lanes()

    def _leave(self, listener: Listener, *, keeps_throttle: bool = False) -> None:
        listener.leave()
        self._recorder.on_left(listener)
        for throttle in (None if keeps_throttle else listener.throttle, listener.old_throttle):
            if throttle is not None:
                self._steering.policies.forget(listener.event_type, throttle)


def _paced(event_type: EventType) -> tuple[str, str, float]:
    """Return what a throttle goes by."""
    return event_type.route, event_type.priority, event_type.cost


async def _after(ending: Collection[asyncio.Task[None]], listener: Listener) -> None:
    if ending:
        await asyncio.wait(ending)
    await listener.run()
