"""What people ask beyond traffic, latency and episodes: which tables answer, and which records each is made of."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from pyspark.sql import DataFrame

from proxy.reports import actions, backlog, changes, decisions, replicas, scaling, spectra
from proxy.reports.records import Records
from proxy.reports.traffic import troubles

NAMES = (
    *("actions", "spectra", "replicas", "clocks", "decisions", "scaling", "fairness", "waiting", "troubles", "stuck"),
)
"""Of all tables that may be made."""


class Answer(NamedTuple):
    """A table to be made."""

    name: str
    make: Callable[[], DataFrame]
    order: Sequence[str]
    many: bool = False
    """Whether its rows may be more than are collected, as they are of a thousand event types."""


def answers(
    records: Records, kinds: set[str], latencies: DataFrame, seen: DataFrame | None, *, are_several: bool
) -> list[Answer]:
    """Return the tables for which there are records of some kind.

    `latencies`: as `latency.merged` gives them; `seen`: what producers and consumers tell, if any; `are_several`:
    whether some run is of more than one process.
    """
    classes, types, routes = records.of("class"), records.of("type"), records.of("route")
    plans, verdicts = changes.plans(records.of("start"), records.of("settings")), records.of("verdict")

    by_type = ["run", "class", "type"]

    def distributions() -> DataFrame:
        told = spectra.recorded(latencies)
        return spectra.spectra(told if seen is None else told.unionByName(spectra.consumed(seen)))

    def decided() -> DataFrame:
        return decisions.decisions(plans, verdicts, routes, types)

    found = [
        (
            kinds & actions.KINDS,
            Answer("actions", lambda: actions.actions(records), ["run", "from_s", "to_s", "action"]),
        ),
        (
            kinds & {"class", "type", "route"},
            Answer("spectra", distributions, ["level", *spectra.PLACE, "percentile"], many=True),
        ),
        (kinds & {"class"}, Answer("replicas", lambda: replicas.replicas(classes), ["run", "class", "instance"])),
        (are_several and kinds & {"verdict"}, Answer("clocks", lambda: replicas.clocks(verdicts), ["run", "instance"])),
        (kinds & {"verdict"}, Answer("decisions", decided, ["run", "route", "policy"])),
        (kinds & {"route"}, Answer("scaling", lambda: scaling.scaling(routes, verdicts), ["run", "route", "at_s"])),
        (kinds & {"type"}, Answer("fairness", lambda: backlog.fairness(types), ["run", "class"])),
        (kinds & {"type"}, Answer("waiting", lambda: backlog.waiting(types), by_type)),
        (kinds & {"type"}, Answer("troubles", lambda: troubles(types), [*by_type, "route", "what"])),
        (kinds & {"type"}, Answer("stuck", lambda: replicas.stuck(types), ["run", "from_s", "type", "instance"])),
    ]
    return [answer for told, answer in found if told]
