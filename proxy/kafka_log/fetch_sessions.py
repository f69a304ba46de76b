"""What a node knows of what is to be fetched from it, so that a fetch names only what has changed (KIP-227).

A node keeps a session: which partitions are fetched from it and where each is read. A fetch then names those that came,
went or were read on, and its answer those with news. Without one, every fetch and every answer names every partition,
whether or not there is anything to read. A node that gives none (its cache is full) is told everything each time.
"""

from collections.abc import Iterable
from math import inf
from typing import Any, NamedTuple

from aiokafka import TopicPartition
from aiokafka.protocol.fetch import FetchRequest

from proxy.kafka_log.fetch_wire import FetchAnswer, Places, by_topic
from proxy.kafka_log.topic_ids import NO_IDS, TopicIds

PAUSE = 0.1
"""Seconds for which a node is sent no fetch after it refused one that told it everything."""
LEAST = 50
PACE, MOST_PACE = 20e-6, 0.02
"""Seconds for each partition, and at most, from one fetch of `LEAST` or more to the next. The node looks at each of
them for every fetch: where events trickle into all, it is better that more come together. Not while more waits."""

_NO_ID = 0
_FIRST, _LAST = 0, 2**31 - 1
"""Epochs of a session: of the fetch that tells everything, and the highest, after which 1 follows."""
_NOT_FOUND = 70
"""The node's error where it has forgotten the session."""
_WITH_START, _WITH_SESSIONS, _WITH_EPOCHS, _WITH_RACK = 5, 7, 9, 11
"""The first version of the request that has each; Kafka 2.3 has all."""
_UNKNOWN = -1


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
        ids: TopicIds | None = None,
    ) -> None:
        self.wish = wish
        self.session = session
        self.named = named
        self.forgotten = tuple(forgotten)
        self.told = told
        self.ids = ids
        """Of all its topics, if a node that knows them may be told these instead of names."""

    @property
    def topics(self) -> list[tuple[str, list[tuple[int, int]]]]:
        """Return what the library goes through where a node could not be asked."""
        return list(by_topic(self.told).items())

    def build(self, request_struct_class: Any) -> Any:
        """Return the library's request, for a node that doesn't speak the version of `fetch_wire`."""
        version, wish = request_struct_class.API_VERSION, self.wish
        epoch = (_UNKNOWN,) if version >= _WITH_EPOCHS else ()
        start = (_UNKNOWN,) if version >= _WITH_START else ()
        named = [
            (topic, [(number, *epoch, offset, *start, wish.partition_bytes) for number, offset in one])
            for topic, one in by_topic(self.named).items()
        ]
        forgotten = [
            (topic, [number for number, _ in one]) for topic, one in by_topic(dict.fromkeys(self.forgotten, 0)).items()
        ]
        return request_struct_class(
            _UNKNOWN,  # no replica
            *wish[:4],
            *(self.session if version >= _WITH_SESSIONS else ()),
            named,
            *((forgotten,) if version >= _WITH_SESSIONS else ()),
            *((wish.rack,) if version >= _WITH_RACK else ()),
        )


class FetchSession:
    """Our side of one node's session. One fetch of it is under way at most."""

    def __init__(self) -> None:
        self._rests_until = self._refuses_until = 0.0
        """By the loop's clock in seconds, before which nothing is asked: to let more come, or since it refuses all."""
        self._wanted: dict[TopicPartition, int] = {}
        """What was read on last stands last: a node that is told everything begins with the others."""
        self._ends: dict[TopicPartition, int] = {}
        """Up to where they may be read, as the node has told last."""
        self._waiting: set[TopicPartition] = set()
        """Those of which it has more. A batch larger than what may come of each comes first in an answer, or not."""
        self._told: dict[TopicPartition, int] = {}
        self._changed: dict[TopicPartition, None] = {}
        self._id = _NO_ID
        self._epoch = _FIRST
        self._asked: Fetch | None = None
        self._ids = NO_IDS
        """As they were with the last fetch."""
        self._is_by_id = False

    @property
    def is_wanted(self) -> bool:
        """Whether anything is to be fetched."""
        return bool(self._wanted)

    def rest(self, now: float) -> float:
        """Return for how many seconds nothing is to be asked."""
        return max(0.0, self._refuses_until - now, 0.0 if self._waiting else self._rests_until - now)

    def want(self, at: TopicPartition, offset: int) -> None:
        """Let the partition be fetched from an offset on."""
        if self._wanted.get(at) != offset:
            self._wanted.pop(at, None)
            self._wanted[at] = offset
            self._changed[at] = None
            self._look(at)

    def leave(self, at: TopicPartition) -> None:
        """Let the partition be fetched no more."""
        if self._wanted.pop(at, None) is not None:
            self._changed[at] = None
            self._waiting.discard(at)

    def leave_all(self) -> None:
        """Let nothing be fetched; what comes next is told as if it were the first."""
        self._wanted.clear()
        self._ends.clear()
        self._waiting.clear()
        self._rests_until = 0.0
        self._epoch = _FIRST

    def fetch(self, wish: Wish, ids: TopicIds, now: float) -> Fetch:
        """Return the next fetch; whoever sends it hands its answer to `on_answer`, if there is one."""
        if self._asked is not None or not self._is_told_by(ids):
            self._epoch = _FIRST  # without an answer nobody knows what the node has heard
        named: dict[TopicPartition, int] = {}
        forgotten: list[TopicPartition] = []
        if self._epoch == _FIRST:
            named = dict(self._wanted)
            self._told = dict(named)
            self._is_by_id = all(at.topic in ids.of for at in named)
        else:
            for at in self._changed:
                offset, told = self._wanted.get(at), self._told.get(at)
                if offset is None and told is not None:
                    del self._told[at]
                    forgotten.append(at)
                elif offset is not None and offset != told:
                    self._told[at] = named[at] = offset
        self._changed.clear()
        if len(self._wanted) >= LEAST:
            self._rests_until = now + min(MOST_PACE, PACE * len(self._wanted))
        self._asked = Fetch(
            wish, (self._id, self._epoch), named, forgotten, self._told, ids if self._is_by_id else None
        )
        return self._asked

    def _is_told_by(self, ids: TopicIds) -> bool:
        """Whether the node knows its topics by these ids, and what has changed may be told by them, too."""
        before, self._ids = self._ids, ids
        if ids is not before and any(ids.of.get(at.topic) != before.of.get(at.topic) for at in self._told):
            return False
        return not self._is_by_id or all(at.topic in ids.of for at in self._changed)

    def _look(self, at: TopicPartition) -> None:
        """See whether the node has more of the partition than was read."""
        if self._wanted.get(at, inf) < self._ends.get(at, 0):
            self._waiting.add(at)
        else:
            self._waiting.discard(at)

    def on_answer(self, fetch: object, answer: FetchAnswer, now: float) -> None:
        """Take the answer to a fetch; one to an earlier one, given up meanwhile, says nothing."""
        if not isinstance(fetch, Fetch) or fetch is not self._asked:
            return
        self._asked = None
        for told in answer.told:
            is_bound = fetch.wish.isolation and told.stable is not None
            self._ends[told.at] = told.stable or 0 if is_bound else told.highwater
            self._look(told.at)
        error, given = answer.error_code, answer.session_id
        if error and self._epoch == _FIRST:
            self._refuses_until = now + PAUSE
        if not error and given != _NO_ID:
            self._id, self._epoch = given, self._epoch % _LAST + 1
            return
        self._epoch = _FIRST
        if not error or error == _NOT_FOUND:
            self._id = _NO_ID  # else it is told with the next fetch, so that the node can forget what it has
