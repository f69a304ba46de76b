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


class Growth(NamedTuple):
    """What one process took after its warm-up, and at the end; medians."""

    memory_before: float
    memory_after: float
    files_before: float
    files_after: float

    @property
    def share(self) -> float:
        """Return by which share the memory has grown; negative if it shrank."""
        return self.memory_after / self.memory_before - 1

    @property
    def is_broken(self) -> bool:
        """Tell whether that is too much."""
        return self.share > MOST_GROWTH or self.files_after > self.files_before

    @property
    def words(self) -> str:
        """Return it in a sentence."""
        return (
            f"The replica that was never ended: {self.memory_before / 1e6:.1f} MB after its warm-up, "
            f"{self.memory_after / 1e6:.1f} MB at the end ({self.share:+.1%}, at most {MOST_GROWTH:+.0%}); "
            f"{self.files_before:.0f} descriptors, {self.files_after:.0f} at the end."
        )


def lives(samples: Sequence[Sample]) -> dict[tuple[int, int], list[Sample]]:
    """Return the samples of each process, by replica and pid."""
    found: dict[tuple[int, int], list[Sample]] = {}
    for one in samples:
        found.setdefault((one.replica, one.pid), []).append(one)
    return found


def growth(samples: Sequence[Sample], replica: int) -> Growth:
    """Return how a replica that lived all the time grew. Raises ValueError if it has no samples in a tenth."""
    own = [one for one in samples if one.replica == replica]
    if not own:
        raise ValueError(f"replica {replica} was never looked at")
    end = own[-1].at
    second = [one for one in own if 0.1 * end <= one.at <= 0.2 * end]
    last = [one for one in own if one.at >= 0.9 * end]
    return Growth(
        median(one.memory for one in second), median(one.memory for one in last),
        median(one.files for one in second), median(one.files for one in last),
    )  # fmt: skip
