"""The ledger of a run in one sentence."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from proxy.reports.ledger.outcomes import IN_LOG, LOST, UNRECORDED


def sentence(totals: Sequence[Mapping[str, Any]], findings: int) -> str:
    """Return what the ledger says in all; `totals` are the rows of a run of `by_topic`, `findings` how many it has."""
    of = Counter[str]()
    for row in totals:
        of[row["outcome"]] += row["positions"]
    lost = {name: of[name] for name in LOST if of[name]}
    accounted = of.total() - of[UNRECORDED] - of[IN_LOG] - sum(lost.values())
    parts = ", ".join(f"{count:,} positions {name.replace('_', ' ')}" for name, count in lost.items())
    none = "none known to be lost" if of[UNRECORDED] else "nothing lost"
    told = f"{parts or none}: {accounted:,} positions accounted for, {of[UNRECORDED]:,} unrecorded"
    if of[IN_LOG]:
        told += f", {of[IN_LOG]:,} still in the log"
    return told + (f"; {findings:,} findings of the ledger are listed below" if findings else "")
