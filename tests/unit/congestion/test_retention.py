"""What the log lets an event live: a bound from below, by time and by size."""

from math import inf

import pytest

from proxy.congestion.retention import OVERHEAD, Span, event_bytes, span
from proxy.model import Retention

HOUR = 3_600.0
BY_TIME = Retention(HOUR, None, 1_000_000)
BY_SIZE = Retention(None, 1_000_000, 100_000)


def test_an_event_has_what_its_age_leaves_of_the_time_when_the_log_keeps_by_time() -> None:
    assert span(600.0, 10, 5.0, 100.0, BY_TIME) == Span(3_000.0, HOUR)
    assert span(4_000.0, 10, 5.0, 100.0, BY_TIME).left == 0


def test_an_event_has_what_stands_behind_it_leaves_of_the_size_when_the_log_keeps_by_size() -> None:
    assert span(600.0, 4_000, 10.0, 100.0, BY_SIZE) == Span(600.0, 1_000.0)
    assert span(600.0, 4_000, 0.0, 100.0, BY_SIZE) == Span(inf, inf), "nothing comes, nothing goes"
    assert span(None, 20_000, 0.0, 100.0, BY_SIZE).left == 0, "a segment may go at any time"


def test_the_lesser_counts_when_the_log_keeps_by_both() -> None:
    both = Retention(HOUR, 1_000_000, 100_000)
    assert span(3_500.0, 4_000, 10.0, 100.0, both).left == 100.0
    assert span(600.0, 4_000, 10.0, 100.0, both).left == 600.0


def test_nothing_is_near_its_end_when_nothing_is_left_to_do_or_the_log_keeps_all() -> None:
    assert span(None, 0, 5.0, 100.0, BY_TIME).left == inf
    assert span(1e9, 10, 5.0, 100.0, Retention(None, None, None)) == Span(inf, inf)


def test_it_is_near_its_end_for_half_of_what_it_has_at_most_and_far_only_later_when_it_was_near() -> None:
    assert Span(9.0, HOUR).is_near(10.0, was=False)
    assert not Span(11.0, HOUR).is_near(10.0, was=False)
    assert Span(14.0, HOUR).is_near(10.0, was=True)
    assert not Span(15.0, HOUR).is_near(10.0, was=True)
    assert not Span(6.0, 10.0).is_near(HOUR, was=False), "a topic that keeps ten seconds would be alarming for ever"
    assert Span(4.0, 10.0).is_near(HOUR, was=False)


@pytest.mark.parametrize(("size", "held", "told"), [(30.0, None, 30 + OVERHEAD), (None, 1_000, 1_100), (None, 0, None)])
def test_an_event_is_taken_for_rather_too_large_when_it_is_not_known_better(
    size: float | None, held: int | None, told: float | None
) -> None:
    assert event_bytes(size, held, BY_SIZE) == told


def test_a_log_that_holds_many_shows_how_small_they_lie_when_they_are_compressed() -> None:
    assert event_bytes(1_000.0, 11_000, BY_SIZE) == 100.0
    assert event_bytes(20.0, 11_000, BY_SIZE) == 20 + OVERHEAD
    assert event_bytes(1_000.0, 11_000, BY_TIME) == 1_000 + OVERHEAD
