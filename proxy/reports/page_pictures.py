"""The lines of the page's pictures: over time, the heat map of event types, latency spectra."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor
from typing import Any

from proxy.reports.findings import Findings
from proxy.reports.tables import Row

COLOURS = 6
"""So many classes, and routes, are told apart by colour (page.css); more routes than that have no line."""
OVER_TIME = (
    *("consumed_time_over_time", "bridge_time_over_time", "depth_over_time", "control_over_time"),
    *("lag_over_time", "rates_over_time", "traffic_over_time", "routes_over_time"),
)
"""The tables of what stands for a stretch of `width_s` seconds each."""
RATED_ROUTES = 3
"""So many routes, those with the longest queue delay, have a picture of their rates."""

LARGEST = 100
"""Under this percentile the table of spectra has the largest value; no picture of percentiles has a place for it."""

Part = dict[str, Any]
"""A piece of the page's document, as assets/*.js reads it."""


@dataclass(frozen=True)
class Grid:
    """The instants that all pictures share: point i stands for the `width_s` seconds from (first + i) · width_s on."""

    first: int
    points: int
    width_s: int

    def values(self, rows: Iterable[Row], value: str) -> list[float | None]:
        """Return a value for each point, None where nothing is known."""
        line: list[float | None] = [None] * self.points
        for row in rows:
            line[floor(row["t_s"] / self.width_s) - self.first] = short(row[value])
        return line


def grid(found: Findings) -> Grid:
    """Return the points from the first instant that any picture tells of to the last."""
    at = [floor(row["t_s"] / found.width_s) for name in OVER_TIME for row in found.of(name)]
    last = max(ceil(run["seconds"] / found.width_s) for run in found.runs) - 1
    first = min([0, *at])
    return Grid(first, max([0, last, *at]) - first + 1, found.width_s)


def pictures(found: Findings, points: Grid) -> list[Part]:
    """Return every picture that there is something to show in, what the customer feels first."""
    draw = _Drawer(found, points)
    depth = "Queue depth: messages ready in the route's queues, the most seen"
    drawn = [
        draw.by_class("consumed_time_over_time", "p99_ms", "Consumed time P99: event → consumer", "ms", log=True),
        draw.by_class("bridge_time_over_time", "p99_ms", "Bridge time P99: event → broker's confirm", "ms", log=True),
        draw.by_route("control_over_time", "delay_ms", "Queue delay: depth ÷ drain rate, an estimate", "ms"),
        draw.by_route("depth_over_time", "depth", depth, "count"),
        draw.by_class("lag_over_time", "lag", "Log backlog: events in the log not yet done with", "count"),
        draw.by_class("traffic_over_time", "confirmed_rate", "Events a second that the broker took", "rate"),
        *(draw.rates(route) for route in draw.routes("control_over_time", "delay_ms")[:RATED_ROUTES]),
        draw.by_route("routes_over_time", "in_flight", "In flight: written, the broker's answer open", "count"),
        draw.by_route("routes_over_time", "consumers", "Consumers of the route's queues", "count"),
    ]
    return [picture for picture in drawn if picture["lines"]]


@dataclass(frozen=True)
class _Drawer:
    """Makes pictures of one set of findings."""

    found: Findings
    points: Grid

    def by_class(self, table: str, value: str, title: str, unit: str, *, log: bool = False) -> Part:
        """Return a picture with a line for each class."""
        lines = [
            line
            for run in range(len(self.found.runs))
            for name in self.found.classes
            for line in self._line(run, table, value, name, self._of_class(name), {"class": name})
        ]
        return {"title": title, "unit": unit, "log": log, "lines": lines}

    def by_route(self, table: str, value: str, title: str, unit: str) -> Part:
        """Return a picture with a line for each of the routes where the value is greatest."""
        lines = [
            line
            for run in range(len(self.found.runs))
            for number, route in enumerate(self.routes(table, value))
            for line in self._line(run, table, value, route, f"route-{number}", {"route": route})
        ]
        return {"title": title, "unit": unit, "log": False, "lines": lines}

    def rates(self, route: str) -> Part:
        """Return the picture of a route's rates and of the drain rate that they follow."""
        lines = []
        for run in range(len(self.found.runs)):
            lines += self._line(
                run, "control_over_time", "drain_rate", "drain rate", "soft", {"route": route}, thin=True
            )
            for name in self.found.classes:
                keys = {"route": route, "class": name}
                lines += self._line(run, "rates_over_time", "rate", name, self._of_class(name), keys)
        title = f"Rates of route {route}: what a class and those above it may send"
        return {"title": title, "unit": "rate", "log": False, "lines": lines}

    def routes(self, table: str, value: str) -> list[str]:
        """Return the routes with the greatest values, at most as many as there are colours."""
        rows = sorted(self.found.of(table), key=lambda row: -(row[value] or 0))
        return list(dict.fromkeys(row["route"] for row in rows))[:COLOURS]

    def _line(
        self, run: int, table: str, value: str, label: str, colour: str, keys: Row, *, thin: bool = False
    ) -> list[Part]:
        values = self.points.values(self.found.of(table, run=self.found.runs[run]["name"], **keys), value)
        known = any(one is not None for one in values)
        return [{"run": run, "label": label, "colour": colour, "thin": thin, "values": values}] if known else []

    def _of_class(self, name: str) -> str:
        return f"class-{self.found.classes.index(name) % COLOURS}"


def heat(found: Findings) -> Part | None:
    """Return the heat map: for each run its cells (row, column, P99 in ms, events); None if there is nothing in it."""
    rows = found.of("types_over_time")
    if not rows:
        return None
    types = list(dict.fromkeys((row["class"], row["type"]) for row in rows))
    place = {of: number for number, of in enumerate(types)}
    width_s = rows[0]["seconds"]
    cells: dict[str, list[list[float | None]]] = {run["name"]: [] for run in found.runs}
    for row in rows:
        at = [place[row["class"], row["type"]], floor(row["from_s"] / width_s + 0.5)]
        cells[row["run"]].append([*at, short(row["p99_ms"]), row["confirmed"]])
    times = [row["p99_ms"] for row in rows]
    return {
        "types": [{"class": name, "type": of} for name, of in types],
        "width_s": width_s,
        "total": len({(row["class"], row["type"]) for row in found.of("traffic_by_type")} | set(types)),
        "reach": [min(times), max(times)],
        "cells": list(cells.values()),
    }


def spectra(found: Findings) -> tuple[Sequence[float], list[Part]]:
    """Return the shares that spectra are told at, and a spectrum of each measure: by class, or by run if several."""
    rows = [row for row in found.of("spectra", level="class") if row["percentile"] < LARGEST]
    shares = sorted({row["percentile"] / LARGEST for row in rows})
    values: Mapping[tuple[str, str, str, float], float] = {
        (row["measure"], row["run"], row["name"], row["percentile"] / LARGEST): row["ms"] for row in rows
    }
    runs = [run["name"] for run in found.runs]

    def line(measure: str, run: str, name: str, label: str, colour: str) -> list[Part]:
        told = [short(values.get((measure, run, name, share))) for share in shares]
        return [{"label": label, "colour": colour, "values": told}] if any(one is not None for one in told) else []

    drawn = []
    for measure in ("consumed time", "bridge time"):
        of_class = [
            (number, name, [part for i, run in enumerate(runs) for part in line(measure, run, name, run, _of_run(i))])
            for number, name in enumerate(found.classes)
        ]
        if len(runs) == 1:
            lines = [
                {**part, "label": name, "colour": f"class-{i % COLOURS}"} for i, name, own in of_class for part in own
            ]
            panels = [{"title": "", "lines": lines}] if lines else []
        else:
            panels = [{"title": name, "lines": own} for _, name, own in of_class if own]
        if panels:
            drawn.append({"title": f"{measure.capitalize()}: how long the slowest took", "panels": panels})
    return shares, drawn


def _of_run(number: int) -> str:
    return f"route-{number % COLOURS}"


def short(value: float | None) -> float | None:
    """Return a value with as many digits as a picture can show: four."""
    if value is None or isinstance(value, int):
        return value
    rounded = float(f"{value:.4g}")
    return int(rounded) if rounded.is_integer() else rounded
