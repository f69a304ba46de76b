"""The priorities of the published load shedders: each class in 128 cohorts, and a level up to which requests pass.

WeChat's DAGOR tells 128 user priorities apart within a business priority, Uber's Cinnamon 128 cohorts within a tier: a
hash of who asks, so that a share of a class can be refused. Here a class is the business priority, or the tier, and its
events are spread evenly over its cohorts (docs/design/0028-rivals.md). A level is how many cohorts pass, counted from
the most important class on: 0 none, `most(classes)` all. At most one class passes in part.
"""

from collections.abc import Sequence
from math import floor, inf

COHORTS = 128
"""Of a class, as published by both."""
_DUST = 1e-9
"""Less than this is rounding, not a part of a cohort."""


def most(classes: int) -> int:
    """Return the level at which all requests pass."""
    return classes * COHORTS


def rates(level: int, asked: Sequence[float], rejected: Sequence[float], seconds: float) -> tuple[float, ...]:
    """Return what may pass of each class in a second, when so many requests asked and were rejected in so many seconds.

    The least important class that passes gets its part, also where that is all and some were rejected before: a backlog
    that asks again is no flood. Those above it pass at once (infinite), those below do not (0).
    """
    last = (level - 1) // COHORTS
    part = (level - last * COHORTS) / COHORTS
    is_free = part == 1 and last >= 0 and not rejected[last]
    found = [inf if rank < last or (rank == last and is_free) else 0.0 for rank in range(len(asked))]
    if last >= 0 and not is_free:
        found[last] = part * asked[last] / seconds
    return tuple(found)


def lowered(level: int, asked: Sequence[float], admitted: float, expected: float) -> int:
    """Return the level from which on no more than `expected` of what was admitted passes; 1 at least.

    `asked` is how many requests there were of each class.
    """
    while admitted > expected + _DUST and level > 1:
        level -= 1
        admitted -= asked[level // COHORTS] / COHORTS
    return level


def raised(level: int, asked: Sequence[float], admitted: float, expected: float) -> int:
    """Return the level at which `expected` pass, more than were admitted; all if there are not so many."""
    while admitted < expected - _DUST and level < most(len(asked)):
        admitted += asked[level // COHORTS] / COHORTS
        level += 1
    return level


def passing(asked: Sequence[float], ratio: float) -> int:
    """Return the level at which no less than `ratio` of the requests is rejected, the least important ones."""
    left = (1 - ratio) * sum(asked)
    for rank, requests in enumerate(asked):
        if left < requests - _DUST:
            return rank * COHORTS + floor(left / requests * COHORTS + _DUST)
        left -= requests
    return most(len(asked))
