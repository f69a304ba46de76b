"""A wait that somebody else may end."""

import asyncio

import pytest

from proxy.steering.interruption import Interruption


class Waiter:
    """Asks for something, anew whenever its wait is ended."""

    def __init__(self) -> None:
        self.interruption = Interruption()
        self.asked = 0
        self.given: asyncio.Future[str]

    async def get(self) -> str:
        while True:
            with self.interruption:
                self.asked += 1
                self.given = asyncio.get_running_loop().create_future()
                return await self.given


async def begun() -> tuple[Waiter, "asyncio.Task[str]"]:
    waiter = Waiter()
    task = asyncio.create_task(waiter.get())
    await asyncio.sleep(0)
    return waiter, task


async def test_it_is_asked_for_anew_when_the_wait_is_ended_however_often() -> None:
    waiter, task = await begun()
    for asked in (2, 3):
        waiter.interruption.end()
        waiter.interruption.end()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert waiter.asked == asked
    waiter.given.set_result("it")
    assert await task == "it"
    assert task.cancelling() == 0


async def test_nothing_is_ended_when_nobody_waits() -> None:
    waiter, task = await begun()
    waiter.given.set_result("it")
    await task
    waiter.interruption.end()
    second = asyncio.create_task(waiter.get())
    await asyncio.sleep(0)
    waiter.given.set_result("that")
    assert (await second, waiter.asked) == ("that", 2)


@pytest.mark.parametrize("is_cancelled_first", [True, False])
async def test_whoever_cancels_the_task_is_heard_when_the_wait_is_ended_as_well(*, is_cancelled_first: bool) -> None:
    waiter, task = await begun()
    steps = [task.cancel, waiter.interruption.end]
    for step in steps if is_cancelled_first else reversed(steps):
        step()
    async with asyncio.timeout(5):
        with pytest.raises(asyncio.CancelledError):
            await task
    assert waiter.asked == 1


async def test_an_error_goes_on_when_the_wait_is_ended_too_late_for_it() -> None:
    interruption = Interruption()

    async def fail() -> None:
        with interruption:
            try:
                await asyncio.sleep(1)
            except asyncio.CancelledError:
                raise RuntimeError("lost") from None

    task = asyncio.create_task(fail())
    await asyncio.sleep(0)
    interruption.end()
    with pytest.raises(RuntimeError, match="lost"):
        await task
    assert task.cancelling() == 0
