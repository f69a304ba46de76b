"""report.png. The seed's four graphs: queue depth, bridge time of the first and the last class, log backlog per class.

Where a route was under `class_budget`, two more: queue delay, and the rates found with the drain rate they follow.
Runs stand side by side with the same axes; the time a route was congested is shaded.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure, FigureBase
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from proxy.reports.figures import count, milliseconds, tick
from proxy.reports.findings import Findings
from proxy.reports.tables import Row

if TYPE_CHECKING:
    from matplotlib.artist import Artist

_CLASS_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#8c564b")
"""Okabe and Ito's, told apart by the colour-blind too."""
_ROUTE_COLOURS = ("#3d4f5f", "#a05195", "#2f8f83", "#c2603a", "#7a8fa3", "#8a7a2f")
_INK, _GRID, _CONGESTED = "#22303c", "#dfe5ea", "#d55e00"
_STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.edgecolor": "#9aa7b2",
    "axes.labelcolor": _INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlecolor": _INK,
    "text.color": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "text.parse_math": False,
}
_SHADE = 0.15
_WIDE = 300
"""Beyond this ratio a logarithmic axis is labelled at powers of ten only."""
_RATED_ROUTES = 3
"""So many routes, those with the longest queue delay, have a graph of their rates."""
_GAP = 3
"""A line is broken where so many points in a row are missing."""
_TIME_UNITS = ((600, 1, "seconds"), (7_200, 60, "minutes"), (float("inf"), 3_600, "hours"))


@dataclass(frozen=True)
class Graph:
    """One graph: what it is called, what it shows, and how it is drawn into one run's axes."""

    name: str
    title: str
    axis: str
    draw: Callable[[Axes, str], str]
    """Returns the figures that are written into the corner."""
    logarithmic: bool = False


class Charts:
    """The graphs of one set of findings."""

    def __init__(self, found: Findings) -> None:
        self._found = found
        self._runs = [run["name"] for run in found.runs]
        longest = max(found.width_s, *(run["seconds"] for run in found.runs))
        self._end, self._unit_s, self._unit = next(
            (longest / size, size, name) for most, size, name in _TIME_UNITS if longest <= most
        )
        self._class_colours = {name: _CLASS_COLOURS[i % len(_CLASS_COLOURS)] for i, name in enumerate(found.classes)}
        deepest = sorted(found.of("depth_over_time"), key=lambda row: -row["depth"])
        self._routes = list(dict.fromkeys(row["route"] for row in deepest))[: len(_ROUTE_COLOURS)]
        longest_delay = sorted(found.of("control_over_time"), key=lambda row: -(row["delay_ms"] or 0.0))
        self._controlled = list(dict.fromkeys(row["route"] for row in longest_delay))[: len(_ROUTE_COLOURS)]
        self.graphs = self._make_graphs()

    def write_png(self, path: Path) -> None:
        """Write all graphs as one picture: a row for each, or two by two if there is one run."""
        columns = 2 if len(self._runs) == 1 else 1
        rows = -(-len(self.graphs) // columns)
        size = (15, 3.5 * rows) if columns == 2 else (max(11.0, 6.5 * len(self._runs)), 3.2 * rows)  # noqa: PLR2004
        with _drawing():
            figure = Figure(figsize=size, dpi=120)
            cells = list(figure.subfigures(rows, columns, squeeze=False).flat)
            for cell, graph in zip(cells, self.graphs, strict=False):
                cell.suptitle(graph.title, x=0.01, y=0.98, ha="left", fontsize=11, fontweight="bold")
                self._fill(cell, graph, left=0.075 * columns, right=0.99, bottom=0.15, top=0.8)
            figure.savefig(path, format="png", metadata={"Software": None})

    def _make_graphs(self) -> list[Graph]:
        classes = self._found.classes
        graphs = [Graph("depth", "Queue depth: messages ready in the route's queues", "messages", self._draw_depth)]
        for name in dict.fromkeys([*classes[:1], *classes[-1:]]):
            title = f"{name} bridge time: event timestamp → confirm"
            draw = self._bridge_time_of(name)
            graphs.append(Graph(f"bridge-{name}", title, "bridge time", draw, logarithmic=True))
        graphs.append(Graph("lag", "Log backlog: events in the log not yet done with", "events", self._draw_lag))
        if self._controlled:
            title = "Queue delay: depth ÷ drain rate, as class_budget estimated it"
            graphs.append(Graph("delay", title, "milliseconds", self._draw_delay))
        for route in self._controlled[:_RATED_ROUTES]:
            title = f"Rates of route {route}: what a class and those above it may send"
            graphs.append(Graph(f"rates-{route}", title, "events a second", self._rates_of(route)))
        return graphs

    def _fill(self, figure: FigureBase, graph: Graph, **margins: float) -> None:
        """Draw the graph of every run, side by side, with one legend and the figures above each."""
        row = list(figure.subplots(1, len(self._runs), sharey=True, squeeze=False).flat)
        figure.subplots_adjust(wspace=0.04, **margins)
        legend: dict[str, Artist] = {}
        for axes, run in zip(row, self._runs, strict=True):
            if self._shade(axes, run):
                legend["route congested"] = Patch(facecolor=_CONGESTED, alpha=_SHADE)
            figures = graph.draw(axes, run)
            if len(self._runs) > 1:
                axes.set_title(run, loc="left")
            axes.set_title(figures, loc="right", fontsize=8.5, fontweight="normal")
            axes.set_xlim(0, self._end)
            axes.set_xlabel(f"{self._unit} since the start of the run")
            axes.grid(visible=True, color=_GRID, linewidth=0.7)
            axes.set_axisbelow(True)
            handles, labels = axes.get_legend_handles_labels()
            legend = dict(zip(labels, handles, strict=True)) | legend
        _scale(row, graph)
        if legend:
            figure.legend(
                legend.values(), legend, loc="upper right", ncols=len(legend), fontsize=8.5, frameon=False, borderpad=0
            )

    def _shade(self, axes: Axes, run: str) -> bool:
        shaded = self._found.of("episodes", run=run)
        for episode in shaded:
            start, end = episode["from_s"] / self._unit_s, episode["to_s"] / self._unit_s
            axes.axvspan(start, end, color=_CONGESTED, alpha=_SHADE, linewidth=0)
        return bool(shaded)

    def _draw_depth(self, axes: Axes, run: str) -> str:
        most = 0
        for route, colour in zip(self._routes, _ROUTE_COLOURS, strict=False):
            rows = self._found.of("depth_over_time", run=run, route=route)
            if rows:
                axes.plot(*self._line(rows, "depth"), color=colour, label=route, linewidth=1.4)
                most = max(most, *(row["depth"] for row in rows))
        return f"most {count(most)}"

    def _draw_delay(self, axes: Axes, run: str) -> str:
        most = []
        for route, colour in zip(self._controlled, _ROUTE_COLOURS, strict=False):
            known = [
                row for row in self._found.of("control_over_time", run=run, route=route) if row["delay_ms"] is not None
            ]
            if known:
                axes.plot(*self._line(known, "delay_ms"), color=colour, label=route, linewidth=1.4)
                most.append(max(row["delay_ms"] for row in known))
        return f"most {milliseconds(max(most))}" if most else ""

    def _rates_of(self, route: str) -> Callable[[Axes, str], str]:
        def draw(axes: Axes, run: str) -> str:
            drained = self._found.of("control_over_time", run=run, route=route)
            if drained:
                axes.plot(*self._line(drained, "drain_rate"), color=_INK, label="drain rate", linewidth=0.9, alpha=0.6)
            for name, colour in self._class_colours.items():
                rows = self._found.of("rates_over_time", run=run, route=route, **{"class": name})
                if rows:
                    axes.plot(*self._line(rows, "rate"), color=colour, label=name, linewidth=1.4)
            return f"most drained {max(row['drain_rate'] for row in drained):,.0f}/s" if drained else ""

        return draw

    def _draw_lag(self, axes: Axes, run: str) -> str:
        parts = []
        for name, colour in self._class_colours.items():
            rows = self._found.of("lag_over_time", run=run, **{"class": name})
            if rows:
                axes.plot(*self._line(rows, "lag"), color=colour, label=name, linewidth=1.4)
                parts.append(f"{name} {count(max(row['lag'] for row in rows))}")
        return f"most {', '.join(parts)}" if parts else ""

    def _bridge_time_of(self, name: str) -> Callable[[Axes, str], str]:
        def draw(axes: Axes, run: str) -> str:
            """Draw one run; return what its corner says."""
            rows = self._found.of("bridge_time_over_time", run=run, **{"class": name})
            if not rows:
                return ""
            colour = self._class_colours[name]
            times, p99 = self._line(rows, "p99_ms")
            _, p50 = self._line(rows, "p50_ms")
            axes.fill_between(times, p50, p99, color=colour, alpha=0.13, linewidth=0)
            axes.plot(times, p99, color=colour, linewidth=0.9, linestyle=(0, (3, 1.5)), label="P99")
            axes.plot(times, p50, color=colour, linewidth=1.6, label="P50")
            whole = next(
                iter(self._found.of("latency_by_class", run=run, measure="bridge time", **{"class": name})), {}
            )
            return f"whole run P50 {milliseconds(whole.get('p50_ms'))}, P99 {milliseconds(whole.get('p99_ms'))}"

        return draw

    def _line(self, rows: Sequence[Row], value: str) -> tuple[list[float], list[float]]:
        """Return times and values, with a hole wherever nothing is known for a while."""
        times: list[float] = []
        values: list[float] = []
        for row in rows:
            now = row["t_s"] / self._unit_s
            if times and now - times[-1] > (_GAP + 0.5) * self._found.width_s / self._unit_s:
                times.append(now)
                values.append(float("nan"))
            times.append(now)
            values.append(row[value])
        return times, values


@contextmanager
def _drawing() -> Iterator[None]:
    with mpl.rc_context(_STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")  # a box in a name harms nobody
        yield


def _scale(row: Sequence[Axes], graph: Graph) -> None:
    """Give the shared axis its scale and its ticks, from what is drawn in all runs."""
    axes = row[0]
    axes.set_ylabel(graph.axis)
    drawn = [one.dataLim for one in row if one.lines]
    top = max((limits.ymax for limits in drawn), default=1.0)
    if graph.logarithmic:
        bottom = min((limits.minposy for limits in drawn), default=1.0)
        axes.set_yscale("log")
        axes.set_ylim(bottom / 1.5, top * 1.5)
        wide = top / bottom > _WIDE
        axes.yaxis.set_major_locator(LogLocator(base=10, subs=(1.0,) if wide else (1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: tick(value)))
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_ylim(0, max(top, 1.0) * 1.06)
        axes.yaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
