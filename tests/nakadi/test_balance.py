"""Which stream has which partition."""

from collections import Counter

from tests.nakadi.rig import Rig


def test_partitions_are_balanced_by_number_when_streams_come() -> None:
    rig = Rig()
    rig.bus.create("a", 7)
    found = rig.subscribe("a")
    streams = [rig.open(found) for _ in range(3)]
    assert sorted(len(stream.readings) for stream in streams) == [2, 2, 3]
    assert max(Counter(key for stream in streams for key in stream.readings).values()) == 1


def test_a_stream_is_refused_when_there_are_as_many_as_partitions() -> None:
    rig = Rig()
    rig.bus.create("a", 2)
    found = rig.subscribe("a")
    streams = [rig.open(found), rig.open(found)]
    assert rig.refusal(rig.open, found) == 409
    found.close(streams[0], "test", rig.now)
    assert rig.refusal(rig.open, found) == 0


def test_a_partition_moves_when_all_sent_of_it_is_committed() -> None:
    rig = Rig()
    rig.bus.create("a", 2)
    rig.publish("a", 3, 1)
    found = rig.subscribe("a")
    old = rig.open(found, max_uncommitted_events=2)
    lines = rig.pull(found, old)
    new = rig.open(found, partitions=(("a", "1"),))
    assert not new.readings
    rig.now = 1.0
    assert rig.events(found, old) == [[], []]  # nothing more of it
    rig.commit(found, old, lines[:1])
    assert not new.readings
    rig.commit(found, old, lines[1:])
    assert set(new.readings) == {("a", "1")}
    assert rig.events(found, new) == [[2]]
    assert rig.refusal(rig.commit, found, old, lines[1:]) == 422  # it is another's


def test_a_stream_ends_when_it_holds_back_a_partition_that_must_go() -> None:
    rig = Rig()
    rig.bus.create("a", 2)
    rig.publish("a", 3, 0)
    rig.publish("a", 3, 1)
    found = rig.subscribe("a")
    old = rig.open(found)
    lines = rig.pull(found, old)
    rig.now = 10.0
    new = rig.open(found, partitions=(("a", "1"),))
    rig.now = 50.0
    rig.commit(found, old, [line for line in lines if line["cursor"]["partition"] == "0"])
    rig.now = 70.0
    found.advance(rig.now)
    assert old.state == "closing"
    rig.now = 110.0
    found.advance(rig.now)
    assert old.state == "gone"
    assert rig.events(found, new) == [[0], [1], [2]]


def test_named_partitions_are_taken_from_streams_that_named_none() -> None:
    rig = Rig()
    rig.bus.create("a", 3)
    found = rig.subscribe("a")
    balanced = rig.open(found)
    named = rig.open(found, partitions=(("a", "0"), ("a", "2")))
    assert set(named.readings) == {("a", "0"), ("a", "2")}
    assert set(balanced.readings) == {("a", "1")}
    assert rig.refusal(rig.open, found) == 409
    found.close(named, "test", rig.now)
    assert len(balanced.readings) == 3


def test_a_stream_is_refused_when_it_names_what_another_named() -> None:
    rig = Rig()
    rig.bus.create("a", 3)
    found = rig.subscribe("a")
    rig.open(found, partitions=(("a", "0"),))
    assert rig.refusal(rig.open, found, partitions=(("a", "0"), ("a", "1"))) == 409
    assert rig.refusal(rig.open, found, partitions=(("a", "3"),)) == 422
    assert rig.refusal(rig.open, found, partitions=(("a", "1"),)) == 0


def test_new_partitions_are_read_when_streams_come() -> None:
    rig = Rig()
    rig.publish("a", 1)
    found = rig.subscribe("a", read_from="end")
    old = rig.open(found)
    rig.bus.repartition("a", 2)
    rig.publish("a", 2, 1)
    new = rig.open(found)
    assert [len(stream.readings) for stream in (old, new)] == [1, 1]
    assert rig.events(found, new) == [[0], [1]]


def test_nothing_more_of_a_partition_is_sent_when_it_must_go() -> None:
    rig = Rig()
    rig.bus.create("a", 2)
    rig.publish("a", 1, 1)
    found = rig.subscribe("a")
    old = rig.open(found)
    rig.pull(found, old)
    rig.open(found, partitions=(("a", "1"),))
    rig.publish("a", 1, 1)
    rig.now = 1.0
    assert rig.events(found, old) == [[], []]
