"""One pass over one queue: take, judge, send, record, take off. See docs/design/0046-redrive.md.

A letter is taken off its queue only after the confirm of its copy, and after the record of that: whatever happens in
between, it is there. The pass is bounded: it takes as many letters as waited when it began, and what comes to the
queue's end meanwhile, this pass' own dead among it, stays.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from itertools import groupby

from proxy.bridge.broker import Batch, DepthMonitor, Lane, QueueKind
from proxy.bridge.letter_queue import LetterQueue, TakenLetter
from proxy.errors import BrokerError
from proxy.model import Outcome, Partition, Reason
from proxy.redrive.audit import Audit
from proxy.redrive.choice import Choice, Going, Stay
from proxy.redrive.count import Count
from proxy.redrive.outlook import Outlook
from proxy.redrive.pace import LOOK_SECONDS, Pace
from proxy.redrive.sending import Sending, place
from proxy.redrive.words import stalled
from proxy.settings import Route

TAKE_SECONDS = 1.0
"""Without a letter for so long it is asked whether any are left: somebody may have purged the queue."""
SETTLE_SECONDS = 0.1
"""Between two looks at what was confirmed: records are written and letters taken off together."""
BLIND_SECONDS = 30.0
"""So long a letter waits for the depth of its queues to be known; then it stays."""
OUTCOME_SECONDS = 60.0
"""So long the end of a pass waits for the last outcomes; the lane gives each within its confirm deadline."""
TELL_SECONDS = 10.0
RETURNS = 1
"""A letter that was given back so often is laid anew at the queue's end when it stays: a quorum queue throws away what
comes back oftener than its delivery limit, which nobody tells, and each pass, dry or not, gives back what stays."""
STALL_SECONDS = 30.0
"""So long a queue may say that letters wait and give none, while none of those that it gave is out."""
_CHUNK = 500
"""Letters that are put in order together at most."""


class Redrive:
    """One pass; `tell` is told how far it is, now and then."""

    def __init__(
        self,
        queue: LetterQueue,
        lane: Lane,
        monitor: DepthMonitor,
        audit: Audit,
        choice: Choice,
        pace: Pace,
        *,
        is_dry: bool = False,
        tell: Callable[[Count], None] = lambda _: None,
    ) -> None:
        self._queue = queue
        self._lane = lane
        self._monitor = monitor
        self._audit = audit
        self._choice = choice
        self._pace = pace
        self._is_dry = is_dry
        self._outlook = Outlook(monitor, choice.settings)
        self._tell = tell
        self.count = Count()
        self.halted: set[Partition] = set()
        """Of these nothing more is sent: a letter was nacked or is unknown, and the next would overtake it."""
        self._out: dict[int, Going] = {}
        """By tag: handed to the lane, without an outcome."""
        self._confirmed: list[Going] = []
        """Neither recorded nor taken off the queue yet."""
        self._repeats: dict[tuple[object, ...], list[TakenLetter]] = {}
        """By event: letters of one that is out."""
        self._sent: set[tuple[object, ...]] = set()
        """Events that this pass has confirmed."""
        self._copies: list[TakenLetter] = []
        self._stayed: list[TakenLetter] = []
        """Not told to the queue yet."""
        self._watched: dict[str, None] = {}
        """Queues that are looked at."""
        self._waited_for: dict[frozenset[str], float] = {}
        """Since when nothing was let go to queues."""
        self._told_at = 0.0
        self.is_stopping = False
        self._is_over = False
        """Nothing is out any more; what is confirmed is still to be settled."""

    async def run(self) -> None:
        """Make the pass. Raises `BrokerError` if the queue of letters is lost, `OSError` if nothing can be recorded.

        However it ends, what is not acknowledged is the queue's again; `count` says what was done.
        """
        self.count.waiting = await self._queue.open()
        looking = asyncio.create_task(self._look(), name="depths")
        settling = asyncio.create_task(self._settle(), name="settle")
        passing = asyncio.create_task(self._pass(), name="pass")
        tasks = (passing, looking, settling)
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done():
                    task.result()
            self._is_over = True
            await settling
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._end()

    def stop(self) -> None:
        """Send nothing more; `run` returns when what is out has its outcome and is recorded."""
        self.is_stopping = True

    def on_outcome(self, letters: Sequence[Going], outcome: Outcome, reason: Reason | None, detail: str) -> None:
        """Take the outcome of letters of one partition."""
        why = {Outcome.NACKED: Stay.NACKED, Outcome.UNKNOWN: Stay.UNKNOWN}.get(outcome, Stay.REFUSED)
        for going in letters:
            if self._out.pop(going.taken.tag, None) is None:
                continue
            repeats = self._repeats.pop(going.name, [])
            if outcome is Outcome.CONFIRMED:
                self.count.confirmed += 1
                self._sent.add(going.name)
                self._confirmed.append(going)
                self._copies += repeats
                continue
            if outcome is not Outcome.UNDELIVERABLE:
                self.halted.add(going.letter.partition)
            said = ", ".join(part for part in (str(reason or ""), detail) if part)
            for taken in (going.taken, *repeats):
                self._stay(taken, why, said)

    async def _pass(self) -> None:
        is_last, vain = False, 0
        while self.count.taken < self.count.waiting and not self.is_stopping:
            await self._give_room()
            letters = await self._queue.take(TAKE_SECONDS)
            if not letters:
                if is_last:
                    break  # fewer than there were: they expired, or somebody has purged the queue
                is_last = (left := await self._queue.waiting()) == 0
                vain = 0 if self._out or self._confirmed else vain + 1
                if vain * TAKE_SECONDS > STALL_SECONDS:
                    raise BrokerError(stalled(left))
                continue
            is_last, vain = False, 0
            room = self.count.waiting - self.count.taken
            self.count.taken += min(room, len(letters))
            for taken in letters[room:]:
                self._stay(taken, Stay.LATER)
            for start in range(0, min(room, len(letters)), _CHUNK):
                await self._take_on(letters[start : min(room, start + _CHUNK)])
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(OUTCOME_SECONDS):
                while self._out:  # noqa: ASYNC110 - outcomes come by the hundred, and this is looked at once
                    await asyncio.sleep(SETTLE_SECONDS)
        await self._give_room()

    async def _take_on(self, letters: Sequence[TakenLetter]) -> None:
        """Judge, put in the order of their partitions, send."""
        going: list[Going] = []
        for taken in letters:
            judged = self._choice.judge(taken)
            if isinstance(judged, Stay):
                self._stay(taken, judged)
            elif self._is_dry and (why := await self._outlook.lacks(judged)):
                self._stay(taken, Stay.BLIND, why)
            elif self._is_dry:
                self.count.on_redriven(judged)
                self._stayed.append(taken)
            else:
                going.append(judged)
        going.sort(key=place)
        for route, several in groupby(going, key=lambda one: one.event_type.route):
            await self._send(self._choice.settings.routes[route], list(several))
        await self._give_room()

    async def _send(self, route: Route, going: Sequence[Going]) -> None:
        """Send letters of one route as the pace allows."""
        loop = asyncio.get_running_loop()
        at = 0
        while at < len(going):
            ways = {one.event_type.name: one.event_type for one in going[at : at + _CHUNK]}
            queues = {queue for kind in ways.values() for queue in route.way(kind.name, kind.routing_key)}
            self._watched.update(dict.fromkeys(queues))
            while not (count := self._pace.admit(len(going) - at, queues, loop.time())):
                if self.is_stopping:
                    for one in going[at:]:
                        self._stay(one.taken, Stay.UNFINISHED)
                    return
                began = self._waited_for.setdefault(frozenset(queues), loop.time())
                if loop.time() - max(began, self._pace.blind_since(queues)) > BLIND_SECONDS:
                    said = f"nothing is known of {', '.join(sorted(queues))}"
                    for one in going[at:]:
                        self._stay(one.taken, Stay.BLIND, said)
                    return
                await asyncio.sleep(max(self._pace.wait(), SETTLE_SECONDS / 10))
                await self._give_room()
            self._waited_for.pop(frozenset(queues), None)
            await self._publish(going[at : at + count])
            at += count

    async def _publish(self, going: Sequence[Going]) -> None:
        fresh = [one for one in going if not self._is_repeat(one)]
        for _, of_topic in groupby(fresh, key=lambda one: one.letter.partition.topic):
            batches = []
            for (partition, address), several in groupby(of_topic, key=lambda one: (one.letter.partition, one.address)):
                letters = list(several)
                rank = self._choice.settings.rank(letters[0].event_type.priority)
                events = [one.event for one in letters]
                batches.append(
                    Batch(
                        partition, events, 0, address, rank, Sending(letters, self.halted, self.on_outcome), is_old=True
                    )
                )
            try:
                await self._lane.publish(batches)
            finally:
                for batch in batches:
                    assert isinstance(batch.recipient, Sending)
                    for one in batch.recipient.letters[batch.done :]:
                        if self._out.pop(one.taken.tag, None) is not None:
                            for taken in (one.taken, *self._repeats.pop(one.name, [])):
                                self._stay(taken, Stay.BEHIND)

    def _is_repeat(self, one: Going) -> bool:
        """Tell whether a letter of the same event was confirmed, or is out; else take this one as out."""
        if one.letter.partition in self.halted:
            self._stay(one.taken, Stay.BEHIND)
            return True
        if one.name in self._sent:
            self._copies.append(one.taken)
            return True
        if one.name in self._repeats:
            self._repeats[one.name].append(one.taken)
            return True
        self._repeats[one.name] = []
        self._out[one.taken.tag] = one
        return False

    async def _look(self) -> None:
        """Look at the queues that are sent to."""
        while True:
            with contextlib.suppress(BrokerError):
                states = await self._monitor.poll(list(self._watched)) if self._watched else {}
                depths = (
                    (queue, None if state is None else 0 if state.kind is QueueKind.STREAM else state.ready)
                    for queue, state in states.items()
                )
                self._pace.on_depths(depths, asyncio.get_running_loop().time())
            await asyncio.sleep(LOOK_SECONDS)

    async def _settle(self) -> None:
        while not self._is_over or self._confirmed or self._copies:
            await asyncio.sleep(SETTLE_SECONDS)
            await self._settle_once()
            now = asyncio.get_running_loop().time()
            if now - self._told_at >= TELL_SECONDS:
                self._told_at = now
                self._tell(self.count)

    async def _settle_once(self) -> None:
        """Record what is confirmed, then take its letters off."""
        confirmed, copies = list(self._confirmed), list(self._copies)
        if not confirmed and not copies:
            return
        await self._audit.write(confirmed)
        await self._queue.acknowledge([*(one.taken.tag for one in confirmed), *(one.tag for one in copies)])
        del self._confirmed[: len(confirmed)], self._copies[: len(copies)]
        for one in confirmed:
            self.count.on_redriven(one)
        self.count.copies += len(copies)

    def _stay(self, taken: TakenLetter, why: Stay, detail: str = "") -> None:
        self.count.on_stay(taken, why, detail)
        self._stayed.append(taken)

    async def _give_room(self) -> None:
        """Tell the queue of letters that stay, so that others come; lay anew what came back too often."""
        stayed, self._stayed = self._stayed, []
        worn = [taken for taken in stayed if taken.returned >= RETURNS]
        self._queue.keep([taken for taken in stayed if taken.returned < RETURNS])
        if worn:
            await self._queue.lay_anew(worn)
            self.count.anew += len(worn)

    def _end(self) -> None:
        """Count what has no outcome: the lane may have written it."""
        for going in self._out.values():
            for taken in (going.taken, *self._repeats.pop(going.name, [])):
                self.count.on_stay(taken, Stay.UNKNOWN)
        self._out.clear()
        seen = self.count.done + self.count.copies + sum(self.count.stayed.values()) - self.count.stays(Stay.LATER)
        for _ in range(self.count.taken - seen - len(self._confirmed)):
            self.count.stayed[Stay.UNFINISHED, "", ""] += 1
