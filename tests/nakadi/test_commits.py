"""What may be committed, by whom, until when; how cursors are moved."""

from tests.nakadi.rig import Rig


def test_a_batch_commits_all_before_it_when_it_is_committed() -> None:
    rig = Rig()
    rig.publish("a", 9)
    found = rig.subscribe("a")
    stream = rig.open(found, batch_limit=3)
    lines = rig.pull(found, stream)
    assert rig.commit(found, stream, lines[1:2]) == ["committed"]
    assert stream.uncommitted == 3
    assert rig.commit(found, stream, lines[:2]) == ["outdated", "outdated"]


def test_a_keep_alives_cursor_commits_what_was_sent_before_it() -> None:
    rig = Rig()
    rig.publish("a", 2)
    found = rig.subscribe("a")
    stream = rig.open(found, batch_limit=2)
    rig.pull(found, stream)
    rig.now = 1.0
    assert rig.commit(found, stream, rig.pull(found, stream)) == ["committed"]


def test_a_commit_is_refused_when_it_is_no_batchs_cursor_of_this_stream() -> None:
    rig = Rig()
    rig.publish("a", 9)
    found = rig.subscribe("a")
    stream = rig.open(found, batch_limit=3, max_uncommitted_events=6)
    cursor = rig.pull(found, stream)[-1]["cursor"]
    log = rig.bus.event_types["a"].partitions[0]
    for index in (4, 6):  # within a batch; not sent yet
        offset = log.offset(index)
        told = cursor | {"offset": offset, "cursor_token": stream.token(("a", "0"), offset)}
        assert rig.refusal(found.commit, stream.id, [told], rig.now) == 422
    assert rig.refusal(found.commit, stream.id, [cursor | {"cursor_token": "x"}], rig.now) == 422
    assert rig.refusal(found.commit, "another", [cursor], rig.now) == 422
    assert rig.refusal(found.commit, stream.id, [cursor | {"event_type": "b"}], rig.now) == 422
    assert rig.refusal(found.commit, stream.id, [], rig.now) == 422
    assert stream.uncommitted == 6


def test_nothing_of_a_commit_holds_when_one_cursor_is_refused() -> None:
    rig = Rig()
    rig.publish("a", 2)
    found = rig.subscribe("a")
    stream = rig.open(found)
    lines = rig.pull(found, stream)
    bad = lines[1]["cursor"] | {"cursor_token": "x"}
    assert rig.refusal(found.commit, stream.id, [lines[0]["cursor"], bad], rig.now) == 422
    assert found.cursors() == {("a", "0"): "BEGIN"}


def test_a_closed_connections_events_are_committed_when_sixty_seconds_have_not_passed() -> None:
    rig = Rig()
    rig.publish("a", 3)
    found = rig.subscribe("a")
    stream = rig.open(found)
    lines = rig.pull(found, stream)
    rig.now = 20.0
    found.close(stream, "Connection closed", rig.now)
    rig.now = 59.0
    assert rig.commit(found, stream, lines[:1]) == ["committed"]
    rig.now = 60.0  # a commit after the end gives no more time
    assert rig.refusal(rig.commit, found, stream, lines[1:]) == 422
    assert rig.events(found, rig.open(found)) == [[1], [2]]


def test_a_stream_is_gone_at_once_when_it_closes_with_nothing_uncommitted() -> None:
    rig = Rig()
    rig.publish("a", 1)
    found = rig.subscribe("a")
    stream = rig.open(found)
    lines = rig.pull(found, stream)
    rig.commit(found, stream, lines)
    found.close(stream, "Connection closed", rig.now)
    assert rig.refusal(rig.commit, found, stream, lines) == 422


def test_streams_are_disconnected_and_refused_when_cursors_move() -> None:
    rig = Rig()
    rig.bus.create("a", 2)
    rig.publish("a", 5)
    found = rig.subscribe("a")
    streams = [rig.open(found), rig.open(found)]
    lines = [line for stream in streams for line in rig.pull(found, stream)]
    offset = rig.bus.event_types["a"].partitions[0].offset(2)
    ends = rig.bus.ends([{"event_type": "a", "partition": "0", "offset": offset}])
    rig.now = 10.0
    reset = found.move(ends, rig.now)
    assert found.reset is reset
    assert rig.refusal(rig.open, found) == 409
    assert rig.refusal(found.move, ends, rig.now) == 409
    owner = next(stream for stream in streams if stream.uncommitted)
    assert rig.commit(found, owner, lines[:1]) == ["committed"]  # still may
    rig.now = 60.0
    found.advance(rig.now)
    assert reset.is_done
    assert not found.streams
    assert rig.events(found, rig.open(found)) == [[3], [4]]


def test_cursors_move_at_once_when_nobody_reads() -> None:
    rig = Rig()
    rig.publish("a", 3)
    found = rig.subscribe("a")
    assert found.move({("a", "0"): 2}, rig.now).is_done
    assert rig.events(found, rig.open(found)) == [[2]]
    assert rig.refusal(found.move, {("b", "0"): 2}, rig.now) == 422


def test_no_cursor_makes_only_sure_that_there_are_some() -> None:
    rig = Rig()
    rig.publish("a", 3)
    found = rig.subscribe("a", read_from="end")
    stream = rig.open(found)
    assert found.cursors() == {("a", "0"): rig.bus.event_types["a"].partitions[0].offset(2)}
    assert found.move({}, rig.now).is_done
    assert stream.state == "streaming"
