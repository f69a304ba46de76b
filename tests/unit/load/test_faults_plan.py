"""In which order faults come, and what a round must keep."""

import json
from collections import Counter
from itertools import islice

import pytest

from load.faults.causes import CAUSES
from load.faults.ledger import Counts
from load.faults.outages import OUTAGES
from load.faults.plan import CLUSTER_KINDS, KINDS, Kind, named, order
from load.faults.replicas import IN_FLIGHT, UNCOMMITTED
from load.faults.results import read, record
from load.faults.verdicts import Round, broken, rows

PLAIN = Kind("plain", "nothing much")
ZOMBIE = Kind("zombie", "a replica stopped", zombies=1)


def told(kind: Kind = PLAIN, **changes: object) -> Round:
    """A round that kept every promise, but for the changes."""
    base = Round(1, kind, flow=1.0, ready=1.0)
    for name, value in changes.items():
        setattr(base, name, value)
    return base


def test_every_kind_comes_once_before_any_comes_twice() -> None:
    drawn = list(islice(order(KINDS, seed=3), 2 * len(KINDS)))

    assert set(drawn[: len(KINDS)]) == set(drawn[len(KINDS) :]) == set(KINDS)
    assert drawn[: len(KINDS)] != drawn[len(KINDS) :]
    assert set(Counter(drawn).values()) == {2}


def test_a_seed_draws_the_same_order_again() -> None:
    first, again, other = (list(islice(order(KINDS, seed), 40)) for seed in (7, 7, 8))

    assert first == again != other


def test_there_is_a_cause_for_every_kind() -> None:
    every = (*KINDS, *CLUSTER_KINDS)

    assert CAUSES.keys() == {kind.name for kind in every if not kind.is_outage}
    assert OUTAGES.keys() == {kind.name for kind in every if kind.is_outage}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, None),
        ({"flow": None, "slowest": "a-1"}, "the flow of a-1 did not come back unaided"),
        ({"flow": 10.4, "slowest": "a-1"}, "a-1 flowed after 10.4 s, goal 10 s"),
        ({"ready": None}, "a replica did not become ready unaided"),
        ({"ready": 10.4}, "a replica was ready after 10.4 s, goal 10 s"),
        ({"lost": {"a-1": [3, 4]}}, "2 events are nowhere (a-1: 2)"),
        ({"lost": {"a-1": []}}, None),
        ({"foreign": 1}, "1 arrivals are not what was sent"),
        ({"worst_duplicates": UNCOMMITTED}, None),
        ({"worst_duplicates": UNCOMMITTED + 1}, "duplicates in one partition"),
        ({"truncated": 7, "counts": Counts(gone=7)}, None),
        ({"truncated": 7, "counts": Counts(gone=8)}, "8 events were truncated, the replicas counted 7"),
        ({"late": {"faults.strict": 1}}, "faults.strict: 1 events out of order, 0 allowed"),
        ({"late": {"faults.loose": 500}}, None),
        ({"late": {"faults.ordered": 3}, "overtaken": {"faults.ordered": 3}}, None),
        ({"late": {"faults.ordered": 4}, "overtaken": {"faults.ordered": 3}}, "4 events out of order, 3 allowed"),
        ({"reach": {"faults.ordered": IN_FLIGHT}}, "overtaken by"),
    ],
)
def test_a_round_says_which_promise_it_broke(changes: dict[str, object], words: str | None) -> None:
    found = broken(told(**changes))  # type: ignore[arg-type]

    assert len(found) == (words is not None)
    assert words is None or words in found[0]


def test_a_zombie_may_write_one_batch_out_of_order_and_no_more() -> None:
    assert not broken(told(ZOMBIE, late={"faults.strict": IN_FLIGHT}))
    assert broken(told(ZOMBIE, late={"faults.strict": IN_FLIGHT + 1}))


def test_a_killed_replica_is_judged_by_a_goal_of_its_own() -> None:
    assert broken(told(named("replica-killed"), flow=7.5))
    assert not broken(told(named("replica-killed"), flow=6.9))


def test_the_worst_of_a_kind_stands_in_its_row() -> None:
    first = told(flow=2.0, counts=Counts(duplicates=3), worst_duplicates=2)
    second = told(flow=1.0, counts=Counts(duplicates=1), worst_duplicates=1, lost={"a-1": [1]})
    other = told(ZOMBIE, flow=None)

    plain, zombie = rows([first, other, second])

    assert (plain.rounds, plain.worst_flow, plain.duplicates, plain.worst_duplicates, plain.lost) == (2, 2.0, 4, 2, 1)
    assert zombie.worst_flow is None
    assert len(plain.broken) == len(zombie.broken) == 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, None),
        ({"through": None}, "no plain client got through without kafka-2"),
        ({"during": None, "slowest": "a-1"}, "a-1 did not flow without kafka-2"),
        ({"during": 6.1, "slowest": "a-1"}, "a plain client got through after 2.0 s"),
        ({"through": 12.0, "during": 15.1, "slowest": "a-1"}, "at most 15"),
        ({"said": 0}, "nobody said that kafka-2 is silent"),
    ],
)
def test_an_outage_is_judged_beside_a_plain_client(changes: dict[str, object], words: str | None) -> None:
    lost: dict[str, object] = {"node": "kafka-2", "through": 2.0, "during": 5.9, "said": 3}

    found = broken(told(named("leader-silent"), **lost | changes))

    assert len(found) == (words is not None)
    assert words is None or words in found[0]


def test_rounds_are_the_same_when_read_from_the_file_of_an_interrupted_session() -> None:
    rounds = [told(node="kafka", through=1.0, lost={"a-1": [3]}), told(named("leader-silent"), flow=None)]
    for one in rounds:
        one.kind = named("leader-silent")
    whole = Counts(sent=5, arrived=5)

    past = read(json.loads(json.dumps(record(rounds, whole, 2, seed=1))))

    assert (past.rounds, past.whole, past.returned) == (rounds, whole, 2)
