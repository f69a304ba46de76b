"""Offsets are texts; their places rise as the log does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.nakadi_log.offsets import offset_at, place, same_timeline


def test_places_are_the_numbers_when_there_was_one_timeline() -> None:
    assert [place(each) for each in ("BEGIN", "001-0001--1", "001-0001-000000000000000042", "42")] == [-1, -1, 42, 42]


def test_places_rise_when_a_timeline_follows() -> None:
    last, first = place("001-0001-000000068719476735"), place("001-0002-000000000000000000")
    assert last < first
    assert not same_timeline(last, first)
    assert same_timeline(first, first + 7)
    assert place("001-ffff-000000000000000000") < 2**53


@pytest.mark.parametrize("bad", ["", "soon", "001-0001-", "001-0001-4x", "001-1-2-3", "-7"])
def test_an_offset_is_refused_when_it_tells_no_place(bad: str) -> None:
    with pytest.raises(ValueError, match="no offset whose place is known"):
        place(bad)


@given(st.integers(0, 2**36 - 1), st.integers(1, 0xFFFF))
def test_an_offset_is_found_again_when_its_place_is_known(number: int, timeline: int) -> None:
    offset = f"001-{timeline:04x}-{number:018d}"
    assert offset_at(place(offset), like="001-0001-000000000000000000") == offset
    assert offset_at(-1, like=offset) == "BEGIN"
