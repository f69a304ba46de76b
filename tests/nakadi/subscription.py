"""One subscription: what is committed, which stream has which partition, who may commit what."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import Literal

from tests.nakadi.event_types import EventType, PartitionLog, Problem
from tests.nakadi.reading import Key
from tests.nakadi.stream import Parameters, Stream

ReadFrom = Literal["begin", "end", "cursors"]
Result = Literal["committed", "outdated"]


@dataclass(slots=True)
class Part:
    """One partition of a subscription."""

    log: PartitionLog
    committed: int
    """Index of the next event that is not committed."""
    stream: Stream | None = None
    """Whose it is."""
    heir: Stream | None = None
    """Whose it will be once what `stream` was sent of it is committed."""

    @property
    def owner(self) -> Stream | None:
        """Return whose it is or will be."""
        return self.heir or self.stream


@dataclass(slots=True)
class Reset:
    """Cursors that move once every stream is gone."""

    ends: Mapping[Key, int]
    held: frozenset[Key] = frozenset()
    """Of these, what a stream that named them had when it was asked for: nobody else can have committed since."""
    is_done: bool = False
    on_done: Callable[[], None] = lambda: None


class Subscription:
    """See the module. Every public method that is handed `now` first does what was due until then."""

    def __init__(
        self,
        name: str,
        owning_application: str,
        consumer_group: str,
        event_types: Mapping[str, EventType],
        read_from: ReadFrom,
        initial: Mapping[Key, int],
        now: float,
    ) -> None:
        self.id = name
        self.owning_application = owning_application
        self.consumer_group = consumer_group
        self.event_types = dict(event_types)
        self.read_from = read_from
        self.created_at = now
        self.parts: dict[Key, Part] = {}
        """Empty until something is first read, or cursors are moved: only then `end` is a place."""
        self.streams: dict[str, Stream] = {}
        """Those that are not gone, in order of opening."""
        self.reset: Reset | None = None
        self.on_commit: Callable[[Key, int], None] = lambda *_: None
        """Called with what is committed newly: the index of the next event that is not."""
        self.on_move: Callable[[Key, int, int, bool], None] = lambda *_: None
        """Called with what was committed of a partition when its cursor moved, what is now, and if it was held."""
        self.on_open: Callable[[Subscription, Stream], None] = lambda *_: None
        self._initial = initial
        self._moving: dict[Key, None] = {}
        self._numbers = count()

    # -- streams ------------------------------------------------------------------------------------------------------

    def open(self, parameters: Parameters, chance: Random, now: float) -> Stream:
        """Start a stream and balance anew."""
        self.advance(now)
        if self.reset is not None:
            raise Problem(409, "Resetting subscription cursors request is still in progress")
        self._initialise()
        foreign = [key for key in parameters.partitions if key not in self.parts]
        if foreign:
            raise Problem(422, f"Wrong partitions specified - some partitions don't belong to subscription: {foreign}")
        named = [key for each in self.streams.values() for key in each.parameters.partitions]
        if set(named) & set(parameters.partitions):
            raise Problem(409, "The following partitions are already requested by other streams")
        balanced = sum(not each.parameters.partitions for each in self.streams.values())
        if not parameters.partitions and balanced >= len(self.parts) - len(named):
            raise Problem(409, f"No free slots for streaming available. Total slots: {len(self.parts) - len(named)}")
        name = f"{chance.getrandbits(64):016x}-{next(self._numbers)}"
        stream = self.streams[name] = Stream(name, parameters, chance, now)
        self._balance(now)
        self.on_open(self, stream)
        return stream

    def close(self, stream: Stream, why: str, now: float) -> None:
        """End a stream, whose connection may have closed; what it was sent can be committed for a while."""
        self.advance(now)
        stream.begin_close(why)
        self.advance(now)

    def advance(self, now: float) -> None:
        """Do what was due until now."""
        for stream in self.streams.values():
            if stream.state == "streaming":
                why = stream.why_over(now)
                if why is not None:
                    stream.begin_close(why)
        self._settle(now)
        if self.reset is not None and not self.streams:
            self._move(self.reset)

    # -- cursors ------------------------------------------------------------------------------------------------------

    def commit(self, stream_id: str, cursors: Sequence[Mapping[str, str]], now: float) -> list[Result]:
        """Commit cursors, all or none of them; return for each whether it was newer than what was committed."""
        self.advance(now)
        if not cursors:
            raise Problem(422, "Cursors are absent")
        stream = self.streams.get(stream_id)
        ends = [self._committable(stream, stream_id, cursor) for cursor in cursors]
        results: list[Result] = []
        for key, end in ends:
            part = self.parts[key]
            results.append("committed" if end > part.committed else "outdated")
            if end > part.committed and stream is not None:
                part.committed = end
                stream.commit(key, end, now)
                self.on_commit(key, end)
        self.advance(now)
        return results

    def move(self, ends: Mapping[Key, int], now: float) -> Reset:
        """Disconnect all streams and move cursors when they are gone; no key at all only makes sure there are some."""
        self.advance(now)
        if self.reset is not None:
            raise Problem(409, "Cursors reset is already in progress for provided subscription")
        self._initialise()
        foreign = [key for key in ends if key not in self.parts]
        if foreign:
            raise Problem(422, f"Partitions don't belong to subscription: {foreign}")
        owners = {key: self.parts[key].stream for key in ends}
        reset = Reset(ends, frozenset(key for key, one in owners.items() if one and key in one.parameters.partitions))
        if ends:
            self.reset = reset
            for stream in self.streams.values():
                stream.begin_close("Resetting subscription cursors")
            self.advance(now)
        else:
            reset.is_done = True
        return reset

    def cursors(self) -> dict[Key, str]:
        """Return what is committed, nothing before anything was ever read."""
        return {key: part.log.offset(part.committed - 1) for key, part in self.parts.items()}

    def repartition(self) -> None:
        """Take in partitions that event types were given; they are read from their beginning."""
        if self.parts:
            self._add_parts(lambda _, log: log.first)

    # -- within -------------------------------------------------------------------------------------------------------

    def _initialise(self) -> None:
        if not self.parts:
            self._add_parts(self._start)

    def _start(self, key: Key, log: PartitionLog) -> int:
        if self.read_from == "cursors":
            return max(self._initial[key], log.first)
        return log.first if self.read_from == "begin" else log.end

    def _add_parts(self, start: Callable[[Key, PartitionLog], int]) -> None:
        for event_type in self.event_types.values():
            for number, log in enumerate(event_type.partitions):
                key = (event_type.name, str(number))
                if key not in self.parts:
                    self.parts[key] = Part(log, start(key, log))

    def _committable(self, stream: Stream | None, stream_id: str, cursor: Mapping[str, str]) -> tuple[Key, int]:
        key = cursor["event_type"], cursor["partition"]
        part = self.parts.get(key)
        if part is None:
            raise Problem(422, f"Event type or partition does not belong to subscription: {key}")
        end = part.log.index(cursor["offset"]) + 1
        if stream is None:
            raise Problem(422, f"Session with stream id {stream_id} not found")
        if part.stream is not stream:
            raise Problem(422, f"Cursor {key} cannot be committed with stream id {stream_id}")
        if cursor["cursor_token"] != stream.token(key, cursor["offset"]):
            raise Problem(422, f"Cursor {key} has a token that is not of stream {stream_id}")
        if end > part.committed and end not in stream.readings[key].borders:
            raise Problem(422, f"Cursor {key} was not sent in stream {stream_id}")
        return key, end

    def _move(self, reset: Reset) -> None:
        for key, end in reset.ends.items():
            part = self.parts[key]
            before, part.committed = part.committed, max(end, part.log.first)
            self.on_move(key, before, part.committed, key in reset.held)
        self.reset = None
        reset.is_done = True
        reset.on_done()

    def _settle(self, now: float) -> None:
        """Take from streams what they have released, and from those that are over everything."""
        for key in list(self._moving):
            part = self.parts[key]
            if part.stream is not None and part.heir is not None and not part.stream.readings[key].uncommitted:
                part.stream.end(key)
                part.stream, part.heir = part.heir, None
                part.stream.begin(key, part.log, part.committed, now)
                del self._moving[key]
        over = [each for each in self.streams.values() if each.state == "closing" and self._is_over(each, now)]
        for stream in over:
            del self.streams[stream.id]
            stream.state = "gone"
        if over:
            self._balance(now)
        for stream in over:
            stream.on_change()

    @staticmethod
    def _is_over(stream: Stream, now: float) -> bool:
        return not stream.uncommitted or now >= stream.gone_by

    def _balance(self, now: float) -> None:
        """Give each partition to who named it, all others by number; a closing stream still counts."""
        wanted = self._wanted(list(self.streams.values()))
        for key, part in self.parts.items():
            if part.stream is not None and part.stream.state == "gone":
                part.stream.end(key)
                part.stream = None
            if part.heir is not None and part.heir.state == "gone":
                part.heir = None
            owner = wanted.get(key)
            if part.stream is None:
                part.stream, part.heir = owner, None
                if owner is not None:
                    owner.begin(key, part.log, part.committed, now)
            elif owner is part.stream and part.heir is not None:
                part.heir = None
                part.stream.keep(key)
            elif owner is not None and owner is not part.stream:
                part.heir = owner
                part.stream.release(key, now)
        self._moving = {key: None for key, part in self.parts.items() if part.heir is not None}
        if self._moving:
            self._settle(now)

    def _wanted(self, streams: Collection[Stream]) -> dict[Key, Stream]:
        named = {key: each for each in streams for key in each.parameters.partitions}
        balanced = [each for each in streams if not each.parameters.partitions]
        wanted = dict(named)
        left = [key for key in self.parts if key not in named]
        if not balanced:
            return wanted
        share, more = divmod(len(left), len(balanced))
        room = {each.id: share + (place < more) for place, each in enumerate(sorted(balanced, key=lambda one: one.id))}
        homeless: list[Key] = []
        for key in left:
            owner = self.parts[key].owner
            if owner is not None and room.get(owner.id, 0) > 0:
                room[owner.id] -= 1
                wanted[key] = owner
            else:
                homeless.append(key)
        for each in sorted(balanced, key=lambda one: one.id):
            for _ in range(room[each.id]):
                wanted[homeless.pop(0)] = each
        return wanted
