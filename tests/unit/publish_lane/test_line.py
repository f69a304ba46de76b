"""Slots: how many, for whom, when."""

import pytest

from proxy.bridge.broker import Address
from proxy.model import Partition
from proxy.publish_lane.line import GRACE, Line, Place, Request, Window
from proxy.publish_lane.quarantine import PROBATION_EVENTS, STRIKES, Quarantine
from proxy.publish_lane.window_law import WindowLaw
from proxy.settings import RoutingKey
from tests.support.events import events
from tests.support.recipient import Recorder

ADDRESS = Address("", RoutingKey(constant="q"), "text/plain")


def request(topic: str = "t", rank: int = 0, count: int = 1, *, is_old: bool = False) -> Request:
    recorder = Recorder(ADDRESS, Partition(topic, 0), rank=rank, is_old=is_old)
    return Request([recorder.batch(events(0, count))], lambda: None)


@pytest.mark.parametrize(
    ("taken", "want", "served"),
    [(0, 1000, True), (150, 1000, True), (151, 1000, False), (190, 10, True), (191, 10, False), (199, 1, True)],
)
def test_a_waiter_is_served_when_a_quarter_or_all_it_wants_is_free(taken: int, want: int, served: bool) -> None:
    window = Window(200, 10_000, taken, taken)
    assert window.serves(want) is served


@pytest.mark.parametrize(("taken", "size", "admitted"), [(0, 99_999, True), (1, 99, True), (1, 100, False)])
def test_an_event_is_admitted_when_its_bytes_fit_or_it_is_alone(taken: int, size: int, admitted: bool) -> None:
    assert Window(200, 100, taken, taken).admits(size) is admitted


def test_nothing_is_admitted_until_confirms_come_when_a_window_is_made_narrower() -> None:
    window = Window(10, 1_000)
    window.take(6, 600)
    window.resize(4, 1_000, adapts=False)
    assert not window.admits(1)
    window.give(3, 300)
    assert window.admits(1)
    window.resize(100, 310, adapts=False)
    assert (window.free, window.admits(10), window.admits(11)) == (97, True, False)


def test_a_window_that_adapts_is_never_wider_than_its_bound_when_that_falls() -> None:
    window = Window(100, 1_000, adapts=True)
    law = WindowLaw(window, 0.0)
    window.resize(7, 1_000, adapts=True)
    assert window.max_events == 7
    law.look(0.05)
    assert window.max_events <= 7
    window.resize(50, 1_000, adapts=True)
    assert window.max_events <= 7, "it finds its width by itself"


def test_no_event_is_admitted_when_all_slots_are_taken() -> None:
    assert not Window(3, 1000, 3, 3).admits(1)


def served(waiting: list[Request]) -> list[int]:
    """Return in which order a line serves these, each wholly, by their places in the list."""
    line, order = Line(Window(200, 1)), list[int]()
    for one in waiting:
        line.add(one)
    while (first := line.first) is not None:
        order.append(waiting.index(first))
        line.remove(first)
    return order


def test_the_smallest_rank_and_then_the_longest_wait_is_first() -> None:
    waiting = [request(rank=rank) for rank in (2, 1, 2, 1, 0)]
    assert served(waiting) == [4, 1, 3, 0, 2]


def test_what_is_live_of_a_rank_is_before_what_is_old_and_that_before_the_next_rank() -> None:
    waiting = [request(rank=rank, is_old=is_old) for rank, is_old in ((2, False), (1, True), (1, False), (0, True))]
    assert served(waiting) == [3, 2, 1, 0]


def test_one_slot_awaits_what_is_live_of_the_lowest_class_when_only_its_backlog_ever_waits() -> None:
    line = Line(Window(200, 1))
    for is_old in (False, True):
        leaving = request(rank=2, is_old=is_old)
        line.add(leaving)
        line.remove(leaving)
    line.add(request(rank=0))
    line.wrote(Place(0), 100)
    live, old = request(rank=2), request(rank=2, is_old=True)
    line.add(old)
    line.add(live)
    assert line.first is live
    line.wrote(live.place, 1)
    assert line.first is old


@pytest.mark.parametrize("is_short", [False, True])
def test_no_turn_is_asked_for_without_end_when_a_class_waits_behind_one_that_was_just_served(is_short: bool) -> None:
    line, low, top = Line(Window(200, 1)), request(rank=2), request(rank=0)
    line.add(low)
    line.wrote(Place(0), 40)  # the lowest class is owed a slot
    line.add(top)
    line.end(top)
    turns = 0
    while turns == 0 or line.wants_turn:
        turns += 1
        line.turn()
        line.serve()
        if is_short and line.first is low:
            line.fall_short()
        assert turns <= GRACE + 1
    assert line.first is low


def test_a_request_is_through_when_its_batches_are_written_or_withdrawn() -> None:
    recorder = Recorder(ADDRESS, Partition("t", 0))
    batches = [recorder.batch(events(0, 2)) for _ in range(3)]
    one = Request(batches, lambda: None)
    batches[0].done = 2
    assert (one.batch, one.want) == (batches[1], 4)
    batches[1].called_back = True
    assert one.batch is batches[2]
    recorder.is_held = True
    assert one.batch is None


def test_suspects_take_their_requests_along_and_bring_them_back() -> None:
    quarantine = Quarantine(Line(Window(200, 1)))
    mine, others = [request("mine") for _ in range(3)], request("other")
    for one in (mine[0], others, mine[1]):
        quarantine.add(one)
    quarantine.suspect("mine", 2)
    quarantine.add(mine[2])
    assert (quarantine.line.first, quarantine.first) == (others, mine[0])
    quarantine.clear("mine", 1)
    assert "mine" in quarantine
    quarantine.clear("mine", 1)
    assert "mine" not in quarantine
    assert quarantine.line.of("mine") == mine


def test_suspects_are_served_in_turn_and_each_in_its_own_order() -> None:
    quarantine = Quarantine(Line(Window(200, 1)))
    waiting: list[tuple[str, Request]] = []
    for topic in ("a", "b"):
        quarantine.suspect(topic, 10)
        for _ in range(2):
            waiting.append((topic, request(topic)))
            quarantine.add(waiting[-1][1])
    served = []
    while (first := quarantine.first) is not None:
        served.append(next(n for n, (_, one) in enumerate(waiting) if one is first))
        quarantine.served(first)
        quarantine.remove(first)
    assert served == [0, 2, 1, 3]


def test_a_culprits_topic_stays_for_its_whole_probation() -> None:
    quarantine = Quarantine(Line(Window(200, 1)))
    quarantine.suspect("t", 5)
    quarantine.accuse("t", 1, "", is_culprit=True)
    quarantine.suspect("t", 3)
    quarantine.clear("t", PROBATION_EVENTS - 1)
    assert "t" in quarantine
    quarantine.clear("t", 1)
    assert "t" not in quarantine


def test_a_topic_whose_exchange_was_to_blame_is_released_by_its_first_success() -> None:
    quarantine = Quarantine(Line(Window(200, 1)))
    quarantine.suspect("t", 200)
    for topic in ("t", "other"):
        quarantine.accuse(topic, 1, "NOT_FOUND - no exchange 'x' in vhost '/'", is_culprit=True)
    quarantine.clear("t", 1)
    assert "t" not in quarantine
    assert "other" in quarantine


def test_an_event_is_the_culprit_when_the_broker_fails_three_times_with_nothing_but_it_open() -> None:
    quarantine, at = Quarantine(Line(Window(200, 1))), Partition("t", 0)
    struck = [quarantine.strike(at, position) for position in (7, 7, 8, 7, 7)]
    assert struck == [False, False, False, True, False]


def test_the_strikes_of_no_more_than_a_thousand_events_are_remembered() -> None:
    quarantine, at = Quarantine(Line(Window(200, 1))), Partition("t", 0)
    for _ in range(STRIKES - 1):
        quarantine.strike(at, 0)
    for position in range(1, 1_001):
        quarantine.strike(at, position)
    assert not quarantine.strike(at, 0)
