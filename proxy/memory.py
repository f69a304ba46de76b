"""What is done so that memory given back costs no long step, and is really given back.

Python's collector walks over all that is new, in one step; by itself it begins when so many more objects were made than
freed, which in a steady flow they never are, however many are new. So it is called by time as well.

The C library of Linux learns from the first large block that is freed to take all that are not larger, up to 32 MiB,
from its heap; what is freed there stays taken as long as anything behind it lives. Events of a megabyte among small
ones took a fifth more memory by that than the settings bound.
"""

import asyncio
import ctypes
import gc
import os

GC_THRESHOLDS = (10_000, 5_000, 100)
"""Events are tuples without cycles, by the thousand: collecting as often as shipped costs a third of reading them. The
first bounds a step: some milliseconds for so many new objects. The second says how seldom what is older is looked at.
"""
COLLECT_INTERVAL = 0.5
"""Seconds between two looks at what is new: at 20,000 events a second 10,000 of them, if they wait."""
LARGE = 128 * 1024
"""Bytes from which a block is large: where the library begins, before it has learned."""

_M_MMAP_THRESHOLD = -3
_SAID_BY_OPERATOR = "MALLOC_MMAP_THRESHOLD_"


async def collect() -> None:
    """Collect what is new again and again, until cancelled."""
    while True:
        await asyncio.sleep(COLLECT_INTERVAL)
        gc.collect(0)


def keep_large_blocks_apart() -> None:
    """Have large blocks lie apart from the heap, unless the environment says from which size on; glibc only."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None and _SAID_BY_OPERATOR not in os.environ:
        mallopt(_M_MMAP_THRESHOLD, LARGE)
