"""The partitions of one epoch, and where reading them begins."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import structlog
from aiokafka import TopicPartition

from proxy.bridge.event_log import Beginning, PartitionOwner
from proxy.kafka_log.group import GroupCoordinator
from proxy.kafka_log.identity import Committed, Looks
from proxy.kafka_log.inquiry import EARLIEST, LATEST, Inquiry
from proxy.model import Partition, Position
from proxy.settings import LogSettings

_say = structlog.get_logger("tidegate.kafka")

SETTLE_SECONDS = 1.0
"""A broker may tell a topic's new id a moment before it, or another one, has put the old log away."""
_NOWHERE = 2**62
"""An offset at which nothing is read."""


@dataclass(slots=True, eq=False)
class Share:
    """One partition in one epoch; until it is placed the consumer keeps it paused, whatever the owner asks."""

    at: TopicPartition
    is_paused: bool
    """The owner's wish."""
    is_urgent: bool = True
    """It never rests."""
    is_resting: bool = False
    """It is left out of fetches for a moment; see `resting`."""
    fed_at: float = 0.0
    """When it was placed, or last had something, by the loop's clock in seconds."""
    is_placed: bool = False
    is_pinned: bool = False
    """The group has an offset for it, this epoch's or an earlier one's, and what was skipped since is in it."""
    began: int | None = None
    """Offset at which the epoch began; None until it is known."""
    done: int = 0
    """The next offset to be committed: everything before it is done with."""
    next: int = 0
    """The next offset to be handed out."""
    gap: range = range(0)
    """Offsets that the log dropped unread and that were told of: done with as soon as everything before them is."""
    unavailable: int | None = None
    """An offset that was asked for and that the log does not have."""
    topic_id: str = ""
    """Of the log that `began`, `done` and `next` speak of; empty if the broker tells none."""
    successor: str = ""
    """The id that the topic has by now, if it is another: the log of ours is gone."""
    noticed_at: float = 0.0
    """When that was noticed, by the loop's clock in seconds."""

    @property
    def partition(self) -> Partition:
        """The partition in the bridge's words."""
        return Partition(*self.at)

    def finish(self, position: Position) -> None:
        """Note that everything up to the position is done with; one from before this epoch is passed over."""
        if isinstance(position, int) and self.began is not None and position >= self.began:
            self.done = position + 1
            self._pass_gap()

    def skip(self, first: int) -> bool:
        """Note that nothing is left before `first`; return whether that is to be committed, as nothing else will do it.

        Uncommitted, it would be told of once more by whoever takes the partition over.
        """
        self.gap = range(self.gap.start if self.gap and self.gap.stop == self.next else self.next, first)
        return self._pass_gap()

    def _pass_gap(self) -> bool:
        if not self.gap or self.done != self.gap.start:
            return False
        self.done = self.gap.stop
        return True


Shares: TypeAlias = Mapping[tuple[str, int], Share]
"""By topic and number: the library's partitions and the bridge's are both found."""


class Placing:
    """Sets the offset at which each share is read: the committed one, else as `log.start` says.

    Reading begins only then, and by requests for all shares together; the library's own way asks for one at a time.
    A partition that joins a topic of which the group has committed others begins at its first offset whatever `start`
    says: what was produced before anyone noticed it is not to be skipped. That needs every share of another start to be
    pinned, that is committed where it began.

    A topic that was deleted and made anew is another log. The id that its broker tells is learnt before anything is
    read, and a share of which the id changes, or differs from that of the offset committed, begins at the first offset.
    Until it does, its commits carry the id of the log that is gone: whoever takes the partition over begins there, too.
    """

    def __init__(
        self,
        settings: LogSettings,
        consumer: Any,
        coordinator: GroupCoordinator,
        inquiry: Inquiry,
        owner: PartitionOwner,
    ) -> None:
        self._consumer = consumer
        self._coordinator = coordinator
        self._inquiry = inquiry
        self._owner = owner
        self._looks = Looks()
        self._begun: set[str] = set()
        """Topics that the group has begun to read, as far as this replica knows: also those that are gone by now."""
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
        """Hold all of a new epoch.

        The offset set here is never read from; it keeps the library from asking for positions itself.
        """
        for share in shares.values():
            self.hold(share)
            self._consumer.seek(share.at, 0)

    async def attend(self, current: Callable[[], Shares]) -> bool:
        """Place what is not placed, or at an offset that the log lacks, or in a log that is gone.

        Returns whether nothing is left to do but to look at the ids again. Raises `LogError` if the log doesn't answer.
        """
        shares, now = current(), asyncio.get_running_loop().time()
        fresh = [share for share in shares.values() if share.began is None]
        astray = [share for share in shares.values() if share.unavailable is not None or share.successor]
        asked = {share.at.topic for share in (*fresh, *astray)}
        asked |= self._looks.due((topic for topic, _ in shares), now)
        ids = await self._inquiry.topic_ids(asked) if asked else {}
        committed = await self._coordinator.committed() if fresh else {}
        if current() is not shares:
            return True  # that epoch has ended; the next one calls for attention itself
        for share in shares.values():
            self._identify(share, committed.get(share.at), ids.get(share.at.topic))
        ours = [share for share in (*fresh, *astray) if share.at.topic in ids and not share.successor]
        known = [share for share in ours if share.began is None]
        adrift = [share for share in ours if share.unavailable is not None]
        gone = [share for share in shares.values() if share.successor and now - share.noticed_at >= SETTLE_SECONDS]
        starts, ends = await asyncio.gather(self._starts(known, committed), self._ends(known))
        bounds = await self._bounds([*adrift, *gone])
        if current() is not shares:
            return True
        for share in known:
            if share.at in starts:
                is_pinned = share.at in committed or self._start == EARLIEST
                self._begin_at(
                    share, starts[share.at], committed.get(share.at), ends.get(share.at), is_pinned=is_pinned
                )
        for share in adrift:
            if share.at in bounds:
                self._replace(share, *bounds[share.at])
        for share in gone:
            if share.at in bounds:
                self._renew(share, *bounds[share.at])
        return not any(
            share.began is None or share.unavailable is not None or share.successor for share in shares.values()
        )

    def _identify(self, share: Share, committed: Committed | None, told: str | None) -> None:
        """Compare the id that the topic has now with that of the log we know; None or empty: it can't be told now."""
        if share.began is None and committed is not None:
            share.topic_id, share.next = committed.topic_id, committed.offset
        if not told:
            return
        if not share.topic_id:
            share.topic_id = told
        if told == share.topic_id:
            self._return(share)
        elif told != share.successor:
            share.successor = told
            share.noticed_at = asyncio.get_running_loop().time()
            self.hold(share)
            self._consumer.seek(share.at, _NOWHERE)  # so that an answer still on its way is dropped

    def _return(self, share: Share) -> None:
        """Go on in the log of ours if another was said to have its name: a broker was behind the others."""
        if share.successor:
            share.successor = ""
            if share.began is not None and share.unavailable is None:
                self._place(share, share.next)

    async def _starts(
        self, shares: Collection[Share], committed: Mapping[TopicPartition, Committed]
    ) -> dict[TopicPartition, int]:
        """Those that the log can't tell of now are left out."""
        self._begun |= {at.topic for at in committed}
        wanted = {share.at for share in shares}
        times = {at: EARLIEST if at.topic in self._begun else self._start for at in wanted - committed.keys()}
        found = await self._inquiry.offsets(times) if times else {}
        return found | {at: committed[at].offset for at in wanted & committed.keys()}

    async def _ends(self, shares: Collection[Share]) -> Mapping[TopicPartition, int]:
        """Only for the record; those that the log can't tell of now are left out."""
        return await self._inquiry.offsets({share.at: LATEST for share in shares}) if shares else {}

    async def _bounds(self, shares: Collection[Share]) -> dict[TopicPartition, tuple[int, int]]:
        """Return the first offset and the end of each share that the log can tell of now."""
        wanted = [share.at for share in shares]
        if not wanted:
            return {}
        first, end = await asyncio.gather(
            self._inquiry.offsets(dict.fromkeys(wanted, EARLIEST)), self._inquiry.offsets(dict.fromkeys(wanted, LATEST))
        )
        return {at: (first[at], end[at]) for at in wanted if at in first and at in end}

    def _begin_at(
        self, share: Share, offset: int, committed: Committed | None, end: int | None, *, is_pinned: bool
    ) -> None:
        known = committed.offset if committed is not None and committed.topic_id in {"", share.topic_id} else None
        self._owner.on_begun(share.partition, Beginning(share.topic_id, offset, known, end))
        self._begun.add(share.at.topic)
        share.began = share.done = offset
        share.gap = range(0)
        share.is_pinned = is_pinned
        self._place(share, offset)

    def _place(self, share: Share, offset: int) -> None:
        share.next = offset
        share.unavailable = None
        share.is_placed = True
        self._consumer.seek(share.at, offset)
        share.is_resting = False
        share.fed_at = asyncio.get_running_loop().time()
        if not share.is_paused:
            self._consumer.resume(share.at)

    def _replace(self, share: Share, first: int, end: int) -> None:
        """Go on at the first offset there is, and tell what that skips."""
        wanted = share.unavailable
        assert wanted is not None
        if wanted < first:
            where = {"partition": str(share.partition), "wanted": wanted, "first": first, "end": end}
            _say.error("log_truncated", lost=first - wanted, **where)
            self._owner.on_truncated(share.partition, first - wanted, first)
            if share.skip(first):
                share.is_pinned = False
        elif wanted > end:
            self._restart(share, wanted, first, end)
            return
        else:
            first = wanted  # it has come within the bounds since it was asked for
        self._place(share, first)

    def _renew(self, share: Share, first: int, end: int) -> None:
        """Begin the log that has taken the name of ours."""
        share.topic_id, share.successor = share.successor, ""
        self._restart(share, share.next, first, end)

    def _restart(self, share: Share, wanted: int, first: int, end: int) -> None:
        where = {"partition": str(share.partition), "wanted": wanted, "first": first, "end": end}
        _say.error("log_restarted", effect="read from its beginning", topic_id=share.topic_id or None, **where)
        if share.began is not None:
            # Positions of the log that was deleted must move nothing in the one that took its name.
            share.is_paused = share.partition in self._owner.on_assigned([share.partition])
        self._begin_at(share, first, None, end, is_pinned=False)
