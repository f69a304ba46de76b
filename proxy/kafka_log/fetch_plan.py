"""What is to be fetched now, from which node: looked at anew only where something has changed.

The library goes through all partitions before every fetch. Here whatever may change a partition's place touches it: it
was paused, resumed, sought, answered for, taken from, given another leader. In case something goes on unseen, all are
touched once a second, a few at a time.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from math import inf
from typing import Any, NamedTuple

from aiokafka import TopicPartition

from proxy.kafka_log.fetch_sessions import Fetch, FetchSession, Wish
from proxy.kafka_log.fetch_wire import FetchAnswer
from proxy.kafka_log.topic_ids import TopicIds

ROUND = 10
TURN = 0.1
"""In so many turns of so many seconds every partition is looked at; 1,000 of them take some milliseconds."""


class Place(NamedTuple):
    """From where a partition is to be fetched."""

    node: Any
    offset: int


class FetchPlan:
    """Of the partitions of one assignment after the other, with a session for each node."""

    def __init__(self) -> None:
        self._partitions: Sequence[TopicPartition] = ()
        self._touched: dict[TopicPartition, None] = {}
        self._nodes: dict[TopicPartition, Any] = {}
        """From which node those that are fetched are fetched."""
        self._sessions: dict[Any, FetchSession] = {}
        self._turn = 0
        self._turn_at = 0.0

    def begin(self, partitions: Iterable[TopicPartition]) -> None:
        """Begin an assignment: nothing of the one before is fetched any more."""
        self._partitions = sorted(partitions)
        self._nodes.clear()
        for session in self._sessions.values():
            session.leave_all()
        self.touch_all()

    def touch(self, at: TopicPartition) -> None:
        """Look at the partition before the next fetch."""
        self._touched[at] = None

    def touch_all(self) -> None:
        """Look at every partition before the next fetch."""
        self._touched = dict.fromkeys(self._partitions)

    def settle(self, place_of: Callable[[TopicPartition], Place | None], now: float) -> None:
        """Ask of each partition that was touched where it is to be fetched from; None: from nowhere."""
        if now >= self._turn_at:
            self._turn_at, self._turn = now + TURN, (self._turn + 1) % ROUND
            self._touched |= dict.fromkeys(islice(self._partitions, self._turn, None, ROUND))
        touched, self._touched = self._touched, {}
        for at in touched:
            place = place_of(at)
            node = self._nodes.get(at)
            if node is not None and (place is None or place.node != node):
                self._sessions[node].leave(at)
                del self._nodes[at]
            if place is not None:
                self._nodes[at] = place.node
                session = self._sessions.get(place.node)
                if session is None:
                    session = self._sessions[place.node] = FetchSession()
                session.want(at, place.offset)

    def fetches(self, may_ask: Callable[[Any], bool], wish: Wish, ids: TopicIds, now: float) -> list[tuple[Any, Fetch]]:
        """Return the next fetch of every node of which something is wanted and which may be asked."""
        return [
            (node, session.fetch(wish, ids, now))
            for node, session in self._sessions.items()
            if session.is_wanted and not session.rest(now) and may_ask(node)
        ]

    def rest(self, now: float) -> float:
        """Return after how many seconds the first node may be asked that is let rest; endless: there is none."""
        rests = [session.rest(now) for session in self._sessions.values() if session.is_wanted]
        return min(filter(None, rests), default=inf)

    def on_answer(self, node: Any, fetch: object, answer: FetchAnswer, now: float) -> None:
        """Take a node's answer; what it tells of has changed."""
        for told in answer.told:
            self._touched[told.at] = None
        if node in self._sessions:
            self._sessions[node].on_answer(fetch, answer, now)
