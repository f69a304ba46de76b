"""Where reading a partition begins, and where it goes on when the log has changed under its reader."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping

import structlog

from proxy.bridge.event_log import Beginning, PartitionOwner
from proxy.bridge.move import NEVER_MOVED
from proxy.model import Partition
from proxy.positions.bounds import bounds_of, ends_of
from proxy.positions.identity import Committed, Looks
from proxy.positions.kept import kept_by_leaders
from proxy.positions.port import EARLIEST, LATEST, Fetches, Group, Offsets
from proxy.positions.share import Share, Shares
from proxy.settings import LogSettings

_say = structlog.get_logger("tidegate.positions")

SETTLE_SECONDS = 1.0
"""A broker may tell a topic's new id a moment before it, or another one, has put the old log away."""
BEGUN_AT_ONCE = 400
"""Shares of an epoch that begin in one step of the loop, some milliseconds of work."""
_NOWHERE = 2**62
"""An offset at which nothing is read."""


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
        fetches: Fetches,
        offsets: Offsets,
        group: Group,
        owner: PartitionOwner,
    ) -> None:
        self._fetches = fetches
        self._offsets = offsets
        self._group = group
        self._owner = owner
        self._looks = Looks()
        self._ids: dict[Partition, str] = {}
        """Of the logs that this process has begun to read, also those that are gone by now."""
        self._noticed: dict[Partition, tuple[str, float]] = {}
        """The id of a log that has another's name, and when it was first told, by the loop's clock in seconds."""
        self._begun: set[str] = set()
        """Topics of which nothing is to be skipped, also those that are gone by now: the group has begun to read them,
        as far as this replica knows, or they did not exist when it first asked for them."""
        match settings.start:
            case "earliest":
                self._start = EARLIEST
            case "latest":
                self._start = LATEST
            case "timestamp":
                assert settings.start_timestamp is not None
                self._start = round(settings.start_timestamp.timestamp() * 1000)

    def note_missing(self, topics: Iterable[str]) -> None:
        """Begin these at their first offsets once they exist, where reading was to begin at the end: all is new."""
        if self._start == LATEST:
            self._begun.update(topics)

    def hold(self, share: Share) -> None:
        """Read nothing from the share until it is placed."""
        share.is_placed = False
        self._fetches.pause(share.partition)

    def begin(self, shares: Shares) -> None:
        """Hold all of a new epoch.

        The offset set here is never read from; it keeps the library from asking for positions itself.
        """
        for share in shares.values():
            self.hold(share)
            self._fetches.seek(share.partition, 0)

    async def attend(self, current: Callable[[], Shares]) -> bool:
        """Place what is not placed, or at an offset that the log lacks, or in a log that is gone.

        Returns whether nothing is left to do but to look at the ids again. Raises `LogError` if the log doesn't answer.
        """
        shares, now = current(), asyncio.get_running_loop().time()
        fresh = [share for share in shares.values() if share.began is None]
        astray = [share for share in shares.values() if share.unavailable is not None or share.successor]
        asked = {share.partition.topic for share in (*fresh, *astray)}
        asked |= self._looks.due(shares, now)
        # First what is committed: of a topic made anew in between it is the old one's, and known to be.
        committed, untold = await self._committed() if fresh else ({}, set())
        ids = await self._offsets.topic_ids(asked) if asked else {}
        if current() is not shares:
            return True  # that epoch has ended; the next one calls for attention itself
        for share in shares.values():
            if (share.began is None or share.partition.topic in ids) and share.partition not in untold:
                self._identify(share, committed.get(share.partition), ids.get(share.partition.topic))
        ours = [one for one in (*fresh, *astray) if one.partition not in untold and self._is_known(one, ids)]
        known = [share for share in ours if share.began is None]
        adrift = [share for share in ours if share.is_adrift]
        gone = [share for share in shares.values() if share.successor and now - share.noticed_at >= SETTLE_SECONDS]
        starts, ends = await asyncio.gather(self._starts(known, committed), ends_of(known, self._offsets))
        bounds, kept = await asyncio.gather(
            bounds_of([*adrift, *gone], self._offsets), kept_by_leaders(adrift, self._fetches, self._offsets)
        )
        if current() is not shares:
            return True
        await self._begin_all(known, starts, committed, ends, lambda: current() is not shares)
        if current() is not shares:
            return True
        for share in adrift:
            if share.is_adrift and (found := bounds.get(share.partition)) is not None and share.partition in kept:
                self._replace(share, *found, kept[share.partition])
        for share in gone:
            if (found := bounds.get(share.partition)) is not None:
                self._renew(share, *found)
        left = [one for one in shares.values() if one.began is None or one.unavailable is not None or one.successor]
        return not left

    async def _committed(self) -> tuple[dict[Partition, Committed], set[Partition]]:
        """Return what is committed, and of what it can't be told: begun like the rest, all of that would come again."""
        told = await self._group.committed()
        return {at: one for at, one in told.items() if one is not None}, {at for at, one in told.items() if one is None}

    @staticmethod
    def _is_known(share: Share, ids: Mapping[str, str]) -> bool:
        return share.partition.topic in ids and not share.successor

    def _identify(self, share: Share, committed: Committed | None, told: str | None) -> None:
        """Compare the id that the topic has now with that of the log we know; None or empty: it can't be told now."""
        if share.began is None and committed is not None:
            share.topic_id, share.next, share.move = committed.topic_id, committed.offset, committed.move
        if not told:
            return
        if not share.topic_id:
            share.topic_id = told
        if told == share.topic_id:
            self._return(share)
        elif told != share.successor:
            share.successor = told
            share.noticed_at = self._first_told(share.partition, told)
            # Kafka forgets what was committed in a deleted topic; whoever takes over shall not begin at the end.
            share.is_pinned = self._start != LATEST
            self.hold(share)
            self._fetches.seek(share.partition, _NOWHERE)  # so that an answer still on its way is dropped

    def _first_told(self, partition: Partition, topic_id: str) -> float:
        """Return since when the partition's topic is told to be another; a rebalance does not begin it anew."""
        known, since = self._noticed.get(partition, ("", 0.0))
        if known != topic_id:
            since = asyncio.get_running_loop().time()
            self._noticed[partition] = topic_id, since
        return since

    def _return(self, share: Share) -> None:
        """Go on in the log of ours if another was said to have its name: a broker was behind the others."""
        self._noticed.pop(share.partition, None)
        if share.successor:
            share.successor = ""
            if share.began is not None and share.unavailable is None:
                self._place(share, share.next)

    async def _starts(
        self, shares: Collection[Share], committed: Mapping[Partition, Committed]
    ) -> dict[Partition, int]:
        """Those that the log can't tell of now are left out."""
        self._begun |= {at.topic for at in committed}
        wanted = {share.partition for share in shares}
        times = {at: EARLIEST if at.topic in self._begun else self._start for at in wanted - committed.keys()}
        found = await self._offsets.offsets(times) if times else {}
        return {**found, **{at: committed[at].offset for at in wanted & committed.keys()}}

    async def _begin_all(
        self,
        shares: Collection[Share],
        starts: Mapping[Partition, int],
        committed: Mapping[Partition, Committed],
        ends: Mapping[Partition, int],
        is_over: Callable[[], bool],
    ) -> None:
        """Begin each whose start is known, as long as the epoch is not over."""
        for number, share in enumerate(shares):
            if number and number % BEGUN_AT_ONCE == 0:
                await asyncio.sleep(0)
                if is_over():
                    return
            at = share.partition
            if (start := starts.get(at)) is not None:
                is_pinned = at in committed or self._start == EARLIEST
                self._begin_at(share, start, committed.get(at), ends.get(at), is_pinned=is_pinned)

    def _begin_at(
        self,
        share: Share,
        offset: int,
        committed: Committed | None,
        end: int | None,
        *,
        is_pinned: bool,
        again: int | None = None,
    ) -> None:
        known = committed if committed is not None and committed.topic_id in {"", share.topic_id} else None
        before = self._ids.get(share.partition)
        if committed is None and before and share.topic_id and before != share.topic_id:
            self._say_restarted(share, first=offset, end=end)
        self._ids[share.partition] = share.topic_id
        self._owner.on_begun(share.partition, Beginning(share.topic_id, offset, known and known.offset, end, again))
        self._begun.add(share.partition.topic)
        self._fetches.believe(share.partition, known and known.leader_epoch, offset)
        share.began = share.done = offset
        share.gap, share.is_pinned = range(0), is_pinned
        self._place(share, offset)

    def halt(self, share: Share) -> None:
        """Read nothing more of a share that is to be moved, or begun anew."""
        self.hold(share)
        self._fetches.seek(share.partition, _NOWHERE)  # so that an answer still on its way is dropped

    def go_on(self, share: Share) -> None:
        """Begin a new epoch of a share where its move has taken it; no await happens before the pause."""
        assert share.moving is not None
        again, share.moving = share.moving.done, None
        share.is_paused = share.partition in self._owner.on_assigned([share.partition])
        committed = Committed(share.done, share.topic_id, share.move)
        self._begin_at(share, share.done, committed, None, is_pinned=True, again=again)

    def begin_anew(self, share: Share) -> None:
        """Begin a new epoch of a share where it is done with; no await happens before the pause."""
        share.is_let_go = False
        share.is_paused = share.partition in self._owner.on_assigned([share.partition])
        self._begin_at(share, share.done, Committed(share.done, share.topic_id, share.move), None, is_pinned=True)

    def _place(self, share: Share, offset: int) -> None:
        share.next = offset
        share.unavailable = None
        share.is_placed = True
        self._fetches.seek(share.partition, offset)
        if not share.is_paused:
            self._fetches.resume(share.partition)

    def _replace(self, share: Share, first: int, end: int, kept: int | None) -> None:
        """Go on at the first offset there is, and tell what that skips; go back to where its last leader ended."""
        wanted = share.unavailable
        assert wanted is not None
        self._fetches.trust(share.partition)
        if wanted < first:
            where = {"partition": str(share.partition), "wanted": wanted, "first": first, "end": end}
            if share.skip(first):
                share.is_pinned = False
            # Offsets, not records: whether compaction or a transaction's end had left gaps there, nobody can tell now.
            _say.error("log_truncated", lost_at_most=first - wanted, **where)
            self._owner.on_truncated(share.partition, first - wanted, first)
        elif kept is not None and kept < wanted:
            where = {"partition": str(share.partition), "wanted": wanted, "kept": kept, "first": first, "end": end}
            _say.error("log_cut_back", effect="what has taken the place of lost events is read", **where)
            self._begin_over(share, max(kept, first), end)
            return
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
        self._say_restarted(share, wanted=wanted, first=first, end=end)
        self._begin_over(share, first, end)

    def _begin_over(self, share: Share, first: int, end: int) -> None:
        """Begin anew where positions mean other events than before."""
        self._ids[share.partition] = share.topic_id
        share.move, share.moving, share.is_let_go = NEVER_MOVED, None, False
        if share.began is not None:
            # Positions of the log that was deleted must move nothing in the one that took its name.
            share.is_paused = share.partition in self._owner.on_assigned([share.partition])
        self._begin_at(share, first, None, end, is_pinned=False)

    @staticmethod
    def _say_restarted(share: Share, **where: int | None) -> None:
        at, topic_id = str(share.partition), share.topic_id or None
        _say.error("log_restarted", effect="read from its beginning", topic_id=topic_id, partition=at, **where)
