"""A queue of dead letters, a lane, monitor and audit that do what a seed says, under virtual time; and their judge."""

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from proxy.bridge.broker import Batch, LaneState, QueueState
from proxy.bridge.letter_queue import Illegible, ReadLetter, TakenLetter
from proxy.errors import BrokerError
from proxy.model import Event, Outcome, Partition, Reason
from proxy.redrive.audit import Asked, records
from proxy.redrive.choice import Choice, Going, Stay, Wanted
from proxy.redrive.pace import Pace
from proxy.redrive.run import Redrive
from proxy.settings import BrokerSettings, EventType, LogSettings, Route, RoutingKey, Settings

ASKED = Asked("ann", "ticket", "g")
TIMES = 2
PLAIN = {"priority": "P1", "routing_key": RoutingKey(constant="q")}

Name = tuple[str, int, int]


def settings() -> Settings:
    return Settings(
        log=LogSettings(hosts=["kafka:9092"], group="g"),
        broker=BrokerSettings(hosts=["rabbit:5672"]),
        routes={"r": Route(exchange="x", queues=("q",)), "gone": Route(exchange="none")},
        event_types={
            "orders": EventType(name="orders", topic="orders", route="r", **PLAIN),
            "news": EventType(name="news", topic="news", route="r", **PLAIN),
            "lost": EventType(name="lost", topic="lost", route="gone", **PLAIN),
        },
    )


@dataclass(slots=True, eq=False)
class Stored:
    """A message of the queue of letters."""

    letter: ReadLetter | None
    number: int
    """Counts what was ever put there."""
    returned: int = 0


def letter(name: str, partition: int, position: int, *, redriven: int = 0, reason: str = "unroutable") -> ReadLetter:
    event = Event(position, 1_000 + position, None, b"v", (), 1)
    return ReadLetter(name, reason, Partition(name, partition), "id", event, "application/octet-stream", redriven)


def name_of(one: ReadLetter) -> Name:
    position = one.event.position
    assert isinstance(position, int)
    return one.partition.topic, one.partition.number, position


@dataclass(slots=True)
class World:
    """What outlives a pass. `faulty`: things go wrong."""

    chance: Random
    faulty: bool = True
    stored: list[Stored] = field(default_factory=list)
    """In the queue's order, those that are taken among them."""
    delivered: Counter[Name] = field(default_factory=Counter)
    confirmed: Counter[Name] = field(default_factory=Counter)
    recorded: Counter[Name] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    numbers: int = 0
    missing: frozenset[str] = frozenset()
    """Queues that do not exist."""
    gives_none: bool = False
    """The queue says that letters wait, and gives none."""
    dies_again: float = 0.0
    """Share of what is delivered that is a letter again at once."""

    def put(self, one: ReadLetter | None) -> None:
        self.stored.append(Stored(one, self.numbers))
        self.numbers += 1


class Pass:
    """One pass: the four ends that `Redrive` meets. After `sever` nothing that it does has an effect."""

    def __init__(self, world: World, kill_at: int | None = None) -> None:
        self.world = world
        self.chance = world.chance
        self.steps = 0
        self.killed = asyncio.Event()
        self.error: BaseException | None = None
        """What the pass ended with."""
        self.severed = False
        self.out: dict[int, Stored] = {}
        self.counted = world.numbers
        self.sent: Counter[Name] = Counter()
        self.halted: set[Partition] = set()
        self.refused: set[Name] = set()
        """Returned, so that a copy of it may be tried, too."""
        self.recorded: set[Name] = set()
        self.acked: set[Name] = set()
        self._kill_at = kill_at
        self._tag = 0
        self._kept: set[int] = set()
        self._lost = False
        self._writing: list[Batch] = []

    async def step(self, *, longest: float = 0.3) -> None:
        """Let some time pass; here a kill, or the loss of the connection, may come."""
        self.steps += 1
        if self.steps == self._kill_at:
            self.sever()
            self.killed.set()
        await asyncio.sleep(self.chance.random() * longest)
        if self.severed:
            await asyncio.Event().wait()

    def sever(self) -> None:
        """Give back what is out, as a broker does."""
        self.severed = True
        for stored in self.out.values():
            stored.returned += 1
        self.out.clear()

    # -- the queue of letters ---------------------------------------------------------------------------------

    async def open(self) -> int:
        await self.step()
        return len(self.world.stored)

    async def take(self, seconds: float) -> Sequence[TakenLetter]:
        await self.step()
        self._fail(0.01)
        held = {id(one) for one in self.out.values()}
        free = 30 - (len(self.out) - len(self._kept))
        ready = [one for one in self.world.stored if id(one) not in held][: self.chance.randint(1, max(1, free))]
        if free <= 0 or not ready or self.world.gives_none:
            await asyncio.sleep(seconds)
            return []
        return [self._taken(one) for one in ready]

    def keep(self, letters: Sequence[TakenLetter]) -> None:
        self._kept |= {one.tag for one in letters}

    async def waiting(self) -> int:
        await self.step()
        return len(self.world.stored) - len(self.out)

    async def acknowledge(self, tags: Collection[int]) -> None:
        await self.step()
        self._fail(0.02)
        for tag in tags:
            stored = self.out.pop(tag)
            assert stored.letter is not None
            name = name_of(stored.letter)
            if not self.world.confirmed[name]:
                self.world.wrong.append(f"{name} was taken off unconfirmed")
            if not self.world.recorded[name]:
                self.world.wrong.append(f"{name} was taken off unrecorded")
            self.acked.add(name)
            self.world.stored.remove(stored)

    async def lay_anew(self, letters: Sequence[TakenLetter]) -> None:
        for taken in letters:
            await self.step()
            stored = self.out[taken.tag]
            self.world.put(stored.letter)
            await self.step()
            del self.out[taken.tag]
            self.world.stored.remove(stored)

    async def close(self) -> None:
        if not self.severed:
            self.sever()

    def _taken(self, stored: Stored) -> TakenLetter:
        self._tag += 1
        self.out[self._tag] = stored
        kind = Illegible.FOREIGN if stored.letter is None else None
        return TakenLetter(self._tag, 1, stored.returned, stored.letter, kind)

    def _fail(self, share: float) -> None:
        if self.world.faulty and self.chance.random() < share:
            self._lost = True
        if self._lost:
            if not self.severed:
                self.sever()
            raise BrokerError("the connection was lost")

    # -- the lane ---------------------------------------------------------------------------------------------

    state = LaneState.OPEN
    in_flight = 0
    window = 100

    def oldest(self, _now: float) -> float:
        return 0.0

    async def run(self) -> None:
        await asyncio.Event().wait()

    def withdraw(self, batches: Collection[Batch]) -> None:
        for batch in batches:
            batch.called_back = True

    async def publish(self, batches: Sequence[Batch]) -> None:
        for batch in batches:
            while batch.done < len(batch.events) and not batch.withdrawn:
                if self.chance.random() < 0.2:
                    await self.step()
                    continue
                index, batch.done = batch.done, batch.done + 1
                self._write(batch, index)

    def _write(self, batch: Batch, index: int) -> None:
        event = batch.events[index]
        assert isinstance(event.position, int)
        name = (batch.partition.topic, batch.partition.number, event.position)
        self.sent[name] += 1
        if self.sent[name] > 1 and name not in self.refused:
            self.world.wrong.append(f"{name} was sent twice in one pass")
        if batch.partition in self.halted:
            self.world.wrong.append(f"{name} was sent behind one that failed")
        if batch.address.redriven > TIMES:
            self.world.wrong.append(f"{name} was sent too often")
        outcome, arrives = Outcome.CONFIRMED, True
        if self.world.faulty and self.chance.random() < 0.1:
            outcome = self.chance.choice([Outcome.NACKED, Outcome.UNKNOWN, Outcome.UNDELIVERABLE])
            arrives = outcome is not Outcome.UNDELIVERABLE and self.chance.random() < 0.5
        asyncio.get_running_loop().call_later(self.chance.random(), self._end, batch, index, name, outcome, arrives)

    def _end(self, batch: Batch, index: int, name: Name, outcome: Outcome, arrives: bool) -> None:
        if arrives:
            self.world.delivered[name] += 1
        if self.severed and not self._lost:
            return
        if arrives and self.chance.random() < self.world.dies_again:
            self.world.put(letter(name[0], name[1], name[2], redriven=batch.address.redriven, reason="queue_rejected"))
        if outcome is Outcome.CONFIRMED:
            self.world.confirmed[name] += 1
        elif outcome is Outcome.UNDELIVERABLE:
            self.refused.add(name)
        else:
            self.halted.add(batch.partition)
        reason = Reason.UNROUTABLE if outcome is Outcome.UNDELIVERABLE else None
        batch.recipient.on_outcome(batch, index, index + 1, outcome, seconds=0.1, reason=reason)

    # -- depths and records -----------------------------------------------------------------------------------

    async def poll(self, queues: Collection[str]) -> Mapping[str, QueueState | None]:
        await asyncio.sleep(0.01)
        if self.world.faulty and self.chance.random() < 0.05:
            raise BrokerError("no answer")
        deep = self.world.faulty and self.chance.random() < 0.2
        there = QueueState(10_000 if deep else 0, 1)
        return {queue: None if queue in self.world.missing else there for queue in queues}

    def why(self, _queue: str) -> str:
        return ""

    async def write(self, confirmed: Iterable[Going]) -> None:
        await self.step()
        if self.world.faulty and self.chance.random() < 0.01:
            raise OSError("the disk is full")
        for one in records(confirmed, ASKED):
            if one.count != one.end - one.first:
                self.world.wrong.append(f"a record has {one.count} of {one.first} to {one.end}")
            for position in range(one.first, one.end):
                name = (one.topic, one.partition, position)
                if name in self.recorded:
                    self.world.wrong.append(f"{name} was recorded twice in one pass")
                self.recorded.add(name)
                self.world.recorded[name] += 1
                if not self.world.confirmed[name]:
                    self.world.wrong.append(f"{name} was recorded unconfirmed")


async def lived(
    world: World, kill_at: int | None = None, *, is_dry: bool = False, **wanted: Any
) -> tuple[Redrive, Pass]:
    """Live one pass, until it ends or is killed; then judge it."""
    ends = Pass(world, kill_at)
    before = len(world.stored)
    choice = Choice(settings(), Wanted(times=TIMES, **wanted), {"none"})
    pace = Pace(1_000, asyncio.get_running_loop().time())
    redrive = Redrive(ends, ends, ends, ends, choice, pace, is_dry=is_dry)
    running = asyncio.create_task(redrive.run())
    killed = asyncio.create_task(ends.killed.wait())
    await asyncio.wait([running, killed], return_when=asyncio.FIRST_COMPLETED)
    is_killed = ends.killed.is_set()
    running.cancel()
    killed.cancel()
    [result, _] = await asyncio.gather(running, killed, return_exceptions=True)
    ends.error = result
    await ends.close()
    if not is_killed and isinstance(result, BaseException) and not isinstance(result, BrokerError | OSError):
        raise result
    count = redrive.count
    if not is_killed and count.waiting:
        seen = count.done + count.copies + sum(count.stayed.values()) - count.stays(Stay.LATER) + count.absent
        if seen + count.confirmed - count.done != count.waiting:
            world.wrong.append(
                f"{count.waiting} waited, told of {seen}, {count.confirmed} confirmed, {count.done} done"
            )
        if sum(ends.sent.values()) > before:
            world.wrong.append("more was sent than waited at the beginning")
    return redrive, ends
