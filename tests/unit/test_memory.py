"""What becomes of large blocks of memory, and how many objects Python looks at in one step."""

import asyncio
import gc
import os
import subprocess
import sys
from collections import deque

import pytest

from proxy import memory
from proxy.memory import GC_THRESHOLDS, LARGE
from proxy.simulation import virtual_time

APART = f"""
import ctypes
from proxy.memory import keep_large_blocks_apart
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
class Told(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int) for name in "abcdefghij"]  # the fourth: how many blocks lie apart
libc.mallinfo.restype = Told
keep_large_blocks_apart()
libc.free(libc.malloc(ctypes.c_size_t(16 * 1024**2)))
before = libc.mallinfo().d
kept = libc.malloc(ctypes.c_size_t({LARGE}))
print(libc.mallinfo().d - before)
"""


@pytest.mark.parametrize(("said", "apart"), [(None, 1), (str(32 * LARGE), 0)])
def test_a_large_block_lies_apart_when_a_larger_one_was_freed_unless_the_operator_says_otherwise(
    said: str | None, apart: int
) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "MALLOC_MMAP_THRESHOLD_"}
    if said is not None:
        environment["MALLOC_MMAP_THRESHOLD_"] = said
    told = subprocess.run([sys.executable, "-c", APART], env=environment, check=True, capture_output=True, text=True)
    assert int(told.stdout) == apart


def test_what_is_new_is_looked_at_in_time_when_as_much_is_freed_as_is_made() -> None:
    looked_at: list[int] = []

    def look(phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            looked_at.append(len(gc.get_objects(0)))

    async def flow() -> None:
        waiting = deque([number] for number in range(20_000))
        collecting = asyncio.create_task(memory.collect())
        gc.callbacks.append(look)
        for number in range(40):  # each waits for a second
            await asyncio.sleep(0.05)
            for _ in range(1_000):
                waiting.popleft()
                waiting.append([number])
        collecting.cancel()

    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        virtual_time.run(flow())
    finally:
        gc.callbacks.remove(look)
        gc.enable()
        gc.unfreeze()
    assert len(looked_at) >= 3
    assert max(looked_at[1:]) <= 12_000


def test_python_looks_at_few_objects_in_one_step_when_very_many_are_new() -> None:
    looked_at: list[int] = []

    def look(phase: str, told: dict[str, int]) -> None:
        if phase == "start":
            looked_at.append(sum(map(len, map(gc.get_objects, range(told["generation"] + 1)))))

    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    gc.callbacks.append(look)
    try:
        kept = [[number] for number in range(200_000)]
    finally:
        gc.callbacks.remove(look)
        gc.set_threshold(*before)
        gc.unfreeze()
    assert len(kept) == 200_000
    assert looked_at
    assert max(looked_at) <= 12_000
