"""Faults of Tidegate's own processes. Each returns when it began and when it ended, on the monotonic clock."""

import asyncio
import errno
import time
from pathlib import Path

from load.faults.world import Span, World

FILL_BYTES = 1 << 16
FILLER = "filler"


async def kill(world: World) -> Span:
    """Kill a replica; the fault ends at once, for it is not coming back by itself."""
    world.replicas.kill(world.mortal())
    return time.monotonic(), time.monotonic()


async def terminate(world: World) -> Span:
    """End a replica in order, likewise."""
    began = time.monotonic()
    await world.replicas.terminate(world.mortal())
    return began, time.monotonic()


async def stop(world: World) -> Span:
    """Stop a replica until others have its partitions, then let it go on."""
    worker = world.replica().worker
    assert worker is not None
    began = time.monotonic()
    worker.suspend()
    try:
        await asyncio.sleep(world.beyond_session())
    finally:
        worker.resume()
    return began, time.monotonic()


async def fill_disk(world: World) -> Span:
    """Fill the file system of one metric log."""
    assert world.metric_disk is not None
    began = time.monotonic()
    filler = world.metric_disk / FILLER
    try:
        for _ in range(round(world.seconds() / 0.25)):
            _fill(filler)
            await asyncio.sleep(0.25)  # what Tidegate frees meanwhile is filled as well
    finally:
        filler.unlink(missing_ok=True)
    return began, time.monotonic()


def _fill(filler: Path) -> None:
    with filler.open("ab", buffering=0) as file:
        try:
            for size in (FILL_BYTES, 1):
                while file.write(bytes(size)):
                    pass
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
