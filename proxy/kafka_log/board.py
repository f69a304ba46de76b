"""The board over Kafka: a topic of Tidegate's own, `<group>.tidegate` (docs/design/0043-interventions.md)."""

import asyncio

from aiokafka import errors

from proxy.access import Access
from proxy.errors import LogError, RefusedLoginError
from proxy.kafka_log.notes import found, written
from proxy.kafka_log.own_topic import Member, OwnTopic, UnansweredError
from proxy.model import Note
from proxy.positions.port import EARLIEST, LATEST
from proxy.settings import LogSettings

LOOK_SECONDS = 5.0
"""Until it is looked again whether there is a board, and whether it is still the same."""
CONFIGS = {"cleanup.policy": "compact,delete", "retention.ms": str(14 * 86_400_000)}
"""Of the topic: a note is kept for twice as long as an intervention may last."""

_RIGHTS = "; a command needs Create, Read and Write there, a replica Read and Write"


class KafkaBoard:
    """One group's board. Every method but `close` takes 5 s at most, and is told what is wrong by `LogError`.

    Whoever asks for members needs Describe on the group. Calls may be made side by side.
    """

    def __init__(self, settings: LogSettings, *, access: Access | None = None) -> None:
        """Make one; without `access` it logs in with what `settings.security` names."""
        self._topic = OwnTopic(settings.board_topic, settings, access)
        self._id: str | None = None
        """Of the topic that is read; None while there is none, as far as is known."""
        self._look_at = 0.0
        """By the loop's clock: when the topic is to be looked for."""
        self._next = 0
        """The offset that is read next."""
        self._unread: list[Note] = []
        """Read from Kafka, and not returned yet."""
        self._reading = asyncio.Lock()

    @property
    def topic(self) -> str:
        """The topic's name."""
        return self._topic.name

    @property
    def is_there(self) -> bool:
        """Whether the topic existed when it was read last."""
        return self._id is not None

    async def open(self) -> None:
        """Connect and log in, as every call does that finds it not done. Raises `RefusedLoginError`, too."""
        await self._topic.answered(_nothing)

    async def create(self) -> None:
        """Create the board if there is none. Raises `RefusedLoginError`, too."""
        try:
            await self._topic.answered(self._create)
        except UnansweredError:
            raise
        except LogError as error:
            raise LogError(
                f"topic {self.topic}, where interventions are kept, can't be created: {error}{_RIGHTS}"
            ) from error
        self._look_at = 0.0

    async def news(self) -> list[Note]:
        """Return what was pinned since the last call, at first all that is kept; see `Board.news`.

        A board that was made, or deleted, or made anew, is noticed within 5 s; some notes of one made anew may come
        before, and again with all. What a deleted one said is not taken back: whoever has read it goes by it until it
        ends.
        """
        async with self._reading:
            try:
                return await self._topic.answered(self._news)
            except RefusedLoginError as error:
                raise LogError(str(error)) from error

    async def pin(self, key: str, value: bytes | None) -> None:
        """Pin a note; back when all replicas of the topic that are in sync have it."""
        batch = written(key, value)
        try:
            await self._topic.answered(lambda: self._topic.append(batch))
        except RefusedLoginError as error:
            raise LogError(str(error)) from error
        if self._id is None:
            self._look_at = 0.0

    async def members(self) -> list[Member]:
        """Return the replicas that are in the group now. Raises `RefusedLoginError`, too."""
        return await self._topic.answered(self._topic.members)

    async def close(self) -> None:
        """Close the connections. Idempotent."""
        await self._topic.close()

    async def _create(self) -> None:
        if await self._topic.id() is None:
            await self._topic.create(CONFIGS)

    async def _news(self) -> list[Note]:
        now = asyncio.get_running_loop().time()
        if now >= self._look_at:
            topic_id = await self._topic.id()
            if topic_id != self._id:
                self._id, self._next = topic_id, 0
            self._look_at = now + LOOK_SECONDS
        if self._id is not None:
            await self._read()
        unread, self._unread = self._unread, []
        return unread

    async def _read(self) -> None:
        """Read up to where the board ends now."""
        try:
            end = await self._topic.offset(LATEST)
            if end < self._next:  # made anew
                self._next = 0
            while self._next < end:
                await self._read_on()
        except errors.UnknownTopicOrPartitionError:
            self._look_at = 0.0
            raise

    async def _read_on(self) -> None:
        try:
            records = await self._topic.fetch(self._next)
        except errors.OffsetOutOfRangeError:  # what stood there is no longer kept
            self._next = await self._topic.offset(EARLIEST)
        else:
            notes, self._next = found(records, self._next)
            self._unread += notes


async def _nothing() -> None:
    """Ask nothing."""
