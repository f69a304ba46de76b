"""The partitions of one assignment, and where reading them begins."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import structlog
from aiokafka import TopicPartition

from proxy.bridge.event_log import PartitionOwner
from proxy.kafka_inquiry import EARLIEST, LATEST, Inquiry
from proxy.model import Partition, Position
from proxy.settings import LogSettings

log = structlog.get_logger()


@dataclass(slots=True, eq=False)
class Share:
    """One partition in one epoch; until it is placed the consumer keeps it paused, whatever the owner asks."""

    at: TopicPartition
    is_paused: bool
    """The owner's wish."""
    is_placed: bool = False
    began: int | None = None
    """Offset at which the epoch began; None until it is known."""
    done: int = 0
    """The next offset to be committed: everything before it is done with."""
    next: int = 0
    """The next offset to be handed out."""
    unavailable: int | None = None
    """An offset that was asked for and that the log does not have."""

    @property
    def partition(self) -> Partition:
        """The partition in the bridge's words."""
        return Partition(*self.at)

    def finish(self, position: Position) -> None:
        """Note that everything up to the position is done with; one from before this epoch is passed over."""
        if isinstance(position, int) and self.began is not None and position >= self.began:
            self.done = position + 1


Shares: TypeAlias = Mapping[tuple[str, int], Share]
"""By topic and number: the library's partitions and the bridge's are both found."""


class Placing:
    """Sets the offset at which each share is read: the committed one, else as `log.start` says.

    Reading begins only then, and by requests for all shares together; the library's own way asks for one at a time.
    """

    def __init__(self, settings: LogSettings, consumer: Any, inquiry: Inquiry, owner: PartitionOwner) -> None:
        self._consumer = consumer
        self._inquiry = inquiry
        self._owner = owner
        match settings.start:
            case "earliest":
                self._start = EARLIEST
            case "latest":
                self._start = LATEST
            case "timestamp":
                assert settings.start_timestamp is not None
                self._start = round(settings.start_timestamp.timestamp() * 1000)

    def hold(self, share: Share) -> None:
        """Read nothing from the share until it is placed."""
        share.is_placed = False
        self._consumer.pause(share.at)

    def begin(self, shares: Shares) -> None:
        """Hold all of a new assignment.

        The offset set here is never read from; it keeps the library from asking for positions itself.
        """
        for share in shares.values():
            self.hold(share)
            self._consumer.seek(share.at, 0)

    async def starts(self, shares: Collection[Share]) -> dict[TopicPartition, int]:
        """Ask where the shares begin. Those that the log can't tell of now are left out; raises `LogError`."""
        wanted = {share.at for share in shares}
        found = await self._inquiry.committed(wanted)
        if uncommitted := wanted - found.keys():
            found |= await self._inquiry.offsets(dict.fromkeys(uncommitted, self._start))
        return found

    async def bounds(self, shares: Collection[Share]) -> dict[TopicPartition, tuple[int, int]]:
        """Ask for the first offset and the end of each share. Raises `LogError`."""
        wanted = [share.at for share in shares]
        first = await self._inquiry.offsets(dict.fromkeys(wanted, EARLIEST))
        ends = await self._inquiry.offsets(dict.fromkeys(wanted, LATEST))
        return {at: (first[at], ends[at]) for at in wanted if at in first and at in ends}

    def place(self, share: Share, offset: int) -> None:
        """Read the share from the offset on, unless its owner has paused it."""
        if share.began is None:
            share.began = share.done = offset
        share.next = offset
        share.unavailable = None
        share.is_placed = True
        self._consumer.seek(share.at, offset)
        if not share.is_paused:
            self._consumer.resume(share.at)

    def replace(self, share: Share, first: int, end: int) -> None:
        """Go on at the first offset there is, and tell what that skips."""
        wanted = share.unavailable
        assert wanted is not None
        if wanted < first:
            log.error("log_truncated", partition=str(share.partition), lost=first - wanted, wanted=wanted, first=first)
            self._owner.on_truncated(share.partition, first - wanted)
        elif wanted > end:
            log.error("log_restarted", partition=str(share.partition), wanted=wanted, end=end, first=first)
            share.began = share.done = first
        else:
            first = wanted  # it has come back within the bounds since it was refused
        self.place(share, first)
