"""Slots by class: whatever comes, nobody waits for ever, and what the classes below take stays a trickle."""

from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.bridge.broker import Address
from proxy.model import Partition
from proxy.publish_lane.line import SURE_SHARE, Line, Request, Window
from proxy.settings import RoutingKey
from tests.support.events import events
from tests.support.recipient import Recorder

ADDRESS = Address("", RoutingKey(constant="q"), "text/plain")


def endless(rank: int, *, is_old: bool = False) -> Request:
    batch = Recorder(ADDRESS, Partition(f"t{rank}", 0), rank=rank, is_old=is_old).batch(events(0, 1))
    return Request([batch], lambda: None)


def serve(line: Line, free: int, written: dict[int, int], old: dict[int, int] | None = None) -> None:
    """Give `free` slots away, as a session does."""
    while free:
        first = line.first
        if first is None:
            return
        most = line.most(first)
        assert most is None or most >= 1
        count = free if most is None else min(free, most)
        line.wrote(first.place, count)
        into = old if old is not None and first.place.is_old else written
        into[first.place.rank] = into.get(first.place.rank, 0) + count
        free -= count


@given(
    slots=st.integers(1, 1_000),
    frees=st.lists(st.integers(1, 1_000), min_size=1, max_size=20),
    ranks=st.sets(st.integers(0, 9), min_size=2, max_size=6),
)
@settings(max_examples=100)
def test_every_class_gets_its_share_and_no_more_when_all_wait_for_ever(
    slots: int, frees: list[int], ranks: set[int]
) -> None:
    line, written, total = Line(Window(slots, 1)), dict[int, int](), 0
    for rank in ranks:
        line.add(endless(rank))
    while total < 20_000:
        for free in frees:
            serve(line, min(free, slots), written)
            total += min(free, slots)
    top, *below = sorted(ranks)
    burst = 1.0 + SURE_SHARE * slots
    for place, rank in enumerate(below):
        assert written.get(rank, 0) >= SURE_SHARE * written[top] - burst - 1
        # What a class above takes is owed for as well, what that was owed among it.
        most = SURE_SHARE * (1 + SURE_SHARE) ** place * written[top]
        assert written.get(rank, 0) <= most + (place + 1) * (burst + 1)


@given(
    slots=st.integers(1, 300),
    steps=st.lists(st.tuples(st.sampled_from(["come", "go", "serve"]), st.integers(0, 4)), max_size=200),
)
def test_whoever_stays_is_served_whatever_others_do(slots: int, steps: list[tuple[str, int]]) -> None:
    line, written = Line(Window(slots, 1)), dict[int, int]()
    line.add(endless(5))
    here: dict[int, Request] = {}
    for step, rank in steps:
        if step == "come" and rank not in here:
            here[rank] = endless(rank)
            line.add(here[rank])
        elif step == "go" and rank in here:
            line.remove(here.pop(rank))
        else:
            serve(line, slots, written)
    before, served = written.get(5, 0), 0
    while written.get(5, 0) == before:
        serve(line, slots, written)
        served += slots
        assert served <= 1 / SURE_SHARE + 2 * slots


@given(
    slots=st.integers(1, 1_000),
    frees=st.lists(st.integers(1, 1_000), min_size=1, max_size=20),
    ranks=st.sets(st.integers(0, 5), min_size=1, max_size=4),
)
@settings(max_examples=100)
def test_what_is_old_gets_a_share_of_its_class_and_takes_nothing_from_others(
    slots: int, frees: list[int], ranks: set[int]
) -> None:
    """With what is old of every class waiting for ever each class gets what it gets without, but for rounding."""

    def served(*, with_old: bool) -> tuple[dict[int, int], dict[int, int]]:
        line, written, old, total = Line(Window(slots, 1)), dict[int, int](), dict[int, int](), 0
        for rank in ranks:
            line.add(endless(rank))
            if with_old:
                line.add(endless(rank, is_old=True))
        while total < 20_000:
            for free in frees:
                serve(line, min(free, slots), written, old)
                total += min(free, slots)
        return written, old

    alone, _ = served(with_old=False)
    written, old = served(with_old=True)
    burst = 2.0 + SURE_SHARE * slots
    for rank in ranks:
        live, behind = written.get(rank, 0), old.get(rank, 0)
        assert abs(behind - SURE_SHARE * live) <= burst + 1
        assert abs(live + behind - alone.get(rank, 0)) <= 0.002 * 20_000 + 3 * burst + max(frees)
