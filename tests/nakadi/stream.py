"""One stream: what it sends and when, and how it ends.

It lives in three states. *Streaming*: batches and keep-alives. *Closing*: it ended (its time was over, nobody
committed, its connection closed, its cursors are moved) while something sent is not committed: nothing more is sent,
its partitions are nobody else's, and it takes commits until all is committed or the commit timeout has passed. *Gone*:
it takes nothing more, and its partitions are free.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from math import inf
from random import Random

from tests.nakadi.event_types import PartitionLog, Problem
from tests.nakadi.reading import Key, Reading

MOST_STREAM_SECONDS = 4_200.0
STREAM_SECONDS = 3_600.0
"""What a stream gets that asks for no time or too much; give or take `STREAM_SECONDS_VARY`."""
STREAM_SECONDS_VARY = 600.0
FLUSH_SECONDS = 30.0
COMMIT_SECONDS = 60.0
"""Also the most that can be asked for."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """What a client asks of a stream, checked. Times in seconds; `stream_timeout` 0: the server's own."""

    batch_limit: int = 1
    batch_flush_timeout: float = FLUSH_SECONDS
    max_uncommitted_events: int = 10
    stream_limit: int = 0
    stream_timeout: float = 0.0
    stream_keep_alive_limit: int = 0
    commit_timeout: float = COMMIT_SECONDS
    partitions: tuple[Key, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what the API refuses, and put its own values where 0 means them."""
        if self.batch_limit < 1:
            raise Problem(422, "batch_limit can't be lower than 1")
        if self.max_uncommitted_events < 1:
            raise Problem(422, "max_uncommitted_events can't be lower than 1")
        if self.stream_limit and self.stream_limit < self.batch_limit:
            raise Problem(422, "stream_limit can't be lower than batch_limit")
        if min(self.batch_flush_timeout, self.stream_timeout, self.commit_timeout, self.stream_keep_alive_limit) < 0:
            raise Problem(422, "no limit can be negative")
        if self.commit_timeout > COMMIT_SECONDS:
            raise Problem(422, f"commit_timeout can't be higher than {COMMIT_SECONDS:.0f}")
        if not self.batch_flush_timeout:
            object.__setattr__(self, "batch_flush_timeout", FLUSH_SECONDS)
        if not self.commit_timeout:
            object.__setattr__(self, "commit_timeout", COMMIT_SECONDS)
        if self.stream_timeout > MOST_STREAM_SECONDS:
            object.__setattr__(self, "stream_timeout", 0.0)
        if self.stream_timeout and self.stream_timeout < self.batch_flush_timeout:
            raise Problem(422, "stream_timeout can't be lower than batch_flush_timeout")


class Stream:
    """See the module; `subscription` gives and takes its readings."""

    def __init__(self, name: str, parameters: Parameters, chance: Random, now: float) -> None:
        self.id = name
        self.parameters = parameters
        self.readings: dict[Key, Reading] = {}
        self.state: str = "streaming"
        """`streaming`, `closing` or `gone`."""
        self.keeps_alive_only_until = 0.0
        """Until then it sends no events, whatever waits."""
        self.on_change: Callable[[], None] = lambda: None
        """Called when something may be sent, or it has changed its state."""
        self.uncommitted = 0
        """Events sent and not committed, in all its partitions."""
        self.last_commit_at = now
        """When something was last committed, or sent with nothing before it uncommitted."""
        seconds = parameters.stream_timeout or STREAM_SECONDS + chance.uniform(-1, 1) * STREAM_SECONDS_VARY
        self.ends_at = now + seconds
        self.gone_by = inf
        self._words: str | None = "Stream started"
        self._farewell: bytes | None = None
        self._sent = 0
        self._releasing = 0
        self._turn = 0

    # -- what it reads ------------------------------------------------------------------------------------------------

    def begin(self, key: Key, log: PartitionLog, committed: int, now: float) -> None:
        """Read a partition from what is committed."""
        self.readings[key] = Reading(log, committed, now)
        self.on_change()

    def release(self, key: Key, now: float) -> None:
        """Send nothing more of a partition, which is another's once it is committed here."""
        reading = self.readings[key]
        if not reading.is_releasing:
            reading.release_by = now + self.parameters.commit_timeout
            self._releasing += 1
            self.on_change()

    def keep(self, key: Key) -> None:
        """Go on with a partition that should have gone to another stream."""
        self.readings[key].release_by = inf
        self._releasing -= 1
        self.on_change()

    def end(self, key: Key) -> None:
        """Have nothing more to do with a partition."""
        reading = self.readings.pop(key, None)
        if reading is not None:
            self.uncommitted -= reading.uncommitted
            self._releasing -= reading.is_releasing

    def commit(self, key: Key, end: int, now: float) -> None:
        """Be done with what was sent of a partition up to an index, the last of a batch."""
        reading = self.readings[key]
        before = reading.uncommitted
        reading.commit(end)
        self.uncommitted -= before - reading.uncommitted
        self.last_commit_at = now
        self.on_change()

    # -- what it sends ------------------------------------------------------------------------------------------------

    def pull(self, now: float) -> bytes | None:
        """Return the next line to send, if one is due. The subscription must have advanced to `now` before."""
        if self.state != "streaming":
            farewell, self._farewell = self._farewell, None
            return farewell
        keys = list(self.readings)
        for place in range(len(keys)):
            at = (self._turn + place) % len(keys)
            key = keys[at]
            reading = self.readings[key]
            events = reading.take(self._room(now), reading.last_sent_at + self.parameters.batch_flush_timeout, now)
            if events is None:
                continue
            if events and not self.uncommitted:
                self.last_commit_at = now
            self._turn = at + 1
            self._sent += len(events)
            self.uncommitted += len(events)
            words, self._words = self._words, None
            return self._line(key, reading, events, words)
        return None

    def _room(self, now: float) -> int:
        if now < self.keeps_alive_only_until:
            return 0
        asked = self.parameters
        room = min(asked.batch_limit, asked.max_uncommitted_events - self.uncommitted)
        return min(room, asked.stream_limit - self._sent) if asked.stream_limit else room

    def _line(self, key: Key, reading: Reading, events: list[bytes], words: str | None) -> bytes:
        offset = reading.log.offset(reading.sent - 1)
        cursor = {"partition": key[1], "offset": offset, "event_type": key[0], "cursor_token": self.token(key, offset)}
        line = b'{"cursor":' + json.dumps(cursor, separators=(",", ":")).encode()
        if events:
            line += b',"events":[' + b",".join(events) + b"]"
        if words is not None:
            line += b',"info":{"debug":' + json.dumps(words).encode() + b"}"
        return line + b"}\n"

    def token(self, key: Key, offset: str) -> str:
        """Return the token that this stream gives with a cursor."""
        return blake2b("\0".join((self.id, *key, offset)).encode(), digest_size=12).hexdigest()

    def wake_at(self, now: float) -> float:
        """Return when something is due although nothing changes."""
        if self.state == "closing":
            return self.gone_by
        flush = self.parameters.batch_flush_timeout
        due = min((min(each.last_sent_at + flush, each.release_by) for each in self.readings.values()), default=inf)
        if self.uncommitted:
            due = min(due, self.last_commit_at + self.parameters.commit_timeout)
        if now < self.keeps_alive_only_until:
            due = min(due, self.keeps_alive_only_until)
        return min(due, self.ends_at)

    # -- how it ends --------------------------------------------------------------------------------------------------

    def why_over(self, now: float) -> str | None:
        """Return why a stream that streams must end now, if it must."""
        asked = self.parameters
        if now >= self.ends_at:
            return "Stream timeout reached"
        if self.uncommitted and now >= self.last_commit_at + asked.commit_timeout:
            return "Commit timeout reached"
        if asked.stream_limit and self._sent >= asked.stream_limit and not self.uncommitted:
            return "Stream limit reached"
        if self._releasing and any(now >= reading.release_by for reading in self.readings.values()):
            return "A partition must go to another stream"
        limit = asked.stream_keep_alive_limit
        if limit and self.readings and all(reading.keep_alives >= limit for reading in self.readings.values()):
            return "All partitions reached keepAlive limit"
        return None

    def begin_close(self, why: str) -> None:
        """Send nothing more but `why`."""
        if self.state != "streaming":
            return
        self.state = "closing"
        for key, reading in self.readings.items():
            self._farewell = self._line(key, reading, [], why)
            break
        self.gone_by = self.last_commit_at + self.parameters.commit_timeout if self.uncommitted else -inf
        self.on_change()
