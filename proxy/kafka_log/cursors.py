"""A group's cursors, seen and moved from outside the group, for the commands `skip` and `rewind`."""

import asyncio
from collections.abc import Collection, Mapping

from aiokafka import TopicPartition, errors

from proxy.access import Access, log_access
from proxy.errors import LogError
from proxy.kafka_log.answer import UNREADABLE
from proxy.kafka_log.client import Reach, log_in, options, teach_manners
from proxy.kafka_log.fetch_sessions import Fetch, Wish
from proxy.kafka_log.group import GroupCoordinator
from proxy.kafka_log.inquiry import Inquiry
from proxy.kafka_log.login import Credentials
from proxy.kafka_log.network import Network
from proxy.kafka_log.nodes import QUIET, Nodes
from proxy.kafka_log.protocol import TopicsRequest, leaders, topics
from proxy.kafka_log.range_count import RangeCount
from proxy.kafka_log.words import unanswered
from proxy.model import Partition
from proxy.positions.identity import Committed, Found
from proxy.positions.port import Membership
from proxy.settings import LogSettings

ANSWER_SECONDS = 5.0
"""One question, trying again included."""
_PAUSE = 0.1
_NO_SESSION = (0, -1)
_BYTES = 4 * 1024**2
_NOBODY = Membership(-1, "")
"""Who commits for a group that has no member."""


class KafkaCursors:
    """One group's cursors. Every method but `close` raises `LogError` if Kafka refuses or does not answer in time."""

    def __init__(self, settings: LogSettings, *, access: Access | None = None) -> None:
        """Make one; without `access` it logs in with what `settings.security` names."""
        self._settings = settings
        self._access = access
        self._client: Network
        self._made: Network | None = None
        self._inquiry: Inquiry
        self._group: GroupCoordinator

    async def open(self) -> None:
        """Connect and log in. Raises `RefusedLoginError`, too."""
        settings = self._settings
        teach_manners()
        credentials = Credentials(self._access or log_access(settings.security))
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                host = await log_in(settings, options(settings, credentials, request_seconds=ANSWER_SECONDS))
                seconds = settings.answer_deadline
                client = self._made = Network(**options(settings, credentials, request_seconds=seconds, first=host))
                client.nodes = Nodes(asyncio.get_running_loop().time, QUIET)
                await client.bootstrap()
        except (TimeoutError, OSError, errors.KafkaError) as error:
            raise LogError(unanswered(error, settings)) from error
        self._client, reach = client, Reach(settings.hosts, QUIET)
        self._inquiry = Inquiry(client, settings, reach)
        self._group = GroupCoordinator(client, settings, reach, ANSWER_SECONDS)

    async def close(self) -> None:
        """Close the connections. Idempotent."""
        made, self._made = self._made, None
        if made is not None:
            await made.close()

    async def topics(self) -> dict[str, Found]:
        """Return every topic that this login may read."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                told = await self._client.ask_any(TopicsRequest(None, with_rights=True), "topics")
        except (TimeoutError, errors.KafkaError) as error:
            raise LogError(f"Kafka does not tell its topics: {error}") from error
        known = topics(told)
        return {
            name: Found(known[name].id, tuple(sorted(one[1] for one in partitions)))
            for name, error, partitions in ((name, error, parts) for error, name, _, _, parts in leaders(told))
            if not error and name in known and known[name].may_read
        }

    async def committed(self) -> dict[Partition, Committed | None]:
        """Return everything that the group has committed; None is what it can't tell of now."""
        return await self._group.committed()

    async def offsets(self, times: Mapping[Partition, int]) -> dict[Partition, int]:
        """Return the first offset at or after a time, one each; see `Inquiry.offsets`. Raises if one is not told."""
        clock = asyncio.get_running_loop().time
        end, found = clock() + ANSWER_SECONDS, dict[Partition, int]()
        while missing := {at: time for at, time in times.items() if at not in found}:
            if clock() >= end:
                raise LogError(f"Kafka does not tell the offsets of {min(missing)}: no node leads it")
            found |= await self._inquiry.offsets(missing)
            await asyncio.sleep(0 if len(found) == len(times) else _PAUSE)
        return found

    async def commit(self, offsets: Mapping[Partition, Committed]) -> Collection[Partition]:
        """Commit for a group that has no member; return what it took.

        Raises `AssignmentLostError` if the group has one.
        """
        return (await self._group.commit(_NOBODY, offsets)).partitions

    def range(self, first: int, end: int, before_ms: int | None) -> RangeCount:
        """Return the count of a range, of which nothing is read yet."""
        return RangeCount(first, end, before_ms, self._settings.batch_bytes)

    async def read_on(self, partition: Partition, count: RangeCount) -> None:
        """Read on in a range, some MiB at most."""
        at, isolation = TopicPartition(*partition), int(self._settings.isolation_level == "read_committed")
        wish = Wish(wait_ms=100, least_bytes=1, most_bytes=_BYTES, isolation=isolation, partition_bytes=_BYTES)
        failure: Exception = TimeoutError()
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                while True:
                    try:
                        leader = self._client.cluster.leader_for_partition(at)
                        if leader in {None, -1}:
                            raise errors.LeaderNotAvailableError(f"no node leads {partition}")
                        answer = await self._client.fetch(
                            leader, Fetch(wish, _NO_SESSION, {at: count.next}, (), {at: count.next})
                        )
                        (told,) = answer.told
                        for error in (answer.error_code, told.error):
                            if error:
                                raise errors.for_code(error)(f"partition {partition}")
                        count.take(bytes(told.records), told.aborted or ())
                    except UNREADABLE:
                        raise
                    except errors.KafkaError as error:
                        failure = error
                        if not error.retriable:
                            raise
                        self._client.force_metadata_update()
                    else:
                        return
                    await asyncio.sleep(_PAUSE)
        except (TimeoutError, UnicodeDecodeError, errors.KafkaError) as error:
            why = failure if isinstance(error, TimeoutError) else error
            raise LogError(f"{partition} can't be read at offset {count.next}: {why or 'no answer in time'}") from error
