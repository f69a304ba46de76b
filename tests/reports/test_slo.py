"""Whether a class held its target, against figures made by hand and a model in plain Python."""

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import count
from math import ceil
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from proxy.congestion.buckets import index_of
from proxy.reports import slo
from proxy.reports.changes import plans
from proxy.reports.latency import measured as measured_of
from proxy.reports.proof import events
from proxy.reports.sentences import of_targets, percent

Make = Callable[..., Any]
MINUTE = 60_000
SHARES = ("0.01", "0.5", "0.71", "0.9", "0.95", "0.999", "0.99999")


def bridge(within_s: float, share: float) -> dict[str, Any]:
    return {"within_s": within_s, "share": share, "judges": "bridge"}


def consumed(within_s: float, share: float) -> dict[str, Any]:
    return {"within_s": within_s, "share": share, "judges": "consumed"}


@pytest.fixture
def found(read: Make, rows: Make) -> Make:
    """The table of a log, by class and scope. Each log is a run of its own: Spark keeps what it has read of a file."""
    number = count()

    def make(
        lines: list[Any], *, touched: Sequence[tuple[str, int]] = (), end_ms: int = 0
    ) -> dict[tuple[str, str], Any]:
        run = f"run{next(number)}"
        records = read(**{run: lines})
        promised = slo.targets(promises(records))
        seen = events(records.of("produced"), records.of("consumed"))
        measured = slo.bridge_times(measured_of({"class": records.of("class")}), promised).unionByName(
            slo.consumed_times(seen, promised, {run: end_ms})
        )
        judged = slo.by_minute(measured, promised)
        minutes = [{"run": run, "class": name, "minute": minute} for name, minute in touched]
        frame = table(promised.sparkSession, "run string, class string, minute long", minutes)
        return {(row["class"], row["scope"]): row for row in rows(slo.slo(judged, promised, frame))}

    return make


def promises(records: Any) -> Any:
    return plans(records.of("start"), records.of("settings"))


def table(spark: Any, columns: str, rows: list[dict[str, Any]]) -> Any:
    return spark.sql(f"SELECT inline(from_json(:rows, 'array<struct<{colons(columns)}>>'))", {"rows": json.dumps(rows)})


def colons(columns: str) -> str:
    return ", ".join(column.replace(" ", ": ") for column in columns.split(", "))


def us(value: int) -> str:
    return str(index_of(value))


def test_the_budget_is_what_the_share_allows_and_the_worst_minute_burns_fastest(record: Make, found: Make) -> None:
    lines = [
        record("start", slos={"P1": bridge(2, 0.9), "P2": bridge(0.25, 0.5)}),
        record("class", at_ms=30_000, bridge_us={us(100_000): 30}),
        record("class", at_ms=MINUTE, bridge_us={us(3_000_000): 2}, instance="two"),  # ends with its minute
        record("class", at_ms=MINUTE + 1, bridge_us={us(1_990_000): 9, us(3_000_000): 1}),
        record("class", at_ms=59 * MINUTE + 5, bridge_us={us(9_000_000): 1}),
        record("class", at_ms=61 * MINUTE, bridge_us={us(5): 7}),
        record("class", at_ms=61 * MINUTE, class_="P2", bridge_us={us(249_000): 3, us(900_000): 3}),
        record("class", at_ms=61 * MINUTE, class_="P3", bridge_us={us(9_000_000): 5}),
    ]
    table = found(lines, touched=[("P1", 0), ("P1", 59), ("P2", 3)])
    assert set(table) == {("P1", "all"), ("P1", "inside"), ("P1", "outside"), ("P2", "all"), ("P2", "outside")}
    first = table["P1", "all"]
    assert [first[name] for name in ("judges", "within_s", "share", "targets")] == ["bridge", 2.0, 0.9, 1]
    assert [first[name] for name in ("judged", "missed", "unsure", "kept")] == [50, 4, 0, 0.92]
    assert [first[name] for name in ("allowed", "burn", "holds")] == [5.0, 0.8, True]
    assert [first[name] for name in ("minutes", "minutes_missed")] == [4, 1]
    worst = ("worst_minute", "worst_minute_judged", "worst_minute_missed", "worst_minute_burn")
    assert [first[name] for name in worst] == ["1970-01-01 00:59", 1, 1, 10.0]
    hour = ("worst_hour", "worst_hour_judged", "worst_hour_missed", "worst_hour_burn")
    assert [first[name] for name in hour] == ["1970-01-01 00:00", 43, 4, round(4 / 4.3, 4)]
    inside, outside = table["P1", "inside"], table["P1", "outside"]
    assert [inside[name] for name in ("judged", "missed", "burn", "holds")] == [33, 3, round(3 / 3.3, 4), True]
    assert [outside[name] for name in ("judged", "missed", "burn", "minutes")] == [17, 1, round(1 / 1.7, 4), 2]
    assert outside["worst_minute"] == "1970-01-01 00:01"
    second = table["P2", "all"]
    assert [second[name] for name in ("judged", "missed", "burn", "holds", "minutes_missed")] == [6, 3, 1.0, True, 0]


def test_the_worst_of_equal_minutes_has_more_misses_then_is_the_first_and_none_is_when_nothing_was_missed(
    record: Make, found: Make
) -> None:
    lines = [
        record("start", slos={name: bridge(2, 0.9) for name in ("P1", "P2")} | {"P3": consumed(1, 0.9)}),
        *(
            record("class", at_ms=minute * MINUTE + 1, bridge_us={us(9_000_000): late, us(1): late})
            for minute, late in enumerate((1, 3, 3, 2))
        ),
        record("class", class_="P2", bridge_us={us(1): 5}),
        record("class", class_="P3", bridge_us={us(1): 5}),
    ]
    table = found(lines)
    row = table["P1", "all"]
    assert (row["worst_minute"], row["worst_minute_missed"]) == ("1970-01-01 00:01", 3)
    row = table["P2", "all"]
    assert (row["kept"], row["burn"], row["worst_minute"], row["worst_hour"]) == (1.0, 0.0, None, None)
    assert {scope for name, scope in table if name == "P3"} == {"all"}
    names = ("judged", "missed", "kept", "burn", "holds", "minutes", "worst_minute")
    assert [table["P3", "all"][name] for name in names] == [0, 0, None, None, None, 0, None]


def test_the_target_is_that_of_the_process_that_started_last_when_it_was_changed(
    record: Make, read: Make, rows: Make
) -> None:
    lines = [
        record("start", at_ms=5, slos={"P1": bridge(2, 0.9), "P2": consumed(1, 0.5)}),
        record("start", at_ms=9, slos={"P1": bridge(3, 0.9)}, instance="two"),
        record("start", at_ms=9, slos={"P1": bridge(3, 0.9)}, instance="three"),
        record("start", at_ms=7, slos={"P1": bridge(4, 0.9)}, instance="four"),
        record("start", at_ms=99, instance="of before"),
        record("settings", at_ms=1, slos={"P1": bridge(5, 0.9)}, instance="four"),
    ]
    told = [(row["class"], row["within_s"], row["targets"]) for row in rows(slo.targets(promises(read(lines))))]
    assert told == [("P1", 3.0, 4), ("P2", 1.0, 1)], "by a reload before the last start"
    (last,) = rows(slo.targets(promises(read([lines[1], record("settings", at_ms=9, slos={"P1": bridge(6, 0.9)})]))))
    assert (last["within_s"], last["targets"]) == (6.0, 2), "in the same millisecond, too"
    found = rows(slo.targets(promises(read(lines[:-1]))))
    assert [(row["class"], row["judges"], row["within_s"], row["share"], row["targets"]) for row in found] == [
        ("P1", "bridge", 3.0, 0.9, 3),
        ("P2", "consumed", 1.0, 0.5, 1),
    ]


def test_a_target_that_nobody_can_have_set_is_none(record: Make, read: Make, rows: Make) -> None:
    broken = ({"within_s": 0}, {"within_s": None}, {"share": 1}, {"share": 7}, {"share": None}, {})
    lines = [record("start", slos={f"c{at}": bridge(2, 0.9) | one for at, one in enumerate(broken)})]
    assert [row["class"] for row in rows(slo.targets(promises(read(lines))))] == ["c5"]


def test_an_event_counts_by_its_first_consumption_or_as_missed_when_it_never_came(record: Make, found: Make) -> None:
    def produced(key: str, at_ms: int) -> Any:
        return record("produced", id=key, at_ms=at_ms)

    def read_at(key: str, event_ms: int, at_ms: int) -> Any:
        return record("consumed", id=key, event_ms=event_ms, at_ms=at_ms)

    lines = [
        record("start", slos={"P1": consumed(1, 0.5)}),
        produced("in time, late again", 100),
        read_at("in time, late again", 100, 90_000),
        read_at("in time, late again", 100, 1_100),
        produced("late", 1_000),
        read_at("late", 1_000, 61_000),
        read_at("never produced", 59_000, 60_001),
        produced("never came", 62_000),
        produced("comes perhaps", 122_000),
        record("produced", id="of another class", class_="P2"),
    ]
    row = found(lines, end_ms=123_000)["P1", "all"]
    assert [row[name] for name in ("judged", "missed", "unsure", "minutes")] == [4, 3, 0, 2]
    assert (row["worst_minute"], row["worst_minute_judged"], row["worst_minute_missed"]) == ("1970-01-01 00:01", 3, 3)


def test_minutes_are_inside_when_an_episode_of_a_route_of_the_class_touches_them(spark: Any, rows: Make) -> None:
    spans = {"edge": (10.0, 50.0), "across": (20.001, 171.0), "other": (0.0, 600.0), "point": (130.0, 130.0)}
    episodes = table(
        spark,
        "run string, route string, from_s double, to_s double",
        [{"run": "run", "route": name, "from_s": begin, "to_s": end} for name, (begin, end) in spans.items()],
    )
    served = {"P1": ("edge",), "P2": ("across", "edge"), "P3": ("calm",), "P4": ("point",)}
    serving = table(
        spark,
        "run string, class string, route string",
        [{"run": "run", "class": name, "route": route} for name, routes in served.items() for route in routes],
    )
    found = defaultdict(list)
    for row in rows(slo.inside(episodes, serving, {"run": 7 * MINUTE + 10_000})):
        found[row["class"]].append(row["minute"])
    # 7:20 to 8:00 touches no minute but the seventh; 7:30 to 10:01 four of them.
    assert {name: sorted(minutes) for name, minutes in found.items()} == {"P1": [7], "P2": [7, 8, 9, 10], "P4": [9]}


@dataclass(frozen=True)
class Case:
    """Raw bridge times of a class by minute, its target, and the minutes of congestion."""

    within_us: int
    share: str
    minutes: dict[int, list[int]]
    touched: frozenset[int]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    within_us = draw(st.integers(1_000, 40_000) | st.integers(100_000, 1_800_000_000)) // 1_000 * 1_000
    near = st.integers(max(0, within_us - within_us // 50), within_us + within_us // 50)
    values = st.lists(near | st.integers(0, 3_000_000_000), min_size=1, max_size=12)
    minutes = draw(st.dictionaries(st.integers(0, 200), values, min_size=1, max_size=6))
    touched = draw(st.frozensets(st.sampled_from(sorted(minutes))))
    return Case(within_us, draw(st.sampled_from(SHARES)), minutes, touched)


@settings(
    max_examples=2,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate],  # shrinking starts a query for each try
    suppress_health_check=list(HealthCheck),
)
@given(some=st.lists(cases(), min_size=20, max_size=30))
def test_raw_times_are_judged_within_what_buckets_can_not_tell_whatever_they_are(
    record: Make, found: Make, some: list[Case]
) -> None:
    named = {f"c{number}": case for number, case in enumerate(some)}
    lines = [record("start", slos={name: bridge(one.within_us / 1e6, float(one.share)) for name, one in named.items()})]
    for name, case in named.items():
        for minute, values in case.minutes.items():
            counts: dict[str, int] = defaultdict(int)
            for value in values:
                counts[us(value)] += 1
            lines.append(record("class", at_ms=minute * MINUTE + 17, class_=name, bridge_us=dict(counts)))
    table = found(lines, touched=[(name, minute) for name, case in named.items() for minute in case.touched])
    for name, case in named.items():
        budget = 1 - Fraction(case.share)
        for scope, minutes in {
            "all": set(case.minutes),
            "inside": case.touched,
            "outside": case.minutes.keys() - case.touched,
        }.items():
            if not minutes:
                assert (name, scope) not in table
                continue
            row = table[name, scope]
            late = {minute: sum(value > case.within_us for value in case.minutes[minute]) for minute in minutes}
            judged = sum(len(case.minutes[minute]) for minute in minutes)
            assert row["judged"] == judged
            assert row["missed"] - row["unsure"] <= sum(late.values()) <= row["missed"]
            assert row["holds"] == (row["missed"] <= budget * judged)
            assert row["burn"] == pytest.approx(float(row["missed"] / (budget * judged)), abs=1e-4)
            assert row["minutes"] == len(minutes)
            assert row["minutes_missed"] >= sum(late[one] > budget * len(case.minutes[one]) for one in minutes)
            assert row["worst_minute_burn"] is None or row["worst_minute_burn"] >= row["burn"] - 1e-4


# -- what is said -----------------------------------------------------------------------------------------------------

RUN = {"name": "day", "started_at": "2026-11-23T05:00:00.000+00:00", "ended_at": "2026-11-23T15:00:00.000+00:00"}
ROW = {
    "run": "day", "class": "P1", "scope": "all", "judges": "bridge", "within_s": 2.0, "share": 0.999, "targets": 1,
    "judged": 100_000, "missed": 20, "unsure": 0, "allowed": 100.0, "holds": True,
    "worst_minute": "2026-11-23 14:02", "worst_minute_judged": 120, "worst_minute_missed": 3,
}  # fmt: skip


def said(**changes: Any) -> str:
    inside = ROW | {"scope": "inside", "missed": 18}
    (sentence,) = of_targets([ROW | changes, inside, ROW | {"scope": "inside", "class": "P2"}], [RUN])
    return sentence


def test_a_sentence_names_the_time_it_judges_the_budget_and_the_worst_minute() -> None:
    assert said() == (
        "P1 held its 2 s of bridge time: 99.98 % of 100,000 events (target 99.9 %, 20 % of its error budget used); "
        "worst minute 14:02 UTC (3 of 120 late); 18 of 20 late ones in minutes with congestion"
    )


def test_a_sentence_says_so_when_a_target_was_not_held_even_if_by_one_event() -> None:
    told = said(missed=101, holds=False, judges="consumed")
    assert told.startswith(
        "P1 did not hold its 2 s of consumed time: only 99.89 % of 100,000 events "
        "(target 99.9 %, 101 % of its error budget used); "
    )
    assert "perhaps" not in told
    told = said(missed=1_001, judged=1_000_000, allowed=1_000.0, holds=False)
    assert "only 99.89 % of 1,000,000 events (target 99.9 %, 101 % of its error budget used)" in told
    told = said(missed=101, unsure=1, holds=False)
    assert told.endswith("; perhaps it held: 1 of them are as late as buckets can't tell")


def test_a_sentence_is_short_when_nothing_was_missed_and_shorter_when_nothing_was_judged() -> None:
    told = said(missed=0, worst_minute=None)
    assert told == (
        "P1 held its 2 s of bridge time: 100 % of 100,000 events (target 99.9 %, 0 % of its error budget used)"
    )
    told = said(judged=0, missed=0, judges="consumed", worst_minute=None)
    assert told == "P1: no consumed time is recorded to hold 2 s of consumed time for 99.9 % against"


def test_a_sentence_has_run_day_and_changed_targets_when_there_are_several() -> None:
    night = RUN | {"name": "night", "ended_at": "2026-11-24T01:00:00.000+00:00"}
    first, second = of_targets([ROW, ROW | {"run": "night", "targets": 2}], [RUN, night])
    assert first.startswith("day: P1 held")
    assert "worst minute 14:02 UTC" in first
    assert second.startswith("night: P1 held")
    assert "worst minute 2026-11-23 14:02 UTC" in second
    assert second.endswith("; its processes had 2 different targets, the last one counts")


@given(whole=st.integers(1, 10**12), digits=st.integers(1, 6), data=st.data())
def test_a_share_is_never_written_larger_than_it_is(whole: int, digits: int, data: st.DataObject) -> None:
    part = data.draw(st.integers(0, whole) | st.integers(max(0, whole - 5), whole))
    text = percent(part, whole, digits)
    written, exact = Fraction(text.removesuffix(" %")), Fraction(100 * part, whole)
    assert exact - Fraction(1, 10**digits) < written <= exact
    assert (text == "100 %") == (part == whole)
    assert ceil(written) <= 100
