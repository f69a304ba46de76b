"""One history: the world of a plan, its events, its replicas, the faults, the calm after them, the verdict."""

import asyncio
import gc
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from random import Random

from proxy.simulation import virtual_time
from tests.histories import checks, growth
from tests.histories.fault_actions import FaultActions
from tests.histories.heard import Heard
from tests.histories.plan import TOPICS, Plan
from tests.histories.stillness import Stillness
from tests.histories.wire_actions import WireActions
from tests.histories.wire_world import WireWorld
from tests.histories.world import World
from tests.wire.chance import CONSTANTS, seeded
from tests.wire.loop import WireLoop

CALM_DEADLINE = 60.0
"""Virtual seconds after the last fault within which everything must have gone its way."""
LOOK = 0.05
"""Virtual seconds between two looks at the bounds."""
MOST_TURNS = 1_000_000
"""Turns of the event loop; ten times what the longest histories take."""
_AFTERWARDS = 2.0
"""Virtual seconds from the last stop until nobody's timer may be left: the world's own have run out by then."""
_LOOKS_PER_STILLNESS = 10
_TAKES = 25
"""Messages that the consumers take of each queue at every look."""


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a history."""

    violations: tuple[str, ...]
    steps: tuple[tuple[float, str], ...]
    digest: str
    """The same for the same seed, byte for byte."""
    events: int
    stored: int
    letters: int
    writes: int
    seconds: float
    """Virtual ones."""
    pairs: tuple[str, ...]
    """See `kept`."""

    def without_steps(self) -> "Result":
        """Return it without what nobody reads of a history that went well."""
        return replace(self, steps=())


def live(plan: Plan, *, ends_at_first: bool = False) -> Result:
    """Run one history, to its end or to the first violation."""
    return lived(plan, ends_at_first=ends_at_first).result()


def lived(plan: Plan, *, ends_at_first: bool = False) -> "History":
    """Run one history; return it with all that is left of it."""
    was_collecting = gc.isenabled()
    gc.disable()  # a history is short, and all of it is garbage at its end
    history = History(plan, ends_at_first=ends_at_first)
    try:
        if plan.wire is None:
            stops = any(fault.kind.startswith("stop_") for fault in plan.faults)
            loop = virtual_time.StoppableLoop if stops else virtual_time.VirtualTimeLoop  # the quicker one
            virtual_time.run(history.live(), partial(loop, MOST_TURNS))
        else:
            chance, seconds = Random(f"{plan.seed} loop"), plan.wire.turn_seconds
            values = (plan.wire.home_seconds, plan.wire.connections)
            constants = dict(zip(CONSTANTS, values, strict=True))
            with history.heard.listening(), seeded(Random(f"{plan.seed} clients"), constants=constants):
                virtual_time.run(history.live(), partial(WireLoop, chance, turn_seconds=seconds, most_turns=MOST_TURNS))
    except (virtual_time.DeadlockError, virtual_time.EndlessError, ExceptionGroup) as error:
        history.failure = f"{type(error).__name__}: {error}"
    except asyncio.CancelledError:
        assert ends_at_first
    finally:
        if was_collecting:
            gc.enable()
    return history


def _new_world(plan: Plan) -> World:
    return World(plan) if plan.wire is None else WireWorld(plan)


def _actions_on(world: World) -> FaultActions:
    return WireActions(world) if isinstance(world, WireWorld) else FaultActions(world)


class History:
    """Made outside the virtual loop, lived inside."""

    def __init__(self, plan: Plan, *, ends_at_first: bool) -> None:
        self.plan = plan
        self._ends_at_first = ends_at_first
        self.failure: str | None = None
        self.heard = Heard()
        self.world: World
        self._seconds = 0.0

    async def live(self) -> None:
        """Begin, suffer, recover, end, and judge."""
        self.world = world = _new_world(self.plan)
        if self._ends_at_first:
            living = asyncio.current_task()
            assert living is not None
            world.witness.most_violations, world.witness.on_most = 1, living.cancel
        try:
            await self._suffer()
        except asyncio.CancelledError:
            await world.close()  # or what its servers still hold would end with the loop, unclosed
            raise

    async def _suffer(self) -> None:
        world = self.world
        side = [asyncio.create_task(work) for work in (self._produce_all(), self._consume(), self._look())]
        producing = side[0]
        for _ in range(self.plan.replicas):
            world.start()
        actions = _actions_on(world)
        async with asyncio.TaskGroup() as tasks:
            for fault in self.plan.faults:
                tasks.create_task(actions.strike(fault))
        world.is_calm = True
        world.witness.note("calm")
        await producing
        await self._settle()
        for replica in list(world.replicas):
            await replica.stop()
            world.retire(replica)
        for task in side:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await asyncio.sleep(_AFTERWARDS)
        await world.close()
        checks.judge_end(world)
        self._seconds = asyncio.get_running_loop().time()

    def result(self) -> Result:
        """Return what came of it."""
        witness = self.world.witness
        violations = [*witness.violations, *([self.failure] if self.failure else [])]
        facts = witness.facts.all
        return Result(
            tuple(violations),
            tuple(witness.steps),
            witness.digest,
            len(facts),
            sum(fact.stored for fact in facts),
            sum(fact.letters for fact in facts),
            sum(told.written.total() for told in witness.told.values()),
            self._seconds,
            tuple(dict.fromkeys(witness.pairs)),
        )

    async def _produce_all(self) -> None:
        for _ in range(self.plan.events):
            for topic in TOPICS:
                self.world.produce(topic)
            await asyncio.sleep(self.world.chance.uniform(0, self.plan.pace))

    async def _consume(self) -> None:
        while True:
            await asyncio.sleep(LOOK)
            self.world.consume(_TAKES)

    async def _look(self) -> None:
        stillness = None if self.plan.wire is None else Stillness(self.world, self.heard)
        looks = 0
        while True:
            await asyncio.sleep(LOOK)
            for replica in self.world.replicas:
                checks.judge_bounds(self.world, replica)
            looks += 1
            if stillness is not None and not looks % _LOOKS_PER_STILLNESS:
                stillness.judge(asyncio.get_running_loop().time())

    async def _settle(self) -> None:
        """Wait until everything has gone its way; restart whoever stopped a type, as its message asks for."""
        world, loop = self.world, asyncio.get_running_loop()
        end = loop.time() + CALM_DEADLINE
        if not world.replicas:
            world.start()
        while (left := checks.unfinished(world)) is not None:
            for replica in [one for one in world.replicas if checks.has_stopped_type(one)]:
                await replica.stop()
                world.retire(replica)
                world.start()
            if loop.time() > end:
                world.witness.accuse(f"{left} {CALM_DEADLINE:g} s after the last fault")
                return
            await asyncio.sleep(LOOK)
        checks.judge_rest(world)
        if isinstance(world, WireWorld):
            await growth.judge(world)
        for replica in world.replicas:
            # Who has lost its partitions to others and could not be told yet still counts what it read of them.
            app = replica.app
            replica.was_at_rest = app is None or app.lease.left(loop.time()) > 0 or not app.assignment.flows()
