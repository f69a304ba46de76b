"""What a fetch names: what has changed, and everything where the node may not know it."""

from collections.abc import Mapping
from math import inf
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.protocol.fetch import FetchRequest_v4, FetchRequest_v11
from hypothesis import given
from hypothesis import strategies as st

from proxy.kafka_log.fetch_plan import ROUND, TURN, FetchPlan, Place
from proxy.kafka_log.fetch_sessions import LEAST, MOST_PACE, PACE, PAUSE, Fetch, FetchSession, Wish
from proxy.kafka_log.fetch_wire import FetchAnswer, Told
from proxy.kafka_log.topic_ids import NO_IDS, TopicIds
from tests.wire.kafka.messages import Error
from tests.wire.kafka.sessions import Sessions

WISH = Wish(50, 1, 1 << 20, 1, 1 << 16, "rack")
NODE = 1
END = 1_000
"""Where every partition ends, as a node tells."""
MANY = [TopicPartition(f"type-{number:04}", 0) for number in range(1_000)]
ONE, TWO, THREE = MANY[:3]


class Broker:
    """A node that keeps sessions, and can be told not to answer."""

    def __init__(self) -> None:
        self.sessions = Sessions()
        self.fetched: Mapping[TopicPartition, int] = {}
        """What it is asked for, as it understood the last fetch."""

    def take(self, fetch: Fetch) -> Any:
        """Carry out a fetch of which nothing is new; return its answer."""
        number, epoch = fetch.session
        named = {
            "topics": [{"topic": at.topic, "partitions": [_asked(at, offset)]} for at, offset in fetch.named.items()],
            "forgotten": [{"topic": at.topic, "partitions": [at.partition]} for at in fetch.forgotten],
        }
        session = self.sessions.of({"session": number, "session_epoch": epoch, **named})
        if isinstance(session, Error):
            return answer(error=session)
        self.fetched = {TopicPartition(*at): one["offset"] for at, one in session.asked.items()}
        return answer(session=session.number)


def _asked(at: TopicPartition, offset: int) -> dict[str, int]:
    return {"partition": at.partition, "offset": offset}


def answer(error: int = 0, session: int = 0, *told: TopicPartition) -> FetchAnswer:
    return FetchAnswer(0, error, session, [Told(at, 0, END, END, [], -1, b"") for at in told])


class Fetched:
    """Who fetches from a broker."""

    def __init__(self) -> None:
        self.session, self.broker = FetchSession(), Broker()

    def turn(self, now: float = 0.0) -> Fetch:
        """Send the next fetch and take its answer; return it."""
        fetch = self.session.fetch(WISH, NO_IDS, now)
        self.session.on_answer(fetch, self.broker.take(fetch), now)
        return fetch


def test_a_fetch_names_only_what_has_changed_when_the_node_knows_the_rest() -> None:
    world = Fetched()
    for at in MANY:
        world.session.want(at, 0)
    assert len(world.turn().named) == len(MANY)
    assert not world.turn().named
    world.session.want(TWO, 7)
    world.session.leave(THREE)
    third = world.turn()
    assert (third.named, third.forgotten) == ({TWO: 7}, (THREE,))
    assert world.broker.fetched == {at: 7 if at is TWO else 0 for at in MANY if at is not THREE}


def test_nothing_is_named_when_a_partition_was_left_and_is_wanted_again_where_it_was() -> None:
    world = Fetched()
    world.session.want(ONE, 5)
    world.turn()
    world.session.leave(ONE)
    world.session.want(ONE, 5)
    fetch = world.turn()
    assert not fetch.named
    assert not fetch.forgotten


def test_everything_is_named_again_when_an_answer_never_came() -> None:
    world = Fetched()
    world.session.want(ONE, 0)
    world.turn()
    world.session.want(TWO, 0)
    world.broker.take(world.session.fetch(WISH, NO_IDS, 0.0))  # the node has heard it, and nobody knows
    fetch = world.turn()
    assert fetch.named == {ONE: 0, TWO: 0}
    assert fetch.session[0], "the node is told which session it may forget"
    assert world.broker.fetched == fetch.named


def test_everything_is_named_again_when_the_node_has_lost_the_session() -> None:
    world = Fetched()
    world.session.want(ONE, 0)
    world.turn()
    world.broker.sessions = Sessions()
    world.session.want(TWO, 0)
    world.turn()
    assert world.turn().named == {ONE: 0, TWO: 0}


def test_everything_is_named_every_time_when_the_node_keeps_no_sessions() -> None:
    session = FetchSession()
    session.want(ONE, 0)
    session.want(TWO, 0)
    for _ in range(3):
        fetch = session.fetch(WISH, NO_IDS, 0.0)
        assert set(fetch.named) == {ONE, TWO}
        session.on_answer(fetch, answer(), 0.0)
    session.want(ONE, 4)
    assert list(session.fetch(WISH, NO_IDS, 0.0).named) == [TWO, ONE], "the others first"


def test_a_node_rests_when_it_refuses_what_tells_it_everything() -> None:
    session = FetchSession()
    session.want(ONE, 0)
    session.on_answer(session.fetch(WISH, NO_IDS, 0.0), answer(error=-1), 3.0)
    assert session.rest(3.0) == pytest.approx(PAUSE)


def test_an_answer_is_passed_over_when_its_fetch_was_given_up() -> None:
    session = FetchSession()
    session.want(ONE, 0)
    given_up = session.fetch(WISH, NO_IDS, 0.0)
    second = session.fetch(WISH, NO_IDS, 0.0)
    session.on_answer(given_up, answer(session=5), 0.0)
    session.on_answer(second, answer(session=6), 0.0)
    assert session.fetch(WISH, NO_IDS, 0.0).session == (6, 1)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("want"), st.integers(0, 5), st.integers(0, 3)),
        st.tuples(st.just("leave"), st.integers(0, 5), st.just(0)),
        st.tuples(st.sampled_from(["turn", "unheard", "unanswered", "lose", "leave_all"]), st.just(0), st.just(0)),
    ),
    max_size=60,
)


@given(STEPS)
def test_the_node_fetches_what_is_wanted_whatever_was_lost_between(steps: list[tuple[str, int, int]]) -> None:
    world, wanted = Fetched(), dict[TopicPartition, int]()
    for what, place, offset in steps:
        match what:
            case "want":
                world.session.want(MANY[place], offset)
                wanted[MANY[place]] = offset
            case "leave":
                world.session.leave(MANY[place])
                wanted.pop(MANY[place], None)
            case "leave_all":
                world.session.leave_all()
                wanted.clear()
            case "unheard":
                world.session.fetch(WISH, NO_IDS, 0.0)
            case "unanswered":
                world.broker.take(world.session.fetch(WISH, NO_IDS, 0.0))
            case "lose":
                world.broker.sessions = Sessions()
            case _:
                world.turn()
    world.turn()
    world.turn()  # the first may have found that the session is lost
    assert world.broker.fetched == wanted


def ids(*numbers: int) -> TopicIds:
    """Return ids of as many topics, in their order; 0 for one that has none."""
    of = {MANY[at].topic: number.to_bytes(16) for at, number in enumerate(numbers) if number}
    return TopicIds(of, {told: topic for topic, told in of.items()})


def test_everything_is_told_anew_by_ids_when_they_are_known_or_others() -> None:
    session = FetchSession()
    session.want(ONE, 3)
    session.want(TWO, 4)
    told = []
    both, made_anew = ids(1, 2), ids(1, 7)
    for known in (ids(1, 0), ids(1, 0), both, both, made_anew, made_anew):
        fetch = session.fetch(WISH, known, 0.0)
        session.on_answer(fetch, answer(0, 8), 0.0)
        told.append((len(fetch.named), fetch.ids, fetch.session[1] == 0))
    nothing = (0, None, False), (0, both, False), (0, made_anew, False)
    assert told == [
        (2, None, True), nothing[0], (2, both, True), nothing[1], (2, made_anew, True), nothing[2],
    ]  # fmt: skip


def test_nothing_is_told_anew_when_ids_of_other_topics_change() -> None:
    session = FetchSession()
    session.want(ONE, 3)
    session.on_answer(session.fetch(WISH, ids(1, 2), 0.0), answer(0, 8), 0.0)
    known = ids(1, 7, 5)
    fetch = session.fetch(WISH, known, 0.0)
    session.on_answer(fetch, answer(0, 8), 0.0)
    assert (fetch.named, fetch.ids, fetch.session) == ({}, known, (8, 1))
    session.want(THREE, 1)
    fetch = session.fetch(WISH, known, 0.0)
    assert (fetch.named, fetch.ids, fetch.session) == ({THREE: 1}, known, (8, 2))


def test_everything_is_told_by_names_when_one_topic_has_no_id() -> None:
    session = FetchSession()
    session.want(ONE, 3)
    session.on_answer(session.fetch(WISH, known := ids(1), 0.0), answer(0, 8), 0.0)
    session.want(TWO, 4)
    fetch = session.fetch(WISH, known, 0.0)
    assert (fetch.named, fetch.ids, fetch.session) == ({ONE: 3, TWO: 4}, None, (8, 0))


def test_a_fetch_knows_the_offsets_of_all_that_is_fetched_when_it_names_others() -> None:
    session = FetchSession()
    session.want(ONE, 3)
    session.want(TWO, 4)
    session.on_answer(session.fetch(WISH, NO_IDS, 0.0), answer(0, 8), 0.0)
    second = session.fetch(WISH, NO_IDS, 0.0)
    assert not second.named
    assert second.told == {ONE: 3, TWO: 4}


def test_a_fetch_is_what_the_protocol_says_when_it_is_written() -> None:
    session = FetchSession()
    session.want(ONE, 3)
    session.on_answer(session.fetch(WISH, NO_IDS, 0.0), answer(0, 8), 0.0)
    session.want(TWO, 4)
    session.leave(ONE)
    fetch = session.fetch(WISH, NO_IDS, 0.0)
    new, old = fetch.build(FetchRequest_v11), fetch.build(FetchRequest_v4)
    assert (new.session_id, new.session_epoch, new.rack_id) == (8, 1, "rack")
    assert new.topics == [(TWO.topic, [(0, -1, 4, -1, WISH.partition_bytes)])]
    assert new.forgotten_topics_data == [(ONE.topic, [0])]
    assert old.topics == [(TWO.topic, [(0, 4, WISH.partition_bytes)])]
    for one in (new, old):
        assert one.encode()


@pytest.mark.parametrize(
    ("count", "offset", "seconds"),
    [
        (LEAST - 1, END, 0.0),
        (LEAST, END, LEAST * PACE),
        (500, END, 500 * PACE),
        (1_000, END, MOST_PACE),
        (5_000, END, MOST_PACE),
        (5_000, END - 1, 0.0),
    ],
)
def test_a_node_rests_for_what_it_looks_at_unless_it_has_more_of_one(count: int, offset: int, seconds: float) -> None:
    session, one = FetchSession(), TopicPartition("orders", 0)
    for number in range(1, count):
        session.want(TopicPartition("orders", number), END)
    session.want(one, 0)
    fetch = session.fetch(WISH, NO_IDS, 1.0)
    session.on_answer(fetch, answer(0, 8, one), 1.0)
    session.leave(one)  # it has brought something
    session.want(one, offset)
    assert session.rest(1.0) == pytest.approx(seconds)


def test_a_node_rests_when_what_it_has_more_of_may_not_be_read_yet() -> None:
    """A transaction is open: it is read only where those are no matter."""
    for isolation, rests in ((1, True), (0, False)):
        session = FetchSession()
        for at in MANY:
            session.want(at, 5)
        fetch = session.fetch(WISH._replace(isolation=isolation), NO_IDS, 1.0)
        session.on_answer(fetch, FetchAnswer(0, 0, 8, [Told(ONE, 0, 9, 5, [], -1, b"")]), 1.0)
        assert (session.rest(1.0) > 0) is rests


def test_a_node_rests_when_what_it_has_more_of_is_not_wanted_now() -> None:
    session = FetchSession()
    for at in MANY:
        session.want(at, END)
    session.want(ONE, 0)
    session.on_answer(session.fetch(WISH, NO_IDS, 1.0), answer(0, 8, ONE), 1.0)
    assert session.rest(1.0) == 0
    session.leave(ONE)
    assert session.rest(1.0) == pytest.approx(MOST_PACE)
    session.want(ONE, 0)
    assert session.rest(1.0) == 0
    session.leave_all()
    for at in MANY:
        session.want(at, 0)
    session.fetch(WISH, NO_IDS, 2.0)
    assert session.rest(2.0) == pytest.approx(MOST_PACE), "nothing is known of another assignment"


def test_the_plan_tells_when_the_first_node_has_rested() -> None:
    world = Planned()
    world.nodes |= dict.fromkeys(MANY[: len(MANY) // 2], 2)
    assert world.plan.rest(0.0) == inf
    world.turn()
    world.now = 0.004
    assert not world.turn()
    assert world.plan.rest(world.now) == pytest.approx(0.006)
    world.now = 0.01
    assert set(world.turn()) == {NODE, 2}


class Planned:
    """A plan for many partitions of one node, and whom it has looked at."""

    def __init__(self) -> None:
        self.plan, self.now = FetchPlan(), 0.0
        self.looked: list[TopicPartition] = []
        self.nodes = dict.fromkeys(MANY, NODE)
        self.offsets = dict.fromkeys(MANY, 0)
        self.plan.begin(MANY)

    def turn(self, *told: TopicPartition) -> dict[int, Fetch]:
        """Look at what was touched and fetch; the answers tell of these partitions, and that there is more of them."""
        self.looked.clear()
        self.plan.settle(self._place, self.now)
        fetches = dict(self.plan.fetches(lambda _: True, WISH, NO_IDS, self.now))
        for node, fetch in fetches.items():
            its = [at for at in told if self.nodes[at] == node]
            self.plan.on_answer(node, fetch, answer(0, 7, *its), self.now)
        return fetches

    def _place(self, at: TopicPartition) -> Place | None:
        self.looked.append(at)
        return Place(self.nodes[at], self.offsets[at])


def test_only_what_was_told_of_is_looked_at_and_named_when_a_thousand_are_idle() -> None:
    world = Planned()
    assert len(world.turn(ONE)[NODE].named) == len(MANY)
    for offset in range(1, 50):
        world.offsets[ONE] = offset
        (fetch,) = world.turn(ONE).values()
        assert world.looked == [ONE]
        assert fetch.named == {ONE: offset}
    world.now += TURN
    world.turn()
    assert len(world.looked) <= 1 + len(MANY) / ROUND


def test_every_partition_is_looked_at_when_a_second_has_passed() -> None:
    world = Planned()
    world.turn()
    world.offsets[TWO] = 9  # unseen
    named = dict[TopicPartition, int]()
    for _ in range(ROUND):
        world.now += TURN
        (fetch,) = world.turn().values()
        named |= fetch.named
    assert named == {TWO: 9}


def test_one_node_forgets_and_the_other_is_told_when_a_partition_has_another_leader() -> None:
    world = Planned()
    world.turn(ONE, TWO)
    world.nodes[ONE] = 2
    world.plan.touch(ONE)
    fetches = world.turn()
    assert fetches[NODE].forgotten == (ONE,)
    assert fetches[2].named == {ONE: 0}


def test_nothing_of_the_assignment_before_is_fetched_when_another_begins() -> None:
    world = Planned()
    world.turn(ONE)
    world.plan.begin([TWO])
    (fetch,) = world.turn().values()
    assert fetch.named == {TWO: 0}
