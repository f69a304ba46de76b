"""Which settings came into force while processes ran: what of them was another, before and after.

A process tells of all that steers at its start, and again whenever other settings come into force.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from proxy.reports.tables import Row

COLUMNS = {"run": "string", "at_s": "double", **dict.fromkeys(("instance", "what", "before", "after"), "string")}
MOST_RECORDS = 20_000
"""So many records are compared, the earliest; more would be one every four seconds for a day."""
_DEPTH = 5
"""What lies deeper in a setting is told as one."""


def plans(starts: DataFrame, settings: DataFrame) -> DataFrame:
    """Return what every process told of its settings, whenever it did.

    Columns are run, instance, at_ms, at_s, routes, slos, settings, and `is_later`: 1 behind the start, in the same
    millisecond, too.
    """
    columns = ["run", "instance", "at_ms", "at_s", "routes", "slos", "settings"]
    first, later = (
        frame.select(*columns, fn.lit(number).alias("is_later")) for number, frame in enumerate((starts, settings))
    )
    return first.unionByName(later)


def changes(told: DataFrame) -> list[Row]:
    """Return a row for each setting that became another one in a process, from `plans`, in the order of time.

    `what` is the setting's path, like `routes.mail.policy`; `before` and `after` are null where it is the default, or
    where there is no such route.
    """
    columns = [fn.to_json(name).alias(name) for name in ("routes", "slos")]
    ordered = told.orderBy("at_ms", "is_later").select("run", "at_s", "instance", "settings", *columns)
    every = ordered.limit(MOST_RECORDS).toArrow().to_pylist()
    return list(compared(every))


def compared(told: Iterable[Row]) -> Iterator[Row]:
    """Yield the changes of records in the order of time; `routes`, `slos` and `settings` are JSON, or null."""
    last: dict[tuple[str, str], dict[str, str]] = {}
    for row in told:
        process, now = (row["run"], row["instance"]), _flat(row)
        before = last.get(process, now)
        last[process] = now
        for what in sorted(before.keys() | now.keys()):
            if before.get(what) != now.get(what):
                place = {name: row[name] for name in ("run", "at_s", "instance")}
                yield place | {"what": what, "before": before.get(what), "after": now.get(what)}


def policies(routes: Mapping[str, Any], rows: Sequence[Row]) -> dict[str, list[str]]:
    """Return the policies of each route in their order, from those of a start and the changes of a run behind it."""
    found = {name: [plan["policy"]] for name, plan in routes.items()}
    for row in rows:
        name = row["what"].removeprefix("routes.").removesuffix(".policy")
        if row["what"] != f"routes.{name}.policy" or row["after"] is None:
            continue
        had = found.setdefault(name, [])
        if row["at_s"] < 0:
            had.clear()  # before the window that is looked at
        if not had or had[-1] != row["after"]:
            had.append(row["after"])
    return found


def is_target(row: Row) -> bool:
    """Return whether it is a target of a class that changed."""
    what: str = row["what"]
    return what.startswith("classes.") and what.endswith(".slo")


def _flat(row: Row) -> dict[str, str]:
    """Return every setting that is told by its path."""
    told: dict[str, str] = {}
    for name, plan in _read(row["routes"]).items():
        told[f"routes.{name}.policy"] = plan["policy"]
        told[f"routes.{name}.queues"] = ", ".join(plan["queues"] or ())
    for name, slo in _read(row["slos"]).items():
        told[f"classes.{name}.slo"] = json.dumps(slo)
    for path, value in _paths(_read(row["settings"])):
        told.setdefault(path, value)  # a policy is told twice
    return told


def _read(text: str | None) -> dict[str, Any]:
    """Return what a text says; nothing if it is none of ours."""
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _paths(value: Mapping[str, Any], prefix: str = "", depth: int = 1) -> Iterator[tuple[str, str]]:
    for name, one in value.items():
        if isinstance(one, dict) and one and depth < _DEPTH:
            yield from _paths(one, f"{prefix}{name}.", depth + 1)
        else:
            yield f"{prefix}{name}", one if isinstance(one, str) else json.dumps(one)
