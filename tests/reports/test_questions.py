"""What people ask, on a few records whose answer is known."""

from collections.abc import Callable
from typing import Any

from proxy.reports import spectra
from proxy.reports.proof import events

Make = Callable[..., Any]


def spectrum(found: list[dict[str, Any]], *place: str) -> dict[float, float]:
    """The points of one distribution."""
    return {
        row["percentile"]: row["ms"] for row in found if (row["level"], row["name"], row["measure"]) == place
    }  # fmt: skip


def test_a_spectrum_has_every_percentile_above_which_a_sample_lies_when_intervals_are_merged(
    record: Make, read: Make, rows: Make
) -> None:
    records = read(
        [
            record("class", publish_us={"100": 6_000, "200": 3_000}),
            record("class", publish_us={"100": 1_000, "200": -0}, instance="two"),
            record("class", publish_us={"250": 1}, class_="P3"),
        ]
    )
    found = rows(spectra.spectra(spectra.recorded(records.of("class"), records.of("type"), records.of("route"))))
    points = spectrum(found, "class", "P1", "publish latency")
    assert {row["samples"] for row in found if row["name"] == "P1"} == {10_000}
    assert len(points) == len(spectra.ABOVE) == 21
    assert (points[30.0], points[70.0], points[80.0], points[99.99], points[100.0]) == (0.1, 0.1, 0.2, 0.2, 0.2)
    assert spectrum(found, "class", "P3", "publish latency") == {100.0: 0.25}


def test_levels_of_a_spectrum_are_classes_types_and_routes_when_all_left_records(
    record: Make, read: Make, rows: Make
) -> None:
    records = read(
        [
            record("class", publish_us={"10": 1}, bridge_us={"20": 1}),
            record("type", type_="a", publish_us={"11": 1}, bridge_us={"21": 1}),
            record("type", type_="b", publish_us={"12": 1}, bridge_us={"22": 3}),
            record("route", publish_us={"13": 1}),
            record("produced", id="a-0-0"),
            record("consumed", id="a-0-0", event_ms=100, at_ms=140),
        ]
    )
    seen = events(records.of("produced"), records.of("consumed"))
    told = spectra.recorded(records.of("class"), records.of("type"), records.of("route"))
    found = rows(spectra.spectra(told.unionByName(spectra.consumed(seen))))
    largest = {
        (row["level"], row["name"], row["measure"]): row["ms"] for row in found if row["percentile"] == 100.0
    }  # fmt: skip
    assert largest == {
        ("class", "P1", "publish latency"): 0.01,
        ("class", "P1", "bridge time"): 0.02,
        ("class", "P1", "consumed time"): 40.0,
        ("type", "a", "publish latency"): 0.011,
        ("type", "a", "bridge time"): 0.021,
        ("type", "b", "publish latency"): 0.012,
        ("type", "b", "bridge time"): 0.022,
        ("type", "order", "consumed time"): 40.0,
        ("route", "main", "publish latency"): 0.013,
        ("route", "main", "bridge time"): 0.022,
    }
    assert spectrum(found, "route", "main", "bridge time") == {30.0: 0.022, 50.0: 0.022, 70.0: 0.022, 100.0: 0.022}
