"""What happens to single partitions: each in one of its own, so that none hides another."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from load.metric_fleet.flow import Flow, work
from load.metric_fleet.group import Life, Span
from load.metric_fleet.kinds import STUCK
from load.metric_fleet.logs import Hold, Log, Range, Topic
from load.metric_fleet.plan import Fault, FleetError, Plan
from proxy import records

BEHIND_S = 30.0
"""By how much a partition is behind that is going to skip, or to lose records unread."""
BACK_S = 20.0
"""How far a cursor is moved back."""
LATE_S = 15.0
"""By how much a partition is behind all the time, so that something is still in the log at the end."""
MARGIN_MS = 2_000
"""Between what happens to a partition and the beginning or end of an owner."""
BURST = 300
"""Positions in which every second one is a dead letter."""
BY = "ann"
"""Who does what people do."""
_ALWAYS_MS = -(10**9)
_GAPS = {0, 7}
_COMPACTED = 7
_DISCARDED = 13
_LATE = 4
STUCK_MS = 45_000
"""How long a type gets nothing done."""


@dataclass(frozen=True)
class Happening:
    """Something that happened to a partition at an instant, and what is recorded of it then."""

    fault: Fault
    log: Log
    at_ms: int
    life: Life
    ranges: tuple[Range, ...] = ()
    """The positions concerned."""
    jumps: bool = False
    """Whether reading begins anew there."""
    moves_cursor: bool = False
    """Whether what the group had committed is moved, too."""
    told: tuple[records.Record, ...] = ()


def happen(plan: Plan, flow: Flow, log: Log, owners: Sequence[Span]) -> list[Happening]:
    """Let happen to a partition what the plan has for it; return what is recorded or moves where reading begins."""
    number = log.kind.number
    if log.kind.is_old or not log.kind.rate:
        return []
    if plan.has(Fault.LETTERS) and number % 5 == 1:
        log.letters_width = 1 + number % 3
    if plan.has(Fault.GAPS) and number in _GAPS:
        log.has_markers = True
        if number == _COMPACTED:
            middle = log.end(plan.end_ms * 0.2)
            log.void.append(Range(middle, middle + 3 + int(log.kind.rate * 10)))
    if plan.has(Fault.DISCARD) and number == _DISCARDED:
        start, end = round(plan.end_ms * 0.2) + 123, round(plan.end_ms * 0.3) + 456
        log.discarded.append(Range(log.done(start, flow), log.done(end, flow)))
    if plan.has(Fault.UNFINISHED) and number == _LATE:
        log.holds.append(Hold(_ALWAYS_MS, plan.end_ms + 1, LATE_S))
    if plan.has(Fault.STUCK) and number == STUCK:
        start = round(plan.end_ms * 0.35)
        log.holds.append(Hold(start, start + STUCK_MS, 0.0, stands=True))
    return [
        make(log, *_moment(plan, flow, owners, share, fault), flow)
        for fault, (victim, share, make) in _VICTIMS.items()
        if plan.has(fault.fault) and (victim, 0) == (number, log.number)
    ]


def _moment(plan: Plan, flow: Flow, owners: Sequence[Span], share: float, what: "_What") -> tuple[int, Life]:
    """Return an instant at about a share of the time at which a partition has an owner, and nothing waits if needed."""
    for at in range(round(plan.end_ms * share) // 10 * 10 + 333, plan.end_ms - 5_000, 1_000):
        if what.fault is Fault.RECREATED and not flow.is_calm(at):
            continue
        for span in owners:
            is_quiet = span.begin_ms + MARGIN_MS <= at <= span.end_ms - MARGIN_MS
            if is_quiet and not span.life.loses(at):
                return at, span.life
    raise FleetError(f"--faults {what.fault}: finds no quiet moment; more --minutes")


def _skip(log: Log, at: int, life: Life, flow: Flow) -> Happening:
    log.holds.append(Hold(_ALWAYS_MS, at, BEHIND_S))
    passed = Range(log.done(at - 1, flow), log.done(at, flow))
    told = records.Skip(
        by=BY, why="not wanted any more", type=log.kind.name, topic=log.kind.topic, topic_id=log.topics[0].id,
        partition=log.number, first=passed.first, end=passed.end, count=None,
    )  # fmt: skip
    return Happening(Fault.SKIP, log, at, life, (passed,), jumps=True, moves_cursor=True, told=(told,))


def _rewind(log: Log, at: int, life: Life, flow: Flow) -> Happening:
    log.letters_width = log.letters_width or 2
    log.holds.append(Hold(at, at + round(BACK_S * 1000), BACK_S, falls=True))
    log.mended_ms = at
    again = Range(log.done(at, flow), log.done(at - 1, flow))
    told = records.Rewind(
        by=BY, why="a consumer lost them", type=log.kind.name, topic=log.kind.topic, topic_id=log.topics[0].id,
        partition=log.number, first=again.first, end=again.end, count=None,
    )  # fmt: skip
    return Happening(Fault.REWIND, log, at, life, (again,), jumps=True, moves_cursor=True, told=(told,))


def _truncated(log: Log, at: int, life: Life, flow: Flow, *, jumps: bool) -> Happening:
    log.holds.append(Hold(_ALWAYS_MS, at, BEHIND_S))
    lost = Range(log.done(at - 1, flow), log.done(at, flow))
    log.void.append(lost)
    log.truncated.append((at, lost))
    told = records.truncated(
        log.kind.topic, log.number, at_most=lost.end - lost.first, first=lost.first, end=lost.end,
        topic_id=log.topics[0].id, group=None,
    )  # fmt: skip
    return Happening(Fault.TRUNCATED, log, at, life, (lost,), jumps=jumps, told=(told,))


def _truncated_reading(log: Log, at: int, life: Life, flow: Flow) -> Happening:
    return _truncated(log, at, life, flow, jumps=False)


def _truncated_between(log: Log, at: int, life: Life, flow: Flow) -> Happening:
    return _truncated(log, at, life, flow, jumps=True)


def _recreated(log: Log, at: int, life: Life, _: Flow) -> Happening:
    before = log.topics[0]
    log.topics.append(Topic(before.id.removesuffix("g0") + "g1", at, before.base % 1, work(at)))
    return Happening(Fault.RECREATED, log, at, life, jumps=True, moves_cursor=True)


def _redrive(log: Log, at: int, life: Life, flow: Flow) -> Happening:
    log.letters_width = log.letters_width or 2
    first, end = log.done(0, flow), log.done(at - 10_000, flow)
    whole = [one for one in log.letters(first, end, 0) if one.end - one.first == log.letters_width]
    chosen = whole[::2]
    told = [
        records.Redrive(
            by=BY, why=None, type=log.kind.name, topic=log.kind.topic, topic_id=log.topics[0].id,
            partition=log.number, first=one.first, end=one.end, reason=one.reason, count=one.end - one.first, attempt=1,
        )
        for one in chosen
    ]  # fmt: skip
    return Happening(
        Fault.REDRIVE, log, at, life, tuple(Range(one.first, one.end) for one in chosen), told=tuple(told)
    )  # fmt: skip


def _burst(log: Log, at: int, life: Life, flow: Flow) -> Happening:
    first = log.done(at, flow)
    log.burst = Range(first, first + BURST)
    return Happening(Fault.LETTERS, log, at, life, (log.burst,))


def _stopped(log: Log, at: int, life: Life, flow: Flow) -> Happening:
    told = records.type_stopped(
        log.kind.name, log.kind.topic, log.number, first=log.done(at, flow), detail="no destination"
    )  # fmt: skip
    return Happening(Fault.INCIDENTS, log, at, life, told=(told,))


def _refused(log: Log, at: int, life: Life, flow: Flow) -> Happening:
    told = records.dead_letter_refused(
        log.kind.name, log.kind.topic, log.number, first=log.done(at, flow), detail="queue full"
    )  # fmt: skip
    return Happening(Fault.INCIDENTS, log, at, life, told=(told,))


@dataclass(frozen=True)
class _What:
    fault: Fault
    variant: int = 0


_Make = Callable[[Log, int, Life, Flow], Happening]
_VICTIMS: dict[_What, tuple[int, float, _Make]] = {
    _What(Fault.LETTERS): (15, 0.15, _burst),
    _What(Fault.REDRIVE): (6, 0.85, _redrive),
    _What(Fault.TRUNCATED): (8, 0.40, _truncated_reading),
    _What(Fault.TRUNCATED, 1): (9, 0.60, _truncated_between),
    _What(Fault.RECREATED): (10, 0.35, _recreated),
    _What(Fault.REWIND): (12, 0.55, _rewind),
    _What(Fault.SKIP): (11, 0.45, _skip),
    _What(Fault.INCIDENTS): (14, 0.25, _stopped),
    _What(Fault.INCIDENTS, 1): (5, 0.65, _refused),
}
"""What happens to partition 0 of which type, at about which share of the time."""
