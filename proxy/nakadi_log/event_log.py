"""`EventLog` over Nakadi: a subscription and a stream for each event type (docs/design/0061-a-second-log.md)."""

import asyncio
import contextlib
from collections.abc import Collection, Mapping

import aiohttp
import structlog

from proxy.access import Access, nakadi_access
from proxy.bridge.event_log import Extent, PartitionOwner, Standing, Survey
from proxy.bridge.move import Move
from proxy.errors import AssignmentLostError, LogError
from proxy.model import Event, Partition, Position, Retention
from proxy.nakadi_log.around import Around
from proxy.nakadi_log.bus import FORBIDDEN, NOT_FOUND, Bus
from proxy.nakadi_log.commits import Commits
from proxy.nakadi_log.endings import Endings
from proxy.nakadi_log.event_types import EventTypes
from proxy.nakadi_log.heard import Heard
from proxy.nakadi_log.progress import Progress
from proxy.nakadi_log.reach import Reach
from proxy.nakadi_log.readers import Readers
from proxy.nakadi_log.session import Session, Share
from proxy.nakadi_log.window import FIRST
from proxy.settings import Limits, LogSettings

_say = structlog.get_logger("tidegate.nakadi")

_FRESH_SECONDS = 1.0
"""What Nakadi said within so long proves that it is there, unasked."""


class NakadiLog:
    """A consumer group's view of Nakadi; see `EventLog` for what each method promises."""

    def __init__(
        self,
        settings: LogSettings,
        limits: Limits,
        *,
        access: Access | None = None,
        connector: aiohttp.BaseConnector | None = None,
        first_window: int = FIRST,
    ) -> None:
        """Make one; without `access` it shows what `settings.nakadi` names, without `connector` it makes its own.

        A type's first stream is sent `first_window` events ahead of what is committed.
        """
        assert settings.nakadi is not None
        self._settings = settings
        self._first_window = first_window
        self._limits = limits
        self._nakadi = settings.nakadi
        self._reach = Reach(settings.nakadi.url)
        self._bus = Bus(settings.nakadi.url, access or nakadi_access(settings.nakadi), connector)
        self._types = EventTypes(self._bus, within=settings.answer_deadline)
        self._owned: dict[Partition, tuple[Session, Share]] = {}
        self._readers = Readers()
        self._new_topics = set[str]()
        self._stopped = False
        self._around: Around
        self._endings: Endings
        self._heard = Heard()
        self._commits = Commits(self._bus, self._heard, self._readers.on_taken, within=limits.commit_deadline)
        self._progress = Progress(
            self._bus, self._heard, self._readers.by_topic, self._owned, within=settings.answer_deadline
        )

    async def start(self, owner: PartitionOwner) -> None:
        """Wait until Nakadi answers, however long that takes; cancelled or failed, it leaves nothing open.

        Raises `RefusedLoginError` if it refuses the token, or asks for one.
        """
        try:
            await self._reach.reached(self._types.all)
        except BaseException:
            await self._bus.close()
            raise
        limits = self._limits
        self._endings = Endings(owner, self._owned, self._commit_last)
        self._around = Around(
            bus=self._bus,
            settings=self._settings,
            nakadi=self._nakadi,
            window=limits.uncommitted_events,
            first_window=self._first_window,
            line_bytes=min(self._settings.batch_bytes, self._settings.fetch_bytes),
            event_bytes=self._settings.batch_bytes,
            owner=owner,
            owned=self._owned,
            endings=self._endings,
            reach=self._reach,
            fresh={},
            stirred=asyncio.Event(),
            new_topics=self._new_topics,
            compacted=self._types.compacted,
            created=self._types.created,
            heard=self._heard,
        )
        self._readers.begin(self._around)

    async def survey(self, wanted: Collection[str]) -> Survey:
        """Ask which event types exist; one that could not be read lately is refused."""
        self._raise_stopped()
        there = frozenset(await self._types.all())
        missing = frozenset(set(wanted) - there)
        self._new_topics |= missing
        refused = self._readers.refused(FORBIDDEN)
        return Survey(there - refused, missing, refused & frozenset(wanted))

    async def subscribe(self, topics: frozenset[str]) -> None:
        """Read these event types and no others; streams of those that stay go on."""
        for topic in await self._readers.read(topics):
            self._progress.forget(topic)

    async def poll(self, wait: float) -> Mapping[Partition, list[Event]]:
        """Return all that was read so far of what is not paused."""
        if (failure := self._readers.failure) is not None:
            raise failure
        if self._stopped or not self._readers.is_begun:
            await asyncio.sleep(wait)
            return {}
        around = self._around
        if around.fresh:
            await asyncio.sleep(0)
        else:
            around.stirred.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await around.stirred.wait()
        return self._handed_out()

    def _handed_out(self) -> dict[Partition, list[Event]]:
        taken: dict[Partition, list[Event]] = {}
        fresh = list(self._around.fresh)
        self._around.fresh.clear()
        for share in fresh:
            at = share.partition
            if share.is_paused or not share.ready or self._owned.get(at, (None, None))[1] is not share:
                continue
            taken[at], share.ready, share.ready_bytes = share.ready, [], 0
        self._readers.wake(at.topic for at in taken)
        return taken

    def pause(self, partitions: Collection[Partition]) -> None:
        """Hand out nothing more of the partitions; a stream of which nothing is wanted is closed after 3 s."""
        for at in partitions:
            if at in self._owned:
                self._owned[at][1].is_paused = True

    def resume(self, partitions: Collection[Partition]) -> None:
        """Go on with the partitions."""
        for at in partitions:
            if at in self._owned:
                share = self._owned[at][1]
                share.is_paused = False
                if share.ready:
                    self._around.fresh[share] = None
                    self._around.stirred.set()
                self._readers.wake((at.topic,))

    async def commit(self, positions: Mapping[Partition, Position | None]) -> Mapping[Partition, int]:
        """Commit, one request for each event type, the batches that are done with as a whole.

        Left out is also what is done of a batch that is not done with yet, and what has to wait for its turn.
        """
        if self._readers.are_beyond_hope():
            return {}
        wanted = {
            at: (*self._owned[at], done) for at, done in positions.items() if at in self._owned and done is not None
        }
        sessions = {session for session, _ in self._owned.values()}
        taken = await self._commits.commit(wanted)
        if sessions and all(session.is_lost for session in sessions):
            raise AssignmentLostError("Nakadi takes no commit of any stream any more")
        told = {at: place for at, place in taken.items() if at in self._owned}
        for at, place in told.items():
            wanted[at][1].told = place
        return told

    async def _commit_last(
        self, wanted: Mapping[Partition, tuple[Session, Share, Position]]
    ) -> Mapping[Partition, int]:
        try:
            return await self._commits.commit(wanted, is_last=True)
        except LogError as error:
            _say.warning("final_commit_failed", partitions=len(wanted), why=str(error), effect="duplicates")
            raise

    def move(self, wanted: Mapping[Partition, Move]) -> Collection[Partition]:  # noqa: ARG002 -- the port's
        """Return none: there is no board, so nobody asks; a cursor that others move is read where it stands."""
        return ()

    def renew(self, topics: Collection[str]) -> None:
        """Close the streams of these event types: the next ones begin where they are done with."""
        for topic in topics:
            if topic in self._readers.by_topic:
                self._readers.by_topic[topic].renew()

    def place(self, position: Position) -> int:
        """Return where a position stands: the number that its offset says."""
        assert isinstance(position, int)
        return position

    def member(self) -> str:
        """Return nothing: Nakadi knows streams, not replicas."""
        return ""

    async def affirm(self) -> bool:
        """Tell whether all that is held is ours still, by what came over the streams, or by a question."""
        held = [*(session for session, _ in self._owned.values()), *self._endings.ending.values()]
        if held and all(session.is_lost for session in held):
            raise AssignmentLostError("Nakadi takes no commit of any stream any more")
        if not held or self._readers.are_beyond_hope():
            return False
        now = asyncio.get_running_loop().time()
        if now - self._around.proven_at < _FRESH_SECONDS:
            return True
        path = f"/subscriptions/{held[0].subscription}/cursors"
        try:
            await self._bus.ask("GET", path, within=self._limits.commit_deadline)
        except LogError:
            return False
        self._around.proven_at = now
        return bool(self._owned or self._endings.ending)

    async def lags(self, done: Mapping[Partition, Position | None]) -> Mapping[Partition, int]:
        """Ask some subscriptions for what is not committed; of the others tell what was said last.

        What was given up and has not begun again is told, too, until another replica has it.
        """
        return {} if self._stopped else await self._progress.lags(done)

    def doubts_topics(self) -> bool:
        """Return whether an event type that is read is gone or refused."""
        return bool(self._readers.refused(FORBIDDEN, NOT_FOUND))

    def standing(self) -> Mapping[Partition, Standing]:
        """Return none: what has no stream has no partitions, and why is said as it happens."""
        return {}

    def outside(self) -> str | None:
        """Return why Nakadi can't be reached; None: it can."""
        return None if self._stopped else self._reach.why

    async def progress(self) -> Mapping[Partition, int]:
        """Tell what others committed, some of it asked for now; of the rest what was said last."""
        self._raise_stopped()
        committed = await self._progress.committed()
        ours = self._owned.keys() | self._endings.ending.keys()
        return {at: place for at, place in committed.items() if at not in ours}

    async def extents(self, topics: Collection[str]) -> Mapping[Partition, Extent]:
        """Tell how far the group has come, some of it asked for now; of the rest what was said last."""
        self._raise_stopped()
        return await self._progress.extents(topics)

    async def retention(self, topics: Collection[str]) -> Mapping[str, Retention | None]:
        """Ask for all event types at once."""
        self._raise_stopped()
        told = await self._types.all()
        return {topic: told[topic] for topic in topics if topic in told}

    async def firsts(self, partitions: Collection[Partition]) -> Mapping[Partition, int]:
        """Ask for the partitions of each event type."""
        self._raise_stopped()
        return await self._types.firsts(partitions)

    async def stop(self) -> None:
        """Close every stream; commits nothing. What was sent and is not committed is others' after the timeout."""
        if self._stopped:
            return
        self._stopped = True
        await self._readers.stop()
        self._owned.clear()
        await self._bus.close()

    # -- within -------------------------------------------------------------------------------------------------------

    def _raise_stopped(self) -> None:
        if self._stopped:
            raise LogError("the log has been left")
