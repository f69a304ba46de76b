"""A log and a lane that do what a test tells them, to see one piece of the bridge at a time."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence

from proxy.bridge.broker import Batch, Finding, Found, LaneState, QueueState
from proxy.bridge.event_log import Extent, PartitionOwner, Standing, Survey
from proxy.bridge.flow import PartitionFlow
from proxy.bridge.move import Move
from proxy.errors import AssignmentLostError, BrokerError, LogError
from proxy.model import Event, Outcome, Partition, Position, Reason, Retention


class ScriptedLane:
    """Writes everything at once (up to `room`) and waits for the test to tell the outcomes."""

    def __init__(self) -> None:
        self.state = LaneState.OPEN
        self.batches: list[Batch] = []
        self.handed: Sequence[Batch] = ()
        self.calls = 0
        self.written: list[Event] = []
        self.room = asyncio.Semaphore(10**9)
        self.failure: Exception | None = None
        """Ends `run` half a second after its start."""
        self.host = "mail:5672"
        self._changed = asyncio.Event()

    @property
    def in_flight(self) -> int:
        return 0

    @property
    def window(self) -> int:
        return 200

    def oldest(self, now: float) -> float:
        del now
        return 0.0

    def unanswered(self, now: float) -> float:
        del now
        return 0.0

    async def run(self) -> None:
        await asyncio.sleep(0.5)
        if self.failure is not None:
            raise self.failure
        await asyncio.Event().wait()

    async def publish(self, batches: Sequence[Batch]) -> None:
        self.handed = batches
        self.calls += 1
        for batch in batches:
            while not batch.withdrawn and batch.done < len(batch.events):
                if self.room.locked():
                    self._changed.clear()
                    await self._changed.wait()
                    continue
                await self.room.acquire()
                self.written.append(batch.events[batch.done])
                batch.done += 1
            self.batches.append(batch)

    def withdraw(self, batches: Collection[Batch]) -> None:
        for batch in batches:
            batch.called_back = True
        self._changed.set()

    def give_room(self, events: int) -> None:
        for _ in range(events):
            self.room.release()
        self._changed.set()

    def finish_written(self) -> None:
        """Confirm what was written of the batches handed over last."""
        for batch in self.handed:
            if batch.done:
                batch.recipient.on_outcome(batch, 0, batch.done, Outcome.CONFIRMED, seconds=0.001)

    def finish(self, outcome: Outcome = Outcome.CONFIRMED, *, reason: Reason | None = None) -> None:
        """End all that was written and not yet ended."""
        batches, self.batches = self.batches, []
        for batch in batches:
            if batch.done:
                batch.recipient.on_outcome(batch, 0, batch.done, outcome, seconds=0.001, reason=reason)


class ScriptedLog:
    """Hands out what the test puts in, remembers pauses and commits."""

    def __init__(self) -> None:
        self.owner: PartitionOwner | None = None
        self.fetched: dict[Partition, list[Event]] = {}
        self.paused: set[Partition] = set()
        self.committed: dict[Partition, Position] = {}
        self.subscribed: frozenset[str] = frozenset()
        self.subscriptions = 0
        self.subscribe_failure: LogError | None = None
        self.surveyed = Survey(frozenset(), frozenset(), frozenset())
        self.failure: LogError | None = None
        self.owns_nothing = False
        """A rebalance has taken everything away: commits leave it out and succeed."""
        self.affirmed = 0
        self.handed_out = 0
        """Events that polls have returned."""
        self.lag: int | None = 0
        """Of every partition; None: the log can't tell."""
        self.lag_delay = 0.0
        self.commit_delay = 0.0
        """Of the whole way; what is committed counts from its middle."""
        self.commits: list[float] = []
        """When each was asked for."""
        self.others: dict[Partition, int] = {}
        """How far the group has come in what this replica does not own."""
        self.told: dict[Partition, Extent] = {}
        """How far it has come in everything, and where that ends."""
        self.refusal: str | None = None
        """Why the group has no part for this replica."""
        self.stood: dict[Partition, Standing] = {}
        self.has_doubts = False
        self.retentions: dict[str, Retention | None] = {}
        """What is told of topics; those that are not named are left out."""
        self.asked_for_retention: list[set[str]] = []
        self.first = 0
        """Where every partition begins."""
        self.asked_for_progress = 0
        self.start_delay = 0.0
        self.stop_delay = 0.0
        self.poll_failure: Exception | None = None
        self.on_poll_end: Callable[[], None] = lambda: None
        """Called when a poll ends that found nothing."""
        self.stops = 0

    async def start(self, owner: PartitionOwner) -> None:
        await asyncio.sleep(self.start_delay)
        self.owner = owner

    async def survey(self, wanted: Collection[str]) -> Survey:
        del wanted
        self._fail()
        return self.surveyed

    async def subscribe(self, topics: frozenset[str]) -> None:
        if self.subscribe_failure is not None:
            raise self.subscribe_failure
        self.subscribed = topics
        self.subscriptions += 1

    async def poll(self, wait: float) -> Mapping[Partition, list[Event]]:
        fetched, self.fetched = self.fetched, {}
        self.handed_out += sum(len(events) for events in fetched.values())
        if self.poll_failure is not None:
            raise self.poll_failure
        if fetched:
            await asyncio.sleep(0)
        else:
            await asyncio.sleep(wait)
            self.on_poll_end()
            fetched, self.fetched = self.fetched, {}
        return fetched

    def pause(self, partitions: Collection[Partition]) -> None:
        self.paused |= set(partitions)

    def resume(self, partitions: Collection[Partition]) -> None:
        self.paused -= set(partitions)

    async def commit(self, positions: Mapping[Partition, Position | None]) -> Mapping[Partition, int]:
        self.commits.append(asyncio.get_running_loop().time())
        self._fail()
        await asyncio.sleep(self.commit_delay / 2)
        taken = {} if self.owns_nothing else {at: one for at, one in positions.items() if one is not None}
        self.committed |= taken
        await asyncio.sleep(self.commit_delay / 2)
        return {partition: self.place(position) + 1 for partition, position in taken.items()}

    def place(self, position: Position) -> int:
        return int(str(position).removeprefix("p"))

    def member(self) -> str:
        return "member"

    def move(self, wanted: Mapping[Partition, Move]) -> Collection[Partition]:
        del wanted
        return ()

    async def affirm(self) -> bool:
        self.affirmed += 1
        if isinstance(self.failure, AssignmentLostError):
            raise self.failure
        return self.failure is None and not self.owns_nothing

    async def lags(self, done: Mapping[Partition, Position | None]) -> Mapping[Partition, int]:
        self._fail()
        await asyncio.sleep(self.lag_delay)
        return {} if self.lag is None else dict.fromkeys(done, self.lag)

    def doubts_topics(self) -> bool:
        return self.has_doubts

    def outside(self) -> str | None:
        return self.refusal

    def standing(self) -> Mapping[Partition, Standing]:
        return self.stood

    async def progress(self) -> Mapping[Partition, int]:
        self.asked_for_progress += 1
        self._fail()
        await asyncio.sleep(0.01)
        return dict(self.others)

    async def extents(self, topics: Collection[str]) -> Mapping[Partition, Extent]:
        self._fail()
        await asyncio.sleep(0.01)
        return {at: extent for at, extent in self.told.items() if at.topic in topics}

    async def retention(self, topics: Collection[str]) -> Mapping[str, Retention | None]:
        self.asked_for_retention.append(set(topics))
        self._fail()
        await asyncio.sleep(0.01)
        return {topic: self.retentions[topic] for topic in topics if topic in self.retentions}

    async def firsts(self, partitions: Collection[Partition]) -> Mapping[Partition, int]:
        self._fail()
        return dict.fromkeys(partitions, self.first)

    async def stop(self) -> None:
        self.stops += 1
        await asyncio.sleep(self.stop_delay)

    def _fail(self) -> None:
        if self.failure is not None:
            raise self.failure


class ScriptedMonitor:
    """Tells the states that the test puts in, or fails."""

    def __init__(self, states: Mapping[str, QueueState | None]) -> None:
        self.states = states
        self.failure: BrokerError | None = None
        self.left_out: Collection[str] = ()
        """Queues not come to."""
        self.whys: dict[str, str] = {}
        self.delay = 0.001
        self.polls = 0
        self.is_closed = False

    def why(self, queue: str) -> str:
        return self.whys.get(queue, "")

    async def poll(self, queues: Collection[str]) -> Mapping[str, QueueState | None]:
        await asyncio.sleep(self.delay)
        self.polls += 1
        if self.failure is not None:
            raise self.failure
        return {queue: self.states.get(queue) for queue in queues if queue not in self.left_out}

    async def close(self) -> None:
        self.is_closed = True


class ScriptedFinder:
    """Finds the queues that the test puts in, those that are away, or fails."""

    def __init__(self) -> None:
        self.there: set[str] = set()
        self.away: dict[str, str] = {}
        """... and why."""
        self.away_for: set[str] = set()
        """Hosts for which these are away; none named: for all."""
        self.failure: BrokerError | None = None
        self.delay = 0.001
        self.most = 1_000
        """Queues asked for at once."""
        self.asked: list[str] = []
        self.hosts: set[str] = set()
        """Of whom it was asked."""
        self.is_closed = False

    async def find(self, queues: Sequence[str], host: str) -> Mapping[str, Finding]:
        self.hosts.add(host)
        await asyncio.sleep(self.delay)
        if self.failure is not None:
            raise self.failure
        asked = queues[: self.most]
        self.asked += asked
        return {queue: self._finding(queue, host) for queue in asked}

    def _finding(self, queue: str, host: str) -> Finding:
        if queue in self.away and (not self.away_for or host in self.away_for):
            return Finding(Found.AWAY, self.away[queue])
        return Finding(Found.THERE if queue in self.there else Found.GONE)

    async def close(self) -> None:
        self.is_closed = True


class CountingHost:
    """Counts what a flow tells its listener."""

    def __init__(self) -> None:
        self.now = 0.0
        self.overtaken = 0
        self.resolved = 0
        self.parked: list[tuple[PartitionFlow, int, Sequence[Event]]] = []
        self.called_back: list[PartitionFlow] = []
        self.sending: list[Batch] = []

    def on_outcome(
        self, flow: PartitionFlow, batch: Batch, start: int, end: int, outcome: Outcome, seconds: float | None
    ) -> None:
        """Nobody observes."""

    def on_confirmed(self, _batch: Batch, _events: Sequence[Event], _seconds: float | None, overtaken: int) -> None:
        self.overtaken += overtaken

    def on_failed(self, _outcome: Outcome, _count: int, *, congestion: bool) -> float:
        del congestion
        return self.now

    def on_resolved(self, _flow: PartitionFlow, count: int) -> None:
        self.resolved += count

    def on_undeliverable(self, _count: int) -> None:
        """Nobody counts."""

    def on_going_again(self, flow: PartitionFlow) -> None:
        """Nothing of it waits."""

    def asks(
        self, _flow: PartitionFlow, _batch: Batch, _start: int, _end: int, _seconds: float | None, _why: str
    ) -> bool:
        """Nobody can be asked."""
        return False

    def dead_letter(
        self, flow: PartitionFlow, first: int, lost: Sequence[Event], _reason: Reason, _detail: str
    ) -> None:
        self.parked.append((flow, first, lost))

    def withdraw(self, flow: PartitionFlow) -> None:
        self.called_back.append(flow)
        for batch in self.sending:
            batch.called_back = True

    def on_settled(self) -> None:
        self.wake()

    def wake(self) -> None:
        pass

    def may_send(self) -> bool:
        return True
