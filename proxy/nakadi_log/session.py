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


class Sent(NamedTuple):
    """A batch that is not committed."""

    cursor: Cursor
    place: int
    """Of its last event."""
    count: int
    after: float
    """It was not sent before."""


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

    def __init__(self, subscription: str, stream_id: str, window: int, now: float) -> None:
        self.subscription = subscription
        self.stream_id = stream_id
        self.window = window
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
        share.batches.append(Sent(batch.cursor, batch.place, count, self._sent_after(self.read + 1)))
        share.ready += batch.events
        share.ready_bytes += batch.size
        self.read += count

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

    def held_since(self) -> float | None:
        """Return since when the batch that is held longest may have been held; None: none is."""
        return min((share.batches[0].after for share in self.shares.values() if share.batches), default=None)

    def claim(self, share: Share, sent: Sent, now: float) -> None:
        """Note that a commit up to a batch is asked for: from now on there may be room."""
        fresh = sum(each.count for each in share.batches if share.claimed < each.place <= sent.place)
        if fresh:
            share.claimed = sent.place
            self._asked += fresh
            self._marks.append((self._asked, now))

    def settle(self, share: Share, sent: Sent) -> int:
        """Note that a commit up to a batch was taken; return before which place all is done with."""
        while share.batches and share.batches[0].place <= sent.place:
            self.committed += share.batches.popleft().count
        share.done = max(share.done, sent.place + 1)
        return share.done

    def drop(self, share: Share) -> None:
        """Give up a partition and what is held of it."""
        if share.batches:
            after = share.batches[0].after
            self.left_since = after if self.left_since is None else min(self.left_since, after)
        del self.shares[share.partition]
        self._given_up += sum(sent.count for sent in share.batches)

    def ready(self) -> Iterator[Share]:
        """Yield the partitions of which something can be handed out now."""
        for share in self.shares.values():
            if share.ready and not share.is_paused:
                yield share
