"""One history with Nakadi: its events, its replicas, the faults, the calm after them, the verdict."""

import asyncio
import gc
from contextlib import suppress
from functools import partial
from random import Random

from proxy.simulation import virtual_time
from tests.histories.history import Result
from tests.histories.nakadi.actions import Actions
from tests.histories.nakadi.plan import NakadiPlan
from tests.histories.nakadi.world import World
from tests.wire.chance import CONSTANTS, seeded
from tests.wire.loop import WireLoop

CALM_SECONDS = 200.0
"""Virtual seconds after the last fault within which everything must have gone its way: three times sixty, and some."""
LOOK = 0.1
MOST_TURNS = 4_000_000


def live(plan: NakadiPlan) -> Result:
    """Run one history, to its end."""
    assert plan.wire is not None
    history = History(plan)
    was_collecting = gc.isenabled()
    gc.disable()
    constants = dict(zip(CONSTANTS, (plan.wire.home_seconds, plan.wire.connections), strict=True))
    chance, seconds = Random(f"{plan.seed} loop"), plan.wire.turn_seconds
    try:
        with seeded(Random(f"{plan.seed} clients"), constants=constants):
            virtual_time.run(history.live(), partial(WireLoop, chance, turn_seconds=seconds, most_turns=MOST_TURNS))
    except (virtual_time.DeadlockError, virtual_time.EndlessError, ExceptionGroup) as error:
        history.world.judge.accuse(f"{type(error).__name__}: {error}")
    finally:
        if was_collecting:
            gc.enable()
    return history.result()


class History:
    """Made outside the virtual loop, lived inside."""

    def __init__(self, plan: NakadiPlan) -> None:
        self.plan = plan
        self.world: World
        self._seconds = 0.0

    async def live(self) -> None:
        """Begin, suffer, recover, end, and judge."""
        world = self.world = World(self.plan)
        await world.nakadi.start()
        side = [asyncio.create_task(work) for work in (self._produce(), self._consume())]
        for _ in range(self.plan.replicas):
            world.start()
        actions = Actions(world)
        async with asyncio.TaskGroup() as tasks:
            for fault in self.plan.faults:
                tasks.create_task(actions.strike(fault))
        world.judge.note("calm")
        await side[0]
        await self._settle()
        for replica in list(world.replicas):
            await replica.stop()
        for task in side:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await world.close()
        world.judge.judge_end()
        self._seconds = asyncio.get_running_loop().time()

    def result(self) -> Result:
        """Return what came of it."""
        judge = self.world.judge
        lines = judge.lines.values()
        return Result(
            tuple(judge.violations),
            tuple(judge.steps),
            judge.digest,
            sum(len(line.events) for line in lines),
            sum(line.stored.total() for line in lines),
            sum(line.letters.total() for line in lines),
            sum(line.stored.total() + line.letters.total() for line in lines),
            self._seconds,
            (),
        )

    async def _produce(self) -> None:
        for _ in range(self.plan.events):
            self.world.produce()
            await asyncio.sleep(self.world.chance.uniform(0, 2 * self.plan.pace))

    async def _consume(self) -> None:
        while True:
            await asyncio.sleep(LOOK)
            self.world.consume()

    async def _settle(self) -> None:
        world, loop = self.world, asyncio.get_running_loop()
        end = loop.time() + CALM_SECONDS
        if not world.replicas:
            world.start()
        while (left := world.unfinished()) is not None:
            if loop.time() > end:
                world.judge.accuse(f"{left} {CALM_SECONDS:g} s after the last fault")
                return
            await asyncio.sleep(LOOK)
