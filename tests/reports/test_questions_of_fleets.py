"""What people ask of a made-up fleet is answered as it was: tables against the truth of the generator."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from load.metric_fleet import Plan, faults, make
from proxy.reports import spectra
from proxy.reports.files import log_files
from proxy.reports.records import Records, read_lines, with_records

NAMES = ("crash", "congestion", "saw", "nacks", "letters", "clock", "skew")
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
def of(spark: Any, fleet: tuple[Path, dict[str, Any]]) -> Iterator[Callable[[str], Any]]:
    """The records of a kind."""
    folder, truth = fleet
    parsed = with_records(read_lines(spark, {"fleet": log_files([str(folder)])})).persist()
    yield Records(parsed, {"fleet": truth["start_ms"]}).of
    parsed.unpersist()


def test_a_spectrum_is_that_of_the_raw_samples_within_a_bucket(of: Any, rows: Any, truth: dict[str, Any]) -> None:
    found = rows(spectra.spectra(spectra.recorded(of("class"), of("type"), of("route"))))
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
