"""Commits: one request for each subscription, so many a second at most, those that wait longest first."""

import asyncio
from collections.abc import Callable, Mapping
from typing import NamedTuple

from proxy.errors import LogError
from proxy.model import Partition, Position
from proxy.nakadi_log.bus import FORBIDDEN, NOT_FOUND, UNPROCESSABLE, Bus, RefusedError
from proxy.nakadi_log.heard import Heard
from proxy.nakadi_log.session import Sent, Session, Share

PER_SECOND = 200
"""Requests: beyond 100 types that commit all the time each waits longer. Larger: more CPU; smaller: more duplicates."""
AT_ONCE = 8


class _Due(NamedTuple):
    share: Share
    sent: Sent


class Commits:
    """Asks within `within` seconds each; `on_taken` is called with each stream of which a commit was taken."""

    def __init__(self, bus: Bus, heard: Heard, on_taken: Callable[[Session], None], *, within: float) -> None:
        self._bus = bus
        self._heard = heard
        self._on_taken = on_taken
        self._within = within
        self._left = float(PER_SECOND)
        self._counted_at: float | None = None

    async def commit(
        self, wanted: Mapping[Partition, tuple[Session, Share, Position]], *, is_last: bool = False
    ) -> dict[Partition, int]:
        """Commit the batches that are done with as a whole; return of what that was taken, and up to where.

        Those of a last commit all go, and what was taken before without the owner's being told is told. Raises
        `LogError` if none was answered.
        """
        due: dict[Session, list[_Due]] = {}
        taken: dict[Partition, int] = {}
        for session, share, position in wanted.values():
            sent = share.border(position) if isinstance(position, int) and not session.is_lost else None
            if sent is not None:
                due.setdefault(session, []).append(_Due(share, sent))
            elif is_last and share.done > share.told:  # it was answered when the partition had ended
                taken[share.partition] = share.done
        sessions = sorted(due, key=lambda one: one.held_since() or 0.0)
        if not is_last:
            sessions = sessions[: self._allowed(len(sessions))]
        failures: list[LogError] = []
        for start in range(0, len(sessions), AT_ONCE):
            some = sessions[start : start + AT_ONCE]
            answers = await asyncio.gather(*(self._one(one, due[one], taken) for one in some))
            failures += [error for error in answers if error is not None]
        if failures and not taken:
            raise failures[0]
        return taken

    def _allowed(self, asked: int) -> int:
        now = asyncio.get_running_loop().time()
        if self._counted_at is not None:
            self._left = min(float(PER_SECOND), self._left + (now - self._counted_at) * PER_SECOND)
        self._counted_at = now
        allowed = min(asked, int(self._left))
        self._left -= allowed
        return allowed

    async def _one(self, session: Session, due: list[_Due], taken: dict[Partition, int]) -> LogError | None:
        """Commit for one stream; return why it was not answered, if so."""
        now = asyncio.get_running_loop().time()
        for share, sent in due:
            session.claim(share, sent, now)
        items = [
            {
                "event_type": sent.cursor.event_type,
                "partition": sent.cursor.partition,
                "offset": sent.cursor.offset,
                "cursor_token": sent.cursor.cursor_token,
            }
            for _, sent in due
        ]
        path = f"/subscriptions/{session.subscription}/cursors"
        try:
            await self._bus.ask("POST", path, {"items": items}, within=self._within, stream_id=session.stream_id)
        except RefusedError as error:
            if error.status in {FORBIDDEN, NOT_FOUND, UNPROCESSABLE}:
                session.is_lost = True
                self._on_taken(session)
                return None
            return error
        except LogError as error:
            return error
        for share, sent in due:
            self._heard.committed(sent.cursor.event_type, sent.cursor.partition, sent.cursor.offset)
            taken[share.partition] = session.settle(share, sent, asyncio.get_running_loop().time())
        self._on_taken(session)
        return None
