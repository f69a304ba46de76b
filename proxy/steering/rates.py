"""How much of each kind comes in a second, from totals that only grow; pure."""

from collections import defaultdict, deque
from collections.abc import Hashable, Mapping
from typing import Generic, TypeVar

Kind = TypeVar("Kind", bound=Hashable)

_ENDS = 2
"""Samples that a rate needs."""


class Rates(Generic[Kind]):
    """Rates from the samples of the last `window` seconds, and of the last two in any case."""

    def __init__(self, window: float, stale_after: float) -> None:
        """Make one; `stale_after` seconds without a sample nothing is known any more."""
        self._window = window
        self._stale_after = stale_after
        self._totals: defaultdict[Kind, int] = defaultdict(int)
        self._history: deque[tuple[float, dict[Kind, int]]] = deque()
        self._rates: Mapping[Kind, float] | None = None

    def count(self, kind: Kind, more: int) -> None:
        """Count what has come; less than nothing counts as nothing."""
        self._totals[kind] += max(0, more)

    def sample(self, now: float) -> None:
        """End an interval; `now`, in seconds, must grow."""
        history = self._history
        history.append((now, dict(self._totals)))
        while len(history) > _ENDS and history[0][0] < now - self._window:
            history.popleft()
        (since, before), (until, after) = history[0], history[-1]
        if until > since:
            self._rates = {kind: (total - before.get(kind, 0)) / (until - since) for kind, total in after.items()}

    def is_stale(self, now: float) -> bool:
        """Return whether the last sample is too old, or there is none."""
        return not self._history or now - self._history[-1][0] > self._stale_after

    @property
    def last(self) -> Mapping[Kind, float] | None:
        """As of the last sample; None if there are fewer than two."""
        return self._rates
