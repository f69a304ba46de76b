"""What the bridge asks of a durable log; `kafka_log` answers it for Kafka."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from proxy.bridge.move import Move, Moved
from proxy.model import Event, Partition, Position, Retention


@dataclass(frozen=True, slots=True)
class Survey:
    """What the log says of its topics."""

    readable: frozenset[str]
    """Every topic this login may read, wanted or not (patterns are matched against it)."""
    missing: frozenset[str]
    """Wanted topics that do not exist."""
    refused: frozenset[str]
    """Wanted topics that this login may not read."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """Where reading a partition begins in an assignment epoch, as the log counts its positions."""

    topic_id: str
    """Of the log that the counts belong to; empty if it tells none."""
    first: int
    """The first position to be read."""
    committed: int | None
    """Everything before it the group had done with; None: it had committed nothing in this log."""
    end: int | None
    """One past the last position there was then; None: the log did not tell."""
    again: int | None = None
    """What stands before it was done with before, and is read again because a person wants it; None: nothing is."""


class Extent(NamedTuple):
    """How much of a partition the whole group has before it, as the log counts its positions."""

    committed: int
    """Everything before it the group has done with."""
    end: int
    """One past the last position there is."""


class Standing(NamedTuple):
    """Why a partition stands still that is to be read."""

    cause: str
    """One word: `node`, `leaderless`, `refused`, `transaction`, `unplaced` or `lease`."""
    why: str
    """A sentence, with the node's name where there is one."""


class PartitionOwner(Protocol):
    """Who is told which partitions this replica owns; every call comes from the event loop."""

    def on_assigned(self, partitions: Collection[Partition]) -> Collection[Partition]:
        """Begin a new assignment epoch for each partition; return those to be paused before the first poll.

        Called again for a partition that left and came back. No await happens between this and the pause.
        """
        ...

    async def on_revoked(self, partitions: Collection[Partition]) -> Mapping[Partition, Position]:
        """Stop sending from the partitions, await what is sent (bounded), return what may be committed last.

        The log commits it while it still owns the partitions. The epoch ends with the return.
        """
        ...

    def on_begun(self, partition: Partition, beginning: Beginning) -> None:
        """Be told where reading begins: once for each `on_assigned` of the partition, before its first events."""
        ...

    async def on_moving(self, partitions: Collection[Partition]) -> Mapping[Partition, Position]:
        """Do as at `on_revoked` with partitions whose cursor is to be moved; they stay owned.

        `on_moved` or `on_ended` follows, and where the partition is still owned a new `on_assigned`.
        """
        ...

    def on_renewed(self, partition: Partition, taken: int) -> None:
        """Be told that the log took what was done, up to a place, of a partition that is begun anew where it is."""
        ...

    def on_moved(self, moved: Moved) -> None:
        """Be told that the log has a move for good, once for each `on_moving` that was not given up.

        It has taken all that was done with before, too.
        """
        ...

    def on_ended(self, taken: Mapping[Partition, int]) -> None:
        """Be told what the log took of what `on_revoked` returned, as `EventLog.commit` returns it; perhaps nothing."""
        ...

    def on_passed(self, partition: Partition) -> None:
        """Be told that everything read is done with, and that behind it positions without an event were passed.

        Those of markers and of aborted transactions, for instance. A commit tells the log.
        """
        ...

    def on_truncated(self, partition: Partition, at_most: int, first: int) -> None:
        """Be told that the log dropped records before they could be read: so many at most, all before `first`.

        Positions are counted; how many of them were gaps (compaction, ends of transactions) can't be told any more.
        """
        ...


class EventLog(Protocol):
    """A consumer group's view of a durable log. One instance per process.

    Outages are waited out inside: a poll during one returns nothing, and every change of state is logged once.
    """

    async def start(self, owner: PartitionOwner) -> None:
        """Connect, however long that takes.

        Raises `RefusedLoginError` if the log refuses the credentials.
        """
        ...

    async def survey(self, wanted: Collection[str]) -> Survey:
        """Ask which topics exist and may be read; never creates one. Raises `LogError` if unanswered in time."""
        ...

    async def subscribe(self, topics: frozenset[str]) -> None:
        """Replace the topics read by this replica; the group rebalances. None at all is allowed."""
        ...

    async def poll(self, wait: float) -> Mapping[Partition, list[Event]]:
        """Return what was fetched so far, as much as one step may take, in log order; wait up to `wait` seconds for it.

        However much lies ready, the loop gets a turn first. The caller must `pause` what it has no more room for before
        its next await. While a rebalance is under way the call may take longer than `wait`. A partition appears only
        between its `on_assigned` and its `on_revoked`.
        """
        ...

    def pause(self, partitions: Collection[Partition]) -> None:
        """Fetch no more from the partitions; those not owned are passed over."""
        ...

    def resume(self, partitions: Collection[Partition]) -> None:
        """Fetch again from the partitions; those not owned are passed over."""
        ...

    async def commit(self, positions: Mapping[Partition, Position | None]) -> Mapping[Partition, int]:
        """Commit: up to and including these positions everything is done with; None: no event of this epoch is.

        What the log has passed behind them (`PartitionOwner.on_passed`) goes with them.

        Returns of which partitions the log has said that it took them, and the position before which, as the log
        counts, everything is done with now; with any of them it has also confirmed that this replica owns what it
        holds. Left out is what is not owned, or whose topic the log doesn't know (now): of that nothing may be assumed,
        nor of anything after a failure. Raises `AssignmentLostError` if the group has fenced this replica, `LogError`
        if the log does not answer in time.
        """
        ...

    def move(self, wanted: Mapping[Partition, Move]) -> Collection[Partition]:
        """Take it that the cursors of these partitions are to be moved, as far as they are not yet.

        Replaces what was wanted before. Of what this replica owns each move is made soon, once, and by one commit: it
        is the move. Returns of which owned partitions that is still to come. Asks nobody.
        """
        ...

    def renew(self, topics: Collection[str]) -> None:
        """Have all that this replica owns of these topics begin anew where it is done with, soon, and each by itself.

        The owner is told as for a move: `on_moving`, `on_renewed`, `on_assigned`. Returns at once.
        """
        ...

    def place(self, position: Position) -> int:
        """Return where a position of this log stands, as the log counts."""
        ...

    def member(self) -> str:
        """Return what the group calls this replica; empty while it has never been in it."""
        ...

    async def affirm(self) -> bool:
        """Ask the group, changing nothing, whether this replica still owns its partitions.

        False if unanswered, or if nothing is owned so that nobody was asked. Partitions that are being given up count
        as owned until their last commit.
        Raises `AssignmentLostError` if the group has fenced this replica.
        """
        ...

    async def lags(self, done: Mapping[Partition, Position | None]) -> Mapping[Partition, int]:
        """Return for each partition how many positions its end is ahead of `done`.

        None: nothing is done with since the assignment, so count from where it began. Gaps left by compaction count,
        and what a transaction that has not ended holds back. Partitions the log can't tell of are left out. Others may
        be told: those that this replica has let go and waits for, and that are nobody else's.
        """
        ...

    def doubts_topics(self) -> bool:
        """Return whether something says that a topic read is gone or refused since the last survey. Asks nobody."""
        ...

    def outside(self) -> str | None:
        """Return why the group does not take this replica for one of its own, or says nothing; None: nothing is known.

        Asks nobody.
        """
        ...

    def standing(self) -> Mapping[Partition, Standing]:
        """Return the partitions of this replica that are to be read and have stood still for seconds, with the reason.

        What the owner paused is not among them. Asks nobody.
        """
        ...

    async def progress(self) -> Mapping[Partition, int]:
        """Return for each partition that this replica does not own how far the group has come in it.

        A count from the log's own beginning, of which only the growth means anything: one for every event committed,
        and for every gap that was passed. Whatever the group ever committed counts, also in topics that this replica
        does not read: replicas of one group may read different ones. Left out is what this replica owns, from the
        assignment to its last commit; nothing is left for a replica that is alone.
        Raises `LogError` if unanswered within a second. Never delays a commit.
        """
        ...

    async def extents(self, topics: Collection[str]) -> Mapping[Partition, Extent]:
        """Return for each partition of the topics how far the group has come in it, and where it ends.

        Whoever owns it: every replica gets the same answer. Left out is where the group has committed nothing yet, and
        what the log can't tell of now. Raises `LogError` if unanswered within some seconds. Never delays a commit.
        """
        ...

    async def retention(self, topics: Collection[str]) -> Mapping[str, Retention | None]:
        """Return how long the log keeps each topic; None where this login may not know. Others are left out.

        One question, however many topics. Raises `LogError` if unanswered within some seconds.
        """
        ...

    async def firsts(self, partitions: Collection[Partition]) -> Mapping[Partition, int]:
        """Return where each partition begins now, as the log counts. Those it can't tell of are left out.

        Raises `LogError` if unanswered within some seconds.
        """
        ...

    async def stop(self) -> None:
        """Leave the group and close. Commits nothing. Idempotent, bounded."""
        ...
