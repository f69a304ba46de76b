"""The pictures: P1's wait and the use of the consumers for each family, and P1's wait over time for the README."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from io import BytesIO
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from load.compare import tables
from load.compare.families import by_family

_MARKS = {
    "aimd": ("#0072b2", "o"),
    "cubic": ("#e69f00", "s"),
    "vegas": ("#009e73", "^"),
    "vegas_capped": ("#009e73", "v"),
    "static": ("#d55e00", "X"),
    "per_type": ("#cc79a7", "D"),
}
_OTHERS = (("#56b4e9", "P"), ("#8c564b", "*"), ("#7a8fa3", "h"))
"""Okabe and Ito's colours, and shapes besides: told apart by the colour-blind, and without any colour, too."""
_TIMES = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)
_LEAST_USE = 0.5
"""Less is drawn at the edge."""
ROW_INCHES = 0.3
DODGE = 0.6
"""Share of a row over which the policies are spread, so that equal ones do not hide each other."""


class Theme(NamedTuple):
    """Colours of a picture; `card` is what it stands on."""

    ink: str
    grid: str
    card: str
    off: str
    """Of control off."""
    on: str
    shade: str
    """Where more comes than the consumers take."""


LIGHT = Theme("#22303c", "#dfe5ea", "#ffffff", "#d55e00", "#0072b2", "#f3efe6")
DARK = Theme("#d5dde4", "#33414d", "#0d1117", "#ff8f3a", "#56b4e9", "#1d2228")


def of_family(content: Mapping[str, Any], name: str) -> bytes:
    """Return a family's picture: a row for each scenario, a mark for each policy."""
    found = content["simulated"]
    scenarios = next(its for family, its in by_family(found).items() if family.name == name)
    policies = tables.policies(found)
    with _drawing(LIGHT):
        figure = Figure(figsize=(9.5, 1.15 + ROW_INCHES * len(scenarios)), layout="constrained", facecolor=LIGHT.card)
        wait, use = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
        for policy in reversed(policies):
            _mark(wait, use, [found[scenario]["runs"].get(policy) for scenario in scenarios], policy, policies)
        wait.set_yticks(range(len(scenarios)), scenarios)
        wait.set_ylim(len(scenarios) - 0.5, -0.5)
        _times(wait.xaxis)
        wait.set_xscale("log")
        _times(wait.xaxis)
        wait.set_title("P1 from event to consumer, P99")
        use.set_title("use of what the consumers could take")
        use.set_xlim(_LEAST_USE - 0.02, 1.04)
        use.xaxis.set_major_formatter(FuncFormatter(_share))
        handles, labels = wait.get_legend_handles_labels()
        figure.legend(
            handles[::-1], labels[::-1], loc="outside upper center", ncols=len(labels), frameon=False, handletextpad=0.1
        )
        return _svg(figure, digest(content, name))


def of_p1(content: Mapping[str, Any], scenario: str, theme: Theme) -> bytes:
    """Return how long P1 waited in each second of a run on real brokers, control off and on."""
    one = content["real"][scenario]
    with _drawing(theme):
        figure = Figure(figsize=(8, 2.7), layout="constrained", facecolor=theme.card)
        axes = figure.subplots()
        if one["overload"] is not None:
            axes.axvspan(*one["overload"], color=theme.shade, linewidth=0)
            axes.text(sum(one["overload"]) / 2, 1.02, "the campaign", ha="center", transform=axes.get_xaxis_transform())
        for policy, words, colour in (("static", "control off", theme.off), (tables.DEFAULT, "control on", theme.on)):
            curve = [(second + 0.5, wait) for second, wait in enumerate(one["runs"][policy]["curve"]) if wait]
            axes.plot(*zip(*curve, strict=True), color=colour, linewidth=2)
            axes.annotate(f" {words}", curve[-1], color=colour, va="center", annotation_clip=False, fontweight="bold")
        axes.set_yscale("log")
        _times(axes.yaxis)
        axes.set_xlim(0, one["seconds"])
        axes.set_xlabel("seconds")
        axes.set_title("P1 from event to consumer: the longest in each second", loc="left", pad=16)
        return _svg(figure, digest(content, scenario))


def digest(content: Mapping[str, Any], name: str) -> str:
    """Return what tells the figures of a picture, a family's or a real scenario's, from all others."""
    if name in content["real"]:
        shown: Any = {policy: run["curve"] for policy, run in content["real"][name]["runs"].items()}
    else:
        scenarios = next(its for family, its in by_family(content["simulated"]).items() if family.name == name)
        shown = {
            scenario: {
                policy: (run.get("p1_p99"), run.get("use"))
                for policy, run in content["simulated"][scenario]["runs"].items()
            }
            for scenario in scenarios
        }
    return sha256(repr(sorted(shown.items())).encode()).hexdigest()[:16]


def _mark(wait: Axes, use: Axes, runs: list[Mapping[str, Any] | None], policy: str, policies: list[str]) -> None:
    colour, shape = _look(policy, policies)
    is_default = policy == tables.DEFAULT
    look: dict[str, Any] = {
        "marker": shape, "linestyle": "", "markersize": 8 if is_default else 6, "label": policy,
        "markerfacecolor": colour if is_default or policy in {"static", "per_type"} else "none",
        "markeredgecolor": colour, "zorder": 4 if is_default else 5,
    }  # fmt: skip
    aside = DODGE * (policies.index(policy) - (len(policies) - 1) / 2) / len(policies)
    places = [(place + aside, run) for place, run in enumerate(runs) if run is not None and "refused" not in run]
    waits = [(run["p1_p99"], place) for place, run in places if run["p1_p99"]]
    uses = [(max(_LEAST_USE, run["use"]), place) for place, run in places if run["use"] is not None]
    for axes, points in ((wait, waits), (use, uses)):
        axes.plot([value for value, _ in points], [place for _, place in points], **look)


def _look(policy: str, policies: list[str]) -> tuple[str, str]:
    if policy in _MARKS:
        return _MARKS[policy]
    others = [one for one in policies if one not in _MARKS]
    return _OTHERS[others.index(policy) % len(_OTHERS)]


def _times(axis: Any) -> None:
    axis.set_major_locator(FixedLocator(_TIMES))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda at, _: f"{1000 * at:.0f} ms" if at < 1 else f"{at:.0f} s"))


def _share(value: float, _place: int) -> str:
    return f"{100 * value:.0f} %" if value > _LEAST_USE else "less"


def _svg(figure: Figure, description: str) -> bytes:
    picture = BytesIO()
    figure.savefig(picture, format="svg", metadata={"Date": None, "Creator": None, "Description": description})
    return picture.getvalue()


@contextmanager
def _drawing(theme: Theme) -> Iterator[None]:
    style: Any = {
        "font.family": "sans-serif",
        "font.size": 9,
        "axes.facecolor": theme.card,
        "axes.edgecolor": theme.grid,
        "axes.labelcolor": theme.ink,
        "axes.titlecolor": theme.ink,
        "axes.titlesize": 10,
        "axes.grid": True,
        "axes.axisbelow": True,
        "axes.spines.right": False,
        "axes.spines.top": False,
        "grid.color": theme.grid,
        "grid.linewidth": 0.6,
        "text.color": theme.ink,
        "text.parse_math": False,
        "xtick.color": theme.ink,
        "ytick.color": theme.ink,
        "ytick.left": False,
        "svg.fonttype": "none",  # text stays text: small, and searched
        "svg.hashsalt": "tidegate",
    }
    with mpl.rc_context(style):
        yield
