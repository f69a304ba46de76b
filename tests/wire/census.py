"""What a process holds, counted: objects by type, callbacks, tasks, timers, descriptors, blocks of memory."""

import asyncio
import gc
import os
import sys
from collections import Counter
from typing import Any


def census() -> Counter[str]:
    """Return how many there are of everything; objects as the collector knows them, by type."""
    gc.collect()
    objects = gc.get_objects()
    counts = Counter(f"{type(one).__module__}.{type(one).__qualname__}" for one in objects)
    futures = [one for one in objects if isinstance(one, asyncio.Future)]
    counts["callbacks"] = sum(len(one._callbacks or ()) for one in futures)
    del objects, futures
    loop: Any = asyncio.get_running_loop()
    counts["tasks"] = len(asyncio.all_tasks())
    counts["timers"] = sum(not timer.cancelled() for timer in loop._scheduled)
    counts["descriptors"] = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 -- names are not wanted
    counts["blocks"] = sys.getallocatedblocks()
    return counts


def growth(before: Counter[str], after: Counter[str], most: int, blocks: int) -> dict[str, int]:
    """Return what has grown by more than `most`, or by more than `blocks` where it is blocks of memory."""
    grown = {name: count - before[name] for name, count in after.items()}
    return {name: more for name, more in grown.items() if more > (blocks if name == "blocks" else most)}
