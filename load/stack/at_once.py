"""Calls made side by side: nodes of a cluster that start or stop together."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_Result = TypeVar("_Result")


def all_at_once(calls: Sequence[Callable[[], _Result]]) -> list[_Result]:
    """Make all calls side by side, return their results; raise what one has raised when all have ended."""
    if len(calls) == 1:
        return [calls[0]()]
    with ThreadPoolExecutor(max_workers=max(1, len(calls))) as threads:
        return [future.result() for future in [threads.submit(call) for call in calls]]
