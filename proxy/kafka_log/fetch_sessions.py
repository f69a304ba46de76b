"""What a node knows of what is to be fetched from it, so that a fetch names only what has changed (KIP-227).

A node keeps a session: which partitions are fetched from it and where each is read. A fetch then names those that came,
went or were read on, and its answer those with news. Without one, every fetch and every answer names every partition,
whether or not there is anything to read. A node that gives none (its cache is full) is told everything each time.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from aiokafka import TopicPartition
from aiokafka.protocol.fetch import FetchRequest

PAUSE = 0.1
"""Seconds for which a node is sent no fetch after it refused one that told it everything."""

_NO_ID = 0
_FIRST, _LAST = 0, 2**31 - 1
"""Epochs of a session: of the fetch that tells everything, and the highest, after which 1 follows."""
_NOT_FOUND = 70
"""The node's error where it has forgotten the session."""
_WITH_START, _WITH_SESSIONS, _WITH_EPOCHS, _WITH_RACK = 5, 7, 9, 11
"""The first version of the request that has each; Kafka 2.3 has all."""
_UNKNOWN = -1

Places = Mapping[TopicPartition, int]
"""Offsets by partition."""


class Wish(NamedTuple):
    """What is the same for every fetch."""

    wait_ms: int
    least_bytes: int
    most_bytes: int
    isolation: int
    partition_bytes: int
    """At most, of one partition."""
    rack: str = ""


class Fetch(FetchRequest):  # type: ignore[misc]  # the library is untyped
    """One fetch; `session` are its id and epoch, `named` and `forgotten` what has changed, `told` all that is known."""

    def __init__(
        self,
        wish: Wish,
        session: tuple[int, int],
        named: Places,
        forgotten: Iterable[TopicPartition],
        told: Places,
    ) -> None:
        super().__init__(*wish[:4], [], wish.rack)
        self.session = session
        self.named = named
        self.forgotten = tuple(forgotten)
        self._bytes = wish.partition_bytes
        self._told = told
        self._answered: Places | None = None

    @property
    def topics(self) -> list[tuple[str, list[tuple[int, int, int]]]]:
        """Return what the library asks for afterwards: what its answer is about; all of it while there is none."""
        places = self._told if self._answered is None else self._answered
        return [(topic, [(number, offset, self._bytes) for number, offset in one]) for topic, one in _by_topic(places)]

    def on_answer(self, response: Any) -> None:
        """Note what the answer tells of, before the library reads it."""
        told = [TopicPartition(topic, one[0]) for topic, given in response.topics for one in given]
        self._answered = {at: self._told.get(at, _UNKNOWN) for at in told}

    def build(self, request_struct_class: Any) -> Any:
        """Return the request on the wire."""
        version = request_struct_class.API_VERSION
        epoch = (_UNKNOWN,) if version >= _WITH_EPOCHS else ()
        start = (_UNKNOWN,) if version >= _WITH_START else ()
        named = [
            (topic, [(number, *epoch, offset, *start, self._bytes) for number, offset in one])
            for topic, one in _by_topic(self.named)
        ]
        forgotten = [
            (topic, [number for number, _ in one]) for topic, one in _by_topic(dict.fromkeys(self.forgotten, 0))
        ]
        return request_struct_class(
            _UNKNOWN,  # no replica
            self._max_wait_ms,
            self._min_bytes,
            self._max_bytes,
            self._isolation_level,
            *(self.session if version >= _WITH_SESSIONS else ()),
            named,
            *((forgotten,) if version >= _WITH_SESSIONS else ()),
            *((self._rack_id,) if version >= _WITH_RACK else ()),
        )


class FetchSession:
    """Our side of one node's session. One fetch of it is under way at most."""

    def __init__(self) -> None:
        self.rests_until = 0.0
        """By the loop's clock in seconds: it refuses all, and is asked for nothing before."""
        self._wanted: dict[TopicPartition, int] = {}
        """What was read on last stands last: a node that is told everything begins with the others."""
        self._told: dict[TopicPartition, int] = {}
        self._changed: dict[TopicPartition, None] = {}
        self._id = _NO_ID
        self._epoch = _FIRST
        self._asked: Fetch | None = None

    @property
    def is_wanted(self) -> bool:
        """Whether anything is to be fetched."""
        return bool(self._wanted)

    def want(self, at: TopicPartition, offset: int) -> None:
        """Let the partition be fetched from an offset on."""
        if self._wanted.get(at) != offset:
            self._wanted.pop(at, None)
            self._wanted[at] = offset
            self._changed[at] = None

    def leave(self, at: TopicPartition) -> None:
        """Let the partition be fetched no more."""
        if self._wanted.pop(at, None) is not None:
            self._changed[at] = None

    def leave_all(self) -> None:
        """Let nothing be fetched; what comes next is told as if it were the first."""
        self._wanted.clear()
        self._epoch = _FIRST

    def fetch(self, wish: Wish) -> Fetch:
        """Return the next fetch; whoever sends it hands its answer to `on_answer`, if there is one."""
        if self._asked is not None:
            self._epoch = _FIRST  # without an answer nobody knows what the node has heard
        named: dict[TopicPartition, int] = {}
        forgotten: list[TopicPartition] = []
        if self._epoch == _FIRST:
            named = dict(self._wanted)
            self._told = dict(named)
        else:
            for at in self._changed:
                offset, told = self._wanted.get(at), self._told.get(at)
                if offset is None and told is not None:
                    del self._told[at]
                    forgotten.append(at)
                elif offset is not None and offset != told:
                    self._told[at] = named[at] = offset
        self._changed.clear()
        self._asked = Fetch(wish, (self._id, self._epoch), named, forgotten, self._told)
        return self._asked

    def on_answer(self, fetch: object, response: Any, now: float) -> None:
        """Take the answer to a fetch; one to an earlier one, given up meanwhile, says nothing."""
        if fetch is not self._asked or self._asked is None:
            return
        self._asked.on_answer(response)
        self._asked = None
        error, given = getattr(response, "error_code", 0), getattr(response, "session_id", _NO_ID)
        if error and self._epoch == _FIRST:
            self.rests_until = now + PAUSE
        if not error and given != _NO_ID:
            self._id, self._epoch = given, self._epoch % _LAST + 1
            return
        self._epoch = _FIRST
        if not error or error == _NOT_FOUND:
            self._id = _NO_ID  # else it is told with the next fetch, so that the node can forget what it has


def _by_topic(places: Places) -> list[tuple[str, list[tuple[int, int]]]]:
    topics: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for (topic, number), offset in places.items():
        topics[topic].append((number, offset))
    return list(topics.items())
