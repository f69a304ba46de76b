"""The curves of a run: rates by class, queue delay, the top class's consumed time; policies side by side."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from proxy.simulation.scenario import Scenario
from proxy.simulation.trace import BIN, Times, Trace

_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#8c564b")
"""Okabe and Ito's, told apart by the colour-blind too."""
_INK, _EVENT = "#22303c", "#d55e00"
_POINTS = 240
"""Points of a curve at most."""


def draw(scenario: Scenario, traces: Mapping[str, Trace], picture: Path, *, where: str = "simulated") -> None:
    """Write the picture as PNG."""
    figure = Figure(figsize=(6.5 * len(traces), 9.5), layout="constrained")
    FigureCanvasAgg(figure)
    rows = figure.subplots(4, len(traces), sharex=True, sharey="row", squeeze=False)
    step = round(max(1.0, scenario.seconds / _POINTS) / BIN) * BIN
    for column, (policy, trace) in enumerate(traces.items()):
        offered, sent, delay, times = (rows[row][column] for row in range(4))
        offered.set_title(policy, color=_INK, fontweight="bold")
        _rates(offered, scenario, trace, step)
        _admitted(sent, scenario, trace, step)
        _delays(delay, trace, scenario)
        _consumed(times, scenario, trace, step)
        times.set_xlabel("seconds")
        for axes in (offered, sent, delay, times):
            _mark(axes, scenario)
    for row, words in enumerate(("offered /s", "sent (-) and consumed (--) /s", "queue delay, s", "consumed time, s")):
        rows[row][0].set_ylabel(words)
    rows[0][0].legend(loc="upper left", fontsize=8)
    figure.suptitle(f"{scenario.name} ({where})", color=_INK)
    figure.savefig(picture, dpi=110)


def _by_class(scenario: Scenario) -> list[tuple[str, str, list[str]]]:
    return [
        (name, _COLOURS[place % len(_COLOURS)], [key for key, one in scenario.streams.items() if one.priority == name])
        for place, name in enumerate(scenario.classes)
    ]


def _steps(scenario: Scenario, step: float) -> list[float]:
    return [at * step for at in range(int(scenario.seconds / step))]


def _rates(axes: Any, scenario: Scenario, trace: Trace, step: float) -> None:
    instants = _steps(scenario, step)
    for name, colour, streams in _by_class(scenario):
        scheduled = [one for one in streams if not scenario.streams[one].rate.endless]
        rates = [sum(trace.offered[one].between(at, at + step) for one in scheduled) / step for at in instants]
        if scheduled:
            axes.plot(instants, rates, color=colour, label=name)
        else:
            axes.plot([], [], color=colour, label=f"{name} (endless)")
    axes.set_yscale("symlog", linthresh=10)
    axes.set_ylim(bottom=0)


def _admitted(axes: Any, scenario: Scenario, trace: Trace, step: float) -> None:
    instants = _steps(scenario, step)
    for _, colour, streams in _by_class(scenario):
        sent = [sum(trace.sent[one].between(at, at + step) for one in streams) / step for at in instants]
        axes.plot(instants, sent, color=colour)
        consumed = [0.0] * len(instants)
        for stream in streams:
            for at in trace.consumed[stream].at:
                if 0 <= at < len(instants) * step:
                    consumed[int(at / step)] += 1 / step
        axes.plot(instants, consumed, color=colour, linestyle="--", linewidth=1)
    for looks in trace.queues.values():
        axes.plot([one.at for one in looks], [one.capacity for one in looks], color=_INK, linewidth=0.7, linestyle=":")
    highest = max((one.capacity for looks in trace.queues.values() for one in looks), default=1.0)
    axes.set_ylim(0, 2.5 * highest)


def _delays(axes: Any, trace: Trace, scenario: Scenario) -> None:
    for (name, looks), colour in zip(trace.queues.items(), _COLOURS * len(trace.queues), strict=False):
        every = max(1, len(looks) // (4 * _POINTS))
        shown = [one for one in looks[::every] if one.capacity]
        axes.plot([one.at for one in shown], [one.work / one.capacity for one in shown], color=colour, linewidth=0.8)
        if len(scenario.queues) > 1:
            axes.plot([], [], color=colour, label=name)
    if len(scenario.queues) > 1:
        axes.legend(fontsize=8)


def _consumed(axes: Any, scenario: Scenario, trace: Trace, step: float) -> None:
    top = scenario.classes[0]
    every = [trace.consumed[name] for name, stream in scenario.streams.items() if stream.priority == top]
    worst = [0.0] * int(scenario.seconds / step)
    for times in every:
        _fill(worst, times, step)
    axes.plot([at * step for at in range(len(worst))], worst, color=_COLOURS[0])
    axes.set_yscale("symlog", linthresh=0.1)
    axes.set_ylim(bottom=0)
    axes.set_title(f"{top}: the longest in each {step:g} s", fontsize=8)


def _fill(worst: list[float], times: Times, step: float) -> None:
    for at, seconds in zip(times.at, times.seconds, strict=True):
        if 0 <= at / step < len(worst):
            worst[int(at / step)] = max(worst[int(at / step)], seconds)


def _mark(axes: Any, scenario: Scenario) -> None:
    for event in scenario.events:
        axes.axvline(event.at, color=_EVENT, linewidth=0.8)
        if event.seconds is not None:
            axes.axvspan(event.at, event.at + event.seconds, color=_EVENT, alpha=0.08)
    axes.set_xlim(0, scenario.seconds)
    axes.grid(color="#dfe5ea", linewidth=0.6)
