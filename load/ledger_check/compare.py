"""Where a ledger says of positions what is not so. Pure; the truth is that of `load.faults.truth`.

The ledger was made of metric logs alone, the truth of what was produced, what consumers got, and what the group had
committed when it was asked: neither knows of the other.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from load.faults.truth import BOTH, DEAD_LETTERED, DELIVERED, DROPPED, UNKNOWN_EVENT, WITH_QUEUE

CAME = frozenset({DELIVERED, BOTH, DEAD_LETTERED, WITH_QUEUE, UNKNOWN_EVENT})
FITS: Mapping[str, frozenset[str]] = {
    "delivered": CAME - {DEAD_LETTERED},
    "dead_lettered": frozenset({DEAD_LETTERED, BOTH, UNKNOWN_EVENT}),
    "truncated": frozenset({DROPPED, UNKNOWN_EVENT}),
    "passed_over": frozenset({DROPPED, UNKNOWN_EVENT}),
    "absent": frozenset({UNKNOWN_EVENT}),
    "unrecorded": CAME,
}
"""What may have become of a position by its outcome; the two others say that the group had not committed it."""
NOT_DONE = {"in_log": True, "deleted": False}
"""Outcomes of what was not committed, and whether the topic is still there."""
CONFLICTS = ("overlap", "went_back")
"""Findings that are so only where a commit went back."""

Row = Mapping[str, Any]
Key = tuple[str, str, str, int]
"""Group, topic, its id, partition."""


@dataclass
class Found:
    """What the comparison came to."""

    differences: list[str] = field(default_factory=list)
    """Where the ledger is wrong, a sentence each."""
    outcomes: Counter[str] = field(default_factory=Counter)
    """Positions by outcome."""
    unrecorded: Counter[str] = field(default_factory=Counter)
    """Positions by what lost their records."""
    unknown: int = 0
    """Positions of which the truth knows no event."""
    untold: int = 0
    """Positions behind the last that the ledger has: nobody committed them, and no process was given them anew."""
    findings: Counter[str] = field(default_factory=Counter)


def compare(truth: Mapping[str, Any], rows: Sequence[Row], findings: Sequence[Row]) -> Found:
    """Hold the rows of the tables `ledger` and `ledger_findings` against the truth."""
    found = Found()
    told: dict[Key, list[Row]] = defaultdict(list)
    for row in rows:
        told[_key(row)].append(row)
        found.outcomes[row["outcome"]] += row["positions"]
    lives = {_key({"group": truth["group"], **life}): life for life in truth["partitions"]}
    found.differences += [f"{_name(key)} was nobody's" for key in told.keys() - lives.keys()]
    for key, life in lives.items():
        fates = [fate for first, end, fate in life["ranges"] for _ in range(first, end)]
        found.unknown += fates.count(UNKNOWN_EVENT)
        found.untold += max(0, life["end"] - max((row["end"] for row in told[key]), default=0))
        lossy = _lossy(truth, key)
        outcomes = _exact(told[key])
        wrong = [*_shape(life, told[key]), *_wrong(life, fates, outcomes, lossy), *_by_number(fates, told[key])]
        found.differences += [f"{_name(key)}: {words}" for words in wrong]
        found.unrecorded.update(lossy.get(at, "nothing") for at, name in outcomes.items() if name == "unrecorded")
    for one in findings:
        found.findings[one["finding"]] += 1
        back = lives[_key(one)]["went_back"] if _key(one) in lives else []
        if one["finding"] in CONFLICTS and not any(to <= one["first"] and one["end"] <= since for to, since in back):
            words = f"{one['first']} to {one['end']} is a finding, {one['finding']}, and no commit went back"
            found.differences.append(f"{_name(_key(one))}: {words}")
    return found


def _key(row: Row) -> Key:
    return row["group"], row["topic"], row["topic_id"], row["partition"]


def _name(key: Key) -> str:
    _, topic, topic_id, partition = key
    return f"{topic}-{partition} ({topic_id})"


def _lossy(truth: Mapping[str, Any], key: Key) -> dict[int, str]:
    """Return what may have lost the record of each position; where it was several, the first that is told."""
    found: dict[int, str] = {}
    for loss in truth["losses"]:
        for topic_id, partition, first, end in loss["windows"]:
            if (topic_id, partition) == key[2:]:
                for at in range(first, end):
                    found.setdefault(at, loss["why"])
    return found


def _is_exact(row: Row) -> bool:
    return bool(row["positions"] == row["end"] - row["first"])


def _exact(rows: Sequence[Row]) -> dict[int, str]:
    return {at: row["outcome"] for row in rows if _is_exact(row) for at in range(row["first"], row["end"])}


def _shape(life: Row, rows: Sequence[Row]) -> Iterator[str]:
    """Yield where rows leave a hole before what was committed, or two tell of one position."""
    reached = 0
    for row in sorted(rows, key=lambda one: (one["first"], one["end"])):
        if row["first"] > reached:
            yield f"nothing is told of {reached} to {row['first']}"
        if row["first"] < reached and _is_exact(row):
            yield f"{row['first']} to {min(reached, row['end'])} is told twice"
        reached = max(reached, row["end"])
    if reached < life["committed"]:
        yield f"nothing is told of {reached} to {life['committed']}, which was committed"


def _wrong(life: Row, fates: Sequence[str], outcomes: Mapping[int, str], lossy: Mapping[int, str]) -> Iterator[str]:
    """Yield stretches of positions whose outcome is not what became of them."""
    told = ((at, name, _objection(life, fates, at, name, lossy)) for at, name in sorted(outcomes.items()))
    wrong = [(at, name, words) for at, name, words in told if words]
    for (_, name, words), some in groupby(enumerate(wrong), key=lambda one: (one[1][0] - one[0], *one[1][1:])):
        positions = [at for _, (at, _, _) in some]
        yield f"{positions[0]} to {positions[-1] + 1} is {name}, {words}"


def _objection(life: Row, fates: Sequence[str], at: int, name: str, lossy: Mapping[int, str]) -> str | None:
    """Return what speaks against a position's outcome."""
    # How far a topic that is gone had been committed is known only as far as somebody looked.
    is_committed = at < life["committed"] or not life["is_there"]
    if name in NOT_DONE:
        if at < life["committed"]:
            return f"the group had committed up to {life['committed']}"
        return None if life["is_there"] == NOT_DONE[name] else f"the topic is there: {life['is_there']}"
    fate = fates[at] if at < len(fates) else (UNKNOWN_EVENT if not life["is_there"] else "beyond the end")
    if fate not in FITS.get(name, ()):
        return f"it was {fate}"
    if not is_committed:
        return f"the group had committed up to {life['committed']} only"
    if name == "unrecorded" and at not in lossy:
        return "and nothing had lost its record"
    return None


def _by_number(fates: Sequence[str], rows: Sequence[Row]) -> Iterator[str]:
    """Yield what is wrong where a row only says of how many positions between two it is true."""
    told = Counter[str]()
    for row in rows:
        if not _is_exact(row):
            told[row["outcome"]] += row["positions"]
    exact = _exact(rows)
    places = {at for row in rows if not _is_exact(row) for at in range(row["first"], row["end"]) if at not in exact}
    known = Counter(fates[at] if at < len(fates) else UNKNOWN_EVENT for at in places)
    if told.total() != len(places):
        yield f"{len(places)} positions are told of by number, and {told.total()} of them"
    for name, count in told.items():
        most = sum(known[fate] for fate in FITS.get(name, ()))
        if count > most:
            yield f"{count} positions are {name} by number, it was {most} at most: {dict(known)}"
