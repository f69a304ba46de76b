"""Virtual time passes whatever the tasks do."""

import asyncio

import pytest

from proxy.simulation import virtual_time


def test_time_goes_on_when_somebody_always_has_something_to_do() -> None:
    async def live() -> int:
        loop, turns = asyncio.get_running_loop(), 0
        while loop.time() < 10 * virtual_time.TURN:
            turns += 1
            assert turns < 100
            await asyncio.sleep(0)
        return turns

    assert virtual_time.run(live()) > 1


def test_deadlock_is_told_when_nothing_could_ever_happen() -> None:
    async def live() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(virtual_time.DeadlockError):
        virtual_time.run(live())
