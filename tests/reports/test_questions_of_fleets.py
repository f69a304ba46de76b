"""What people ask of a made-up fleet is answered as it was: tables against the truth of the generator."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from load.metric_fleet import Plan, faults, make
from load.metric_fleet.plan import ROUTE_MS, TICK_MS, TYPE_MS
from proxy.reports import backlog, changes, decisions, replicas, scaling, spectra
from proxy.reports.files import log_files
from proxy.reports.latency import measured
from proxy.reports.layers import read
from proxy.reports.records import Records
from proxy.reports.traffic import TROUBLES, troubles

NAMES = ("crash", "congestion", "saw", "nacks", "letters", "clock", "skew", "stuck", "unfinished", "scaled")
BUCKET = 1 / 128


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A fleet's folder and truth."""
    folder = tmp_path_factory.mktemp("fleet") / "logs"
    return folder, make(folder, Plan(types=18, active=16, minutes=5.0, seed=3, faults=faults(NAMES)), 1)


@pytest.fixture(scope="module")
def truth(fleet: tuple[Path, dict[str, Any]]) -> dict[str, Any]:
    return fleet[1]


@pytest.fixture(scope="module")
def of(spark: Any, fleet: tuple[Path, dict[str, Any]]) -> Callable[[str], Any]:
    """The records of a kind."""
    folder, truth = fleet
    layers = read(spark, {"fleet": log_files([str(folder)])}, str(folder.parent / "layers"), lambda _: None)
    return Records(layers.records, {"fleet": truth["start_ms"]}).of


def test_a_spectrum_is_that_of_the_raw_samples_within_a_bucket(of: Any, rows: Any, truth: dict[str, Any]) -> None:
    found = rows(spectra.spectra(spectra.recorded(measured({kind: of(kind) for kind in ("class", "type", "route")}))))
    points: dict[tuple[str, ...], dict[float, dict[str, Any]]] = {}
    for row in found:
        points.setdefault((row["level"], row["name"], row["measure"]), {})[row["percentile"]] = row
    compared = 0
    for level in ("class", "type", "route"):
        for name, one in truth[f"by_{level}"].items():
            for measure, raw in (("publish latency", one["publish"]), ("bridge time", one["bridge"])):
                if not raw["samples"] or (level, measure) == ("route", "bridge time"):
                    continue  # a route's bridge time is of type records, which tell of fewer events when one is killed
                told = points[level, name, measure]
                assert {row["samples"] for row in told.values()} == {raw["samples"]}
                for percentile, field in ((50.0, "p50_us"), (99.0, "p99_us"), (99.9, "p999_us"), (99.99, "p9999_us")):
                    if percentile in told:
                        us = round(told[percentile]["ms"] * 1000)
                        assert raw[field] <= us <= raw[field] * (1 + BUCKET)
                        compared += 1
                assert told[100.0]["ms"] * 1000 >= raw["max_us"]
    assert compared >= 60


def test_each_replica_confirmed_what_it_did(of: Any, rows: Any, truth: dict[str, Any]) -> None:
    found = {(row["instance"], row["class"]): row for row in rows(replicas.replicas(of("class")))}
    total = {name: one["confirmed"] for name, one in truth["by_class"].items()}
    for process in truth["processes"]:
        for name, confirmed in process["confirmed"].items():
            row = found.pop((process["instance"], name))
            assert row["confirmed"] == confirmed
            assert row["share"] == pytest.approx(confirmed / total[name], abs=1e-4)
    assert not found


def test_clocks_are_off_by_what_they_are_when_replicas_saw_the_same_queues(
    of: Any, rows: Any, truth: dict[str, Any]
) -> None:
    skews = {process["instance"]: process["skew_ms"] for process in truth["processes"]}
    assert len(set(skews.values())) == 3
    found = rows(replicas.clocks(of("verdict")))
    assert {skews[row["instance"]] for row in found} | {skews[found[0]["reference"]]} == set(skews.values())
    for row in found:
        assert abs(row["offset_ms"] - (skews[row["instance"]] - skews[row["reference"]])) <= TICK_MS
    for row in rows(replicas.replicas(of("class"))):
        skew = skews[row["instance"]]
        if row["confirmed"] < 20:
            continue
        assert max(0, skew) <= row["least_bridge_ms"] <= max(0, skew) * (1 + BUCKET) + 5
        assert row["ahead_of_clock"] > 0 or skew >= 0


def test_what_stood_still_is_found_and_nothing_else(of: Any, rows: Any, truth: dict[str, Any]) -> None:
    (wanted,) = truth["stuck"]
    (row,) = rows(replicas.stuck(of("type")))
    skew = next(one["skew_ms"] for one in truth["processes"] if one["instance"] == row["instance"])
    assert row["type"] == wanted["type"]
    assert row["ended"]
    began, ended = (1000 * row[name] + truth["start_ms"] - skew for name in ("from_s", "to_s"))
    assert 0 <= began - wanted["from_ms"] <= TYPE_MS + ROUTE_MS
    assert 0 <= wanted["to_ms"] - ended <= TYPE_MS + ROUTE_MS


def test_what_control_decided_was_needed_where_it_was(of: Any, rows: Any, truth: dict[str, Any]) -> None:
    told = changes.plans(of("start"), of("settings"))
    found = {
        row["route"]: row for row in rows(decisions.decisions(told, *[of(k) for k in ("verdict", "route", "type")]))
    }  # fmt: skip
    assert {route: row["policy"] for route, row in found.items()} == {
        "main": "class_budget",
        "bulk": "class_budget",
        "seed": "per_type",
    }
    for route, row in found.items():
        mine = [one for one in truth["episodes"] if one["route"] == route]
        assert mine
        assert row["slowed"] == sum(one["slowed"] for one in mine)
        empty = sum(one["slowed"] for one in mine if one["is_empty"])
        assert 0 <= empty - row["empty"] <= len(mine) * len(truth["processes"])  # a second knows the depth once
        assert row["needed"] == row["slowed"] - row["empty"]
        assert row["stretches"] == sum(one["judged"] for one in mine)
        grew = sum(one["after_growth"] for one in mine)
        assert bool(row["after_growth"]) == bool(grew)
    assert sum(row["empty"] for row in found.values()) > 10


def test_troubles_of_a_type_are_those_it_had(of: Any, rows: Any, truth: dict[str, Any]) -> None:
    found: dict[str, dict[str, int]] = {}
    for row in rows(troubles(of("type"))):
        found.setdefault(row["type"], {})[row["what"]] = row["events"]
    for name, one in truth["by_type"].items():
        wanted = {what: one[count] for what, count in TROUBLES.items() if what != "confirmed" and one[count]}
        wanted |= {f"dead letter: {reason}": count for reason, count in one["dead_lettered"].items()}
        assert found.pop(name, {}) == wanted
    assert not found


def test_what_waited_is_as_old_as_it_was(of: Any, rows: Any, truth: dict[str, Any]) -> None:
    found = {row["type"]: row for row in rows(backlog.waiting(of("type")))}
    left: dict[str, int] = {}
    for one in truth["partitions"]:
        left[one["type"]] = left.get(one["type"], 0) + one["positions"].get("in_log", 0)
    for name, oldest_s in truth["oldest_s"].items():
        row = found.get(name)
        assert row is not None or oldest_s < TYPE_MS / 1000
        if row is not None:
            assert oldest_s - TYPE_MS / 1000 <= row["worst_age_s"] <= oldest_s + 0.001
            assert abs(row["left"] - left[name]) <= 2
    assert max(row["worst_age_s"] for row in found.values()) > 30
    assert any(row["left"] > 5 for row in found.values())


def test_added_consumers_brought_what_they_did(of: Any, rows: Any, truth: dict[str, Any]) -> None:
    (wanted,) = truth["scaled"]
    (row,) = [one for one in rows(scaling.scaling(of("route"), of("verdict"))) if one["consumers_before"]]
    (before, drain), (after, more) = wanted["before"], wanted["after"]
    assert row["route"] == wanted["route"]
    assert abs(1000 * row["at_s"] + truth["start_ms"] - wanted["at_ms"]) <= 2_500  # clocks are off by up to 1.5 s
    assert (row["consumers_before"], row["consumers_after"]) == (before, after)
    assert row["drain_before"] == pytest.approx(drain, rel=0.02)
    assert row["drain_after"] == pytest.approx(more, rel=0.02)
    assert row["gain"] == pytest.approx(((more - drain) / (after - before)) / (drain / before), abs=0.05)
