"""A queue with its consumers, as measured on RabbitMQ: bound, prefetch in front, work that takes its time.

It has no timers: `advance` works off everything that happened until now, in its order. Latency knows nothing of depth;
consumers hold prefetched messages that nobody can overtake any more, and depth counts the others only.
"""

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from math import inf
from random import Random
from typing import NamedTuple

from proxy.simulation.scenario import Queue, Service

QUORUM_REOPENS = 0.8
"""Share of its bound to which a quorum queue that refused must fall before it takes messages again."""


class Message(NamedTuple):
    """One message in a queue."""

    due: float
    """Second of the run at which its event was due."""
    stream: str
    """Where it comes from; empty for other publishers, and for what has been begun before."""
    priority: int
    """The larger goes first; counts in priority queues only."""
    cost: int = 1
    """So many times as long as one of cost 1 keeps it a consumer busy."""


Begun = Callable[[float, Message], None]
"""Told when a consumer begins to work on a message, and on which."""


class Consumers:
    """Who takes messages from one queue: each holds at most `prefetch` of them and works on one at a time."""

    def __init__(self, queue: Queue, chance: Random, on_begun: Begun) -> None:
        self.begun_with = queue.consumers
        self.rate_each = queue.capacity / queue.consumers
        """Events of cost 1 a second that one of them does; 0: they stall with what they hold."""
        self.count = 0
        self._knee = queue.knee or inf
        self._prefetch = queue.prefetch_each or inf
        self._chance = chance
        self._service: Service = queue.service
        self._on_begun = on_begun
        self._hands: list[deque[Message]] = []
        """What each holds; the first is worked on."""
        self.ends: list[tuple[float, int]] = []
        """A heap of when who is done with the first."""
        self._turn = 0
        self.acked = 0
        """Messages ever done with."""

    @property
    def capacity(self) -> float:
        """Events of cost 1 a second that all do together."""
        return self.rate_each * min(self.count, self._knee)

    @property
    def held(self) -> int:
        """Messages held, begun or not."""
        return sum(map(len, self._hands))

    @property
    def next_end(self) -> float:
        """When the next one is done; infinite if nobody works."""
        return self.ends[0][0] if self.ends else inf

    def taker(self) -> int | None:
        """Return whose turn it is to take another message; None if all hands are full."""
        for step in range(self.count):
            number = (self._turn + step) % self.count
            if len(self._hands[number]) < self._prefetch:
                self._turn = number + 1
                return number
        return None

    def hand(self, number: int, message: Message, now: float) -> None:
        """Give a message to a consumer."""
        hand = self._hands[number]
        hand.append(message)
        if len(hand) == 1:
            self._begin(number, now)

    def finish(self) -> tuple[float, int]:
        """End the work that ends next and begin the same consumer's next; return when, and whose."""
        at, number = heappop(self.ends)
        hand = self._hands[number]
        hand.popleft()
        self.acked += 1
        if hand:
            self._begin(number, at)
        return at, number

    def set_rate(self, rate_each: float, now: float) -> None:
        """Work at another rate from the next message on; a stall, or its end, acts at once."""
        was_stalled, self.rate_each = self.rate_each == 0, rate_each
        if rate_each == 0:
            self.ends.clear()
        elif was_stalled:
            for number, hand in enumerate(self._hands):
                if hand:
                    heappush(self.ends, (now + self._seconds(hand[0]), number))

    def set_count(self, count: int) -> list[Message]:
        """Let consumers come or go; return what those that go had in their hands."""
        while self.count < count:
            self._hands.append(deque())
            self.count += 1
        back: list[Message] = []
        while self.count > count:
            self.count -= 1
            hand = self._hands.pop()
            if hand:
                hand[0] = hand[0]._replace(stream="")  # begun once; what counts is that
            back += hand
            self.ends = sorted(end for end in self.ends if end[1] != self.count)
        return sorted(back)

    def _begin(self, number: int, now: float) -> None:
        message = self._hands[number][0]
        self._on_begun(now, message)
        if self.rate_each:
            heappush(self.ends, (now + self._seconds(message), number))

    def _seconds(self, message: Message) -> float:
        mean = message.cost * max(1.0, self.count / self._knee) / self.rate_each
        if self._service == "uniform":
            return mean * (0.5 + self._chance.random())
        return self._chance.expovariate(1 / mean) if self._service == "exponential" else mean


class ModelQueue:
    """A queue that refuses beyond its bound (reject-publish)."""

    def __init__(self, queue: Queue, chance: Random, on_begun: Begun) -> None:
        self.consumers = Consumers(queue, chance, on_begun)
        self.consumers.set_count(queue.consumers)
        self.ready = 0
        """Messages waiting, those in consumers' hands left out."""
        self.work = 0
        """What they cost together."""
        self.foreign = 0.0
        """Events a second that others publish into it."""
        self._bound = queue.most_messages
        self._sheds = queue.sheds
        self._is_quorum = queue.kind == "quorum"
        self._is_refusing = False
        self._lines: dict[int, deque[Message]] = {}
        """By priority, the highest first."""
        self._has_priorities = queue.kind == "priority"

    def advance(self, now: float) -> None:
        """Work off what the consumers did until now."""
        consumers = self.consumers
        while consumers.ends and consumers.ends[0][0] <= now:
            at, number = consumers.finish()
            if self.ready:
                consumers.hand(number, self._pop(), at)

    def refuses(self) -> bool:
        """Tell whether the next message is refused; `advance` first."""
        if self._bound is None or self._sheds:
            return False
        if self._is_quorum:
            self._is_refusing = self.ready >= self._bound * (QUORUM_REOPENS if self._is_refusing else 1)
            return self._is_refusing
        return self.ready >= self._bound

    def put(self, message: Message, now: float) -> None:
        """Take one message in; `advance` and ask `refuses` first."""
        number = None if self.ready else self.consumers.taker()
        if number is not None:
            self.consumers.hand(number, message, now)
            return
        self._line(message).append(message)
        self.ready += 1
        self.work += message.cost
        if self._sheds and self._bound is not None and self.ready > self._bound:
            self._pop()

    def set_consumers(self, count: int, now: float) -> None:
        """Let consumers come or go; what those that go held goes back to the front."""
        self.advance(now)
        back = self.consumers.set_count(count)
        for message in reversed(back):
            self._line(message).appendleft(message)
        self.ready += len(back)
        self.work += sum(message.cost for message in back)
        while self.ready and (number := self.consumers.taker()) is not None:
            self.consumers.hand(number, self._pop(), now)

    def set_capacity(self, capacity: float, now: float) -> None:
        """Let the consumers there are do so many events of cost 1 a second together."""
        self.advance(now)
        self.consumers.set_rate(capacity / max(1, self.consumers.count), now)

    def _pop(self) -> Message:
        self.ready -= 1
        for line in self._lines.values():
            if line:
                message = line.popleft()
                self.work -= message.cost
                return message
        raise AssertionError("ready counts what waits")

    def _line(self, message: Message) -> deque[Message]:
        """Return where messages of its priority wait."""
        priority = message.priority if self._has_priorities else 0
        line = self._lines.get(priority)
        if line is None:
            line = deque()
            self._lines = dict(sorted([*self._lines.items(), (priority, line)], reverse=True))
        return line
