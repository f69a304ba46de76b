"""All that these rules ask of a log, in the bridge's partitions. No client is known here."""

from collections.abc import Collection, Mapping
from typing import NamedTuple, Protocol

from proxy.model import Partition, Position
from proxy.positions.identity import Committed

EARLIEST = -2
LATEST = -1
"""Times that stand for the beginning and the end of a partition, as Kafka counts."""


class Membership(NamedTuple):
    """Who we are to the group in one generation."""

    generation: int
    member_id: str


class Taken(NamedTuple):
    """What became of a commit."""

    partitions: frozenset[Partition]
    """Those of which the group has said that it took them; if any, the group also knows us."""
    refused: frozenset[str] = frozenset()
    """Topics for which this login may not commit."""
    is_doubtful: bool = False
    """It was asked for more than once: an older commit may be under way still, and come last."""


class Fetches(Protocol):
    """What is fetched next. Every call takes effect before the next record is handed out; none awaits anything."""

    def seek(self, partition: Partition, offset: int) -> None:
        """Go on at the offset; what was fetched of the partition and not handed out is dropped."""
        ...

    def pause(self, partition: Partition) -> None:
        """Fetch no more from the partition."""
        ...

    def resume(self, partition: Partition) -> None:
        """Fetch again from the partition."""
        ...

    def leader_epoch(self, partition: Partition) -> int | None:
        """Return the epoch of the last leader whose events were read of the partition; None: it is not known."""
        ...

    def believe(self, partition: Partition, epoch: int | None, offset: int) -> None:
        """Know, before reading begins at the offset, that no later leader has written what stands before it.

        None: it is not known; what was read before may have been of another log.
        """
        ...

    def trust(self, partition: Partition) -> None:
        """Read on, whichever leader has written it: it is known where the one before ended, or can't be known."""
        ...

    def offset_of(self, position: Position) -> int | None:
        """Return the offset at which a record stands that was handed out; None if that is no position of this log."""
        ...


class Offsets(Protocol):
    """What the log tells of its partitions. Every question raises `LogError` if it isn't answered in time.

    Whatever can't be told now is left out of the answer.
    """

    async def topic_ids(self, names: Collection[str]) -> Mapping[str, str]:
        """Return the topics' ids, empty where the log tells none."""
        ...

    async def offsets(self, times: Mapping[Partition, int]) -> Mapping[Partition, int]:
        """Return the first offset at or after a time (milliseconds since 1970, `EARLIEST` or `LATEST`), one each.

        A partition with nothing at or after its time gets its end. `LATEST` and that end are where reading could go on
        now: before the first transaction that has not ended, if only what is committed is read.
        """
        ...

    async def ends(self, partitions: Collection[Partition]) -> Mapping[Partition, int]:
        """Return where each partition ends, counting what a transaction that has not ended holds back."""
        ...

    async def leader_ends(self, epochs: Mapping[Partition, int]) -> Mapping[Partition, int | None]:
        """Return where the log ended that was written up to these leaders' epochs; None: it can't be known."""
        ...


class Group(Protocol):
    """What the group's coordinator is asked. Every method raises `LogError` if it refuses or doesn't answer in time."""

    async def committed(self) -> Mapping[Partition, Committed | None]:
        """Return everything that the group has committed; None is what it can't tell of now."""
        ...

    async def progress(self) -> Mapping[Partition, Committed]:
        """Return the same within a second, without delaying a commit."""
        ...

    async def commit(self, membership: Membership, offsets: Mapping[Partition, Committed]) -> Taken:
        """Commit the offsets in one request; what belongs to a topic that is gone, or not known yet, is left out.

        Raises `AssignmentLostError` if the group has fenced us.
        """
        ...

    async def affirm(self, membership: Membership) -> None:
        """Ask whether we are a member of the current generation. Raises `AssignmentLostError` if not."""
        ...
