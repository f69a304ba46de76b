"""One event type: its subscription, and one stream after another.

open ─► read ─┬─ the stream ended, or all was read that it is ever sent, or it was paused for seconds with nothing more
              ▼  on its way: the connection closes
            hold ── until all that was read is committed, or a batch was held for too long: its partitions end, then
              ▼     what still waits of them is dropped: the log has it
             end ── last commit; the next stream, with a window that fits (`window`)

There is no pause: who is held back reads nothing, then has no stream. Nobody else gets its partitions before all that
it was sent is committed, or the commit timeout has passed; it doesn't ask again before either.
"""

import asyncio
import contextlib
from typing import TYPE_CHECKING
from zlib import crc32

import aiohttp
import structlog

from proxy.errors import LogError
from proxy.nakadi_log.around import Around
from proxy.nakadi_log.bus import CONFLICT, NOT_FOUND, RefusedError
from proxy.nakadi_log.lines import BadLineError, Batch, Lines, LongLineError, batch
from proxy.nakadi_log.pieces import next_piece
from proxy.nakadi_log.reach import FIRST_PAUSE, LONGEST_PAUSE
from proxy.nakadi_log.session import Pace, Session, Share
from proxy.nakadi_log.shares import share_of
from proxy.nakadi_log.subscription import stream_path, subscribed, subscribed_anew
from proxy.nakadi_log.window import HOLD_SHARE, Window

if TYPE_CHECKING:
    from proxy.model import Partition

_say = structlog.get_logger("tidegate.nakadi")

PAUSED_SECONDS = 3.0
"""A stream of which nothing is wanted for so long is closed, unless there may be more of it on its way: nobody could
commit that, and the next stream would wait for it. That one is held until a batch is held for too long."""
KEPT_BYTES = 256 * 1024
"""Of paused partitions, read beside others of their stream: beyond that the stream is not read."""
_SILENCES = 4.0
_LEAST_SILENCE = 4.0
"""A stream, or a partition of one, of which nothing was heard for so many batch waits, and seconds, is gone."""
_KNOWING_SECONDS = 1.5 * LONGEST_PAUSE
"""So long one that does not know how far the group has come leaves it to others to make a subscription anew."""
_WITHOUT_PARTITIONS = 120.0
"""Seconds after which a stream that never got one is opened anew: nothing says that its connection still is one."""


class Reader:
    """Reads one event type until its task is cancelled; then whoever cancels it ends its partitions."""

    def __init__(self, event_type: str, around: Around) -> None:
        self.event_type = event_type
        self.subscription: str | None = None
        """Its id; None until it is known."""
        self.session: Session | None = None
        """From a stream's opening until its partitions have ended."""
        self.refusal: RefusedError | None = None
        """Why it is not read now."""
        self._around = around
        self._created_at: str | None = None
        self._was_subscribed = False
        self.left: dict[Partition, str] = {}
        """Partitions that were given up and have not begun again, by the stream that had them."""
        self._window = Window(around.first_window, around.window)
        self._batch_events = around.nakadi.batch_events
        self._reading: asyncio.Task[None] | None = None
        self._room = asyncio.Event()
        self._turn = asyncio.Event()
        self._blocked_since: float | None = None
        self._heard_at = 0.0
        self._is_renewed = False
        """The stream under way is the last one of its settings."""

    def wake(self) -> None:
        """Look again whether more is wanted, and whether all is committed."""
        self._room.set()
        self._turn.set()

    def renew(self) -> None:
        """Read nothing more, and begin the partitions anew once all that was read is committed, or dropped."""
        if self.session is not None:
            self._is_renewed = True
            self._stop_reading()
            self.wake()

    def look(self, now: float) -> None:
        """Close a stream that is held back, or silent, or of which a batch was held for long enough. Asks nobody."""
        session, around = self.session, self._around
        if session is None or self._reading is None:
            return
        if self._blocked_since is not None:
            in_vain = session.outstanding and not (session.is_full or session.is_spent)
            if now - self._blocked_since >= PAUSED_SECONDS and not in_vain:
                self._stop_reading()
        elif now - self._heard_at >= (self._silence if session.shares else _WITHOUT_PARTITIONS):
            _say.info("stream_silent", event_type=self.event_type, effect="opened anew")
            self._stop_reading()
        if self._is_overdue(session, now):
            self._stop_reading()
        for share in list(session.shares.values()):
            is_gone = now - share.seen_at >= self._silence and share.seen_at < self._heard_at
            if is_gone and not share.batches and share.partition in around.owned:
                task = asyncio.ensure_future(around.endings.end(session, [share]))
                task.add_done_callback(lambda _: None)

    @property
    def _silence(self) -> float:
        return max(_LEAST_SILENCE, _SILENCES * self._around.nakadi.batch_wait)

    def _is_overdue(self, session: Session, now: float, share: float = HOLD_SHARE) -> bool:
        since = session.held_since()
        return since is not None and now - since >= share * self._around.nakadi.commit_timeout

    def is_beyond_hope(self, now: float) -> bool:
        """Return whether Nakadi may have given away what this one holds."""
        return self.session is not None and self._is_overdue(self.session, now, 0.9)

    async def run(self) -> None:
        """Read until cancelled."""
        pause = FIRST_PAUSE
        while True:
            try:
                if self.subscription is None:
                    self.subscription = await self._subscribe()
                wait = await self._stream(self.subscription)
            except RefusedError as error:
                self._on_refused(error)
            except LogError as error:
                self._around.reach.lost(str(error))
            else:
                pause = FIRST_PAUSE
                if wait > 0:
                    await asyncio.sleep(wait)
                continue
            await asyncio.sleep(pause * (0.75 + crc32(self.event_type.encode()) / 2**33))
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _subscribe(self) -> str:
        around = self._around
        if self._was_subscribed:
            if not around.heard.offsets(self.event_type):
                await asyncio.sleep(_KNOWING_SECONDS)
            name = await subscribed_anew(self.event_type, self._created_at, around)
        else:
            name = await subscribed(self.event_type, around)
        # As of the last look: one that was made anew since then looks like another later on, and is read as a whole.
        self._created_at = around.created.get(self.event_type)
        self._was_subscribed = True
        return name

    def _on_refused(self, error: RefusedError) -> None:
        if error.status == CONFLICT:
            self.refusal = None  # others have all partitions, or cursors are being moved
            return
        if error.status == NOT_FOUND:
            self.subscription = None
        if self.refusal is None or self.refusal.status != error.status:
            _say.warning("event_type_unread", event_type=self.event_type, why=str(error), effect="tried again")
        self.refusal = error

    async def _stream(self, subscription: str) -> float:
        """Read one stream to its end; return in how many seconds the next one may begin."""
        around, loop = self._around, asyncio.get_running_loop()
        clock = loop.time
        window, ends_after = self._window.events, self._window.limit
        batch_events = 1 if self.event_type in around.compacted else min(self._batch_events, window)
        path = stream_path(subscription, around.nakadi, batch_events, window, ends_after)
        opened = contextlib.AsyncExitStack()
        async with opened:
            async with around.openings:
                within = around.settings.answer_deadline
                response = await opened.enter_async_context(around.bus.stream(path, within=within))
            stream_id = response.headers.get("X-Nakadi-StreamId", "")
            session = self.session = Session(subscription, stream_id, window, clock(), ends_after)
            around.reach.found()
            self.refusal = None
            around.proven_at = self._heard_at = clock()
            self._blocked_since, self._is_renewed = None, False
            self._reading = asyncio.create_task(self._read(response, session), name=f"nakadi-stream {self.event_type}")
            try:
                await asyncio.wait({self._reading})
            finally:
                reading, self._reading = self._reading, None
                if not reading.done():
                    reading.cancel()
                    await asyncio.wait({reading})
        if not reading.cancelled() and (error := reading.exception()) is not None:
            self._on_broken(error)
        is_overdue = await self._hold(session)
        timeout = around.nakadi.commit_timeout
        pace, committed_before = session.pace(clock(), timeout * HOLD_SHARE), session.committed
        self.left |= dict.fromkeys(session.shares, session.stream_id)
        await around.endings.end(session, list(session.shares.values()))
        self.session = None
        pace = Pace(pace.settled + session.committed - committed_before, pace.seconds)
        self._window.learn(session, pace, timeout=timeout, is_overdue=is_overdue)
        since = session.left_since
        return 0.0 if since is None else since + timeout - clock()

    # -- reading ------------------------------------------------------------------------------------------------------

    async def _read(self, response: aiohttp.ClientResponse, session: Session) -> None:
        """Take in what comes until nothing more does, or nothing more should."""
        around, clock = self._around, asyncio.get_running_loop().time
        single = self._batch_events == 1 or self.event_type in around.compacted
        lines = Lines(around.event_bytes if single else around.line_bytes)
        while True:
            while not self._wants_more(session):
                if self._blocked_since is None:
                    self._blocked_since = clock()
                self._room.clear()
                await self._room.wait()
            self._blocked_since = None
            piece = await next_piece(response.content, session)
            if piece is None:
                return
            if not piece:
                continue
            now = clock()
            around.proven_at = self._heard_at = now
            for line in lines.feed(piece):
                told = batch(line)
                if told is None:
                    continue
                share = await share_of(session, self.event_type, told, around)
                self.left.pop(share.partition, None)
                self._take(session, share, told, now)
            if session.is_spent:
                return

    def _wants_more(self, session: Session) -> bool:
        shares = session.shares.values()
        if not shares:
            return True
        kept, all_paused = 0, True
        for share in shares:
            if share.is_paused:
                kept += share.ready_bytes
            elif share.ready:
                return False  # it is handed out first
            else:
                all_paused = False
        return not all_paused and kept < KEPT_BYTES

    def _take(self, session: Session, share: Share, told: Batch, now: float) -> None:
        around = self._around
        session.take(share, told, now)
        if told.events:
            around.fresh[share] = None
            around.stirred.set()

    def _on_broken(self, error: BaseException) -> None:
        match error:
            case LongLineError() if self._batch_events > 1 and self.event_type not in self._around.compacted:
                self._batch_events = max(1, self._batch_events // 4)
            case LongLineError():
                _say.error(
                    "event_too_long", event_type=self.event_type, effect="it stands still", see="log.batch_bytes"
                )
            case BadLineError():
                _say.error("stream_unreadable", event_type=self.event_type, why=str(error), effect="opened anew")
            case LogError():
                self._around.reach.lost(str(error))
            case aiohttp.ClientError() | OSError():
                pass  # a connection that is lost: the next one tells
            case _:
                raise error

    def _stop_reading(self) -> None:
        if self._reading is not None:
            self._reading.cancel()

    # -- holding ------------------------------------------------------------------------------------------------------

    async def _hold(self, session: Session) -> bool:
        """Wait until all that was read is committed and more is wanted; return whether it was held for too long."""
        clock = asyncio.get_running_loop().time
        limit = HOLD_SHARE * self._around.nakadi.commit_timeout
        while not session.is_lost:
            since = session.held_since()
            is_paused = bool(session.shares) and all(share.is_paused for share in session.shares.values())
            if since is None and (self._is_renewed or not is_paused):
                return False
            left = None if since is None else since + limit - clock()
            if left is not None and left <= 0:
                return True
            self._turn.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._turn.wait()
        return False
