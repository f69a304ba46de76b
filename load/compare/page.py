"""Makes the page: the words of `comparison.md` here, with tables, pictures and figures from the book put in. Pure.

What stands in double braces is replaced: `{{overview}}`, `{{family steady}}`, or one figure, `{{use saw cubic}}`,
`{{real p1_p99 saw aimd}}`.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from load.compare import tables
from load.compare.families import by_family
from load.control.results import worded

TEMPLATE = Path(__file__).with_name("comparison.md")
_PLACE = re.compile(r"\{\{([^{}]+)\}\}")
_SHARES = {"use", "p1_goodput", "p3_share", "nack_ratio"}


def page(content: Mapping[str, Any], template: str) -> str:
    """Return the page. Raises ValueError for a place that the template names and nobody knows."""
    return _PLACE.sub(lambda found: "\n".join(_filled(content, found[1].split())), template)


def pictures(content: Mapping[str, Any]) -> list[str]:
    """Return the families that have a picture."""
    return [family.name for family in by_family(content["simulated"])]


def _filled(content: Mapping[str, Any], words: list[str]) -> list[str]:
    simulated, real = content["simulated"], content["real"]
    whole: dict[str, Callable[[], list[str]]] = {
        "overview": lambda: tables.overview(simulated),
        "versus": lambda: tables.versus(simulated),
        "better": lambda: tables.better(simulated),
        "about": lambda: [_about(content)],
        "real": lambda: _real(real),
    }
    match words:
        case [name] if name in whole:
            return whole[name]()
        case ["family", name]:
            return _family(simulated, name)
        case ["real", figure, scenario, policy]:
            return [_figure(real, figure, scenario, policy)]
        case [figure, scenario, policy]:
            return [_figure(simulated, figure, scenario, policy)]
    raise ValueError(f"nobody knows what stands at {{{{{' '.join(words)}}}}}")


def _about(content: Mapping[str, Any]) -> str:
    runs = [run for one in content["simulated"].values() for run in one["runs"].values()]
    codes = sorted({run["code"] for run in runs})
    hours = sum(run["took"] for run in runs) / 3600
    named = tables.policies(content["simulated"])
    gaps = [
        f"{scenario} under {', '.join(absent)}"
        for scenario, one in sorted(content["simulated"].items())
        if (absent := [policy for policy in named if policy not in one["runs"]])
    ]
    missing = f" Not run: {'; '.join(gaps)}." if gaps else ""
    return (
        f"{len(content['simulated'])} scenarios, {len(runs)} runs, {hours:.1f} hours of one core;"
        f" Tidegate {', '.join(codes)}.{missing}"
    )


def _family(simulated: tables.Found, name: str) -> list[str]:
    scenarios = next((its for family, its in by_family(simulated).items() if family.name == name), [])
    if not scenarios:
        return ["Nothing of it was run."]
    title = next(family.title for family in by_family(scenarios))
    return [
        f"![{title}: P1 P99 and use of each policy in each scenario](pictures/compare-{name}.svg)",
        "",
        *tables.compact(simulated, scenarios),
        *(line for note in tables.notes(simulated, scenarios) for line in ("", note)),
        "",
        "<details><summary>Every figure</summary>",
        "",
        *tables.whole(simulated, scenarios),
        "",
        "</details>",
    ]


def _real(real: tables.Found) -> list[str]:
    lines = []
    for scenario, one in real.items():
        versions = ", ".join(f"{name} {version}" for name, version in one["versions"].items())
        loads = ", ".join(f"{policy} {run['load']}" for policy, run in one["runs"].items())
        unloaded = "" if one["unloaded_p1_p99"] is None else f" Unloaded P1 P99 {_ms(one['unloaded_p1_p99'])}."
        lines += [
            f"**{scenario}**: {one['why']}.{unloaded}",
            "",
            *tables.whole(real, [scenario]),
            "",
            f"{one['machine']}, {one['machine_cores']} cores; load average as each run ended: {loads}. {versions}.",
            *one["faults"],
            "",
        ]
    return lines[:-1] or ["Nothing was run."]


def _figure(found: tables.Found, figure: str, scenario: str, policy: str) -> str:
    run = found.get(scenario, {"runs": {}})["runs"].get(policy)
    if run is None or figure not in run:
        return "-"
    return worded("use" if figure in _SHARES else "consumed", run[figure])


def _ms(seconds: float) -> str:
    return worded("consumed", seconds)
