"""What people did, as the report tells it."""

from collections.abc import Callable
from typing import Any

from proxy.reports.actions import actions

Make = Callable[..., Any]


def told(found: list[dict[str, Any]], action: str) -> list[dict[str, Any]]:
    """The rows of one action, in the order of time."""
    return sorted((row for row in found if row["action"] == action), key=lambda row: row["from_s"] or 0)


def test_an_intervention_is_one_row_when_three_replicas_obeyed_it_and_one_person_ended_it(
    record: Make, read: Make, rows: Make
) -> None:
    lines = [
        record("intervention", at_ms=1_000, instance="one", why="flood"),
        record("intervention", at_ms=1_200, instance="two", why="flood"),
        record("intervention", at_ms=9_000, instance="three", why="flood"),
        *(
            record("intervention", at_ms=at, instance=who, why="flood", phase="ended", ended_by="bob", ended_why="calm")
            for at, who in ((60_000, "one"), (60_300, "two"), (59_900, "three"))
        ),
        record("intervention", at_ms=70_000, id="ffff", mode="cap", rate=25.0, types=["a", "b"], classes=[]),
        record("intervention", at_ms=80_000, id="eeee", mode="policy", classes=[], routes=["mail"], policy="static"),
    ]
    found = rows(actions(read(lines)))
    (pause,) = told(found, "pause")
    assert (pause["from_s"], pause["to_s"], pause["until_s"], pause["instances"]) == (1.0, 60.3, 601.0, 3)
    assert (pause["subject"], pause["by"], pause["why"]) == ("classes: P3", "ann", "flood")
    assert (pause["ended_by"], pause["ended_why"], pause["events"]) == ("bob", "calm", None)
    (cap,) = told(found, "cap")
    assert (cap["subject"], cap["details"], cap["from_s"], cap["to_s"]) == ("types: a, b", "25.0 events/s", 70.0, None)
    (policy,) = told(found, "policy")
    assert (policy["subject"], policy["details"]) == ("routes: mail", "static")


def test_moves_of_a_person_for_a_reason_are_one_row_when_they_are_of_many_partitions(
    record: Make, read: Make, rows: Make
) -> None:
    skipped = [
        record("skip", at_ms=1_000 + n, type=f"t{n}", first=10, end=20, count=8, by="ann", why="sold out")
        for n in range(7)
    ]
    lines = [
        *skipped,
        record("skip", at_ms=50_000, first=0, end=5, count=5, by="bob", why="sold out"),
        record("rewind", at_ms=60_000, first=0, end=5, count=None, by="ann", why=None),
        record("redrive", at_ms=70_000, first=0, end=5, count=4, reason="unroutable"),
        record("redrive", at_ms=71_000, first=9, end=10, count=1, reason="refused"),
        record("discard", at_ms=72_000, first=0, end=5, count=5, by="ann", why="sent twice"),
    ]
    found = rows(actions(read(lines)))
    many, one = told(found, "skip")
    assert (many["from_s"], many["to_s"], many["by"], many["why"]) == (1.0, 1.006, "ann", "sold out")
    assert (many["ranges"], many["positions"], many["events"]) == (7, 70, 56)
    assert many["subject"] == "types: t0, t1, t2, t3, t4, 2 more"
    assert (one["by"], one["ranges"], one["events"]) == ("bob", 1, 5)
    (rewind,) = told(found, "rewind")
    assert (rewind["positions"], rewind["events"], rewind["why"]) == (5, None, None)
    assert [(row["details"], row["events"]) for row in told(found, "redrive")] == [("unroutable", 4), ("refused", 1)]
    (discard,) = told(found, "discard")
    assert (discard["details"], discard["why"], discard["events"]) == ("", "sent twice", 5)
