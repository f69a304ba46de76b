"""Whatever is told of a partition: the ledger is what plain Python makes of it, and no position is left out."""

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.reports.conftest import DEFAULTS
from tests.reports.ledger.books import ledger_of, letter, part
from tests.reports.ledger.model import Row, ledger

MOST = 14
"""Positions that a claim begins at or before."""
HISTORIES = 40
"""In one example, each a run of its own: a query costs a second, however little it is about."""
REASONS = ("expired", "refused")


@st.composite
def spans(draw: st.DrawFn) -> tuple[int, int]:
    """A range of positions, one in many empty."""
    first = draw(st.integers(0, MOST))
    return first, first + draw(st.integers(0, 6))


@st.composite
def ranges(draw: st.DrawFn) -> dict[str, Any]:
    """A committed range, its letters disjoint, and in some more of them counted than have a place."""
    first, end = draw(spans())
    letters, at = [], first
    while at < end and draw(st.booleans()):
        start = draw(st.integers(at, end - 1))
        at = draw(st.integers(start + 1, end))
        letters.append(letter(start, at, draw(st.sampled_from(REASONS)), draw(st.integers(1, at - start))))
    placed = sum(one["end"] - one["first"] for one in letters)
    room = end - first - placed
    told = part(first, end, draw(st.sampled_from([room, room, max(0, room - 1), room + 1, 0])), *letters)
    if draw(st.integers(0, 4)) == 0:
        reason = draw(st.sampled_from(REASONS))
        told["dead_lettered"][reason] = told["dead_lettered"].get(reason, 0) + draw(st.integers(1, 3))
    return told


@st.composite
def chains(draw: st.DrawFn) -> list[tuple[int, int]]:
    """Ranges that mostly reach from one to the next, in any order, as an epoch commits them that nothing happens to."""
    at, chain = draw(st.integers(0, MOST)), []
    for _ in range(draw(st.integers(0, 4))):
        at, first = at + draw(st.integers(0, 4)), at + draw(st.sampled_from([0, 0, 0, 0, -1, 1]))
        chain += [(first, at)] if 0 <= first < at else []
    return draw(st.permutations(chain)) if draw(st.booleans()) else chain


@st.composite
def histories(draw: st.DrawFn) -> list[dict[str, Any]]:
    """What two processes of one or two groups tell of a topic, or of two that followed each other, in any order."""
    records: list[dict[str, Any]] = []
    topic_ids = draw(st.sampled_from([["id"], ["id"], ["id", "other"]]))
    groups = draw(st.sampled_from([["g"], ["g"], ["g", None]]))

    def add(kind: str, **changes: Any) -> None:
        where = {"group": draw(st.sampled_from(groups)), "instance": draw(st.sampled_from(["a", "b"]))}
        at_ms = 1_000 + draw(st.integers(0, 30)) * 100 + len(records)
        records.append({"v": 2, "kind": kind, "at_ms": at_ms, **DEFAULTS[kind], **where, **changes})

    for number in range(draw(st.integers(0, 3))):
        first, end = draw(spans())
        committed = draw(st.sampled_from([first, first, None, max(0, first - 2)]))
        last = draw(st.sampled_from([None, end]))
        topic_id = draw(st.sampled_from(topic_ids))
        add("assigned", epoch=number + 1, first=first, committed=committed, end=last, topic_id=topic_id)
    for _ in range(draw(st.integers(0, 4))):
        topic_id, epoch = draw(st.sampled_from(topic_ids)), draw(st.integers(1, 3))
        add("committed", ranges=[{**draw(ranges()), "topic_id": topic_id, "epoch": epoch}])
    for first, end in draw(chains()):
        told = part(first, end, end - first)
        add("committed", instance="a", ranges=[{**told, "topic_id": topic_ids[0], "epoch": 1}])
    for kind in draw(st.lists(st.sampled_from(["truncated", "skip", "rewind", "discard", "redrive"]), max_size=3)):
        first, end = draw(spans())
        place = {"first": first, "end": end, "topic_id": draw(st.sampled_from(topic_ids))}
        match kind:
            case "truncated":
                told = draw(st.sampled_from([place["topic_id"], None]))
                place |= {"topic_id": told, "name": kind, "topic": "order", "partition": 0, "count": end - first}
                add("incident", **place)
            case "skip" | "rewind":
                add(kind, **place, count=draw(st.sampled_from([None, max(0, end - first - 1)])))
            case "discard":
                add(kind, **place, count=draw(st.integers(0, end - first)))
            case _:
                add(kind, **place, reason=draw(st.sampled_from(REASONS)), count=draw(st.integers(0, end - first)))
    return records


def covered(rows: Sequence[Row]) -> Mapping[Any, tuple[int, int]]:
    """Return of each partition how many positions its rows are about, and how many lie between its ends."""
    found: dict[Any, tuple[int, int, int]] = {}
    for one in rows:
        count, first, end = found.get(one.key, (0, one.first, one.end))
        found[one.key] = count + one.positions, min(first, one.first), max(end, one.end)
    return {key: (count, end - first) for key, (count, first, end) in found.items()}


@settings(
    max_examples=5,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(st.lists(histories(), min_size=HISTORIES, max_size=HISTORIES))
def test_the_ledger_is_that_of_the_model_whatever_is_told(spark: Any, told: list[list[dict[str, Any]]]) -> None:
    runs = {f"run{number:03}": records for number, records in enumerate(told) if records}
    rows, findings = ledger_of(spark, runs)
    for run, records in runs.items():
        wanted, wrong = ledger(run, records)
        of_run = [one for one in rows if one.key[0] == run]
        assert set(of_run) == wanted, records
        assert {one for one in findings if one.key[0] == run} == wrong, records
        assert len(of_run) == len(wanted)
    assert all(count == between for count, between in covered(rows).values())
