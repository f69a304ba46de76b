"""How old the oldest event is that is not done with, from looks in between."""

import pytest

from proxy.steering.partition_age import WINDOW, PartitionAge, Seen

WALL = 1_000_000.0


def seen(resolved: int, sent: int, received: int, stamp: float | None, lag: int, **others: object) -> Seen:
    fields: dict[str, object] = {"size": 0.0, "head": resolved, "is_held": False}
    stamp_ms = None if stamp is None else round((WALL + stamp) * 1000)
    return Seen(resolved=resolved, sent=sent, received=received, front_ms=stamp_ms, lag=lag, **(fields | others))  # type: ignore[arg-type]


def age(found: PartitionAge, now: float) -> float | None:
    return found.age(now, WALL + now)


def test_the_age_grows_from_the_first_look_when_nothing_goes() -> None:
    found = PartitionAge()
    for now in (10.0, 15.0, 20.0):
        found.see(now, seen(0, 0, 100, 0.0, 500))
        assert age(found, now) == pytest.approx(now)


def test_it_is_that_of_the_look_before_when_events_go_since_what_is_on_its_way_stood_there_then() -> None:
    found = PartitionAge()
    found.see(10.0, seen(0, 5, 100, 0.0, 500))
    found.see(15.0, seen(50, 60, 150, 7.0, 500))
    assert age(found, 15.0) == 15.0, "the event that stood at the front"
    found.see(20.0, seen(61, 90, 190, 14.0, 500))
    assert age(found, 20.0) == 13.0


def test_nothing_is_old_when_all_that_was_read_is_done_with_and_the_rest_may_be_no_event() -> None:
    found = PartitionAge()
    found.see(10.0, seen(0, 5, 100, 0.0, 500))
    found.see(15.0, seen(100, 100, 100, 0.0, 1))
    assert age(found, 15.0) is None
    found.see(5_000.0, seen(100, 100, 100, 0.0, 1))
    assert age(found, 5_000.0) is None, "the end of a transaction stays"


def test_it_counts_from_when_it_was_seen_first_when_what_is_unread_is_held() -> None:
    found = PartitionAge()
    for now in (10.0, 40.0):
        found.see(now, seen(100, 100, 100, None, 7, is_held=True))
    assert age(found, 40.0) == 30.0
    found.see(45.0, seen(100, 100, 100, None, 0, is_held=True))
    assert age(found, 45.0) is None


def test_arrivals_are_those_of_the_last_minute_when_looks_go_on() -> None:
    found = PartitionAge()
    for look in range(40):
        now = 5.0 * look
        end = 10 * look if look < 20 else 200 + 500 * (look - 20)
        found.see(now, seen(0, 0, 10, 0.0, end, head=0))
    assert found.arrivals == pytest.approx(100.0, rel=0.1)
    assert len(found._ends) <= WINDOW / 5 + 2


def test_arrivals_are_unknown_again_when_it_becomes_known_where_the_end_is() -> None:
    found = PartitionAge()
    found.see(0.0, seen(0, 0, 10, 0.0, 500, head=None))
    found.see(5.0, seen(5, 5, 10, 0.0, 495, head=10_005))
    assert found.arrivals == 0
    assert found.end == 10_500
