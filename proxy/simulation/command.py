"""`tidegate simulate`: the production bridge in a scenario under virtual time; hours of traffic in seconds."""

import argparse
import json
import logging
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import structlog

from proxy.errors import SettingsError
from proxy.settings import Route
from proxy.simulation import scenario_file
from proxy.simulation.figures import MEANINGS, Figures, Judged
from proxy.simulation.rivals import RIVALS
from proxy.simulation.scenario import Scenario
from proxy.simulation.scenario_checks import figure_names
from proxy.simulation.scenario_run import simulate

EXIT_MISSED = 1
EXIT_MISTAKE = 2
WIDTH = 110
DEFAULT_POLICY: str = Route.model_fields["policy"].default

_EPILOG = f"""\
examples:
  tidegate simulate --list                     the scenarios that come with Tidegate, and what each shows
  tidegate simulate flash-campaign             one of them, with the default policy ({DEFAULT_POLICY})
  tidegate simulate flash-campaign --policy static --policy {DEFAULT_POLICY} --out pictures
                                               with control off beside it, and the curves of both as a picture
  tidegate simulate saw --policy {DEFAULT_POLICY} --policy cubic --policy vegas
                                               one rate law beside the other
  tidegate simulate saw --policy {DEFAULT_POLICY} --policy cinnamon --policy dagor
                                               beside the rules of Uber's and WeChat's load shedders
  tidegate simulate flash-campaign --policy static --policy shadow
                                               with `shadow: true`: it decides, and nothing is held back
  tidegate simulate mine.yaml --json mine.json a scenario of your own, every figure into a file
The bridge is the production code; log, broker and consumers are a model, and time is virtual.
Start a scenario of your own from one that ships: proxy/simulation/scenarios/*.yaml of the installed package.

figures (X is a class or a stream of the scenario; times in seconds):
{{figures}}

exit codes: 0 every expectation holds (of the default policy; without it, of the first one given),
            1 one does not, 2 a mistake in the scenario or the arguments
"""


def main(arguments: Sequence[str]) -> int:
    """Run the command; return the exit code."""
    options = _parser().parse_args(arguments)
    try:
        if options.list:
            _list()
            return 0
        if options.scenario is None:
            raise SettingsError(["name a scenario: one that --list shows, or a YAML file"])
        scenario = scenario_file.load(_path(options.scenario))
        if scenario.only == "real":
            raise SettingsError([f"{scenario.name} runs on real brokers only (only: real)"])
        if options.out is not None and find_spec("matplotlib") is None:
            raise SettingsError(["pictures need matplotlib: pip install 'tidegate[reports]', or leave --out away"])
        _make_room(options.json, options.out)
        policies = tuple(dict.fromkeys(options.policy or [DEFAULT_POLICY]))
        scenario_file.try_laws(policies)
        return _run(scenario, policies, options.json, options.out)
    except BrokenPipeError:
        raise  # for whoever called: no mistake of the scenario
    except (SettingsError, OSError) as error:
        print(error, file=sys.stderr)  # noqa: T201 -- the command's answer
        return EXIT_MISTAKE


def _run(scenario: Scenario, policies: Sequence[str], copy: Path | None, out: Path | None) -> int:
    # States and warnings of hours in seconds would drown the result.
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    unloaded = None
    if any(expectation.plus_unloaded for expectation in scenario.expect):
        alone = scenario_file.unloaded(scenario)
        unloaded = Figures(alone, simulate(alone, "static"))
    traces, judged, took = {}, {}, {}
    for policy in policies:
        began = time.perf_counter()
        traces[policy] = simulate(scenario, policy)
        took[policy] = time.perf_counter() - began
        figures = Figures(scenario, traces[policy])
        judged[policy] = [figures.judge(one, unloaded) for one in scenario.expect if one.only != "real"]
    print(summary(scenario, judged, took))  # noqa: T201 -- the command's answer
    if copy is not None:
        found = {
            policy: {
                name: Figures(scenario, trace).value(name)
                for name in (*figure_names(scenario), *sorted({f"told.{one.cause}" for one in trace.told}))
            }
            for policy, trace in traces.items()
        }
        copy.write_text(json.dumps(_document(scenario, judged, found), indent=1) + "\n", encoding="utf-8")
    if out is not None:
        from proxy.simulation.curves import draw

        picture = out / f"{scenario.name}.png"
        draw(scenario, traces, picture)
        print(f"curves: {picture}")  # noqa: T201 -- likewise
    decisive = judged.get(DEFAULT_POLICY, judged[policies[0]])
    return 0 if all(one.holds for one in decisive) else EXIT_MISSED


def _make_room(copy: Path | None, out: Path | None) -> None:
    """Make the folder of the pictures, and try the file, before a long run is made for nothing.

    Raises `SettingsError`.
    """
    if copy is not None:
        with _told("--json", copy), copy.open("a"):
            pass
    if out is not None:
        with _told("--out", out):
            out.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=out):
                pass


@contextmanager
def _told(option: str, place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise SettingsError([f"{option}: {place} can't be written: {why}; name another place"]) from error


def summary(scenario: Scenario, judged: Mapping[str, Sequence[Judged]], took: Mapping[str, float]) -> str:
    """Return the expectations with what came of them, a column for each policy."""
    policies = list(judged)
    rows = [["figure", "expected", *policies]]
    for places in zip(*judged.values(), strict=True):
        window = places[0].expectation
        label = window.figure
        if window.since is not None or window.until is not None:
            label += f" [{window.since or scenario.warm_up:g}, {window.until or scenario.seconds:g}) s"
        cells = [f"{_number(one.value)}{'' if one.holds else ' MISSED'}" for one in places]
        rows.append([label, _range(places[0]), *cells])
    lines = [f"{scenario.name}: {scenario.why}", "", *_aligned(rows), ""]
    for policy in policies:
        missed = [one for one in judged[policy] if not one.holds]
        word = "every expectation holds" if not missed else f"{len(missed)} of {len(judged[policy])} missed"
        lines.append(f"{policy}: {word}; {scenario.seconds:g} s took {took[policy]:.1f} s")
        for one in missed:
            lines += textwrap.wrap(f"{one.expectation.figure}: {one.expectation.why}", WIDTH - 2, initial_indent="  ")
    return "\n".join(lines)


def _document(
    scenario: Scenario,
    judged: Mapping[str, Sequence[Judged]],
    found: Mapping[str, Mapping[str, float | None]],
) -> dict[str, Any]:
    return {
        "scenario": scenario.name,
        "where": "simulation",
        "seed": scenario.seed,
        "policies": {
            policy: {
                "figures": found[policy],
                "expectations": [
                    {
                        "figure": one.expectation.figure,
                        "value": one.value,
                        "at_least": one.at_least,
                        "at_most": one.at_most,
                        "holds": one.holds,
                        "why": one.expectation.why,
                    }
                    for one in here
                ],
            }
            for policy, here in judged.items()
        },
    }


def _range(judged: Judged) -> str:
    bounds = [
        f"{sign} {_number(bound)}"
        for sign, bound in ((">=", judged.at_least), ("<=", judged.at_most))
        if bound is not None
    ]
    return ", ".join(bounds)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}" if abs(value) < 1 else f"{value:,.2f}".removesuffix(".00")


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return [lines[0], "-" * max(map(len, lines)), *lines[1:]]


def _list() -> None:
    for name, path in scenario_file.shipped().items():
        scenario = scenario_file.load(path)
        where = f" ({scenario.only} only)" if scenario.only else ""
        print(f"{name}{where}")  # noqa: T201 -- the command's answer
        print(textwrap.fill(scenario.why, WIDTH, initial_indent="    ", subsequent_indent="    "))  # noqa: T201


def _path(given: str) -> Path:
    """Return the file of a shipped scenario, or the file itself."""
    path = scenario_file.shipped().get(given, Path(given))
    if not path.is_file():
        names = ", ".join(scenario_file.shipped())
        raise SettingsError([f"{given} is no file and no scenario that ships; those are: {names}"])
    return path


def _parser() -> argparse.ArgumentParser:
    figures = "\n".join(f"  {name:<38}{meaning}" for name, meaning in MEANINGS.items())
    parser = argparse.ArgumentParser(
        prog="tidegate simulate",
        description="Runs the production bridge in a scenario: a model of broker and consumers, virtual time.",
        epilog=_EPILOG.replace("{figures}", figures),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("scenario", nargs="?", metavar="SCENARIO", help="a YAML file, or the name of one that ships")
    parser.add_argument("--list", action="store_true", help="show the scenarios that ship with Tidegate")
    parser.add_argument(
        "--policy",
        action="append",
        choices=scenario_file.simulated_policies(),
        help=f"congestion control, a rate law of {DEFAULT_POLICY}, or a load shedder that only the simulator knows "
        f"({', '.join(RIVALS)}); may be given several times to compare (default: {DEFAULT_POLICY})",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure there")
    parser.add_argument("--out", type=Path, metavar="DIR", help="draw the curves there (needs tidegate[reports])")
    return parser
