"""The one layout of every distribution: log-linear buckets as in HdrHistogram (Gil Tene), 1 µs to 1 h, 2 digits.

Values are whole microseconds. With 2 significant digits there are 256 sub-buckets: values below 256 have a bucket each,
above that a bucket is 2^k wide with 128 buckets for each doubling. The index equals the one that `hdrh.histogram`
gives for `HdrHistogram(1, 3_600_000_000, 2)`, so that sparse counts of either origin merge by adding.
"""

from itertools import accumulate

LOWEST_US = 1
HIGHEST_US = 3_600_000_000
DIGITS = 2
_HALF = 128
_HALF_BITS = 7


def index_of(us: int) -> int:
    """Return the bucket of a value; below 0 counts as 0, above one hour as one hour."""
    # Three times for each event: comparing costs less than calling `min` and `max`.
    if us < _HALF:
        return us if us > 0 else 0  # noqa: FURB136
    if us > HIGHEST_US:  # noqa: PLR1730
        us = HIGHEST_US
    shift = us.bit_length() - _HALF_BITS - 1
    return (shift << _HALF_BITS) + (us >> shift)


def highest_of(index: int) -> int:
    """Return the highest value that falls into a bucket: what a percentile reports, never too small."""
    shift = (index >> _HALF_BITS) - 1
    if shift <= 0:
        return index
    return (((index & (_HALF - 1)) + _HALF + 1) << shift) - 1


def quantile(counts: dict[int, int], share: float) -> int | None:
    """Return the value below or at which `share` (0..1) of the samples lie, in microseconds; None without samples."""
    total = sum(counts.values())
    if not total:
        return None
    wanted = max(1, -int(-share * total // 1))
    ordered = sorted(counts)
    sums = accumulate(counts[index] for index in ordered)
    return highest_of(next(index for index, seen in zip(ordered, sums, strict=True) if seen >= wanted))
