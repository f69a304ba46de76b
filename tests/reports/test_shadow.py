"""What a policy in shadow would have held back, as the report tells it."""

from collections.abc import Callable
from typing import Any

from proxy.reports.shadow import sentences, shadow

Make = Callable[..., Any]
RUN = {"name": "run", "started_at": "2026-01-31T14:00:00.000+00:00"}


def test_a_stretch_tells_rate_events_and_the_longest_wait_when_intervals_follow_each_other(
    record: Make, read: Make, rows: Make
) -> None:
    lines = [
        record("start", at_ms=0),
        record("shadow", at_ms=10_000, sent=50, passed=50),
        record("shadow", at_ms=20_000, sent=900, held=800, passed=100, waiting=800, longest_s=9.0),
        record("shadow", at_ms=20_003, type="news", sent=100, held=100, waiting=100, longest_s=10.0),
        record("shadow", at_ms=20_000, type="mail", **{"class": "P2"}, sent=10, passed=10),
        record("shadow", at_ms=30_000, sent=0, passed=700, waiting=100, longest_s=12.5),
        record("shadow", at_ms=30_001, type="news", sent=0, passed=100),
        record("shadow", at_ms=40_000, sent=3, passed=103),
        record("shadow", at_ms=90_000, sent=9, held=9, passed=9, longest_s=0.25),
    ]
    found = rows(shadow(read(run=lines).of("shadow")))
    flood, later = sorted(found, key=lambda row: row["from_s"])
    assert (flood["route"], flood["class"], flood["from_s"], flood["to_s"]) == ("main", "P3", 10.0, 30.0)
    assert (flood["sent"], flood["held"], flood["passed"], flood["waiting"]) == (1000, 900, 800, 900)
    assert (flood["passed_rate"], flood["longest_s"]) == (40.0, 12.5)
    assert (later["from_s"], later["to_s"], later["held"]) == (80.0, 90.0, 9)
    assert sentences(found, [RUN]) == [
        (
            "in shadow: P3 on main would have been held to 40 events/s from 14:00:10 to 14:00:30 UTC; 900 of 1,000 "
            "events would have waited, for up to 12.5 s; at most 900 at a time"
        ),
        (
            "in shadow: P3 on main would have been held to 1 events/s from 14:01:20 to 14:01:30 UTC; 9 of 9 events "
            "would have waited, for up to 0.2 s; at most 0 at a time"
        ),
    ]


def test_the_largest_stretches_have_sentences_when_there_are_many() -> None:
    stretch = {"run": "run", "route": "main", "class": "P3", "sent": 9, "passed_rate": None, "waiting": None}
    rows = [
        stretch | {"from_s": 60.0 * number, "to_s": 60.0 * number + 10, "held": number, "longest_s": None}
        for number in range(8)
    ]
    told = sentences(rows, [RUN])
    assert [line.partition(" from ")[2][:8] for line in told[:3]] == ["14:05:00", "14:06:00", "14:07:00"]
    assert told[3:] == ["in shadow: P3 on main: 4 more stretches, shorter"]


def test_records_of_an_older_version_have_no_class_and_are_told_all_the_same(
    record: Make, read: Make, rows: Make
) -> None:
    old = record("shadow", at_ms=20_000, sent=9, held=9)
    for added in ("class", "passed", "waiting", "longest_s"):
        del old[added]
    (found,) = rows(shadow(read(run=[record("start", at_ms=0), old]).of("shadow")))
    assert (found["class"], found["held"], found["passed"], found["passed_rate"]) == ("", 9, None, None)
