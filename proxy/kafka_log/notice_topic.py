"""Notices to a topic of the log's own cluster, keyed by route."""

from proxy.access import Access
from proxy.errors import LogError, NoticeError, RefusedLoginError
from proxy.kafka_log.notes import written
from proxy.kafka_log.own_topic import OwnTopic
from proxy.settings import LogSettings


class NoticeTopic:
    """A `Destination` of `operations.notices`. The topic must exist; all goes to its partition 0."""

    def __init__(self, topic: str, settings: LogSettings, *, access: Access | None = None) -> None:
        """Make one; without `access` it logs in with what `settings.security` names."""
        self._topic = OwnTopic(topic, settings, access)

    @property
    def name(self) -> str:
        """The topic's."""
        return f"topic {self._topic.name}"

    async def send(self, route: str, body: bytes) -> None:
        """Write a notice; back when all replicas of the topic that are in sync have it. Raises `NoticeError`."""
        batch = written(route, body)
        try:
            await self._topic.answered(lambda: self._topic.append(batch))
        except (LogError, RefusedLoginError) as error:
            raise NoticeError(str(error)) from error

    async def close(self) -> None:
        """Close the connections. Idempotent."""
        await self._topic.close()
