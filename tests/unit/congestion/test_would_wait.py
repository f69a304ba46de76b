"""What would wait: first in, first out, in bounded memory, never counted twice."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.congestion.would_wait import SLOTS, WouldWait


def test_nothing_has_waited_when_it_goes_within_a_refill() -> None:
    waiting = WouldWait()
    waiting.add(5, 1.0)
    waiting.take(5, 1.01)
    assert (waiting.events, waiting.sent, waiting.passed) == (0, 5, 5)
    assert (waiting.held(2.0), waiting.take_longest(2.0)) == (0, 0.0)


def test_those_that_went_late_and_those_that_still_wait_are_held_when_asked() -> None:
    waiting = WouldWait()
    waiting.add(5, 1.0)
    waiting.add(5, 2.0)
    waiting.take(7, 3.0)
    assert (waiting.held(3.0), waiting.held(2.005 + 1)) == (10, 10)
    assert waiting.take_longest(3.0) == 2.0
    assert waiting.take_longest(3.5) == 1.5  # since it was asked last: what waits by now
    waiting.take(3, 4.0)
    assert waiting.held(9.0) == 10


def test_events_just_sent_are_not_held_yet() -> None:
    waiting = WouldWait()
    waiting.add(5, 1.0)
    waiting.add(2, 1.5)
    assert waiting.held(1.505) == 5


def test_a_backlog_of_hours_takes_no_more_memory_than_one_of_seconds() -> None:
    waiting = WouldWait()
    for second in range(20_000):
        waiting.add(1, float(second))
    assert len(waiting._slots) <= SLOTS
    waiting.take(10_000, 20_000.0)
    assert waiting.take_longest(20_000.0) == 20_000.0
    assert waiting.take_longest(20_000.0) == pytest.approx(10_000, rel=0.03)


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(0, 60), st.floats(0, 3)), min_size=1, max_size=300))
def test_no_event_is_lost_or_counted_twice_whatever_comes_and_goes(
    steps: list[tuple[int, int, float]],
) -> None:
    waiting, now, held = WouldWait(), 0.0, 0
    for come, go, pause in steps:
        waiting.add(come, now)
        now += pause
        waiting.take(min(go, waiting.events), now)
        assert waiting.sent == waiting.passed + waiting.events
        assert sum(slot.events for slot in waiting._slots) == waiting.events
        assert held <= (held := waiting.held(now)) <= waiting.sent
