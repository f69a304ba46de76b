"""What a stream sends, when, and how it ends."""

import pytest

from tests.nakadi.rig import Rig
from tests.nakadi.stream import Parameters


def test_a_batch_leaves_at_once_when_it_is_full() -> None:
    rig = Rig()
    rig.publish("a", 7)
    found = rig.subscribe("a")
    assert rig.events(found, rig.open(found, batch_limit=3)) == [[0, 1, 2], [3, 4, 5]]


def test_a_batch_leaves_when_the_flush_timeout_has_passed() -> None:
    rig = Rig()
    rig.publish("a", 2)
    found = rig.subscribe("a")
    stream = rig.open(found, batch_limit=3)
    assert rig.events(found, stream) == []
    assert stream.wake_at(rig.now) == 1.0
    rig.now = 1.0
    assert rig.events(found, stream) == [[0, 1]]


def test_each_partition_says_that_it_lives_when_nothing_is_there() -> None:
    rig = Rig()
    rig.bus.create("a", 2)
    found = rig.subscribe("a")
    stream = rig.open(found)
    rig.now = 1.0
    lines = rig.pull(found, stream)
    assert [line["cursor"]["partition"] for line in lines] == ["0", "1"]
    assert all("events" not in line and line["cursor"]["offset"] == "BEGIN" for line in lines)


def test_no_more_is_sent_when_so_much_is_uncommitted() -> None:
    rig = Rig()
    rig.publish("a", 9)
    found = rig.subscribe("a")
    stream = rig.open(found, batch_limit=3, max_uncommitted_events=5)
    lines = rig.pull(found, stream)
    assert [line["events"] for line in lines] == [[0, 1, 2], [3, 4]]
    rig.now = 1.0
    assert rig.events(found, stream) == [[]]  # it waits, and says that it lives
    assert rig.commit(found, stream, lines[:1]) == ["committed"]
    assert rig.events(found, stream) == [[5, 6, 7]]


def test_the_limit_of_uncommitted_holds_for_all_partitions_together() -> None:
    rig = Rig()
    rig.bus.create("a", 2)
    rig.publish("a", 9, 0)
    rig.publish("a", 9, 1)
    found = rig.subscribe("a")
    assert sum(map(len, rig.events(found, rig.open(found, batch_limit=3, max_uncommitted_events=5)))) == 5


def test_a_stream_ends_when_nobody_commits() -> None:
    rig = Rig()
    rig.publish("a", 1)
    found = rig.subscribe("a")
    stream = rig.open(found)
    rig.now = 10.0
    assert rig.events(found, stream) == [[0]]
    rig.now = 69.9
    assert rig.events(found, stream) == [[]]
    assert stream.state == "streaming"
    rig.now = 70.0
    (farewell,) = rig.pull(found, stream)
    assert stream.state == "gone"
    assert farewell["info"]["debug"] == "Commit timeout reached"
    assert rig.events(found, rig.open(found)) == [[0]]


def test_a_stream_lives_when_nothing_is_uncommitted() -> None:
    rig = Rig()
    rig.publish("a", 1)
    found = rig.subscribe("a")
    stream = rig.open(found)
    rig.commit(found, stream, rig.pull(found, stream))
    rig.now = 2_000.0
    assert rig.events(found, stream) == [[]]
    assert stream.state == "streaming"


def test_each_commit_gives_sixty_seconds_more_when_more_is_uncommitted() -> None:
    rig = Rig()
    rig.publish("a", 3)
    found = rig.subscribe("a")
    stream = rig.open(found)
    lines = rig.pull(found, stream)
    rig.now = 50.0
    rig.commit(found, stream, lines[:1])
    rig.now = 109.9
    found.advance(rig.now)
    assert stream.state == "streaming"
    rig.now = 110.0
    found.advance(rig.now)
    assert stream.state == "gone"


def test_a_commit_that_is_not_newer_gives_no_time() -> None:
    rig = Rig()
    rig.publish("a", 3)
    found = rig.subscribe("a")
    stream = rig.open(found)
    lines = rig.pull(found, stream)
    rig.commit(found, stream, lines[:1])
    rig.now = 50.0
    assert rig.commit(found, stream, lines[:1]) == ["outdated"]
    rig.now = 60.0
    found.advance(rig.now)
    assert stream.state == "gone"


def test_the_commit_timeout_is_shorter_when_that_is_asked_for() -> None:
    rig = Rig()
    rig.publish("a", 1)
    found = rig.subscribe("a")
    stream = rig.open(found, commit_timeout=5.0)
    rig.pull(found, stream)
    rig.now = 5.0
    found.advance(rig.now)
    assert stream.state == "gone"


@pytest.mark.parametrize("asked", [0.0, 5_000.0])
def test_a_stream_ends_after_about_an_hour_when_no_time_is_asked_for(asked: float) -> None:
    rig = Rig()
    found = rig.subscribe("a")
    ends = set()
    for _ in range(20):
        stream = rig.open(found, stream_timeout=asked)
        ends.add(stream.ends_at)
        found.close(stream, "test", rig.now)
    assert len(ends) == 20
    assert min(ends) >= 3_000.0
    assert max(ends) <= 4_200.0


def test_a_stream_that_is_over_takes_commits_when_something_is_uncommitted() -> None:
    rig = Rig()
    rig.publish("a", 2)
    found = rig.subscribe("a")
    stream = rig.open(found, stream_timeout=30.0)
    rig.now = 10.0
    lines = rig.pull(found, stream)
    rig.now = 30.0
    (farewell,) = rig.pull(found, stream)
    assert farewell["info"]["debug"] == "Stream timeout reached"
    assert stream.state == "closing"
    rig.publish("a", 1)
    assert rig.events(found, stream) == []  # nothing more
    assert rig.refusal(rig.open, found) == 409  # it still has its place
    rig.now = 69.0
    assert rig.commit(found, stream, lines) == ["committed"] * 2
    assert stream.state == "gone"
    assert rig.refusal(rig.open, found) == 0


def test_a_stream_ends_when_every_partition_has_had_its_keep_alives() -> None:
    rig = Rig()
    rig.bus.create("a", 2)
    found = rig.subscribe("a")
    stream = rig.open(found, stream_keep_alive_limit=2)
    for second in range(1, 4):
        rig.now = float(second)
        rig.pull(found, stream)
    assert stream.state == "gone"


def test_a_stream_ends_when_it_has_sent_as_many_as_were_asked_for() -> None:
    rig = Rig()
    rig.publish("a", 9)
    found = rig.subscribe("a")
    stream = rig.open(found, stream_limit=2)
    lines = rig.pull(found, stream)
    assert [line["events"] for line in lines] == [[0], [1]]
    rig.commit(found, stream, lines)
    assert stream.state == "gone"


def test_retention_is_passed_over_in_silence_when_it_overtakes() -> None:
    rig = Rig()
    rig.publish("a", 9)
    found = rig.subscribe("a")
    stream = rig.open(found, max_uncommitted_events=2)
    assert rig.events(found, stream) == [[0], [1]]
    rig.bus.event_types["a"].partitions[0].truncate(6)
    found.close(stream, "test", rig.now)
    rig.now = 60.0
    assert rig.events(found, rig.open(found)) == [[6], [7], [8]]


@pytest.mark.parametrize(
    "asked",
    [
        {"batch_limit": 0},
        {"max_uncommitted_events": 0},
        {"batch_limit": 2, "stream_limit": 1},
        {"stream_timeout": 5.0, "batch_flush_timeout": 6.0},
        {"commit_timeout": 61.0},
        {"stream_timeout": -1.0},
    ],
)
def test_a_stream_is_refused_when_its_limits_contradict_the_rules(asked: dict[str, float]) -> None:
    assert Rig().refusal(Parameters, **asked) == 422


def test_more_that_is_sent_gives_no_more_time_when_nothing_before_it_is_committed() -> None:
    rig = Rig()
    rig.publish("a", 1)
    found = rig.subscribe("a")
    stream = rig.open(found)
    rig.pull(found, stream)
    rig.now = 40.0
    rig.publish("a", 1)
    assert [1] in rig.events(found, stream)
    rig.now = 60.0
    found.advance(rig.now)
    assert stream.state == "gone"
