"""Results as text: one table a scenario, figure, goal, and what each policy reached."""

import os
from collections.abc import Sequence

from load.control.comparison import DECISIVE, Compared
from load.tables import aligned
from proxy.simulation.figures import Judged

SHARES = ("goodput", "share", "use", "_ratio", "balance")
COUNTS = ("lost", "duplicates", "cuts", "told", "scalings", "consumers_most")
BUSY = 2.0
"""Load average per core that no run of a scenario makes alone."""
ALWAYS = ("queue_delay_p50", "queue_delay_p99", "nack_ratio", "use")


def worded(figure: str, value: float | None) -> str:
    """Return a figure's value with its unit."""
    if value is None:
        return "-"
    name = figure.split(".")
    if name[0] in COUNTS:
        return f"{value:,.0f}"
    if any(share in part for share in SHARES for part in name):
        return f"{100 * value:.1f} %"
    return f"{1000 * value:,.0f} ms" if abs(value) < 10 else f"{value:,.1f} s"


def goal(judged: Judged) -> str:
    """Return a range in words."""
    figure = judged.expectation.figure
    parts = []
    if judged.at_least is not None:
        parts.append(f"≥ {worded(figure, judged.at_least)}")
    if judged.at_most is not None:
        parts.append(f"≤ {worded(figure, judged.at_most)}")
    return ", ".join(parts)


def rows(compared: Compared) -> list[list[str]]:
    """Return one scenario's table: its expectations, then figures that are of interest anywhere."""
    policies = list(compared.results)
    judged = {policy: compared.judged(policy) for policy in policies}
    found = [["", "goal", *policies, ""]]
    for places in zip(*judged.values(), strict=True):
        expectation = places[0].expectation
        window = ""
        if expectation.since is not None or expectation.until is not None:
            first = compared.scenario.warm_up if expectation.since is None else expectation.since
            last = compared.scenario.seconds if expectation.until is None else expectation.until
            window = f" {first:g}-{last:g} s"
        values = [worded(expectation.figure, one.value) for one in places]
        verdict = next((_verdict(one) for policy, one in zip(policies, places, strict=True) if policy == DECISIVE), "")
        found.append([expectation.figure + window, goal(places[0]), *values, verdict])
    expected = {one.expectation.figure for one in next(iter(judged.values()))}
    top = compared.scenario.classes[0]
    extra = [f"{top}.consumed_p50", f"{top}.consumed_p99", f"{top}.goodput", *ALWAYS]
    for name in [name for name in extra if name not in expected]:
        values = [worded(name, compared.figures(policy).value(name)) for policy in policies]
        found.append([name, "", *values, ""])
    return found


def _verdict(judged: Judged) -> str:
    return "met" if judged.holds else "MISSED"


def text(compared: Compared) -> str:
    """Return one scenario's result for the terminal."""
    heading = f"{compared.scenario.name}: {compared.scenario.why}"
    if compared.skipped is not None:
        return f"{heading}\nskipped: {compared.skipped}\n"
    notes = [*remarks(compared), *compared.faults()]
    return "\n".join([heading, aligned(rows(compared)), *notes, ""])


def remarks(compared: Compared) -> list[str]:
    """Return what one must know to read a scenario's figures."""
    found = [f"did not happen: {one}" for one in compared.left_out]
    top = compared.scenario.classes[0]
    if compared.unloaded is not None:
        p50, p99 = (compared.unloaded_value(f"{top}.consumed_{part}") for part in ("p50", "p99"))
        found.append(
            f"unloaded {top}: P50 {worded('consumed', p50)}, P99 {worded('consumed', p99)}, included in the goals above"
        )
    loads = ", ".join(f"{policy} {result.machine_load:.1f}" for policy, result in compared.results.items())
    found.append(f"load average of the machine at the end of each run: {loads}")
    if max((result.machine_load for result in compared.results.values()), default=0.0) > BUSY * (os.cpu_count() or 1):
        found.append("the machine was busy with something else: what was missed may be its doing")
    return found


def conclusion(every: Sequence[Compared]) -> str:
    """Return all scenarios in a line each: how many goals were met by whom."""
    table = [["scenario", *_policies(every)]]
    for compared in every:
        cells = []
        for policy in _policies(every):
            judged = compared.judged(policy) if policy in compared.results else []
            cells.append(f"{sum(one.holds for one in judged)} of {len(judged)}" if judged else "skipped")
        table.append([compared.scenario.name, *cells])
    return aligned(table)


def _policies(every: Sequence[Compared]) -> list[str]:
    return list(dict.fromkeys(policy for compared in every for policy in compared.results))
