"""No commit passes an unresolved record, whatever the order of outcomes."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.bridge.offsets import Watermark


@st.composite
def resolutions(draw: st.DrawFn) -> tuple[list[int], list[tuple[int, int]]]:
    """Received batch sizes, and disjoint ranges over them in any order, some events left unresolved."""
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=8))
    total = sum(sizes)
    cuts = sorted(draw(st.sets(st.integers(1, total), max_size=total)) | {0, total})
    ranges = [pair for pair in pairwise(cuts) if draw(st.booleans())]
    return sizes, draw(st.permutations(ranges))


@given(resolutions())
def test_the_watermark_is_the_contiguous_run_of_resolved_when_outcomes_come_in_any_order(
    history: tuple[list[int], list[tuple[int, int]]],
) -> None:
    sizes, ranges = history
    watermark = Watermark()
    positions = [f"pos-{n}" for n in range(sum(sizes))]
    for size in sizes:
        watermark.receive(size)
    resolved: set[int] = set()
    for start, end in ranges:
        watermark.resolve(start, end, positions[end - 1])
        resolved |= set(range(start, end))
        lowest_open = next(n for n in range(len(positions) + 1) if n not in resolved)
        assert watermark.resolved == lowest_open
        assert watermark.position == (positions[lowest_open - 1] if lowest_open else None)
        assert watermark.ahead == len(resolved) - lowest_open


@given(st.integers(0, 5), st.integers(-2, 9), st.integers(-2, 9))
def test_a_range_is_refused_when_it_was_resolved_before_or_never_received(done: int, start: int, end: int) -> None:
    watermark = Watermark()
    watermark.receive(6)
    if done:
        watermark.resolve(0, done, "p")
    if done <= start < end <= 6:
        watermark.resolve(start, end, "q")
    else:
        with pytest.raises(ValueError, match="outside"):
            watermark.resolve(start, end, "q")
