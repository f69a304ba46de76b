"""Sees everything that passes between bridge, log and broker, and says what no history may show.

All of it is judged at the moment it happens: every write, every arrival, every outcome, every commit.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Protocol

from proxy.bridge.broker import Batch
from proxy.bridge.event_log import Beginning
from proxy.bridge.move import Moved
from proxy.model import Event, Mode, Outcome, Partition, Reason
from proxy.positions.identity import Committed
from proxy.publish_lane.wire import Sent
from proxy.simulation.memory_cluster import MemoryCluster
from proxy.simulation.virtual_time import PROCESS
from tests.histories.cursors import Cursors
from tests.histories.epoch import Epoch
from tests.histories.facts import Fact, Facts
from tests.histories.memory_wire import Verdict
from tests.histories.plan import LETTERS, MAX_AGE, Plan
from tests.histories.ranges import Booked, Ranges
from tests.histories.replica_account import ReplicaAccount

MOST_VIOLATIONS = 8
_NOTICES = 1.5
"""Seconds after which a replica must have noticed what people want ..."""
_AWAY = 6.0
"""... and so many more where it may stand still, or be cut off from the board."""
_CUTS = ("stop_process", "stop_joining", "cut_off", "log_down", "stall_log")


class LaneWire(Protocol):
    """A lane's connection, whatever it leads to."""

    @property
    def lane(self) -> str:
        """Return whose it is."""
        ...

    def is_blocked(self) -> bool:
        """Return whether nothing may be written now."""
        ...


class Witness:
    """One history's; made inside its loop."""

    def __init__(self, plan: Plan, cluster: MemoryCluster, wall: Callable[[], float]) -> None:
        self.facts, self.ranges = Facts(), Ranges()
        self.cursors = Cursors(self.facts, in_order=plan.wire is None)
        self._moved: dict[tuple[str, Partition], str] = {}
        """The topic's id of moves that replicas were told of, until they begin anew there."""
        self.told: dict[str, ReplicaAccount] = {}
        """By replica."""
        self.violations: list[str] = []
        self.most_violations = MOST_VIOLATIONS
        self.on_most: Callable[[], object] = lambda: None
        """Called when there are as many violations as are told."""
        self.on_begin: Callable[[Partition, Beginning], object] = lambda *_: None
        """Called when a replica begins to read a partition."""
        self.steps: list[tuple[float, str]] = []
        """What happened and when, in short."""
        self.epochs: dict[tuple[str, Partition], Epoch] = {}
        """The latest of each replica and partition."""
        self.epoch_of: dict[object, Epoch] = {}
        """By the flow that sends its events."""
        self.holders: dict[Partition, tuple[int, str]] = {}
        """In which generation each partition was given to whom."""
        self.removed: dict[str, float] = {}
        """When which replica was last removed from the group by force."""
        self.deleted: dict[str, tuple[float, frozenset[str]]] = {}
        """When which topic was deleted last, and who read it then."""
        self.ended: list[Epoch] = []
        self.pairs: list[str] = []
        """What a replica did when a fault struck, and which fault."""
        self.moved: dict[str, float] = {}
        """When each topic that has something to do last moved: was fetched, stored, or told of."""
        self.newest_wall = 0.0
        self.asked: dict[str, list[tuple[float, Mode]]] = defaultdict(list)
        """Since when people want which mode, by topic."""
        limits = plan.settings.limits
        self._grace = min(limits.drain_deadline, plan.settings.log.session_timeout / 2)
        self._notices = _NOTICES + (_AWAY if any(fault.kind in _CUTS for fault in plan.faults) else 0.0)
        self._settings = settings = plan.settings
        self._lanes = {topic: plan.lanes[kind.route] for topic, kind in settings.by_topic.items()}
        """By topic."""
        self._written_on, self._in_question = dict[Batch, str](), set[tuple[Batch, int]]()
        """Which lane each batch went over; and what came back, from that index on, undecided as yet."""
        self.windows: dict[str, tuple[int, int]] = {}
        """Events and bytes that may be in flight, by lane: of routes that share one, the least."""
        for name, lane in plan.lanes.items():
            route = settings.routes[name]
            events, size = self.windows.get(lane, (route.most_in_flight, route.in_flight_bytes))
            self.windows[lane] = min(events, route.most_in_flight), min(size, route.in_flight_bytes)
        self.windows.setdefault(LETTERS, next(iter(self.windows.values())))
        self._cluster = cluster
        self._wall = wall
        self._waiting: list[tuple[str, int, asyncio.Future[str]]] = []
        self._digest = sha256()

    # -- what it says -------------------------------------------------------------------------------------------------

    def note(self, what: str) -> None:
        """Remember a step."""
        self.steps.append((asyncio.get_running_loop().time(), what))
        self._sign(what)

    def accuse(self, what: str) -> None:
        """Remember that something happened that must not."""
        if len(self.violations) < self.most_violations:
            self.violations.append(f"{asyncio.get_running_loop().time():.3f} {what}")
            self.note(f"VIOLATION {what}")
            if len(self.violations) == self.most_violations:
                self.on_most()

    @property
    def digest(self) -> str:
        """A fingerprint of all that happened."""
        return self._digest.hexdigest()

    async def seam(self, name: str, nth: int, seconds: float) -> str:
        """Wait until something happens for the nth time, `seconds` at most; return whose process it happened in."""
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._waiting.append((name, nth, future))
        await asyncio.wait([future], timeout=seconds)
        self._waiting = [one for one in self._waiting if one[2] is not future]
        return future.result() if future.done() else ""

    # -- the log ------------------------------------------------------------------------------------------------------

    def on_assigned(self, replica: str, partitions: Collection[Partition], generation: int) -> None:
        """Note that a replica was told of its partitions; perhaps when the group has long given them to another."""
        for partition in partitions:
            old = self.epochs.get((replica, partition))
            if old is not None:
                self.ended.append(old)
            kind = self._settings.by_topic[partition.topic]
            cap = self._settings.limits.uncommitted_events
            number = old.number + 1 if old is not None else 0
            # Whose cursor is moved goes on in the log that it knows, whatever has its name by now.
            topic_id = self._moved.pop((replica, partition), self._topic_id(partition))
            self.epochs[replica, partition] = Epoch(replica, partition, number, kind.order, cap, topic_id, generation)
            if old is not None and self.holders.get(partition) == (generation, replica):
                self.epochs[replica, partition].known = old.topic_id
            if generation >= self.holders.get(partition, (0, ""))[0]:
                if self.holders.get(partition, (0, ""))[1] != replica:
                    self._move(partition)
                self.holders[partition] = generation, replica
        self.note(f"{replica} gets {', '.join(map(str, partitions)) or 'nothing'}")
        self._pass("assigned")

    def on_deleted(self, topic: str) -> None:
        """Note that a topic was deleted, with all that is in it."""
        readers = frozenset(name for at, (_, name) in self.holders.items() if at.topic == topic and name)
        self.deleted[topic] = asyncio.get_running_loop().time(), readers
        self.facts.delete(topic)

    def on_begun(self, replica: str, partition: Partition, beginning: Beginning) -> None:
        """Note where a replica begins to read a partition."""
        # So does one that begins anew because its settings are others; it soon notices.
        if beginning.topic_id == (epoch := self.epochs[replica, partition]).known:
            epoch.topic_id = epoch.known
        self.on_begin(partition, beginning)
        self.ranges.begin(replica, partition, self.epochs[replica, partition], beginning)

    def on_taken(self, partition: Partition, booked: Booked, end: int) -> None:
        """Judge a commit of which a replica is told that the log took it."""
        if wrong := self.ranges.take(partition, booked, end):
            self.accuse(wrong)

    def on_joining(self) -> None:
        """Note that a replica asks to be part of the next generation."""
        self._pass("joining")

    def on_moved(self, replica: str, moved: Moved) -> None:
        """Note that a replica was told that the log has a move."""
        self.note(f"{replica} is told of {moved.move.id} of {moved.partition}: {moved.done} to {moved.to}")
        self._moved[replica, moved.partition] = moved.move.topic_id
        booked = self.ranges.current(replica, moved.partition)
        if booked is not None:
            if booked.epoch is self.epochs.get((replica, moved.partition)):  # else it was assigned after the stop
                self.on_taken(moved.partition, booked, moved.done)
            self.ranges.log_takes(moved.partition, Committed(moved.to, moved.move.topic_id))

    def on_revoking(self, replica: str) -> None:
        """Note the begin of a revocation."""
        self.note(f"{replica} gives up its partitions")
        self._moved = {at: topic_id for at, topic_id in self._moved.items() if at[0] != replica}
        self._pass("revoking")

    def on_revoked(self, replica: str, partitions: Collection[Partition]) -> None:
        """Note that a replica has let go of partitions."""
        for partition in partitions:
            generation, holder = self.holders[partition]
            if holder == replica:
                self.holders[partition] = generation, ""
        self._pass("revoked")

    def on_truncated(self, replica: str, partition: Partition, lost: int, first: int) -> None:
        """Note that a replica was told of records that it can't read any more, as the log begins at `first`."""
        self.told[replica].truncated += lost
        self.ranges.truncate(replica, partition, range(first - lost, first))
        self.note(f"{replica} is told that {lost} of {partition} before {first} are lost")
        if self._cluster.tracks[partition].first < first:
            self.accuse(f"{replica} is told that {partition} begins at {first}, but nothing of it was dropped")
        for fact in self.facts.tracks[partition].facts:
            if first - lost <= fact.offset < first:
                fact.skipped = True

    def on_fetched(self, replica: str, fetched: Mapping[Partition, Sequence[Event]]) -> None:
        """Note records handed to the bridge."""
        for partition, events in fetched.items():
            self._move(partition)
            self.told[replica].fetched += len(events)
            epoch = self.epochs[replica, partition]
            for event in events:
                self.facts.read_again(self.facts.of(event), epoch.since)
            epoch.receive(self.facts.of(event) for event in events)
        if fetched:
            self._pass("fetch")

    def on_commit(self, replica: str, offsets: Mapping[Partition, Committed]) -> None:
        """Judge a commit that the log takes: everything before it must be stored or kept as a dead letter.

        One that says it is of a topic that is gone may come, and counts for nothing.
        """
        for partition, committed in offsets.items():
            offset, topic_id = committed.offset, committed.topic_id
            self.ranges.log_takes(partition, committed)
            track = self._cluster.tracks.get(partition)
            is_judged = track is not None and track.topic_id == topic_id
            if track is not None and is_judged:
                for wrong in self.cursors.take(partition, committed, track.first, is_out=self._is_out(partition)):
                    self.accuse(f"{replica}: {wrong}")
            left = self.facts.unsettled(partition, track.first) if track is not None and is_judged else None
            if left is not None and left.offset < offset:
                self.accuse(f"{replica} commits {partition} up to {offset}, but {left} is nowhere else")
            epoch = self.epochs.get((replica, partition))
            if epoch is not None:
                epoch.commit(offset)
        self._sign(f"{replica} commits {sorted((at, offset) for at, (offset, *_) in offsets.items())}")
        self._pass("commit")

    def _is_out(self, partition: Partition) -> bool:
        """Return whether an epoch waits for outcomes that may still come before its drain's deadline.

        Nobody waits for a replica that was removed by force.
        """
        now, epochs = asyncio.get_running_loop().time(), (*self.epochs.values(), *self.ended)
        _, holder = self.holders[partition]
        awaited = (one for one in epochs if one.replica == holder or one.replica not in self.removed)
        return any(one.out and now < one.written_at + self._grace for one in awaited if one.partition == partition)

    # -- the broker ---------------------------------------------------------------------------------------------------

    def on_write(self, wire: LaneWire, sent: Sequence[Sent]) -> None:
        """Judge what a lane writes."""
        replica = PROCESS.get()
        told = self.told[replica]
        if wire.is_blocked():
            self.accuse(f"{replica} writes to a connection that the broker blocks")
        for one in sent:
            batch = one.events.batch
            is_letter = wire.lane == LETTERS
            if not is_letter:
                self._written_on[batch] = wire.lane
            if not is_letter and not batch.retry and batch.rank:
                self._judge_cap(replica, batch.partition.topic, list(one.events.events))
            for index in range(one.events.start, one.events.end):
                event = batch.events[index]
                if not is_letter:
                    self._write(replica, batch, index, self.facts.of(event))
                told.out_bytes[wire.lane] += event.size
            count = one.events.end - one.events.start
            told.written[wire.lane] += count
            told.out[wire.lane] += count
        most_events, most_bytes = self.windows[wire.lane]
        if told.out[wire.lane] > most_events:
            self.accuse(f"{replica} has {told.out[wire.lane]} events in flight on {wire.lane}")
        if told.out_bytes[wire.lane] > most_bytes and told.out[wire.lane] > 1:
            self.accuse(f"{replica} has {told.out_bytes[wire.lane]} bytes in flight on {wire.lane}")
        if sent:
            self._pass("write")

    def _judge_cap(self, replica: str, topic: str, events: Sequence[Event]) -> None:
        """Accuse classes below the highest of sending, for the first time, more than the cap within any second."""
        route = self._settings.by_topic[topic].route
        cap = self._settings.routes[route].cap
        if cap is None:
            return
        told, now = self.told[replica].lately[route], asyncio.get_running_loop().time()
        sizes = [1 if cap.events else event.size for event in events]
        told.sends.append((now, sum(sizes)))
        told.tokens += sum(sizes)
        while told.sends[0][0] <= now - 1:
            told.tokens -= told.sends.popleft()[1]
        # Each type may hold what it was granted before the lane could take it.
        slack = len(self._settings.event_types) * max(*sizes, cap.rate * cap.burst)
        if told.tokens > cap.rate * (1 + 2 * cap.burst) + slack:
            self.accuse(f"{replica} sends {told.tokens:g} within a second, the cap is {cap.rate:g}")

    def _write(self, replica: str, batch: Batch, index: int, fact: Fact) -> None:
        _, holder = self.holders[fact.partition]
        epoch = self.epoch_of.get(batch.recipient)
        if Mode.RUN not in self._wanted(fact.partition.topic):
            self.accuse(f"{replica} publishes {fact}, whose type is not to run")
        if holder != replica and self._may_not_know(replica):
            self.note(f"{replica} publishes {fact}, not knowing that it was removed")
        elif holder != replica:
            self.accuse(f"{replica} publishes {fact}, which belongs to {holder or 'nobody'}")
        elif epoch is not self.epochs[replica, fact.partition]:
            self.accuse(f"{replica} publishes {fact} of an assignment that has ended")
        track = self._cluster.tracks.get(fact.partition)
        # A topic made anew is read from the old position until that is noticed: what it has before is not skipped.
        is_astray = track is None or epoch is None or epoch.topic_id != track.topic_id
        first = fact.offset if track is None or is_astray else track.first
        if epoch is not None:
            epoch.written_at = asyncio.get_running_loop().time()
        for wrong in epoch.write(batch.first + index, fact, self.facts, first) if epoch is not None else ():
            self.accuse(f"{replica}: {wrong}")

    def _topic_id(self, partition: Partition) -> str:
        track = self._cluster.tracks.get(partition)
        return track.topic_id if track is not None else ""

    def _may_not_know(self, replica: str) -> bool:
        """Return whether it was removed by force a moment ago: half a session later at most it has noticed."""
        since = asyncio.get_running_loop().time() - self.removed.get(replica, float("-inf"))
        return since <= self._settings.log.session_timeout / 2

    def on_published(self, batch: Batch, event: Event, verdict: Verdict | None) -> None:
        """Note what the broker makes of a message."""
        fact = self.facts.of(event)
        self._move(fact.partition)
        self._sign(f"{fact} {verdict} {batch.address.lenient}")
        if batch.address.lenient:
            if verdict is Verdict.ACKED:
                fact.letters += 1
                self._judge_letter(fact, dict(batch.address.notes)["tidegate-reason"])
        elif verdict is Verdict.ACKED:
            self.facts.store(fact)
        elif verdict is Verdict.RETURNED:
            fact.returned = True
        elif verdict is None:
            fact.refused = True
        self._pass("store")

    def on_forgotten(self, fact: Fact, *, is_letter: bool) -> None:
        """Note that the broker has lost a message that it had not confirmed."""
        self.note(f"{fact} is lost by the broker, unconfirmed")
        self.facts.forget_stored(fact, is_letter=is_letter)

    def _judge_letter(self, fact: Fact, reason: str) -> None:
        self.newest_wall = max(self.newest_wall, self._wall())
        match reason:
            case Reason.UNROUTABLE:
                right = fact.returned
            case Reason.REFUSED:
                right = fact.refused
            case Reason.EXPIRED:
                right = fact.timestamp_ms < (self.newest_wall - MAX_AGE) * 1000
            case Reason.INTERNAL:
                right = False
            case _:
                right = not fact.fits
        if not right:
            self.accuse(f"{fact} is dead-lettered as {reason} without cause")

    # -- the lanes ----------------------------------------------------------------------------------------------------

    def on_outcome(self, replica: str, epoch: Epoch, batch: Batch, start: int, end: int, outcome: Outcome) -> None:
        """Note what a flow is told of its events."""
        told = self.told[replica]
        if told.is_dead:
            return
        if not told.is_recorded:
            told.outcomes[outcome] += end - start
        self._move(batch.partition)
        before = epoch.out
        for index in range(start, end):
            fact = self.facts.of(batch.events[index])
            if wrong := epoch.end(batch.first + index, fact, outcome):
                self.accuse(f"{replica}: {wrong}")
            if outcome is Outcome.CONFIRMED:
                told.confirmed_bytes += fact.size
        if (batch, start) in self._in_question:
            self._in_question.remove((batch, start))
        else:
            lane = self._written_on.get(batch, self._lanes[batch.partition.topic])
            self._free(told, lane, batch.events[start:end], before - epoch.out)
        self._sign(f"{replica} is told {outcome.value} {batch.partition} {batch.first + start} {end - start}")
        self._pass("told")

    def on_returned(self, replica: str, batch: Batch, start: int, end: int) -> None:
        """Note that events have left the lane, and what becomes of them is asked."""
        self._in_question.add((batch, start))
        lane = self._written_on.get(batch, self._lanes[batch.partition.topic])
        self._free(self.told[replica], lane, batch.events[start:end], end - start)

    def on_asked(self, wanted: Mapping[str, Mode]) -> None:
        """Note what people want from now on, by topic."""
        for topic, mode in wanted.items():
            self.asked[topic].append((asyncio.get_running_loop().time(), mode))
            self.note(f"{topic} is to {mode.value}")

    def on_discarded(self, replica: str, epoch: Epoch, batch: Batch) -> None:
        """Judge what is discarded."""
        if self.told[replica].is_dead:
            return
        self._move(batch.partition)
        if Mode.DISCARD not in self._wanted(batch.partition.topic):
            self.accuse(f"{replica} discards {batch.partition}, which nobody wants")
        for index, event in enumerate(batch.events, batch.first):
            fact = self.facts.of(event)
            if wrong := epoch.discard(index, fact):
                self.accuse(f"{replica}: {wrong}")
            fact.discarded_in = epoch.since
        self._sign(f"{replica} discards {batch.partition} {batch.first} {len(batch.events)}")
        self._pass("told")

    def _wanted(self, topic: str) -> set[Mode]:
        """Return the modes that a replica may take for what is wanted of a topic now."""
        since = asyncio.get_running_loop().time() - self._notices
        asked = [(float("-inf"), Mode.RUN), *self.asked[topic]]
        ends = [*(at for at, _ in asked[1:]), float("inf")]
        return {mode for (_, mode), end in zip(asked, ends, strict=True) if end >= since}

    def on_letter_outcome(
        self, replica: str, epoch: Epoch | None, batch: Batch, start: int, end: int, outcome: Outcome, reason: str
    ) -> None:
        """Note what becomes of dead letters."""
        told = self.told[replica]
        if told.is_dead:
            return
        self._move(batch.partition)
        self._free(told, LETTERS, batch.events[start:end], end - start)
        if outcome in {Outcome.NACKED, Outcome.UNDELIVERABLE}:
            for (name, partition), other in self.epochs.items():
                if name == replica and partition.topic == batch.partition.topic:
                    other.refuse_letter()
        if outcome is not Outcome.CONFIRMED or told.is_recorded:
            return
        told.letters[reason] += end - start
        for index in range(start, end) if epoch is not None else ():
            assert epoch is not None
            epoch.end_letter(batch.first + index, reason)

    @staticmethod
    def _free(told: ReplicaAccount, lane: str, events: Iterable[Event], count: int) -> None:
        if count:
            told.out[lane] -= count
            told.out_bytes[lane] -= sum(event.size for event in events)

    def _move(self, partition: Partition) -> None:
        self.moved[partition.topic] = asyncio.get_running_loop().time()

    def _pass(self, seam: str) -> None:
        """Let a fault strike that waits for this."""
        if self._waiting:
            left = []
            for name, nth, future in self._waiting:
                if name != seam:
                    left.append((name, nth, future))
                elif nth > 1:
                    left.append((name, nth - 1, future))
                elif not future.done():
                    future.set_result(PROCESS.get())
            self._waiting = left

    def _sign(self, what: str) -> None:
        self._digest.update(f"{asyncio.get_running_loop().time():.9f} {what}\n".encode())
