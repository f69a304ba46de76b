"""One event type with its listener, assignment and committer, on scripted fakes, under virtual time."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Self

from proxy.bridge.assignment import Assignment
from proxy.bridge.budget import Budget
from proxy.bridge.catch_up import CatchUp
from proxy.bridge.committer import Committer
from proxy.bridge.lease import Lease
from proxy.bridge.listener import Listener
from proxy.bridge.observer import UNOBSERVED
from proxy.bridge.pump import Pump
from proxy.bridge.returns import Returns
from proxy.bridge.shared import Shared
from proxy.bridge.stake import Stake
from proxy.bridge.throttle import OpenThrottle, PacedThrottle, Throttle
from proxy.congestion.collector import RouteStatistics
from proxy.congestion.per_type import AimdBatchSize
from proxy.model import Event
from proxy.recording.books import Books
from proxy.recording.tally import Tallies, Tally
from proxy.records import Incident, Record
from proxy.settings import DEFAULT_CLASSES, DeadLetter, EventType, Limits, Policy, Route, RoutingKey
from proxy.simulation import virtual_time
from tests.support.bridge_fakes import ScriptedFinder, ScriptedLane, ScriptedLog
from tests.support.events import PARTITION, event

SESSION = 6.0
WALL_OFFSET = 1_000_000.0


class World:
    """Made inside a running loop; `async with` runs the listener, the pump and the committer."""

    def __init__(
        self,
        limits: Limits | None = None,
        policy: Policy = "static",
        commit_interval: float = 0.5,
        throttle: Callable[[], Throttle] | None = None,
        route: Route | None = None,
        catch_up: Callable[[], CatchUp] | None = None,
        has_one_class: bool = False,
        **traits: Any,
    ) -> None:
        loop = asyncio.get_running_loop()
        self.limits = limits or Limits()
        self.log, self.lane, self.dead_lane = ScriptedLog(), ScriptedLane(), ScriptedLane()
        self.lease = Lease(SESSION / 2)
        self.finder = ScriptedFinder()
        """Asked what has become of queues that events came back from."""
        self.returns = Returns(self.finder)
        self.recorded: list[Record] = []
        settled = asyncio.Event()
        account = Books(self.recorded.append, self.log.place, "g")
        self.stake = Stake(self.lease.asked, self.limits.uncommitted_events)
        self.assignment = Assignment(self.lease, settled, 3.0, account)
        self.budget = Budget(self.limits.inboxes_bytes, 3)
        event_type = EventType(
            **{
                "name": PARTITION.topic,
                "topic": PARTITION.topic,
                "priority": "P1",
                "route": "r",
                "routing_key": RoutingKey(constant="queue"),
                "dead_letter": DeadLetter(routing_key="dead"),
                **traits,
            }
        )
        self.tally, self.class_tally, self.route_tally = Tally(), Tally(), Tally()
        self.statistics = RouteStatistics("r", 3)
        self.listener = Listener(
            event_type,
            0,
            route or Route(exchange="x"),
            lane=self.lane,
            throttle=throttle() if throttle is not None else _throttle(policy),
            statistics=self.statistics,
            catch_up=catch_up() if catch_up is not None else None,
            counts=Tallies(self.tally, self.class_tally, self.route_tally),
            around=Shared(
                observer=UNOBSERVED,
                log=self.log,
                lease=self.lease,
                stake=self.stake,
                budget=self.budget,
                limits=self.limits,
                classes=3,
                has_one_class=has_one_class,
                dead_letter_lane=self.dead_lane,
                settled=settled,
                wall=lambda: loop.time() + WALL_OFFSET,
                account=account,
                returns=self.returns,
            ),
        )
        self.assignment.listeners[PARTITION.topic] = self.listener
        self.committer = Committer(self.log, self.assignment, self.lease, self.stake, commit_interval, account)
        self.pump = Pump(self.log, self.assignment)
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self.assignment.on_assigned([PARTITION])
        for work in (self.listener.run(), self.pump.run(), self.committer.run(), self.returns.run()):
            self._tasks.append(asyncio.create_task(work))
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        for result in await asyncio.gather(*self._tasks, return_exceptions=True):
            if isinstance(result, Exception):
                raise result

    def end_listener(self) -> None:
        """Cancel the listener's task."""
        self._tasks[0].cancel()

    async def feed(self, *events: Event) -> None:
        """Let the pump read these, and everyone take notice."""
        self.log.fetched = {PARTITION: list(events)}
        await asyncio.sleep(0.3)

    def recent(self, number: int) -> Event:
        """Return an event stamped now."""
        return event(number, timestamp_ms=int((asyncio.get_running_loop().time() + WALL_OFFSET) * 1000))

    @property
    def written(self) -> list[object]:
        """Positions written to the lane, in order."""
        return [one.position for one in self.lane.written]

    @property
    def incidents(self) -> list[dict[str, object]]:
        """What went wrong, by the fields that say something."""
        found = [one.as_json() for one in self.recorded if isinstance(one, Incident)]
        return [{name: value for name, value in one.items() if value is not None} for one in found]


def _throttle(policy: Policy) -> Throttle:
    return PacedThrottle(0.1, AimdBatchSize(DEFAULT_CLASSES["P1"])) if policy == "per_type" else OpenThrottle()


def lived(story: Callable[[World], Awaitable[None]], **traits: Any) -> None:
    """Let a world live through a story under virtual time."""

    async def live() -> None:
        async with World(**traits) as world:
            await story(world)

    virtual_time.run(live())
