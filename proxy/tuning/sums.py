"""Sums that grow over a recording: known at some instants, read in between."""

from bisect import bisect_right
from collections.abc import Iterable


class Sum:
    """What has come to so much by an instant; linear between two that are known, constant outside of all."""

    def __init__(self, points: Iterable[tuple[float, float]]) -> None:
        """Take (second, sum) in the order of the seconds."""
        self._seconds: list[float] = []
        self._sums: list[float] = []
        for second, value in points:
            self._seconds.append(second)
            self._sums.append(value)

    def at(self, second: float) -> float:
        """Return the sum by an instant; 0 where none is known."""
        place = bisect_right(self._seconds, second)
        if place == 0:
            return self._sums[0] if self._sums else 0.0
        if place == len(self._seconds):
            return self._sums[-1]
        begin, end = self._seconds[place - 1], self._seconds[place]
        share = (second - begin) / (end - begin)
        return self._sums[place - 1] + share * (self._sums[place] - self._sums[place - 1])
