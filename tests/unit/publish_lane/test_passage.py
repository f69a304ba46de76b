"""From when on a confirm is awaited, by what has arrived at the broker's host."""

from proxy.publish_lane.passage import FLOWING_BYTES, Passage

LARGE = 100 * FLOWING_BYTES


def test_the_wait_begins_with_the_write_when_everything_arrives_at_once() -> None:
    passage = Passage()
    passage.handed = 200
    passage.look(0, 5.0)
    assert passage.since(200, 5.0) == 5.0


def test_the_wait_begins_when_the_last_byte_arrives_when_that_takes_long() -> None:
    passage = Passage()
    passage.handed = LARGE
    for second in range(1, 101):
        passage.look(LARGE - second * FLOWING_BYTES, float(second))
        assert passage.since(LARGE, 0.0) == float(second)
    passage.look(0, 130.0)
    assert passage.since(LARGE, 0.0) == 100.0


def test_the_wait_is_that_of_its_own_bytes_when_later_ones_flow_on() -> None:
    passage = Passage()
    passage.handed = FLOWING_BYTES
    passage.look(0, 1.0)
    for second in range(2, 50):
        passage.handed += FLOWING_BYTES
        passage.look(0, float(second))
    assert passage.since(FLOWING_BYTES, 0.5) == 1.0
    assert passage.since(3 * FLOWING_BYTES, 0.5) == 3.0


def test_a_line_that_stands_still_or_trickles_is_not_waited_for() -> None:
    passage = Passage()
    passage.handed = LARGE
    passage.look(LARGE - FLOWING_BYTES, 1.0)
    for second in range(2, 60):
        passage.look(LARGE - FLOWING_BYTES - second * 100, float(second))
    assert passage.since(LARGE, 0.0) == 1.0


def test_little_has_arrived_when_nothing_is_left_on_the_way() -> None:
    passage = Passage()
    passage.handed = 100
    passage.look(100, 1.0)
    passage.look(0, 3.0)
    assert passage.since(100, 0.5) == 3.0
