"""Liveness: red for what a restart mends, and for nothing else."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from structlog.testing import capture_logs

from proxy.bridge.broker import LaneState
from proxy.errors import LogError
from proxy.model import Mode, Outcome, Reason, Stance
from proxy.operations.liveness import BEYOND_DEADLINE, LOOK_SECONDS, Liveness
from proxy.settings import Limits
from proxy.simulation.virtual_time import VirtualTimeLoop
from tests.support.bridge_fakes import ScriptedLane
from tests.support.events import events
from tests.support.world import World, lived

PATIENCE = Limits().confirm_deadline + BEYOND_DEADLINE
HOUR = 3_600.0
Story = Callable[[World, Liveness], Awaitable[None]]


class CountedLane(ScriptedLane):
    """Says what the test tells it of what is in flight."""

    flight = 0
    age = 0.0

    @property
    def in_flight(self) -> int:
        return self.flight

    def unanswered(self, now: float) -> float:
        del now
        return self.age


class ShutThrottle:
    """Admits nothing."""

    batch_size = None

    async def admit(self, want: int, *, size: float, again: bool) -> int:
        del want, size, again
        await asyncio.Event().wait()
        return 0

    def settle(self, events: int, size: int) -> None:
        """Nothing is admitted."""

    async def admit_letters(self, count: int, *, size: float) -> None:
        """Letters go."""

    def lift(self, rank: int | None) -> None:
        """There are no classes."""


def watched(story: Story, **traits: Any) -> None:
    """Live through a story with somebody who looks."""

    async def live(world: World) -> None:
        world.lane.__class__ = CountedLane
        made = Liveness(world.assignment, world.limits.confirm_deadline, list)
        looking = asyncio.create_task(made.run())
        await story(world, made)
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)

    lived(live, **traits)


def stuck(made: Liveness) -> str:
    """Return why its one type is stuck; "" if it is not."""
    faults = made.faults()
    assert faults.keys() <= {"type orders"}
    return faults.get("type orders", "")


async def turns_red(made: Liveness) -> str:
    """See that it does so in time, not before, and says so once; return why."""
    with capture_logs() as said:
        await asyncio.sleep(PATIENCE - 15)
        assert stuck(made) == ""
        await asyncio.sleep(30)
        why = stuck(made)
        await asyncio.sleep(HOUR)
    assert [one["event"] for one in said] == ["stuck"]
    return why


def test_it_is_red_when_nobody_takes_what_may_go() -> None:
    async def story(world: World, made: Liveness) -> None:
        world.end_listener()
        await world.feed(*events(0, 3))
        assert (await turns_red(made)).startswith("events wait, nothing holds them back, and none is sent")

    watched(story)


def test_it_is_red_when_an_open_lane_with_nothing_in_flight_writes_nothing() -> None:
    async def story(world: World, made: Liveness) -> None:
        world.lane.room = asyncio.Semaphore(0)
        await world.feed(*events(0, 3))
        assert (await turns_red(made)).startswith("its lane is open, has nothing in flight, and writes nothing")
        with capture_logs() as said:
            world.lane.give_room(3)
            world.lane.flight = 3
            await asyncio.sleep(10)
        assert stuck(made) == ""
        assert [one["event"] for one in said] == ["moves_again"]

    watched(story)


def test_it_is_red_when_outcomes_are_awaited_that_the_lane_has_not_in_flight() -> None:
    async def story(world: World, made: Liveness) -> None:
        await world.feed(*events(0, 3))
        assert (await turns_red(made)).startswith("it waits for outcomes of what its lane does not have in flight")

    watched(story)


def test_it_is_red_when_the_lane_holds_events_beyond_the_deadline() -> None:
    async def story(world: World, made: Liveness) -> None:
        world.lane.flight, world.lane.age = 3, world.limits.confirm_deadline + 1
        await world.feed(*events(0, 3))
        assert (await turns_red(made)).startswith("its lane holds events beyond the confirm deadline")

    watched(story)


async def confirms_are_slow(world: World) -> None:
    world.lane.flight, world.lane.age = 3, world.limits.confirm_deadline - 1
    await world.feed(*events(0, 3))


async def the_connection_is_gone(world: World, state: LaneState) -> None:
    world.lane.state = state
    world.lane.room = asyncio.Semaphore(0)
    await world.feed(*events(0, 3))


async def outcomes_never_come_over_a_lost_connection(world: World) -> None:
    await world.feed(*events(0, 3))
    world.lane.state = LaneState.LOST


async def a_person_has_paused_it(world: World) -> None:
    world.listener.stance = Stance(Mode.PAUSE, "ann")
    await world.feed(*events(0, 3))


async def kafka_takes_no_commit(world: World) -> None:
    world.log.failure = LogError("down")
    await world.feed(*events(0, 9))
    world.lane.finish()


async def its_dead_letters_are_refused(world: World) -> None:
    await world.feed(*events(0, 3))
    world.lane.finish(Outcome.UNDELIVERABLE, reason=Reason.TOO_LARGE)
    await asyncio.sleep(1)
    world.dead_lane.finish(Outcome.UNDELIVERABLE, reason=Reason.REFUSED)


async def it_has_stopped(world: World) -> None:
    await world.feed(*events(0, 3))
    world.lane.finish(Outcome.UNDELIVERABLE, reason=Reason.TOO_LARGE)
    await world.feed(*events(3, 6))


async def nothing_is_to_do(world: World) -> None:
    await world.feed(*events(0, 3))
    world.lane.finish()


@pytest.mark.parametrize(
    ("begin", "traits"),
    [
        (nothing_is_to_do, {}),
        (confirms_are_slow, {}),
        *(
            ((lambda world, state=state: the_connection_is_gone(world, state)), {})
            for state in LaneState
            if state != "open"
        ),
        (outcomes_never_come_over_a_lost_connection, {}),
        (a_person_has_paused_it, {}),
        (kafka_takes_no_commit, {}),
        (kafka_takes_no_commit, {"limits": Limits(uncommitted_events=2)}),
        (its_dead_letters_are_refused, {}),
        (it_has_stopped, {"dead_letter": None}),
        (lambda world: world.feed(*events(0, 3)), {"throttle": ShutThrottle}),
    ],
)
def test_it_stays_green_when_somebody_else_is_what_it_waits_for(
    begin: Callable[[World], Awaitable[None]], traits: dict[str, Any]
) -> None:
    async def story(world: World, made: Liveness) -> None:
        await begin(world)
        for _ in range(60):
            await asyncio.sleep(HOUR / 60)
            assert stuck(made) == ""

    watched(story, **traits)


def test_it_stays_green_when_a_broker_nacks_everything_for_ever() -> None:
    async def story(world: World, made: Liveness) -> None:
        world.lane.flight = 3
        await world.feed(*events(0, 3))
        for _ in range(600):
            await asyncio.sleep(1)
            world.lane.finish(Outcome.NACKED)
            assert stuck(made) == ""

    watched(story)


def test_it_stays_green_when_the_lane_writes_an_event_now_and_then() -> None:
    async def story(world: World, made: Liveness) -> None:
        world.lane.room = asyncio.Semaphore(0)
        await world.feed(*events(0, 50))
        for _ in range(20):
            await asyncio.sleep(PATIENCE - 10)
            world.lane.give_room(1)
            await asyncio.sleep(1)
            (batch,) = world.lane.handed
            batch.recipient.on_outcome(batch, batch.done - 1, batch.done, Outcome.CONFIRMED, seconds=0.001)
            assert stuck(made) == ""

    watched(story)


def test_the_time_does_not_count_when_the_process_stood_still(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(world: World, made: Liveness) -> None:
        world.lane.room = asyncio.Semaphore(0)
        await world.feed(*events(0, 3))
        monkeypatch.setattr("proxy.operations.liveness.LOOK_SECONDS", HOUR)  # as if it was stopped between two looks
        await asyncio.sleep(5 * HOUR)
        assert stuck(made) == ""

    watched(story)


@pytest.mark.parametrize(("seconds", "said"), [(20.0, [20.0]), (2.0, [])])
def test_it_is_said_for_how_long_when_the_process_stood_still(seconds: float, said: list[float]) -> None:
    async def story(world: World, made: Liveness) -> None:
        del world, made
        await asyncio.sleep(0)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop)
        with capture_logs() as logged:
            loop._pass(LOOK_SECONDS + seconds)
            await asyncio.sleep(3 * LOOK_SECONDS)
        assert [one["seconds"] for one in logged if one["event"] == "stood_still"] == said

    watched(story)
