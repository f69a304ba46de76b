"""One type interval of one process: how far each of its partitions gets in each second, and what that amounts to.

The row path of the generator: everything that is made per partition and second is here, on precomputed closed forms.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from load.metric_fleet.fleet import Epoch, Fleet
from load.metric_fleet.flow import INBOX_S, work
from load.metric_fleet.group import Ending, Life
from load.metric_fleet.kinds import CLASSES, ROUTES, Kind
from load.metric_fleet.plan import ROUTE_MS, Fault
from load.metric_fleet.samples import POOL, Ages, Pools, level_of
from load.metric_fleet.tally import Tally

NACKED = 0.1
"""Share of intervals of a type in which something is refused, where nacks are asked for."""
CATCHING_UP_S = 10.0
"""A partition that is so far behind catches up: its events are `old`."""


@dataclass(frozen=True)
class Pace:
    """How a class on a route stands at each boundary between two seconds."""

    done: list[float]
    """`work` of what is done with."""
    read: list[float]
    end: list[float]
    behind_s: list[float]
    is_calm: bool
    publish: list[list[int]]
    """Pool of each second."""
    bridge: list[Ages]


@dataclass
class Moved:
    """What an epoch did in an interval."""

    epoch: Epoch
    done: list[int]
    """Position at each boundary."""
    left: int = 0
    """Events read and not done with at the end."""


@dataclass
class Block:
    """An interval: its boundaries, and the tallies of types and of seconds."""

    ticks: list[int]
    of_kinds: dict[int, Tally] = field(default_factory=dict)
    """By the type's number."""
    of_seconds: list[dict[tuple[str, str], Tally]] = field(default_factory=list)
    """By class and route."""
    moved: list[Moved] = field(default_factory=list)


def ticks(life: Life, start_ms: int, end_ms: int) -> list[int]:
    """Return the instants at which a life writes counts, from the one before on; in its last interval also its end."""
    found = list(range(start_ms, min(end_ms, life.end_ms) + 1, ROUTE_MS))
    if life.end_ms < end_ms and life.ending is not Ending.KILLED and found[-1] < life.last_ms:
        found.append(life.last_ms)
    return found


def block(fleet: Fleet, pools: Pools, epochs: Sequence[Epoch], at: list[int], chance: Random) -> Block:
    """Return what a life with these epochs did between the first and the last of the boundaries `at`."""
    made = Block(at)
    made.of_seconds = [
        {(priority, route.name): Tally() for priority in CLASSES for route in ROUTES} for _ in range(len(at) - 1)
    ]
    skew_ms = epochs[0].life.skew_ms if epochs else 0
    paces = {
        (route.name, priority): _pace(fleet, pools, route.name, rank, at, skew_ms)
        for route in ROUTES
        for rank, priority in enumerate(CLASSES)
    }
    for epoch in epochs:
        if epoch.begin_ms >= at[-1] or epoch.written_ms <= at[0]:
            continue
        kind = epoch.log.kind
        tally = made.of_kinds.setdefault(kind.number, Tally())
        cells = [second[kind.priority, kind.route] for second in made.of_seconds]
        made.moved.append(_move(fleet, epoch, at, paces[kind.route, kind.priority], tally, cells, chance.random()))
    if fleet.plan.has(Fault.NACKS):
        _refuse(fleet.kinds, made, chance)
    return made


def _pace(fleet: Fleet, pools: Pools, route: str, rank: int, at: list[int], skew_ms: int) -> Pace:
    flow = fleet.flow
    behind = [flow.delay_s(route, rank, t) for t in at]
    is_calm = not any(behind)
    end = [work(t) for t in at]
    lasts = [one is not None and one.start_ms <= t < one.end_ms for t in at[1:] for one in [flow.episode_at(route, t)]]
    return Pace(
        end if is_calm else [work(t - 1000 * s) for t, s in zip(at, behind, strict=True)],
        end if is_calm else [work(t - 1000 * max(0.0, s - INBOX_S)) for t, s in zip(at, behind, strict=True)],
        end,
        behind,
        is_calm,
        [pools.publish[bool(is_congested)] for is_congested in lasts],
        [pools.bridge(skew_ms)[level_of(s)] for s in behind[1:]],
    )


def _move(
    fleet: Fleet, epoch: Epoch, at: list[int], pace: Pace, tally: Tally, cells: list[Tally], draw: float
) -> Moved:
    log = epoch.log
    if not log.kind.rate:
        return Moved(epoch, [epoch.first] * len(at))
    done, read, end = _places(fleet, epoch, at, pace)
    is_plain = not (log.has_markers or log.void or log.discarded or log.letters_width or log.burst.end)
    start = int(draw * POOL)
    for number, cell in enumerate(cells):
        first, last = done[number], done[number + 1]
        came = read[number + 1] - read[number]
        if came:
            _receive(came if is_plain else log.events(read[number], read[number + 1]), log.kind.size, tally, cell)
        if last > first:
            events = last - first if is_plain else _settle(epoch, first, last, tally, cell)
            _confirm(log.kind, events, pace, number, start, (tally, cell))
            start = (start + events) % POOL
        if end[number + 1] != last and epoch.end_ms >= at[number + 1]:
            behind_s = log.behind_s(at[number + 1], fleet.flow) if log.holds else pace.behind_s[number + 1]
            _stand(log.events(last, read[number + 1]), end[number + 1] - last, behind_s, cell)
    moved = Moved(epoch, done)
    if epoch.end_ms >= min(at[-1], epoch.life.end_ms):
        moved.left = log.events(done[-1], max(done[-1], read[-1]))
        behind_s = log.behind_s(at[-1], fleet.flow) if log.holds else pace.behind_s[-1]
        _stand(moved.left, max(0, end[-1] - done[-1]), behind_s, tally)
    return moved


def _places(fleet: Fleet, epoch: Epoch, at: list[int], pace: Pace) -> tuple[list[int], list[int], list[int]]:
    """Return up to where an epoch is done, up to where it is read, and the log's end, at each boundary."""
    log = epoch.log
    if epoch.begin_ms <= at[0] and epoch.end_ms >= at[-1] and not log.holds and len(log.topics) == 1:
        base, rate = log.topics[0].base, log.kind.rate
        done = [int(base + rate * worked) for worked in pace.done]
        if pace.is_calm:
            return done, done, done
        read, end = ([int(base + rate * worked) for worked in some] for some in (pace.read, pace.end))
        return done, read, end
    done = [epoch.position(t, fleet.flow) for t in at]
    read = [epoch.read(t, fleet.flow) for t in at]
    end = [log.end(t) if epoch.begin_ms <= t <= epoch.end_ms else place for t, place in zip(at, done, strict=True)]
    return done, read, end


def _receive(events: int, size: int, tally: Tally, cell: Tally) -> None:
    tally.received += events
    tally.received_bytes += events * size
    cell.received += events
    cell.received_bytes += events * size


def _confirm(kind: Kind, events: int, pace: Pace, second: int, start: int, tallies: tuple[Tally, Tally]) -> None:
    """Count events as confirmed, each with its own latencies: those of the pools from `start` on."""
    publish = pace.publish[second][start : start + events]
    bridge: list[int] = []
    ahead = 0
    if kind.has_stamps:
        ages = pace.bridge[second]
        bridge, negative = ages.values[start : start + events], ages.is_ahead[start : start + events]
        if kind.is_ahead and events > 1:
            bridge[0], negative[0] = 0, True
        ahead = sum(negative)
    is_old = pace.behind_s[second + 1] >= CATCHING_UP_S and not kind.is_old  # version 1 does not tell
    for one in tallies:
        one.publish += publish
        one.bridge += bridge
        one.confirmed += events
        one.confirmed_bytes += events * kind.size
        one.ahead_of_clock += ahead
        one.old += events if is_old else 0


def _stand(waiting: int, lag: int, behind_s: float, tally: Tally) -> None:
    tally.waiting += waiting
    tally.lag += lag
    tally.catching_up += behind_s >= CATCHING_UP_S
    tally.oldest_s = max(tally.oldest_s, behind_s)


def _settle(epoch: Epoch, first: int, last: int, tally: Tally, cell: Tally) -> int:
    """Count the dead letters of a range; return how many events of it were delivered."""
    log = epoch.log
    letters = log.letters(first, last, epoch.begin_ms)
    for letter in letters:
        for one in (tally, cell):
            one.dead_lettered[letter.reason] += letter.end - letter.first
    return delivered(log.events(first, last), letters, discarded(epoch, first, last))


def discarded(epoch: Epoch, first: int, last: int) -> int:
    """Return how many events of a range were read and dropped."""
    log = epoch.log
    pieces = [(max(one.first, first), min(one.end, last)) for one in log.discarded if one.within(first, last)]
    return sum([log.events(start, end) for start, end in pieces])


def delivered(events: int, letters: Sequence[tuple[int, int, str]], dropped: int) -> int:
    """Return how many events of a range the broker took."""
    return events - dropped - sum([end - first for first, end, _ in letters])


def _refuse(kinds: Sequence[Kind], made: Block, chance: Random) -> None:
    """Let the broker refuse, and connections break, for some types: what is refused is sent again in the same time."""
    for number, tally in made.of_kinds.items():
        if not tally.confirmed or chance.random() > NACKED:
            continue
        kind = kinds[number]
        cell = made.of_seconds[chance.randrange(len(made.of_seconds))][kind.priority, kind.route]
        nacked, unknown, overtaken = chance.randrange(1, 6), chance.randrange(3), chance.randrange(3)
        for one in (tally, cell):
            one.nacked += nacked
            one.unknown += unknown
            one.resent += nacked + unknown
            one.resent_unknown += unknown
            one.overtaken += overtaken
