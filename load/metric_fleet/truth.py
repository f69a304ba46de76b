"""The truth beside the logs, `truth.json`: what happened, by the model; the package's docstring says what is in it."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from load.metric_fleet import slo
from load.metric_fleet.files import Written
from load.metric_fleet.fleet import Fleet
from load.metric_fleet.flow import CUT, SCALED, USUAL, Episode
from load.metric_fleet.group import Ending
from load.metric_fleet.kinds import CLASSES, ROUTES
from load.metric_fleet.outcomes import fates
from load.metric_fleet.plan import ROUTE_MS, START_MS, TICK_MS
from load.metric_fleet.proof import Proofs
from load.metric_fleet.samples import percentiles
from load.metric_fleet.slo import Late
from load.metric_fleet.tally import COUNTS, Sums
from load.metric_fleet.verdicts import next_tick, share

VERSION = 1


def truth(fleet: Fleet, written: Sequence[Written], proofs: Proofs | None) -> dict[str, Any]:
    """Return everything that is known of a fleet, as plain JSON; instants in ms since 1970 by the true clock."""
    plan = fleet.plan
    by_class: dict[str, Sums] = {}
    by_type: dict[str, Sums] = {}
    by_route: dict[str, Sums] = {}
    kinds: Counter[str] = Counter()
    untold: Counter[str] = Counter()
    late = Late() if proofs is None else Late(proofs.late)
    for one in written:
        known = one.known
        for mine, theirs in ((by_class, known.by_class), (by_type, known.by_type), (by_route, known.by_route)):
            for name, sums in theirs.items():
                mine.setdefault(name, Sums.like(sums)).merge(sums)
        kinds.update(one.known.records)
        untold.update(one.known.untold)
        late.update(one.known.late)
    return {
        "v": VERSION,
        "seed": plan.seed,
        "faults": sorted(plan.faults),
        "start_ms": START_MS,
        "end_ms": START_MS + plan.end_ms,
        "records": dict(sorted(kinds.items())),
        "rejected": dict(sorted(sum((one.rejected for one in written), Counter[str]()).items())),
        "files": [
            {"name": one.name, "folders": one.folders, "records": one.lines, "rejected": dict(one.rejected)}
            for one in written
        ],
        "processes": _processes(fleet, written),
        "by_class": {name: _sums(by_class[name]) for name in CLASSES if name in by_class},
        "by_type": {name: _sums(sums) for name, sums in sorted(by_type.items())},
        "by_route": {name: _sums(sums) for name, sums in sorted(by_route.items())},
        "slos": slo.as_json(fleet, late),
        "episodes": [_episode(fleet, one) for route in ROUTES for one in fleet.flow.episodes[route.name]],
        "blind": [
            {"route": one.route, "from_ms": START_MS + one.start_ms, "to_ms": START_MS + one.end_ms}
            for one in fleet.flow.blindness
        ],
        "scaled": []
        if fleet.flow.scaled_ms is None
        else [
            {"route": "main", "at_ms": START_MS + fleet.flow.scaled_ms, "before": list(USUAL), "after": list(SCALED)}
        ],
        "oldest_s": _oldest_s(fleet),
        "stuck": [
            {"type": log.kind.name, "from_ms": START_MS + hold.from_ms, "to_ms": START_MS + hold.until_ms}
            for log in fleet.logs
            for hold in log.holds
            if hold.stands
        ],
        "incidents": _incidents(fleet),
        **_partitions(fleet),
        "letters_untold": {name: count for name, count in sorted(untold.items()) if count},
        "proof": None
        if proofs is None
        else {
            keys: {name: one.as_json() for name, one in sorted(some.items())}
            for keys, some in (("by_class", proofs.by_class), ("by_type", proofs.by_type))
        },
    }


def _sums(sums: Sums) -> dict[str, Any]:
    raw = {"publish": sums.publish, "bridge": sums.bridge}
    return {
        **{name: sums.counts[name] for name in COUNTS},
        "dead_lettered": dict(sorted(sums.dead_lettered.items())),
        **{name: None if values is None else percentiles(values) for name, values in raw.items()},
    }


def _processes(fleet: Fleet, written: Sequence[Written]) -> list[dict[str, Any]]:
    confirmed: dict[str, Counter[str]] = {life.instance: Counter() for life in fleet.lives}
    for one in written:
        for name, sums in one.known.by_class.items():
            confirmed[one.known.instance][name] += sums.counts["confirmed"]
    return [
        {
            "instance": life.instance,
            "started_ms": START_MS + life.start_ms,
            "stopped_ms": START_MS + life.last_ms if life.ending in {Ending.STOPPED, Ending.ZOMBIE} else None,
            "ending": life.ending.value,
            "skew_ms": life.skew_ms,
            "lossy_ms": None if life.lossy is None else [START_MS + at for at in life.lossy],
            "version": 1 if life.is_old else 2,
            "epochs": len(fleet.epochs[life.number]),
            "confirmed": dict(confirmed[life.instance]),
        }
        for life in fleet.lives
    ]


def _episode(fleet: Fleet, one: Episode) -> dict[str, Any]:
    is_budget = one.route != "seed"
    told = [
        (cut, at)
        for life in fleet.lives
        for cut in one.cuts
        for at in [next_tick(life, cut, TICK_MS)]
        if life.start_ms <= at < life.end_ms and not life.loses(at)
    ]
    said = [
        at
        for life in fleet.lives
        for start, end in one.stretches
        for at in [max(life.start_ms, next_tick(life, start, TICK_MS if is_budget else ROUTE_MS))]
        if at < min(end, life.end_ms)
    ]
    classes = {}
    for rank, name in enumerate(CLASSES):
        logs = [log for log in fleet.logs if (log.kind.route, log.kind.priority) == (one.route, name)]
        cuts = sum(name in one.hot_at(cut) for cut in one.cuts)
        classes[name] = {
            "cuts": cuts,
            "lowest_share": CUT**cuts,
            "backlog": sum(log.end(one.end_ms) - log.done(one.end_ms, fleet.flow) for log in logs),
            "drained_ms": START_MS + one.drained_ms(rank),
        }
    return {
        "route": one.route,
        "from_ms": START_MS + one.start_ms,
        "to_ms": START_MS + one.end_ms,
        "within_ms": TICK_MS if is_budget else ROUTE_MS,
        "cause": one.cause,
        "ruled_by": one.ruled_by,
        "queue_delay_us": one.delay_us or None,
        "stretches": [[START_MS + start, START_MS + end] for start, end in one.stretches],
        "cuts": sum(len(one.hot_at(cut)) for cut, at in told),
        "slowed": len(told) if is_budget else _congested(fleet, one),
        "is_empty": one.cause == "latency",
        "judged": len(said),
        "after_growth": is_budget and _grows(fleet, one),
        "classes": classes,
    }


def _congested(fleet: Fleet, one: Episode) -> int:
    """Return how many verdicts of all replicas found a route under `per_type` congested."""
    return sum(
        any(start <= at < end for start, end in one.stretches) and not life.loses(at)
        for life in fleet.lives
        for at in range(
            next_tick(life, max(one.start_ms, life.start_ms), ROUTE_MS), min(one.end_ms, life.end_ms), ROUTE_MS
        )
    )


def _grows(fleet: Fleet, one: Episode) -> bool:
    """Return whether the lowest class's rate still grew, behind the last episode, when this one began."""
    before = fleet.flow.episode_at(one.route, one.start_ms - 1)
    return before is not None and share(before, CLASSES[-1], one.start_ms - ROUTE_MS) < 1.0


def _oldest_s(fleet: Fleet) -> dict[str, float]:
    """Return how many seconds each type was ever behind at most: at the end of what held it back."""
    found: dict[str, float] = {}
    for log in fleet.logs:
        ends = [one.end_ms for one in fleet.flow.episodes[log.kind.route]]
        ends += [at for hold in log.holds for at in (max(0, hold.from_ms), min(hold.until_ms, fleet.plan.end_ms) - 1)]
        worst = max((log.behind_s(at, fleet.flow) for at in ends), default=0.0)
        found[log.kind.name] = max(worst, found.get(log.kind.name, 0.0))
    return found


def _incidents(fleet: Fleet) -> list[dict[str, Any]]:
    found = [
        (one.at_ms, one.life, record.as_json())
        for one in fleet.happenings
        for record in one.told
        if record.KIND == "incident"
    ]
    found += [(life.last_ms, life, {"name": "assignment_lost"}) for life in fleet.lives if life.ending is Ending.ZOMBIE]
    names = ("name", "type", "topic", "partition", "count", "first", "end")
    return [
        {"at_ms": START_MS + at, "instance": life.instance, **{name: told.get(name) for name in names}}
        for at, life, told in sorted(found, key=lambda each: each[0])
        if not life.loses(at)
    ]


def _partitions(fleet: Fleet) -> dict[str, Any]:
    partitions, conflicts = [], []
    for fate in fates(fleet):
        place = {
            "type": fate.log.kind.name,
            "topic": fate.log.kind.topic,
            "topic_id": fate.topic.id,
            "partition": fate.log.number,
        }
        positions: Counter[str] = Counter()
        for one in fate.ranges:
            positions[one.outcome] += one.end - one.first
        partitions.append(place | {"positions": dict(positions), "ranges": [list(one) for one in fate.ranges]})
        conflicts += [
            place | {"first": first, "end": end, "instances": instances} for first, end, *instances in fate.conflicts
        ]
    return {"partitions": partitions, "conflicts": conflicts}
