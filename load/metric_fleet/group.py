"""Who runs when and owns what: the lives of processes, and from them the owner of each partition at any time.

Partitions go to the replica with the highest weight of the pair (rendezvous hashing), so that few move. A consumer
group in short: who joins or leaves in an orderly way is dealt with at once, who falls silent after `SESSION_MS`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from hashlib import blake2b

from load.metric_fleet.kinds import Kind
from load.metric_fleet.plan import ROUTE_MS, START_MS, TYPE_MS, Fault, Plan

FORMED_MS = 3_000
"""When the group is first formed."""
SESSION_MS = 10_000
"""After which a silent replica's partitions are given away."""
HANDOVER_MS = 200
"""From the loss of a partition to its first read by the next owner."""
AWAY_MS = 30_000
"""From the end of a replica to its next life."""
BETWEEN_MS = 6_457
"""A process ends so long after a multiple of the type interval: seconds that a kill leaves unrecorded."""
WAKE_MS = 25_000
"""How long a zombie stands still."""


class Ending(Enum):
    """How a life, or the ownership of a partition, ends."""

    STOPPED = "stopped"
    """In an orderly way: everything is committed and recorded."""
    KILLED = "killed"
    """At once."""
    ZOMBIE = "zombie"
    """It stood still, lost everything, wrote what it believed, and stopped."""
    RUNNING = "running"
    """Not yet: the log was taken before."""


@dataclass(frozen=True)
class Life:
    """One process."""

    number: int
    replica: int
    start_ms: int
    end_ms: int
    """Its last instant; a zombie's is the one at which it fell silent."""
    ending: Ending
    skew_ms: int = 0
    """How far its clock is ahead of the true time; its records show it."""
    lossy: tuple[int, int] | None = None
    """When all its records were lost."""
    is_old: bool = False
    """It writes version 1."""

    @property
    def instance(self) -> str:
        """Return the name of the process."""
        return f"fleet-{self.replica}-{(START_MS + self.start_ms) // 1000}"

    @property
    def last_ms(self) -> int:
        """Return when it writes last."""
        return self.end_ms + (WAKE_MS if self.ending is Ending.ZOMBIE else 0)

    def loses(self, t_ms: int) -> bool:
        """Return whether a record of this instant is lost."""
        return self.lossy is not None and self.lossy[0] <= t_ms < self.lossy[1]

    def tick_before(self, t_ms: int, interval_ms: int) -> int:
        """Return its last tick at or before an instant."""
        return self.start_ms + (t_ms - self.start_ms) // interval_ms * interval_ms


@dataclass(frozen=True)
class Span:
    """A time in which a life owned a partition."""

    life: Life
    begin_ms: int
    end_ms: int
    ending: Ending


def lives(plan: Plan) -> list[Life]:
    """Return every process of the fleet, the first of each replica first."""
    end = plan.end_ms
    plans: list[list[tuple[int, int, Ending]]] = [[(137 * at, end, Ending.STOPPED)] for at in range(plan.replicas)]
    for fault, replica, share, ending in (
        (Fault.CRASH, 1, 0.30, Ending.KILLED),
        (Fault.RESTART, 0, 0.50, Ending.STOPPED),
        (Fault.ZOMBIE, plan.replicas - 1, 0.72, Ending.ZOMBIE),
    ):
        if plan.has(fault):
            start, last, how = plans[replica].pop()
            gone = round(end * share) // TYPE_MS * TYPE_MS + BETWEEN_MS
            plans[replica] += [(start, gone, ending), (gone + AWAY_MS + 191, last, how)]
    if plan.has(Fault.UNFINISHED):
        start, last, _ = plans[0].pop()
        plans[0].append((start, last, Ending.RUNNING))
    if plan.has(Fault.OLD):
        plans.append([(90, end, Ending.STOPPED)])
    skews = (0, 1_500, -700, 300) if plan.has(Fault.SKEW) else (0,)
    ordered = sorted((start, replica, last, how) for replica, some in enumerate(plans) for start, last, how in some)
    lossy_of = min(1, plan.replicas - 1) if plan.has(Fault.LOSSY) else -1
    return [
        Life(
            number,
            replica,
            start,
            last,
            how,
            skew_ms=skews[replica % len(skews)],
            lossy=_lossy(start, last) if replica == lossy_of and start < FORMED_MS else None,
            is_old=replica == plan.replicas,
        )
        for number, (start, replica, last, how) in enumerate(ordered)
    ]


def _lossy(start: int, end: int) -> tuple[int, int]:
    """Return twelve seconds in the middle of a life, one type tick in them, and no end of a file."""
    tick = start + ((end - start) // 2 // TYPE_MS | 1) * TYPE_MS
    return tick - 2_500, tick + 9_500


def spans(all_lives: Sequence[Life], kind: Kind, partition: int, end_ms: int) -> Iterator[Span]:
    """Yield who owned a partition, in order of time."""
    group = [life for life in all_lives if life.is_old == kind.is_old]
    changes = sorted({at for life in group for at in _membership(life) if at < end_ms})
    owner: Life | None = None
    since = 0
    for at in changes:
        members = [life for life in group if _membership(life)[0] <= at < _membership(life)[1]]
        best = max(members, key=lambda life: _weight(kind.name, partition, life.replica), default=None)
        if best is owner:
            continue
        if owner is not None and since < min(at, owner.end_ms):
            yield _span(owner, since, at)
        owner, since = best, at + HANDOVER_MS
    if owner is not None and since < owner.end_ms:
        yield _span(owner, since, end_ms)


def _weight(kind: str, partition: int, replica: int) -> bytes:
    return blake2b(f"{kind}/{partition}/{replica}".encode(), digest_size=8).digest()


def _membership(life: Life) -> tuple[int, int]:
    """Return from when to when the group counts a life among its members."""
    joined = FORMED_MS if life.start_ms < FORMED_MS else life.start_ms + 310
    silent = life.ending in {Ending.KILLED, Ending.ZOMBIE}
    return joined, life.end_ms + (SESSION_MS if silent else 0)


def _span(life: Life, begin: int, until: int) -> Span:
    """Return the span of an owner, until it is given away or the owner ends."""
    if life.end_ms <= until:
        return Span(life, begin, life.end_ms, life.ending)
    return Span(life, begin, until, Ending.STOPPED)


def recorded_ms(life: Life) -> int:
    """Return the last instant of which a killed life has recorded what was committed."""
    return life.tick_before(life.end_ms, TYPE_MS)


def committed_ms(life: Life) -> int:
    """Return the last instant at which a killed life had committed."""
    return life.tick_before(life.end_ms, ROUTE_MS)
