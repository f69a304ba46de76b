"""Event types, subscriptions and tokens; offsets."""

from hypothesis import given
from hypothesis import strategies as st

from tests.nakadi import views
from tests.nakadi.event_types import PartitionLog
from tests.nakadi.rig import Rig


def test_the_same_subscription_is_returned_when_it_is_asked_for_again() -> None:
    rig = Rig()
    found = rig.subscribe("a", "b")
    assert rig.subscribe("b", "a", read_from="end") is found
    assert found.read_from == "begin"
    assert rig.subscribe("a") is not found
    assert rig.subscribe("a", "b", consumer_group="other") is not found
    assert rig.subscribe("a", "b", owning_application="other") is not found


def test_reading_starts_where_the_subscription_says() -> None:
    rig = Rig()
    rig.publish("a", 4)
    log = rig.bus.event_types["a"].partitions[0]
    at = [{"event_type": "a", "partition": "0", "offset": log.offset(1)}]
    begin, end = rig.subscribe("a"), rig.subscribe("a", read_from="end", consumer_group="end")
    cursors = rig.subscribe("a", read_from="cursors", initial_cursors=at, consumer_group="cursors")
    rig.publish("a", 1)  # before anybody reads: `end` is where the first stream finds it
    streams = [(found, rig.open(found, batch_limit=9)) for found in (begin, end, cursors)]
    rig.publish("a", 1)
    rig.now = 1.0
    assert [rig.events(*each) for each in streams] == [[[0, 1, 2, 3, 4, 5]], [[5]], [[2, 3, 4, 5]]]


def test_a_subscription_is_refused_when_it_is_not_whole() -> None:
    rig = Rig()
    rig.bus.create("a", 2)
    one = [{"event_type": "a", "partition": "0", "offset": "BEGIN"}]
    mistakes: tuple[dict[str, object], ...] = (
        {"owning_application": ""},
        {"event_types": []},
        {"event_types": ["missing"]},
        {"read_from": "middle"},
        {"read_from": "cursors", "initial_cursors": one},
    )
    for wrong in mistakes:
        asked = {"owning_application": "tests", "event_types": ["a"]} | wrong
        assert rig.refusal(rig.bus.subscribe, asked, rig.now) == 422


def test_a_token_is_good_until_its_time() -> None:
    rig = Rig()
    rig.bus.allow(None, 0.0)
    rig.bus.tokens = {"good": 10.0}
    assert [rig.refusal(rig.bus.allow, token, 9.0) for token in ("good", "bad", None)] == [0, 401, 401]
    assert rig.refusal(rig.bus.allow, "good", 10.0) == 401


def test_an_event_type_stays_when_a_subscription_reads_it() -> None:
    rig = Rig()
    found = rig.subscribe("a")
    assert rig.refusal(rig.bus.delete, "a") == 409
    rig.bus.unsubscribe(found.id, rig.now)
    assert rig.refusal(rig.bus.delete, "a") == 0
    assert rig.refusal(rig.bus.event_type, "a") == 404


def test_stats_tell_lag_when_something_was_ever_read() -> None:
    rig = Rig()
    rig.publish("a", 3)
    found = rig.subscribe("a")
    (told,) = views.stats(found, rig.now, show_time_lag=True)["items"][0]["partitions"]
    assert told == {"partition": "0", "state": "unassigned"}
    stream = rig.open(found)
    rig.commit(found, stream, rig.pull(found, stream)[:1])
    rig.now = 7.5
    (told,) = views.stats(found, rig.now, show_time_lag=True)["items"][0]["partitions"]
    assert told == {
        "partition": "0",
        "state": "assigned",
        "unconsumed_events": 2,
        "consumer_lag_seconds": 7,
        "stream_id": stream.id,
        "assignment_type": "auto",
    }
    (told,) = views.stats(found, rig.now, show_time_lag=False)["items"][0]["partitions"]
    assert "consumer_lag_seconds" not in told


def test_old_events_go_when_they_are_kept_no_longer() -> None:
    rig = Rig()
    rig.bus.create("a", 1, retention_ms=10_000)
    rig.bus.create("b", 1, cleanup_policy="compact", retention_ms=10_000)
    for name in ("a", "b"):
        rig.publish(name, 3)
    rig.now = 5.0
    rig.publish("a", 3)
    rig.bus.expire(12.0)
    assert [rig.bus.event_types[name].partitions[0].first for name in ("a", "b")] == [3, 0]


DEEDS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 5)),
        st.tuples(st.just("gap"), st.integers(1, 9)),
        st.tuples(st.just("timeline"), st.just(0)),
        st.tuples(st.just("truncate"), st.integers(0, 20)),
    ),
    max_size=12,
)


@given(DEEDS)
def test_an_offset_leads_back_to_its_event_whatever_became_of_the_partition(deeds: list[tuple[str, int]]) -> None:
    log = PartitionLog()
    for deed, number in deeds:
        if deed == "append":
            log.append([b"{}"] * number, 0.0)
        elif deed == "gap":
            log.leave_gap(number)
        elif deed == "timeline":
            log.switch_timeline()
        else:
            log.truncate(number)
    offsets = [log.offset(index) for index in range(-1, log.end)]
    assert [log.index(offset) for offset in offsets] == list(range(-1, log.end))
    assert offsets[1:] == sorted(set(offsets[1:]))
    rig = Rig()
    for wrong in (log.offset(log.end), "", "1", "001-0001--1", "002-0001-000000000000000000", "001-ffff-0"):
        assert rig.refusal(log.index, wrong) == 422


def test_a_number_that_was_left_out_stands_for_the_event_before() -> None:
    log = PartitionLog()
    log.append([b"{}"] * 2, 0.0)
    log.leave_gap(3)
    log.append([b"{}"], 0.0)
    assert [log.index(f"001-0001-{number:018d}") for number in range(1, 6)] == [1, 1, 1, 1, 2]
