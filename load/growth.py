"""Whether a process that lived through a soak takes more and more. Pure."""

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

MOST_GROWTH = 0.05
"""Of resident memory, from the second tenth of the time to the last."""


class Sample(NamedTuple):
    """One look at one process."""

    at: float
    """Seconds from the first look."""
    replica: int
    pid: int
    memory: int
    """Bytes resident."""
    files: int
    """Open descriptors."""
    threads: int
    tasks: int | None = None
    """Of the event loop; None while it didn't answer."""


class Growth(NamedTuple):
    """What one process took after its warm-up, and at the end; medians."""

    memory_before: float
    memory_after: float
    files_before: float
    files_after: float
    tasks_before: float
    tasks_after: float

    @property
    def share(self) -> float:
        """Return by which share the memory has grown; negative if it shrank."""
        return self.memory_after / self.memory_before - 1

    @property
    def is_broken(self) -> bool:
        """Tell whether that is too much."""
        is_leaking = self.files_after > self.files_before or self.tasks_after > self.tasks_before
        return is_leaking or self.share > MOST_GROWTH

    @property
    def words(self) -> str:
        """Return it in a sentence."""
        return (
            f"The replica that was never ended: {self.memory_before / 1e6:.1f} MB after its warm-up, "
            f"{self.memory_after / 1e6:.1f} MB at the end ({self.share:+.1%}, at most {MOST_GROWTH:+.0%}); "
            f"{self.files_before:.0f} descriptors, {self.files_after:.0f} at the end; "
            f"{self.tasks_before:.0f} tasks, {self.tasks_after:.0f} at the end."
        )


def lives(samples: Sequence[Sample]) -> dict[tuple[int, int], list[Sample]]:
    """Return the samples of each process, by replica and pid."""
    found: dict[tuple[int, int], list[Sample]] = {}
    for one in samples:
        found.setdefault((one.replica, one.pid), []).append(one)
    return found


def growth(samples: Sequence[Sample], replica: int) -> Growth:
    """Return how a replica that lived all the time grew.

    Raises ValueError if nobody looked at it in a tenth, or if it never told its tasks there.
    """
    own = [one for one in samples if one.replica == replica]
    if not own:
        raise ValueError(f"replica {replica} was never looked at")
    end = own[-1].at
    second = [one for one in own if 0.1 * end <= one.at <= 0.2 * end]
    last = [one for one in own if one.at >= 0.9 * end]
    return Growth(
        median(one.memory for one in second), median(one.memory for one in last),
        median(one.files for one in second), median(one.files for one in last),
        median(_tasks(second)), median(_tasks(last)),
    )  # fmt: skip


def _tasks(samples: Sequence[Sample]) -> list[int]:
    found = [one.tasks for one in samples if one.tasks is not None]
    if not found:
        raise ValueError("no process told how many tasks it has")
    return found
