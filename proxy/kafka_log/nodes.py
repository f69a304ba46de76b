"""Which nodes of the log answer, and the pauses before one that does not is tried again.

A node that is silent is no longer asked first by whoever may ask any; who must ask it learns quickly that it is silent
still. Every change is said once, with the node's name, however many requests notice it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn

import structlog

_say = structlog.get_logger("tidegate.kafka")


def _drop(*_: object) -> NoReturn:
    raise structlog.DropEvent


QUIET = structlog.wrap_logger(None, processors=[_drop])
"""For a client whose caller says itself what failed."""

REMEMBERED = 10.0
"""Seconds for which a failure counts. Larger: a silent node is asked later; smaller: more requests wait for it."""
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 1.0
"""Seconds from one attempt to connect to a node to the next: the first pause, doubled up to the longest."""
CONNECT = "connect"
"""The kind of request that a connection is, login included."""


class Bounds(NamedTuple):
    """Seconds that requests may take, and what fetches may bring."""

    answer: float
    fetch_wait: float = 0.0
    """How long a node may hold back an empty fetch."""
    gather: float = 0.0
    """How long a node may hold back a join or a sync."""
    first_fetches: int | None = None
    """Bytes, about, that a fetch of each partition brings in all; None: what each may bring is all that bounds it."""


@dataclass(slots=True)
class _Failing:
    since: float
    kinds: dict[str, tuple[float, str]] = field(default_factory=dict)
    """When each kind of request failed last, and why."""
    pause: float = FIRST_PAUSE
    next_at: float = 0.0
    """When it may be connected to again."""


class Turns:
    """Whose turn it is, for each kind of question of one client.

    In a turn that several shared, each of them could come to the same node for ever: three questions every five
    seconds, and three nodes.
    """

    def __init__(self) -> None:
        self._asked: dict[tuple[object, str], int] = {}
        self._count = 0

    def asked(self, node: object, kind: str) -> int:
        """Return when the node was asked such a question last, as a number that grows; 0: never."""
        return self._asked.get((node, kind), 0)

    def ask(self, node: object, kind: str) -> None:
        """Note that it is asked now."""
        self._count += 1
        self._asked[node, kind] = self._count


class Nodes:
    """Remembers failures of nodes, by their number; times come from `clock`, in seconds; changes go to `say`."""

    def __init__(self, clock: Callable[[], float], say: Any = _say) -> None:
        self._clock = clock
        self._say = say
        self._failing: dict[object, _Failing] = {}
        self._late: dict[object, float] = {}
        """Until when a node that was slow once is not asked first."""
        self._throttled: dict[object, float] = {}
        """Until when a node has told to wait for a quota."""

    def failed(self, node: object, host: str, kind: str, why: str) -> None:
        """Note that a request of this kind failed or stayed unanswered; said if the node answered before."""
        now = self._clock()
        failing = self._failing.get(node)
        if failing is None:
            failing = self._failing[node] = _Failing(now)
            self._say.warning(
                "node_unavailable",
                node=f"{node} at {host}",
                why=why,
                effect="what is asked of it waits, what it leads stands still, until it answers or another leads",
            )
        failing.kinds[kind] = now, why

    def answered(self, node: object, host: str, kind: str) -> None:
        """Note that a request of this kind was answered; said if that was the last thing missing."""
        now = self._clock()
        if now - self._throttled.get(node, now) > REMEMBERED:
            del self._throttled[node]
            self._say.info("node_throttles_no_more", node=f"{node} at {host}")
        failing = self._failing.get(node)
        if failing is None:
            return
        failing.kinds.pop(kind, None)
        if all(now - at > REMEMBERED for at, _ in failing.kinds.values()):
            del self._failing[node]
            self._say.info("node_available", node=f"{node} at {host}", after_s=round(now - failing.since, 1))

    def throttles(self, node: object, host: str, seconds: float) -> None:
        """Note that the node has us wait for a quota; said once, until it has not done so for a while."""
        if node not in self._throttled:
            self._say.warning(
                "node_throttles",
                node=f"{node} at {host}",
                first_s=round(seconds, 3),
                effect="what it leads is read no faster than its quota for this login and client id allows",
                remedy="raise consumer_byte_rate or request_percentage of the quota if lag grows",
            )
        self._throttled[node] = max(self._throttled.get(node, 0.0), self._clock() + seconds)

    def late(self, node: object) -> None:
        """Note that another node is asked because this one takes its time."""
        self._late[node] = self._clock() + REMEMBERED

    @property
    def is_any_failing(self) -> bool:
        """Whether something failed at any node that has not succeeded since."""
        return bool(self._failing)

    def is_failing(self, node: object) -> bool:
        """Whether something failed there that has not succeeded since."""
        return node in self._failing

    def why(self, node: object, *kinds: str) -> str | None:
        """Return why one of these kinds of requests failed there last; None if none did, or it succeeded since."""
        failing = self._failing.get(node)
        if failing is None:
            return None
        return next((failing.kinds[kind][1] for kind in kinds if kind in failing.kinds), None)

    def pause(self, node: object) -> float:
        """Return how many seconds to wait before connecting to the node, which is then done."""
        failing = self._failing.get(node)
        if failing is None:
            return 0.0
        now = self._clock()
        wait = max(0.0, failing.next_at - now)
        failing.next_at = now + wait + failing.pause
        failing.pause = min(2 * failing.pause, LONGEST_PAUSE)
        return wait

    def in_turn(self, nodes: Iterable[object], asked: Callable[[object], int]) -> list[object]:
        """Return the nodes in the order in which to ask any: those that answer first, then by when `asked` last."""
        now = self._clock()

        def place(node: object) -> tuple[bool, int]:
            failing = self._failing.get(node)
            is_silent = failing is not None and any(now - at <= REMEMBERED for at, _ in failing.kinds.values())
            return is_silent or self._late.get(node, 0.0) > now, asked(node)

        return sorted(nodes, key=place)
