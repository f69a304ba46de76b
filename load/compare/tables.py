"""The tables of the page, from what the book holds. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from load.compare.families import Family, by_family
from load.control.results import worded

Run = Mapping[str, Any]
Runs = Mapping[str, Run]
"""By policy."""
Found = Mapping[str, Mapping[str, Any]]
"""By scenario, each with its `runs`."""

DEFAULT = "aimd"
"""The law that the others are measured by."""
WAIT, LEAST_WAIT, USED = 1.1, 0.005, 0.01
"""A P99 that is a tenth longer and 5 ms, or a share that is one point smaller, is called worse; less is chance."""
STARVED = 0.95
"""Share of what was due of P1 below which its P99, of what was consumed, says too little."""


def policies(found: Found) -> list[str]:
    """Return the policies of which there are runs: the default, the other laws, then the rest, as they come."""
    named = dict.fromkeys(policy for one in found.values() for policy in one["runs"])
    return sorted(named, key=lambda policy: (policy != DEFAULT, policy in {"static", "per_type"}))


def overview(found: Found) -> list[str]:
    """Return how many expectations each policy misses in each family."""
    names = policies(found)
    rows = [["expectations missed", *names]]
    families = by_family(found)
    for family, scenarios in families.items():
        rows.append([_link(family), *(_missed(found, scenarios, policy) for policy in names)])
    rows.append(["**all**", *(f"**{_missed(found, list(found), policy)}**" for policy in names)])
    return markdown(rows)


def versus(found: Found) -> list[str]:
    """Return in how many scenarios each policy is better or worse than the default, and by how much in the middle."""
    rows = [["beside `aimd`", "P1 P99 shorter", "longer", "median ratio", "use higher", "lower", "the same run"]]
    for policy in policies(found):
        pairs = [(one["runs"][DEFAULT], one["runs"][policy]) for one in found.values() if _both(one, policy)]
        if policy == DEFAULT or not pairs:
            continue
        waits = [(own["p1_p99"], other["p1_p99"]) for own, other in pairs if own["p1_p99"] and other["p1_p99"]]
        uses = [other["use"] - own["use"] for own, other in pairs if own["use"] and other["use"]]
        rows.append(
            [
                f"`{policy}`",
                str(sum(_is_longer(own, other) for own, other in waits)),
                str(sum(_is_longer(other, own) for own, other in waits)),
                f"{median(other / own for own, other in waits):.2f}" if waits else "-",
                str(sum(more > USED for more in uses)),
                str(sum(more < -USED for more in uses)),
                f"{sum(_same(own, other) for own, other in pairs)} of {len(pairs)}",
            ]
        )
    return markdown(rows)


def better(found: Found) -> list[str]:
    """Return where another policy is better than the default and pays nothing for it that is counted here."""
    rows = [["scenario", "better than `aimd`", "its P1 P99, use", "`aimd`"]]
    for scenario, one in sorted(found.items()):
        for policy in policies(found):
            if policy != DEFAULT and _both(one, policy) and _is_better(one["runs"][DEFAULT], one["runs"][policy]):
                own, other = one["runs"][DEFAULT], one["runs"][policy]
                rows.append([scenario, f"`{policy}`", cell(other), cell(own)])
    return markdown(rows)


def compact(found: Found, scenarios: Sequence[str]) -> list[str]:
    """Return a row for each scenario, a column for each policy; policies without a difference share one."""
    names = policies(found)
    columns: dict[tuple[str, ...], list[str]] = {}
    for policy in names:
        column = tuple(cell(found[scenario]["runs"].get(policy)) for scenario in scenarios)
        columns.setdefault(column, []).append(policy)
    rows = [["P1 P99, use", *(", ".join(shared) for shared in columns.values())]]
    rows += [[scenario, *(column[place] for column in columns)] for place, scenario in enumerate(scenarios)]
    return markdown(rows)


def cell(run: Run | None) -> str:
    """Return one run in a few words."""
    if run is None or "refused" in run:
        return "-"
    words = f"{worded('consumed', run['p1_p99'])}, {worded('use', run['use'])}"
    if run["p1_goodput"] is not None and run["p1_goodput"] < STARVED:
        words += f", P1 gets {100 * run['p1_goodput']:.0f} %"
    if run["lost"]:
        words += f", **{run['lost']} LOST**"
    return words + (f", **{len(run['missed'])} of {run['expected']} missed**" if run["missed"] else "")


def whole(found: Found, scenarios: Sequence[str]) -> list[str]:
    """Return every figure of every run."""
    heading = "scenario|policy|P1 P99|P1 goodput|use|last class's share|queue delay P99|refused|settled after|missed"
    rows = [heading.split("|")]
    for scenario in scenarios:
        rows += [[scenario, policy, *_figures(run)] for policy, run in _ordered(found, scenario)]
    return markdown(rows)


def notes(found: Found, scenarios: Iterable[str]) -> list[str]:
    """Return what must be known to read the runs, in words: who can't show anything here, and why."""
    said: dict[tuple[str, str], list[str]] = {}
    for scenario in scenarios:
        for policy, run in _ordered(found, scenario):
            if (why := run.get("refused") or run.get("unfit")) is not None:
                said.setdefault((policy, why), []).append(scenario)
    return [f"`{policy}` in {', '.join(named)}: {why}." for (policy, why), named in said.items()]


def markdown(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table; the first row is the heading."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return [lines[0], "|" + "---|" * len(rows[0]), *lines[1:]]


def _figures(run: Run) -> list[str]:
    if "refused" in run:
        return ["-"] * 8
    settled = ", ".join(f"{name} {worded('settled', value)}" for name, value in run["settled"].items())
    shares = ("p1_goodput", "use", "p3_share")
    return [
        worded("consumed", run["p1_p99"]),
        *(worded("use", run[name]) for name in shares),
        worded("delay", run["queue_delay_p99"]),
        worded("use", run["nack_ratio"]),
        settled,
        ", ".join(f"{name} {worded(name, value)}" for name, value in run["missed"]) or "none",
    ]


def _ordered(found: Found, scenario: str) -> list[tuple[str, Run]]:
    runs: Runs = found[scenario]["runs"]
    return [(policy, runs[policy]) for policy in policies(found) if policy in runs]


def _missed(found: Found, scenarios: Sequence[str], policy: str) -> str:
    runs = [found[scenario]["runs"].get(policy) for scenario in scenarios]
    judged = [run for run in runs if run is not None and "refused" not in run]
    if not judged:
        return "-"
    return f"{sum(len(run['missed']) for run in judged)} of {sum(run['expected'] for run in judged)}"


def _both(one: Mapping[str, Any], policy: str) -> bool:
    runs: Runs = one["runs"]
    return all(name in runs and "refused" not in runs[name] for name in (DEFAULT, policy))


_COUNTED = ("p1_p99", "use", "p3_share", "queue_delay_p99", "missed")


def _same(own: Run, other: Run) -> bool:
    return all(own[name] == other[name] for name in _COUNTED)


def _is_better(own: Run, other: Run) -> bool:
    """Tell whether P1 or the use gains, and neither they, nor P1's goodput, nor an expectation loses."""
    if None in {own["p1_p99"], other["p1_p99"], own["use"], other["use"]}:
        return False
    busier = other["use"] - own["use"]
    keeps = (other["p1_goodput"] or 0) >= (own["p1_goodput"] or 0) - USED and len(other["missed"]) <= len(own["missed"])
    gains = _is_longer(own["p1_p99"], other["p1_p99"]) or busier > USED
    return bool(keeps and gains and not _is_longer(other["p1_p99"], own["p1_p99"]) and busier >= -USED)


def _is_longer(wait: float, than: float) -> bool:
    return wait > WAIT * than and wait - than > LEAST_WAIT


def _link(family: Family) -> str:
    return f"[{family.title}](#{family.title.lower().replace(' ', '-')})"
