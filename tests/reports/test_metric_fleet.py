"""The report on made-up fleets says what happened to them: every table against the truth of the generator."""

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from load.metric_fleet import Fault, Plan, make
from proxy.reports.analysis import analyse
from proxy.reports.files import log_files

PLANS = {
    "calm": Plan(types=6, active=5, minutes=2.0, events=True),
    # Clocks are right and each file lies in one place: the report knows neither skew nor copies. Faults need room.
    "wild": Plan(
        types=18,
        active=16,
        minutes=5.0,
        seed=2,
        events=True,
        faults=frozenset(Fault) - {Fault.SKEW, Fault.TWICE},
    ),
}
BUCKET = 1 / 128
MINUTE_MS = 60_000
Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def fleets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, dict[str, Any]]]:
    """Each fleet's folder and truth."""
    folder = tmp_path_factory.mktemp("fleets")
    return {run: (folder / run, make(folder / run, plan, 1)) for run, plan in PLANS.items()}


@pytest.fixture(scope="module")
def tables(
    spark: Any, fleets: dict[str, tuple[Path, dict[str, Any]]], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Rows]:
    """The tables of one report on all fleets."""
    files = {run: log_files([str(folder)]) for run, (folder, _) in fleets.items()}
    return analyse(spark, files, str(tmp_path_factory.mktemp("tables")), lambda _: None).tables.rows


@pytest.fixture(params=PLANS)
def run(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def truth(fleets: dict[str, tuple[Path, dict[str, Any]]], run: str) -> dict[str, Any]:
    return fleets[run][1]


@pytest.fixture
def of(tables: dict[str, Rows], run: str) -> Any:
    """The rows of a table of this run."""
    return lambda name: [row for row in tables[name] if row["run"] == run]


@pytest.fixture
def zero_ms(of: Any, truth: dict[str, Any]) -> float:
    """The instant of 0 s of the run, as its first process started at a known one."""
    first = truth["processes"][0]
    row = next(row for row in of("processes") if row["instance"] == first["instance"])
    return float(first["started_ms"] - 1000 * row["started_s"])


@pytest.mark.parametrize("key", ["class", "type"])
def test_traffic_is_what_passed(of: Any, truth: dict[str, Any], key: str) -> None:
    names = ("received", "received_bytes", "confirmed", "confirmed_bytes", "nacked", "unknown", "resent", "overtaken")
    wanted = {
        name: {
            **{count: one[count] for count in (*names, "ahead_of_clock", "old")},
            "possible_duplicates": one["resent_unknown"] + one["uncommitted"],
            "dead_lettered": sum(one["dead_lettered"].values()),
        }
        for name, one in truth[f"by_{key}"].items()
    }
    found = {row[key]: row for row in of(f"traffic_by_{key}")}
    assert {name: {count: found[name][count] for count in wanted[name]} for name in found} == wanted


def test_dead_letters_are_counted_by_reason(of: Any, truth: dict[str, Any]) -> None:
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for row in of("dead_letters"):
        found[row["class"]][row["reason"]] = row["dead_lettered"]
    assert found == {name: one["dead_lettered"] for name, one in truth["by_class"].items() if one["dead_lettered"]}


@pytest.mark.parametrize("key", ["class", "type"])
def test_percentiles_are_those_of_the_raw_samples_within_a_bucket(of: Any, truth: dict[str, Any], key: str) -> None:
    rows = {(row[key], row["measure"]): row for row in of(f"latency_by_{key}")}
    seen = 0
    for name, one in truth[f"by_{key}"].items():
        for measure, raw in (("publish latency", one["publish"]), ("bridge time", one["bridge"])):
            if not raw["samples"]:
                assert (name, measure) not in rows
                continue
            row = rows[name, measure]
            assert row["samples"] == raw["samples"]
            for column in ("p50", "p99", "p999", "max"):
                us = round(row[f"{column}_ms"] * 1000)
                assert raw[f"{column}_us"] <= us <= raw[f"{column}_us"] * (1 + BUCKET)
                seen += 1
    assert seen >= 24


def test_incidents_are_told_with_their_place(of: Any, truth: dict[str, Any]) -> None:
    def place(one: dict[str, Any]) -> str:
        return ", ".join(f"{name} {one[name]}" for name in ("type", "topic", "partition") if one[name] is not None)

    found = {(row["name"], row["place"], row["times"], row["count"]) for row in of("incidents")}
    assert found == {(one["name"], place(one), 1, one["count"]) for one in truth["incidents"]}


def test_every_episode_is_found_with_its_edges_within_a_tick(of: Any, truth: dict[str, Any], zero_ms: float) -> None:
    rows = sorted(of("episodes"), key=lambda row: (row["route"], row["from_s"]))
    wanted = sorted(truth["episodes"], key=lambda one: (one["route"], one["from_ms"]))
    assert [row["route"] for row in rows] == [one["route"] for one in wanted]
    for row, one in zip(rows, wanted, strict=True):
        within = one["within_ms"] + 1
        assert 0 <= zero_ms + 1000 * row["from_s"] - one["from_ms"] <= within
        assert 0 <= zero_ms + 1000 * row["to_s"] - one["to_ms"] <= within
        assert row["ended"]
        assert row["stretches"] == len(one["stretches"])
        congested_ms = sum(end - start for start, end in one["stretches"])
        assert abs(1000 * row["congested_s"] - congested_ms) <= within * len(one["stretches"])
        assert row["causes"] == one["cause"]
        assert row["queues"] == (one["ruled_by"] or "")
        assert row["worst_delay_ms"] == (one["queue_delay_us"] and round(one["queue_delay_us"] / 1000, 3))
    cuts = Counter[str]()
    for row in rows:
        cuts[row["route"]] += row["cuts"] or 0
    assert cuts == sum((Counter({one["route"]: one["cuts"]}) for one in truth["episodes"]), Counter())


def minutes_inside(truth: dict[str, Any], routes: list[str], late_ms: float) -> set[int]:
    """The minutes that an episode touches of one of the routes, if it is told of so late; a share of what it may be."""
    spans = [
        tuple(one[name] + late_ms * one["within_ms"] for name in ("from_ms", "to_ms"))
        for one in truth["episodes"]
        if one["route"] in routes
    ]
    return {minute for begin, end in spans for minute in range(int(begin // MINUTE_MS), int(-(-end // MINUTE_MS)))}


def test_targets_are_held_and_missed_as_they_were_inside_and_outside_of_congestion(
    of: Any, truth: dict[str, Any], run: str
) -> None:
    found = {(row["class"], row["scope"]): row for row in of("slo")}
    scopes = 0
    for name, one in truth["slos"].items():
        inside = minutes_inside(truth, one["routes"], 0.0)
        assert inside == minutes_inside(truth, one["routes"], 1.0)
        minutes = {begin // MINUTE_MS: (judged, missed) for begin, judged, missed in one["minutes"]}
        for scope, some in {
            "all": set(minutes),
            "inside": minutes.keys() & inside,
            "outside": minutes.keys() - inside,
        }.items():
            assert ((name, scope) in found) == bool(some)
            if not some:
                continue
            row = found[name, scope]
            judged, missed = (sum(minutes[minute][place] for minute in some) for place in (0, 1))
            assert [row[field] for field in ("judges", "within_s", "share")] == [
                one[field] for field in ("judges", "within_s", "share")
            ]
            assert (row["judged"], row["minutes"]) == (judged, len(some))
            assert row["missed"] - row["unsure"] <= missed <= row["missed"]
            assert row["burn"] == pytest.approx(row["missed"] / judged / (1 - one["share"]), abs=1e-4)
            worst = max((missed / judged, missed) for judged, missed in (minutes[minute] for minute in some))
            assert row["unsure"] or (row["worst_minute_missed"] or 0) == worst[1]
            scopes += 1
    assert scopes == (6 if run == "calm" else 9)


def test_blind_time_is_as_long_as_it_was(of: Any, truth: dict[str, Any]) -> None:
    found = [(row["route"], row["times"]) for row in of("blind_time")]
    assert found == [(one["route"], 1) for one in truth["blind"]]
    for row, one in zip(of("blind_time"), truth["blind"], strict=True):
        assert abs(1000 * row["seconds"] - (one["to_ms"] - one["from_ms"])) <= 100


def test_lines_that_are_none_are_counted_by_file_and_reason(of: Any, truth: dict[str, Any]) -> None:
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for row in of("rejected_lines"):
        found[row["file"]][row["reason"]] = row["lines"]
    assert found == {one["name"]: one["rejected"] for one in truth["files"] if one["rejected"]}


def test_processes_start_end_and_lose_as_they_did(of: Any, truth: dict[str, Any], zero_ms: float) -> None:
    found = {row["instance"]: row for row in of("processes")}
    assert set(found) == {one["instance"] for one in truth["processes"]}
    for one in truth["processes"]:
        row = found[one["instance"]]
        assert round(zero_ms + 1000 * row["started_s"]) == one["started_ms"]
        stopped = row["stopped_s"] and round(zero_ms + 1000 * row["stopped_s"])
        assert stopped == one["stopped_ms"]
        assert (row["dropped_records"] > 0) == (one["lossy_ms"] is not None)


@pytest.mark.parametrize("key", ["class", "type"])
def test_events_are_delivered_missing_and_duplicated_as_they_were(of: Any, truth: dict[str, Any], key: str) -> None:
    found = {row[key]: row for row in of(f"proof_by_{key}")}
    assert set(found) == set(truth["proof"][f"by_{key}"])
    for name, one in truth["proof"][f"by_{key}"].items():
        row = found[name]
        for count in ("produced", "delivered", "missing", "duplicated"):
            assert row[count] == one[count]
        assert row["unexpected"] == 0
        for column in ("p50_ms", "p99_ms", "p999_ms", "max_ms"):
            assert row[f"consumed_{column}"] == one["consumed"][column]


def test_sums_that_must_agree_do_when_nothing_goes_wrong(tables: dict[str, Rows]) -> None:
    found = [row for row in tables["cross_checks"] if row["run"] == "calm"]
    assert len(found) > 20
    assert [row for row in found if row["difference"]] == []


def test_no_event_is_lost_when_nothing_goes_wrong(tables: dict[str, Rows]) -> None:
    assert [row["lost"] for row in tables["proof_by_class"] if row["run"] == "calm"] == [0, 0, 0]


def test_the_backlog_ends_with_what_is_left_in_the_log(of: Any, truth: dict[str, Any]) -> None:
    left = Counter[str]()
    classes = {row["type"]: row["class"] for row in of("traffic_by_type")}
    for one in truth["partitions"]:
        if one["type"] in classes:
            left[classes[one["type"]]] += one["positions"].get("in_log", 0)
    last = {row["class"]: row["lag"] for row in sorted(of("lag_over_time"), key=lambda row: row["t_s"])}
    assert last == {name: left[name] for name in truth["by_class"]}


def test_the_longest_queue_delay_is_that_of_the_worst_episode(of: Any, truth: dict[str, Any]) -> None:
    worst: dict[str, float] = {}
    for one in truth["episodes"]:
        worst[one["route"]] = max(worst.get(one["route"], 0.0), (one["queue_delay_us"] or 0) / 1000)
    found: dict[str, float] = {}
    for row in of("control_over_time"):
        found[row["route"]] = max(found.get(row["route"], 0.0), row["delay_ms"] or 0.0)
    assert {route: found[route] for route, delay in worst.items() if delay} == {
        route: delay for route, delay in worst.items() if delay
    }
    assert all(found[route] <= 20.0 for route in found if not worst.get(route))
