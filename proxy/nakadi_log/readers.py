"""The readers of all event types: begun, looked after, ended."""

import asyncio
from collections.abc import Iterable

from proxy.nakadi_log.around import Around
from proxy.nakadi_log.reader import Reader
from proxy.nakadi_log.session import Session

LOOK_SECONDS = 0.5
"""Between two looks at what every stream holds."""


class Readers:
    """One for each event type that is read."""

    def __init__(self) -> None:
        self.by_topic: dict[str, Reader] = {}
        self.failure: BaseException | None = None
        """What ended one that should not have ended."""
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._changes = asyncio.Lock()
        self._keeper: asyncio.Task[None] | None = None
        self._around: Around

    @property
    def is_begun(self) -> bool:
        """Whether anything may be read."""
        return self._keeper is not None

    def begin(self, around: Around) -> None:
        """Look after those that there will be."""
        self._around = around
        self._keeper = asyncio.create_task(self._keep(), name="nakadi-keeper")

    async def read(self, topics: frozenset[str]) -> list[str]:
        """Read these and no others; return those that are not read any more, when their last commit is made."""
        async with self._changes:
            gone = [topic for topic in self.by_topic if topic not in topics]
            readers = [self.by_topic.pop(topic) for topic in gone]
            for topic in gone:
                self._tasks[topic].cancel()
            if gone:
                await asyncio.wait([self._tasks.pop(topic) for topic in gone])
                sessions = [one.session for one in readers if one.session is not None]
                end = self._around.endings.end
                await asyncio.gather(*(end(one, list(one.shares.values())) for one in sessions))
            for topic in sorted(topics - self.by_topic.keys()):
                reader = self.by_topic[topic] = Reader(topic, self._around)
                task = self._tasks[topic] = asyncio.create_task(reader.run(), name=f"nakadi-reader {topic}")
                task.add_done_callback(self._on_done)
            return gone

    def wake(self, topics: Iterable[str]) -> None:
        """Have readers look again whether more is wanted."""
        for topic in topics:
            if topic in self.by_topic:
                self.by_topic[topic].wake()

    def on_taken(self, session: Session) -> None:
        """Note that a commit of a stream was taken, or refused for good."""
        self._around.proven_at = asyncio.get_running_loop().time()
        self.wake(share.partition.topic for share in session.shares.values())

    def are_beyond_hope(self) -> bool:
        """Return whether Nakadi may have given away what one of them holds."""
        now = asyncio.get_running_loop().time()
        return any(reader.is_beyond_hope(now) for reader in self.by_topic.values())

    def refused(self, *statuses: int) -> frozenset[str]:
        """Return the event types that can't be read now for one of these reasons."""
        refusals = {topic: reader.refusal for topic, reader in self.by_topic.items()}
        return frozenset(topic for topic, why in refusals.items() if why is not None and why.status in statuses)

    async def stop(self) -> None:
        """Read nothing any more; commits nothing."""
        tasks = [*self._tasks.values(), *([self._keeper] if self._keeper is not None else [])]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
            self._around.stirred.set()

    def _on_done(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.failure = error
            self._around.stirred.set()

    async def _keep(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            now = clock()
            for reader in list(self.by_topic.values()):
                reader.look(now)
