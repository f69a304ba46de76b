"""What the consumers of a route could take, as far as a recording shows it.

What left the queues is what was confirmed less what the queues grew by. While something waits in them, that is all that
the consumers could take; of an empty queue it is what there was to take, and they could have taken more.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from math import sqrt

from proxy.tuning.recording import Record, Recording
from proxy.tuning.sums import Sum

STRETCH = 0.2
"""Seconds that one stretch lasts at least."""
WAITING = 0.5
"""Share of the looks in a stretch that must have seen something wait, for the consumers to have had enough to do."""
APART = 2.5
"""Standard deviations by which two stretches must differ to be two: consumers take what they take by chance."""
RAMP = 0.25
"""Seconds of a step where a rate rises or falls all the time."""
SKEW = 0.02
"""Seconds by which a depth may be older than the confirms that are told with it."""
UNSEEN = 2.0
"""Times the most that was taken, where consumers never had enough to do: what they could take is not known."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of the window in which the consumers took alike; seconds from its begin."""

    begins: float
    ends: float
    taken: float
    """Events that left the queues."""
    seconds: float
    """In which they did: stretches that are joined may have others between them."""
    was_enough: bool
    """Whether something waited, so that it is all that they could take."""

    @property
    def rate(self) -> float:
        """Events a second."""
        return max(0.0, self.taken / self.seconds)


@dataclass(frozen=True, slots=True)
class Intake:
    """Of one route."""

    capacity: tuple[tuple[float, float], ...]
    """Second, and events a second that the consumers could take from then on; the first is of second 0."""
    absent: tuple[tuple[float, float], ...]
    """From when to when there were no consumers; nothing is said of their capacity then."""
    known: float
    """Share of the window in which it was seen; elsewhere it is only known to be at least what was taken."""
    consumers: int
    """That there mostly were."""
    bound: int | None
    """Messages at which the queues refused; None: they never did."""


def intake(recording: Recording, route: str) -> Intake | None:
    """Return what a route's consumers could take; None if its depth was never known."""
    absent = tuple(_absent(recording, route))
    stretches = [
        one
        for one in _stretches(recording, route)
        if not any(one.begins < until and since < one.ends for since, until in absent)
    ]
    if not stretches:
        return None
    known = sharpened(joined([one for one in stretches if one.was_enough]))
    others = [
        one
        for was_enough, run in groupby(stretches, key=lambda one: one.was_enough)
        if not was_enough
        for one in joined(list(run))
    ]
    seen = [record for record in recording.of_kind("route") if record["route"] == route]
    counts = sorted(record["consumers"] for record in seen if record["consumers"])
    refused = any(record["nacked"] for record in seen)
    return Intake(
        tuple(smoothed(list(filled(known, others)), recording.seconds)),
        absent,
        min(1.0, sum(one.seconds for one in known) / recording.seconds),
        counts[len(counts) // 2] if counts else 1,
        max((record["depth"] or 0 for record in seen), default=0) or None if refused else None,
    )


def joined(stretches: Sequence[Stretch]) -> list[Stretch]:
    """Join neighbours, the most alike first, until every two differ by more than chance.

    Bottom-up segmentation (Keogh et al. 2001, An Online Algorithm for Segmenting Time Series).
    """
    left = list(stretches)
    while True:
        apart = [_apart(*pair) for pair in pairwise(left)]
        meet = [
            distance < APART and distance <= min(apart[max(0, place - 1) : place + 2])
            for place, distance in enumerate(apart)
        ]
        if not any(meet):
            return left
        merged: list[Stretch] = []
        rest = iter(zip(left, [*meet, False], strict=True))
        for one, meets in rest:
            merged.append(_both(one, next(rest)[0]) if meets else one)
        left = merged


def sharpened(stretches: Sequence[Stretch]) -> list[Stretch]:
    """Take out each short stretch in which the rate changed: what was taken in it says when.

    It is known by a rate between those of its neighbours.
    """
    left = list(stretches)
    for place in range(len(left) - 2, 0, -1):
        before, within, after = left[place - 1 : place + 2]
        is_between = min(before.rate, after.rate) <= within.rate <= max(before.rate, after.rate)
        if within.seconds >= 2 * STRETCH or not is_between or before.rate == after.rate:
            continue
        lasted = within.seconds * (within.rate - after.rate) / (before.rate - after.rate)
        left[place - 1 : place + 2] = [
            replace(before, ends=within.begins + lasted),
            replace(after, begins=within.begins + lasted),
        ]
    return left


def filled(known: Sequence[Stretch], others: Sequence[Stretch]) -> Iterator[tuple[float, float]]:
    """Yield second and capacity at each change.

    Between two that were seen it is the higher one: the queue was empty. Where more than that was taken, it is what was
    taken. If none was seen, it is twice the most that was taken, all the time.
    """
    if not known:
        yield 0.0, max(1.0, UNSEEN * max((one.rate for one in others), default=0.0))
        return
    changes = {one.begins: one.rate for one in known}
    for one in others:
        before = next((seen.rate for seen in reversed(known) if seen.begins < one.begins), 0.0)
        after = next((seen.rate for seen in known if seen.ends > one.begins), 0.0)
        rate = max(before, after)
        least = Stretch(0, 0, rate * one.seconds, one.seconds, was_enough=True)
        changes[one.begins] = one.rate if one.rate > rate and _apart(one, least) > APART else rate
        changes.setdefault(one.ends, before)
    told: float | None = None
    for second, rate in sorted(changes.items()):
        if rate != told:
            yield (0.0 if told is None else second), rate
            told = rate


def smoothed(changes: Sequence[tuple[float, float]], seconds: float) -> Iterator[tuple[float, float]]:
    """Yield the changes, and those in small steps that follow one another upwards or downwards.

    Where a rate rises or falls more than once in a row it does so all the time: between the middles of two stretches it
    goes in a line, `RAMP` seconds a step. A change that stands alone, or turns back, is a step.
    """
    yield from changes[:1]
    edges = [0.0, *(second for second, _ in changes[1:]), seconds]
    by = [after - before for (_, before), (_, after) in pairwise(changes)]
    for place, change in enumerate(by):
        second, rate = changes[place + 1]
        half = min(second - edges[place], edges[place + 2] - second) / 2
        count = int(2 * half / RAMP)
        goes_on = any(other * change > 0 for other in (*by[max(0, place - 1) : place], *by[place + 1 : place + 2]))
        if not goes_on or count < 1:
            yield second, rate
            continue
        for step in range(1, count + 1):
            yield second - half + 2 * half * (step - 0.5) / count, rate - change * (1 - step / count)


def _apart(one: Stretch, other: Stretch) -> float:
    """Return by how many standard deviations of chance two stretches differ."""
    rate = max((one.taken + other.taken) / (one.seconds + other.seconds), 0.0)
    skew = 1 + SKEW * rate
    chance = rate * (1 / one.seconds + 1 / other.seconds) + (skew / one.seconds) ** 2 + (skew / other.seconds) ** 2
    return abs(one.rate - other.rate) / sqrt(chance)


def _both(one: Stretch, other: Stretch) -> Stretch:
    return Stretch(
        one.begins, other.ends, one.taken + other.taken, one.seconds + other.seconds, was_enough=one.was_enough
    )


def _stretches(recording: Recording, route: str) -> Iterator[Stretch]:
    """Yield the window in stretches of `STRETCH` or what lies between two looks at the queues."""
    kind = "verdict" if any(_is_told(one, route) for one in recording.of_kind("verdict")) else "route"
    looks = [one for one in recording.of_kind(kind) if one["route"] == route and one["depth"] is not None]
    confirmed = [Sum(_confirmed(recording, records, kind)) for records in recording.by_process(kind, route=route)]
    before: Record | None = None
    depths: list[int] = []
    for look in looks:
        at = recording.at(look)
        depths.append(look["depth"])
        if before is None:
            before = look
        elif at - (begins := recording.at(before)) >= STRETCH:
            came = sum(one.at(at) - one.at(begins) for one in confirmed)
            waited = sum(depth > 0 for depth in depths) >= WAITING * len(depths)
            yield Stretch(begins, at, came - (look["depth"] - before["depth"]), at - begins, was_enough=waited)
            before, depths = look, [look["depth"]]


def _absent(recording: Recording, route: str) -> Iterator[tuple[float, float]]:
    """Yield from when to when a route had no consumers."""
    since: float | None = None
    for record in recording.of_kind("route"):
        if record["route"] != route or record["consumers"] is None:
            continue
        at = recording.at(record)
        if record["consumers"]:
            if since is not None:
                yield since, at
            since = None
        elif since is None:
            since = max(0.0, at - record["interval_s"])
    if since is not None:
        yield since, recording.seconds


def _is_told(verdict: Record, route: str) -> bool:
    return verdict["route"] == route and verdict.get("drain_rate") is not None


def _confirmed(recording: Recording, records: Sequence[Record], kind: str) -> Iterator[tuple[float, float]]:
    total = 0.0
    for record in records:
        total += record["samples"] - record["errors"] if kind == "verdict" else record["confirmed"]
        yield recording.at(record), total
