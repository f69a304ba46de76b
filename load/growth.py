"""Whether a process that lived through a soak takes more and more, in figures and as a picture."""

from collections.abc import Sequence
from math import nan
from pathlib import Path
from statistics import linear_regression, median
from typing import NamedTuple

import matplotlib as mpl

MOST_GROWTH = 0.05
"""Of resident memory, from the second tenth of the time to the last."""
MOST_SLOPE = 1e6
"""Bytes an hour that the memory of a process may rise to which nothing happens."""
MOST_BLOCKS = 0.005
"""Share by which its blocks of memory may grow, whatever the time."""
WARM_UP = 600.0
"""Seconds."""
FEWEST = 20
"""Looks."""


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
    blocks: int | None = None
    """Of memory that Python holds; None while it didn't answer."""


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


class Steadiness(NamedTuple):
    """How straight a process went on after its warm-up, with nothing happening to it."""

    slope: float
    """Bytes of resident memory an hour, by least squares."""
    blocks: float
    """Share by which the blocks of memory have grown, from the first tenth to the last."""
    files: float
    tasks: float
    """More of them in the last tenth than in the first; medians."""

    @property
    def is_broken(self) -> bool:
        """Tell whether anything has grown."""
        return self.slope > MOST_SLOPE or self.blocks > MOST_BLOCKS or self.files > 0 or self.tasks > 0

    @property
    def words(self) -> str:
        """Return it in a sentence."""
        return (
            f"After its warm-up the memory rose by {self.slope / 1e6:+.2f} MB an hour (at most "
            f"{MOST_SLOPE / 1e6:+.1f}), blocks by {self.blocks:+.2%} (at most {MOST_BLOCKS:+.1%}), "
            f"descriptors by {self.files:+.0f}, tasks by {self.tasks:+.0f}."
        )


def steadiness(samples: Sequence[Sample], replica: int) -> Steadiness:
    """Return how straight a replica went on; the first 10 minutes, a sixth of the time at most, do not count.

    Raises ValueError if there are too few looks, or if it never told its tasks and blocks.
    """
    own = [one for one in samples if one.replica == replica]
    warm = min(WARM_UP, own[-1].at / 6) if own else 0.0
    own = [one for one in own if one.at >= warm]
    if len(own) < FEWEST:
        raise ValueError(f"{len(own)} looks at replica {replica} after its warm-up, at least {FEWEST} tell something")
    first, last = own[: len(own) // 10], own[-(len(own) // 10) :]
    before, after = (median(one.blocks for one in part if one.blocks is not None) for part in (first, last))
    return Steadiness(
        linear_regression([one.at / 3600 for one in own], [one.memory for one in own]).slope,
        after / before - 1,
        median(one.files for one in last) - median(one.files for one in first),
        median(_tasks(last)) - median(_tasks(first)),
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


def draw(samples: Sequence[Sample], file: Path) -> None:
    """Draw memory, descriptors and tasks of every process over time."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (above, middle, below) = plt.subplots(3, 1, sharex=True, figsize=(11, 9))
    colours = ("tab:blue", "tab:orange", "tab:green")
    named: set[int] = set()
    for (replica, _), life in lives(samples).items():
        minutes = [one.at / 60 for one in life]
        label = None if replica in named else f"replica {replica}"
        named.add(replica)
        colour = colours[replica % len(colours)]
        above.plot(minutes, [one.memory / 1e6 for one in life], color=colour, label=label)
        middle.plot(minutes, [one.files for one in life], color=colour)
        below.plot(minutes, [nan if one.tasks is None else one.tasks for one in life], color=colour)
    above.set_ylabel("resident memory, MB")
    middle.set_ylabel("open descriptors")
    below.set_ylabel("tasks")
    below.set_xlabel("minutes; a new line is a new process")
    for axes in (above, middle, below):
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
    above.legend(loc="lower right")
    figure.tight_layout()
    figure.savefig(file, dpi=100)
    plt.close(figure)
