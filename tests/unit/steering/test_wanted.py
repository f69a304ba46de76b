"""How many consumers are wanted where each queue of a route has its own."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from proxy.congestion.drain_rate import Drain
from proxy.congestion.group import Tether
from proxy.congestion.receiver import View
from proxy.congestion.scaling import Wanted
from proxy.congestion.signs import Sign
from proxy.settings import BrokerSettings, LogSettings, Route, Settings
from proxy.simulation import virtual_time
from proxy.steering.group_backlog import ClassBacklog, QueueBacklog
from proxy.steering.wanted import STALE_AFTER, WantedConsumers
from tests.support.queue_views import HIGHEST, view


def seen(name: str, rate: float, *, consumers: int = 4, is_busy: bool = False, delay: float | None = 0.0) -> View:
    """Return a queue whose consumers take so much a second."""
    drain = Drain(rate, rate, (rate, 0.0, 0.0), 0.0, is_capacity=is_busy)
    return replace(
        view(name, delay, consumers), estimate=drain, ready=10 if is_busy else 0, waiting=10.0 if is_busy else 0.0
    )


class World:
    """A route with two queues, slow and quick; P3 goes to both, P1 to quick."""

    def __init__(self, **route: Any) -> None:
        given = {"exchange": "x", "queues": ["slow", "quick"], "strategy": "min", "scaling": {}} | route
        settings = Settings(
            log=LogSettings(hosts=["localhost:9092"], group="g"),
            broker=BrokerSettings(hosts=["localhost:5672"]),
            routes={"shop": Route.model_validate(given)},
        )
        self.views = [seen("slow", 100.0, is_busy=True, delay=0.08), seen("quick", 100.0)]
        self.states: dict[str, Tether] = {}
        self.is_stale = False
        self.p1, self.p3 = ClassBacklog(0, 10.0, 0, 10.0), ClassBacklog(60_000, 200.0, 60_000, 200.0)
        self.slow = QueueBacklog(defaultdict(ClassBacklog, P3=self.p3))
        self.quick = QueueBacklog(defaultdict(ClassBacklog, P1=self.p1, P3=self.p3))
        self.noted: list[tuple[str | None, int | None, float | None]] = []
        backlogs: Any = SimpleNamespace(
            run=asyncio.Event().wait,
            go_by=lambda _: None,
            of=lambda _: {"P1": self.p1, "P3": self.p3},
            of_queue=lambda _, queue: getattr(self, queue),
        )
        self.wanted = WantedConsumers(settings, self._verdict, backlogs, self._note)

    def _verdict(self, route: str) -> Any:
        assert route == "shop"
        now = asyncio.get_running_loop().time()
        return SimpleNamespace(
            reading=SimpleNamespace(at=now - 2 * STALE_AFTER if self.is_stale else now),
            queues=tuple(self.views),
            states=self.states,
            cause=Sign.BLIND,
        )

    def _note(
        self, route: str, queue: str | None, wanted: Wanted, consumers: int | None, drain: float | None, _: float | None
    ) -> None:
        assert (route, consumers) in {("shop", 0), ("shop", 4)}
        self.noted.append((queue, wanted.consumers, drain))

    def asks_p3(self, lag: float, demand: float, cost: float = 1.0) -> None:
        self.p3.lag, self.p3.demand, self.p3.lag_work, self.p3.demand_work = 0.0, 0.0, 0.0, 0.0
        self.p3.add(lag, demand, cost)

    def told(self, queue: str) -> dict[str, Any]:
        found = self.wanted.told()["routes"]["shop"]["queues"][queue]
        assert isinstance(found, dict)
        return found


def lived(story: Callable[[World], Awaitable[None]], **route: Any) -> None:
    """Let a world live through a story under virtual time."""

    async def live() -> None:
        world = World(**route)
        running = asyncio.create_task(world.wanted.run())
        await story(world)
        running.cancel()

    virtual_time.run(live())


def test_more_are_wanted_of_the_queue_that_holds_the_log_back_and_not_of_the_other() -> None:
    async def story(world: World) -> None:
        await asyncio.sleep(20)
        slow, quick = world.told("slow"), world.told("quick")
        assert (slow["wanted_consumers"], slow["consumers"], slow["drain_per_s"]) == (6, 4, 100.0)
        assert slow["classes"] == {"P3": {"lag": 60_000, "demand_per_s": 200.0, "work_off_s": None}}
        assert quick["wanted_consumers"] == 4
        assert quick["classes"].keys() == {"P1", "P3"}
        route = world.wanted.told()["routes"]["shop"]
        assert (route["wanted_consumers"], route["why"]) == (None, "each queue has consumers of its own: see there")
        assert route["classes"]["P3"]["lag"] == 60_000
        assert ("slow", 6, 100.0) in world.noted
        assert [queue for queue, *_ in world.noted if queue == "quick"] == ["quick"]

    lived(story)


def test_more_are_wanted_of_a_queue_that_is_empty_now_and_then_when_nearly_all_that_it_can_take_goes_there() -> None:
    async def story(world: World) -> None:
        world.asks_p3(0.0, 90.0)
        await asyncio.sleep(10)
        for going_there, wanted in ((20.0, 4), (95.0, 6)):
            world.views[0] = seen("slow", going_there)
            await asyncio.sleep(10)
            world.asks_p3(60_000.0, 90.0)
            await asyncio.sleep(10)
            assert world.told("slow")["wanted_consumers"] == wanted

    lived(story)


def test_a_class_is_done_when_its_last_queue_is_and_nobody_knows_when_that_of_one_is_not_known() -> None:
    async def story(world: World) -> None:
        world.asks_p3(60_000.0, 20.0)
        world.views = [seen("slow", 100.0, is_busy=True), seen("quick", 220.0)]
        await asyncio.sleep(1.5)
        work_off = [world.told(queue)["classes"]["P3"]["work_off_s"] for queue in ("slow", "quick")]
        assert work_off == [750.0, pytest.approx(60_000 / 190, abs=0.1)]
        classes = world.wanted.told()["routes"]["shop"]["classes"]
        assert [classes[name]["work_off_s"] for name in ("P1", "P3")] == [0.0, 750.0]
        world.slow.unknown.append("news")
        await asyncio.sleep(1)
        assert world.wanted.told()["routes"]["shop"]["classes"]["P3"]["work_off_s"] is None

    lived(story)


def test_one_is_wanted_where_nobody_takes_and_something_comes() -> None:
    async def story(world: World) -> None:
        world.views[0] = replace(seen("slow", 0.0, consumers=0), estimate=None)
        world.states = {"slow": Tether.ABSENT}
        await asyncio.sleep(1.5)
        assert (world.told("slow")["wanted_consumers"], world.told("quick")["wanted_consumers"]) == (1, 4)

    lived(story)


DEPTH = ["how many consumers there are", "what they take"]
LOG = ["what comes into the log", "what waits in the log"]
SHEDS = "nobody is held back by this queue, so it may have begun to throw events away"


@pytest.mark.parametrize(
    ("change", "unknown", "because"),
    [
        (lambda world: setattr(world, "is_stale", True), DEPTH, ""),
        (lambda world: world.views.pop(0), DEPTH, ""),
        (lambda world: world.views.__setitem__(0, view("slow", None)), DEPTH, ""),
        (lambda world: world.views.__setitem__(0, view("slow")), DEPTH[1:], ""),
        (lambda world: world.views.__setitem__(0, replace(world.views[0], knows_others=False)), DEPTH[1:], ""),
        (lambda world: setattr(world, "slow", None), LOG, ""),
        (
            lambda world: world.slow.unknown.extend(["news", "ads", "news"]),
            LOG,
            "ads and 1 more: each event's routing key decides whether it goes there",
        ),
    ],
)
def test_nothing_is_wanted_of_a_queue_of_which_too_little_is_known_and_why_is_said(
    change: Callable[[World], None], unknown: list[str], because: str
) -> None:
    async def story(world: World) -> None:
        change(world)
        await asyncio.sleep(1.5)
        told = world.told("slow")
        assert (told["wanted_consumers"], told["knee"]) == (None, None)
        assert told["why"] == "; ".join(filter(None, [f"not known: {', '.join(unknown)}", because]))
        assert (world.told("quick")["wanted_consumers"] is None) is world.is_stale

    lived(story)


@pytest.mark.parametrize(
    ("route", "state", "knows"),
    [
        ({"strategy": "min"}, Tether.ACTIVE, True),
        ({"strategy": "min", "untether": True}, Tether.LINGER, True),
        ({"strategy": "min", "untether": True}, Tether.RESTING, False),
        ({"strategy": "max"}, Tether.ACTIVE, False),
        ({"strategy": "max", "queues": [{"name": "slow", "tag": True}, "quick"]}, Tether.ACTIVE, False),
        ({"strategy": "tagged", "queues": [{"name": "slow", "tag": True}, "quick"]}, Tether.ACTIVE, True),
        ({"strategy": "tagged", "queues": ["slow", {"name": "quick", "tag": True}]}, Tether.ACTIVE, False),
    ],
)
def test_what_is_taken_is_not_known_of_a_long_queue_that_may_throw_events_away(
    route: dict[str, Any], state: Tether, knows: bool
) -> None:
    async def story(world: World) -> None:
        world.states = {"slow": state, "quick": Tether.ACTIVE}
        await asyncio.sleep(1.5)
        assert world.told("slow")["drain_per_s"] == 100.0, "it is as short as it should be"
        world.views[0] = seen("slow", 100.0, is_busy=True, delay=HIGHEST + 0.1)
        await asyncio.sleep(1)
        told = world.told("slow")
        assert told["drain_per_s"] == (100.0 if knows else None)
        assert (SHEDS in told["why"]) is not knows

    lived(story, **route)


def test_consumers_are_wanted_for_what_a_backlog_costs_and_not_for_its_events() -> None:
    async def story(world: World) -> None:
        world.asks_p3(0.0, 10.0, cost=20.0)
        await asyncio.sleep(15)
        assert world.told("slow")["wanted_consumers"] > 4, "20 times what the events are"

    lived(story)
