"""Tasks of a process: none ends unheard."""

import asyncio

import pytest

from proxy.tasks import Tasks


async def test_the_process_ends_when_what_a_task_waits_for_is_cancelled_and_the_task_is_not() -> None:
    other = asyncio.get_running_loop().create_future()

    async def waits() -> None:
        await other

    with pytest.RaisesGroup(RuntimeError) as raised:
        async with asyncio.TaskGroup() as group:
            tasks = Tasks()
            tasks.group = group
            tasks.spawn(waits(), "pump")
            await asyncio.sleep(0)
            other.cancel()
            await asyncio.sleep(60)
    assert [str(error) for error in raised.value.exceptions] == [
        "pump: what it waited for was cancelled, by nobody who ends it"
    ]


async def test_nothing_is_raised_when_a_task_is_ended_as_it_was_meant_to() -> None:
    async with asyncio.TaskGroup() as group:
        tasks = Tasks()
        tasks.group = group
        one = tasks.spawn(asyncio.sleep(60), "pump")
        other = tasks.spawn(asyncio.sleep(60), "committer")
        await asyncio.sleep(0)
        tasks.retire(one)
        tasks.cancel()
    assert (one.cancelled(), other.cancelled()) == (True, True)
