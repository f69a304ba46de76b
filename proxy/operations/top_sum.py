"""Several replicas as one: what `tidegate top` shows, and `--json` prints. Pure."""

from collections.abc import Collection, Mapping, Sequence
from itertools import zip_longest
from math import inf
from typing import Any, NamedTuple

from proxy.operations import questions
from proxy.operations.questions import Waiting
from proxy.operations.top_links import Replica


class TypeLine(NamedTuple):
    """An event type, summed up over replicas."""

    name: str
    priority: str
    route: str
    mode: str
    awaits: str | None
    cap: float | None
    """Events a second that a person allows the type and all else that the cap means; None: no cap."""
    waits: int
    """The lag as of the last records, or what is in the inboxes if that is more."""
    age_s: float | None


class Sum(NamedTuple):
    """What is known of all replicas that have told something."""

    at_ms: int
    replicas: list[dict[str, Any]]
    answers: dict[str, str]
    classes: dict[str, dict[str, Any]]
    routes: dict[str, dict[str, Any]]
    """By name, with the instance behind it where there are several."""
    held: list[dict[str, Any]]
    refused: list[str]
    """Why what the files say is not in force."""
    types: list[TypeLine]


def summed(replicas: Sequence[Replica], gone: Collection[str] = (), since_ms: int = 0) -> Sum:
    """Sum up the replicas but those that are `gone`, by address; curves count from an instant on."""
    told = [one.told for one in replicas if one.told and one.address not in gone]
    classes = _classes(told)
    routes = {
        name if len(told) == 1 else f"{name} at {one['instance']}": route
        for one in told
        for name, route in one["routes"].items()
    }
    held = list({act["id"]: act for one in told for act in one["held"]}.values())
    types = _types(told)
    waiting = [Waiting(one.name, one.priority, one.awaits, one.waits) for one in types if one.waits]
    return Sum(
        at_ms=max((one["at_ms"] for one in told), default=0),
        replicas=[
            {
                "address": one.address,
                "instance": one.told.get("instance"),
                "why": one.why or None,
                "counts": bool(one.told) and one.address not in gone,
            }
            for one in replicas
        ],
        answers={
            "late": questions.late(classes, _every(told, "nearly_lost")),
            "why": questions.why(_worst(told), held, waiting, _every(told, "unread")),
            "drop": questions.droppable(classes, waiting),
            "better": questions.better([point for point in _lags(told) if point[0] * 1000 >= since_ms]),
        },
        classes=classes,
        routes=routes,
        held=held,
        refused=_every(told, "refused"),
        types=types,
    )


def _every(told: Sequence[Mapping[str, Any]], what: str) -> list[str]:
    """Return what any of them says; an older replica says nothing of it."""
    return list(dict.fromkeys(text for one in told for text in one.get(what, ())))


def _worst(told: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return each route once, as the replica sees it that it holds back most; its name says on how many it does."""
    found: dict[str, dict[str, Any]] = {}
    for name in dict.fromkeys(name for one in told for name in one["routes"]):
        views = [one["routes"][name] for one in told if name in one["routes"]]
        worst = max(views, key=lambda view: (questions.severity(view), _delay(view)))
        alike = sum(questions.severity(view) == questions.severity(worst) for view in views)
        found[name if len(views) == 1 else f"{name} on {alike} of {len(views)} replicas"] = worst
    return found


def _delay(route: Mapping[str, Any]) -> float:
    """Return the queue delay in seconds; a cause that knows none comes before all that do."""
    verdict = route["verdict"]
    return 0.0 if verdict is None else inf if verdict["queue_delay_s"] is None else float(verdict["queue_delay_s"])


def _classes(told: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for one in told:
        for name, new in one["classes"].items():
            before = found.get(name)
            if before is None:
                found[name] = dict(new)
                continue
            for field in ("lag", "rate", "confirmed", "waiting"):
                known = [value for value in (before[field], new[field]) if value is not None]
                before[field] = sum(known) if known else None
            ages = [value for value in (before["lag_age_s"], new["lag_age_s"]) if value is not None]
            before["lag_age_s"] = max(ages, default=None)
            before["types"] = max(before["types"], new["types"])
    return found


def _types(told: Sequence[Mapping[str, Any]]) -> list[TypeLine]:
    found: dict[str, TypeLine] = {}
    for one in told:
        place = {name: index for index, name in enumerate(one["columns"])}
        for name, row in one["types"].items():
            oldest = row[place["oldest_ms"]]
            new = TypeLine(
                name,
                row[place["class"]],
                row[place["route"]],
                row[place["mode"]],
                row[place["awaits"]],
                row[place["cap"]] if "cap" in place else None,
                max(row[place["inbox_events"]], row[place["lag"]] or 0),
                None if oldest is None else max(0.0, (one["at_ms"] - oldest) / 1000),
            )
            before = found.get(name)
            found[name] = new if before is None else _both(before, new)
    return list(found.values())


def _both(one: TypeLine, other: TypeLine) -> TypeLine:
    ages = [age for age in (one.age_s, other.age_s) if age is not None]
    return one._replace(
        mode=one.mode if one.mode != "run" else other.mode,
        awaits=one.awaits or other.awaits,
        cap=one.cap if one.cap is not None else other.cap,
        waits=one.waits + other.waits,
        age_s=max(ages, default=None),
    )


def _lags(told: Sequence[Mapping[str, Any]]) -> list[tuple[float, int]]:
    """Return instants and the lag of all, oldest first; seconds of several replicas go together from the newest on."""
    newest_first = [
        [(at / 1000, sum(lag or 0 for lag, _ in classes)) for at, classes, _ in reversed(one["points"][-60:])]
        for one in told
    ]
    together = [[point for point in points if point is not None] for points in zip_longest(*newest_first)]
    complete = [points for points in together if len(points) == len(told)]
    return [(points[0][0], sum(lag for _, lag in points)) for points in reversed(complete)]
