"""The clock that confirms are timed with."""

import asyncio
import time

from proxy.event_loop import PreciseLoop


def test_the_clock_moves_within_a_turn_of_the_loop_when_it_is_read_twice() -> None:
    async def read() -> tuple[float, float, float]:
        loop = asyncio.get_running_loop()
        first = loop.time()
        while (second := loop.time()) == first:
            pass
        return first, second, time.monotonic()

    with asyncio.Runner(loop_factory=PreciseLoop) as runner:
        first, second, system = runner.run(read())
    assert 0 < second - first < 0.000_5
    assert 0 <= system - second < 1


def test_a_deadline_ends_a_wait_at_its_time_when_the_clock_is_ours() -> None:
    async def wait() -> float:
        loop = asyncio.get_running_loop()
        started = loop.time()
        try:
            async with asyncio.timeout(0.02):
                await asyncio.Event().wait()
        except TimeoutError:
            pass
        return loop.time() - started

    with asyncio.Runner(loop_factory=PreciseLoop) as runner:
        assert 0.019 <= runner.run(wait()) < 1
