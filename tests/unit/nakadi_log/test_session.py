"""What a stream has sent: commits end at the borders of batches, and no batch is taken for younger than it is."""

from collections import deque
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from proxy.model import Event, Partition
from proxy.nakadi_log.lines import Batch, Cursor
from proxy.nakadi_log.session import Session, Share
from proxy.nakadi_log.window import following

AT = Partition("orders", 0)


def batch(first: int, count: int) -> Batch:
    last = first + count - 1
    events = [Event(at, None, None, b"{}", (), 2) for at in range(first, first + count)]
    return Batch(Cursor("0", str(last), "orders", "t"), 0, last, events, 2 * count)


def session(window: int = 100) -> tuple[Session, Share]:
    made = Session("id", "s", window, 0.0)
    share = made.shares[AT] = Share(AT, 0, is_paused=False, seen_at=0.0, done=0)
    return made, share


@given(st.lists(st.integers(1, 5), min_size=1, max_size=20), st.data())
def test_a_commit_ends_at_the_last_border_that_is_passed_when_the_watermark_is_anywhere(
    counts: list[int], data: st.DataObject
) -> None:
    made, share = session()
    first = 0
    for count in counts:
        made.take(share, batch(first, count), 1.0)
        first += count
    borders = [0, *(sum(counts[: number + 1]) for number in range(len(counts)))]
    done = 0
    for position in sorted(data.draw(st.lists(st.integers(0, first - 1), max_size=8))):
        sent = share.border(position)
        expected = max(border for border in borders if border <= position + 1)
        if sent is None:
            assert expected <= done
            continue
        made.claim(share, sent, 2.0)
        done = made.settle(share, sent, 2.0)
        assert done == expected
        assert made.outstanding == first - done


@given(st.integers(1, 6), st.lists(st.tuples(st.integers(1, 3), st.integers(0, 3), st.booleans()), max_size=40))
def test_a_batch_is_never_taken_for_younger_than_it_is_when_a_server_sends_as_it_may(
    window: int, steps: list[tuple[int, int, bool]]
) -> None:
    """A server that sends as early as it may; what it has sent waits in the connection until it is read."""
    made, share = session(window)
    wire: deque[tuple[Batch, float]] = deque()
    sent, committed, now, truth = 0, 0, 0.0, dict[int, float]()

    def send() -> None:
        nonlocal sent
        while (room := window - (sent - committed)) > 0:
            count = min(room, 2)
            wire.append((batch(sent, count), now))
            sent += count

    for reads, commits, catches_up in steps:
        send()
        for _ in range(len(wire) if catches_up else reads):
            if not wire:
                break
            one, at = wire.popleft()
            made.take(share, one, now)
            truth[one.place] = at
        if catches_up and not wire:
            made.on_empty(now)
        assert made.is_full == (made.read - committed >= window)
        assert not made.is_full or not wire, "nothing is left unread of a stream that is full"
        for each in share.batches:
            assert each.after <= truth[each.place]
        for _ in range(commits):
            if share.batches:
                first = share.batches[0]
                made.claim(share, first, now)
                committed = made.settle(share, first, 30.0)
        now += 1.0
    assert all(first.after <= second.after for first, second in pairwise(share.batches))


def test_a_batch_is_held_since_its_room_was_made_when_the_connection_is_never_empty() -> None:
    made, share = session(window=2)
    made.take(share, batch(0, 2), 5.0)
    assert made.held_since() == 0.0
    first = share.batches[0]
    made.claim(share, first, 30.0)
    made.settle(share, first, 30.0)
    assert made.held_since() is None
    made.take(share, batch(2, 2), 31.0)
    assert made.held_since() == 30.0


def test_a_batch_is_held_since_the_opening_when_there_was_room_for_it_then() -> None:
    made, share = session(window=6)
    made.take(share, batch(0, 2), 5.0)
    made.claim(share, share.batches[0], 30.0)
    made.settle(share, share.batches[0], 30.0)
    made.take(share, batch(2, 2), 31.0)
    assert made.held_since() == 0.0, "the commit made room for others"


def test_a_stream_is_not_full_when_a_commit_is_on_its_way() -> None:
    made, share = session(window=2)
    made.take(share, batch(0, 2), 1.0)
    assert made.is_full
    made.claim(share, share.batches[0], 2.0)
    assert not made.is_full, "the commit may have made room already"
    assert made.outstanding == 2


def test_a_stream_is_spent_when_all_was_read_that_it_is_ever_sent() -> None:
    made = Session("id", "s", 10, 0.0, 20)
    share = made.shares[AT] = Share(AT, 0, is_paused=False, seen_at=0.0, done=0)
    for first in (0, 10):
        assert not made.is_spent
        made.take(share, batch(first, 10), 1.0)
        made.claim(share, share.batches[-1], 2.0)
        made.settle(share, share.batches[-1], 2.0)
    assert made.is_spent


def test_a_window_is_no_hindrance_when_what_is_sent_is_settled_as_it_comes() -> None:
    made = Session("id", "s", 10, 0.0, 20)
    share = made.shares[AT] = Share(AT, 0, is_paused=False, seen_at=0.0, done=0)
    for first in range(0, 20, 2):
        made.take(share, batch(first, 2), 1.0)
        made.claim(share, share.batches[-1], 2.0)
        made.settle(share, share.batches[-1], 2.0)
    assert made.is_spent
    assert not made.was_full


def test_nothing_is_held_of_a_partition_when_it_is_given_up() -> None:
    made, share = session()
    made.take(share, batch(0, 2), 1.0)
    made.drop(share)
    assert (made.outstanding, made.held_since(), made.shares) == (0, None, {})


def test_the_pace_is_that_of_the_last_seconds_when_a_type_becomes_slow() -> None:
    made, share = session(window=400)
    made.take(share, batch(0, 1), 0.0)
    for second in range(1, 40):  # 100 a second for 20 s, then 10 a second
        count = 100 if second <= 20 else 10
        made.take(share, batch(share.next, count), float(second))
        first = share.batches[0]
        made.claim(share, first, second + 0.5)
        made.settle(share, first, second + 0.5)
    settled, seconds = made.pace(39.5, 10.0)
    assert 10 <= settled / seconds <= 12


def test_the_pace_is_that_of_the_last_seconds_when_a_stream_has_lived_for_an_hour() -> None:
    made, share = session(window=400)
    made.take(share, batch(0, 1), 0.0)
    for number in range(1, 7_200):
        made.take(share, batch(share.next, 10), number / 2)
        first = share.batches[0]
        made.claim(share, first, number / 2)
        made.settle(share, first, number / 2)
    settled, seconds = made.pace(3_599.5, 40.0)
    assert 19 <= settled / seconds <= 21


def test_the_pace_is_that_of_the_time_in_which_something_was_to_settle_when_much_of_it_was_none() -> None:
    made, share = session()
    for start in (0.0, 100.0):
        made.take(share, batch(share.next, 50), start)
        made.claim(share, share.batches[-1], start + 2.0)
        made.settle(share, share.batches[-1], start + 2.0)
    assert made.pace(200.0, 20.0) == (50, 2.0)


@given(st.integers(1, 5_000), st.integers(0, 100_000), st.floats(0.0, 60.0), st.booleans())
def test_a_window_is_settled_long_before_it_must_be_when_a_type_goes_on_as_it_did(
    window: int, settled: int, seconds: float, is_overdue: bool
) -> None:
    found = following(window, 5_000, settled, seconds, timeout=30.0, is_overdue=is_overdue)
    assert 1 <= found <= 5_000
    if settled and seconds >= 1.0:
        assert found <= max(1.0, settled / seconds * 30.0 / 8), "nothing is let go before it is five times as slow"
    assert found <= (window if is_overdue else 16 * window)


def test_a_window_grows_as_its_type_goes_when_all_of_it_was_settled() -> None:
    assert following(5000, 5000, 90_000, 60.0, timeout=60.0, is_overdue=False) == 5000
    assert following(1, 5000, 1, 0.5, timeout=60.0, is_overdue=False) == 16
    assert following(16, 5000, 16, 0.5, timeout=60.0, is_overdue=False) == 256
    assert following(256, 5000, 256, 0.5, timeout=60.0, is_overdue=False) == 1920, "a first burst proves little"
    assert following(256, 5000, 2560, 1.0, timeout=60.0, is_overdue=False) == 4096
    assert following(20, 5000, 20, 20.0, timeout=60.0, is_overdue=False) == 7


def test_a_window_shrinks_to_what_a_type_can_commit_when_a_batch_was_held_for_too_long() -> None:
    assert following(5000, 5000, 400, 40.0, timeout=60.0, is_overdue=True) == 75
    assert following(5000, 5000, 0, 40.0, timeout=60.0, is_overdue=True) == 1
    assert following(3, 5000, 3, 0.0, timeout=60.0, is_overdue=True) == 3
