"""What one stream has sent and what of it is committed: batches, borders, the window, how long each is held. Pure.

Nakadi ends a stream that leaves a batch uncommitted for a time after it was sent. When that was nobody tells;
but it sends no more than `window` events ahead of what is committed, and nothing waits in the connection when a read
has to wait for more. So a batch was not sent before the last such read, nor before the commit that made room for it.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from proxy.model import Event, Partition
from proxy.nakadi_log.lines import Batch, Cursor

_MOMENT = 0.5
"""Seconds."""
_MOMENTS = 128
"""Kept: a minute of them at least, the longest commit timeout."""
_IDLE = 1.0
"""Seconds; who waits for less has something to do all the time."""


class Sent(NamedTuple):
    """A batch that is not committed."""

    cursor: Cursor
    place: int
    """Of its last event."""
    events: int
    after: float
    """It was not sent before."""


class Pace(NamedTuple):
    """How quickly events are settled."""

    settled: int
    seconds: float


@dataclass(slots=True, eq=False)
class Share:
    """One partition in one stream."""

    partition: Partition
    next: int
    """Where the next event should stand."""
    is_paused: bool
    seen_at: float
    """When the stream last said anything of it."""
    done: int
    """Everything before it is committed."""
    batches: deque[Sent] = field(default_factory=deque)
    ready: list[Event] = field(default_factory=list)
    """Read, and not handed out yet."""
    ready_bytes: int = 0
    claimed: int = -1
    """Commits up to this place have been asked for."""
    told: int = field(init=False)
    """Before which place the owner knows that everything is committed."""

    def __post_init__(self) -> None:
        """Begin where everything before is known to be done."""
        self.told = self.done

    def border(self, position: int) -> Sent | None:
        """Return the last batch that is done with as a whole if everything up to a place is; None: no new one."""
        found = None
        for sent in self.batches:
            if sent.place > position:
                break
            found = sent
        return found


class Session:
    """One stream, from its first line to the commit of its last; every `now` is the loop's clock, in seconds."""

    def __init__(self, subscription: str, stream_id: str, window: int, now: float, limit: int | None = None) -> None:
        self.subscription = subscription
        self.stream_id = stream_id
        self.window = window
        self.limit = limit
        """Events after which Nakadi ends it; None: not so."""
        self.opened_at = now
        self.shares: dict[Partition, Share] = {}
        self.read = 0
        """Events in all."""
        self.committed = 0
        """Events whose commit was taken."""
        self._given_up = 0
        self.is_lost = False
        """It takes no commit any more."""
        self.left_since: float | None = None
        """Once partitions were given up: since when what was not committed of them may have been held."""
        self._asked = 0
        """Events whose commit was asked for."""
        self._marks: deque[tuple[int, float]] = deque()
        """`_asked`, and since when."""
        self._empty_at = now
        self.was_full = False
        """All that may be sent was sent, and most of it not committed: how fast it goes is its owner's doing."""
        self._busy = (now, 0)
        """Since when there is always something to commit, and what was committed then."""
        self._settled: deque[tuple[float, int]] = deque(maxlen=_MOMENTS)
        """When commits were taken since then, and `committed` after each; those of a moment together."""
        self._settled_at = now

    def on_empty(self, now: float) -> None:
        """Note that everything sent has been read: a read has to wait."""
        self._empty_at = now

    def take(self, share: Share, batch: Batch, now: float) -> None:
        """Count a batch in, and what it says of its partition."""
        share.seen_at = now
        count = len(batch.events)
        share.next = max(share.next, batch.place + 1)
        if not count:
            return
        if not self.outstanding and now - self._settled_at >= _IDLE:
            self._busy = now, self.committed
            self._settled.clear()
        share.batches.append(Sent(batch.cursor, batch.place, count, self._sent_after(self.read + 1)))
        share.ready += batch.events
        share.ready_bytes += batch.size
        self.read += count
        self.was_full |= self.is_full or (self.is_spent and 2 * self.outstanding >= self.window)

    def _sent_after(self, number: int) -> float:
        """Return since when the so manieth event may have been sent at the earliest."""
        wanted = number - self.window
        while len(self._marks) > 1 and self._marks[0][0] < wanted:
            self._marks.popleft()
        made_room = self._marks[0][1] if wanted > 0 and self._marks else self.opened_at
        return max(self._empty_at, made_room)

    @property
    def outstanding(self) -> int:
        """Events read that are not committed."""
        return self.read - self.committed - self._given_up

    @property
    def is_full(self) -> bool:
        """Whether nothing more can have been sent than was read, since not even a commit on its way makes room."""
        return self.read - self._asked >= self.window

    @property
    def is_spent(self) -> bool:
        """Whether all was read that this stream is ever sent."""
        return self.limit is not None and self.read >= self.limit

    def held_since(self) -> float | None:
        """Return since when the batch that is held longest may have been held; None: none is."""
        return min((share.batches[0].after for share in self.shares.values() if share.batches), default=None)

    def claim(self, share: Share, sent: Sent, now: float) -> None:
        """Note that a commit up to a batch is asked for: from now on there may be room."""
        fresh = sum(each.events for each in share.batches if share.claimed < each.place <= sent.place)
        if fresh:
            share.claimed = sent.place
            self._asked += fresh
            self._marks.append((self._asked, now))

    def settle(self, share: Share, sent: Sent, now: float) -> int:
        """Note that a commit up to a batch was taken; return before which place all is done with."""
        while share.batches and share.batches[0].place <= sent.place:
            self.committed += share.batches.popleft().events
        self._settled_at = now
        if self._settled and now - self._settled[-1][0] < _MOMENT:
            self._settled[-1] = self._settled[-1][0], self.committed
        else:
            self._settled.append((now, self.committed))
        share.done = max(share.done, sent.place + 1)
        return share.done

    def pace(self, now: float, within: float) -> Pace:
        """Return how many events were settled in the last seconds that something was not, and in how many seconds."""
        if not self.outstanding:
            now = self._settled_at  # from then on there was nothing to settle
        while len(self._settled) > 1 and self._settled[1][0] <= now - within:
            self._settled.popleft()
        since, before = self._busy
        if self._settled and self._settled[0][0] <= now - within:
            since, before = self._settled[0]
        return Pace(self.committed - before, now - since)

    def drop(self, share: Share) -> None:
        """Give up a partition and what is held of it."""
        if share.batches:
            after = share.batches[0].after
            self.left_since = after if self.left_since is None else min(self.left_since, after)
        del self.shares[share.partition]
        self._given_up += sum(sent.events for sent in share.batches)

    def ready(self) -> Iterator[Share]:
        """Yield the partitions of which something can be handed out now."""
        for share in self.shares.values():
            if share.ready and not share.is_paused:
                yield share
