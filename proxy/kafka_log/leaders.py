"""Who leads each partition, by the newest answer of any node: a node that was cut off from the others brings none back.

Such a node goes on telling its clients what it knew last, itself as a leader, and answers their fetches with nothing.
Each leader has an epoch, which only grows as long as the topic has its id (KIP-320); Kafka's own client goes by it,
aiokafka knows none.
"""

from collections.abc import Collection
from typing import Any, NamedTuple

from aiokafka.protocol.metadata import MetadataResponse_v5

from proxy.kafka_log.protocol import TopicsRequest, leaders
from proxy.kafka_log.questions import Came, Question
from proxy.kafka_log.topic_ids import NO_IDS, TopicIds


class _Led(NamedTuple):
    epoch: int
    leader: int


class Leaders:
    """What one client was told last of the topics that it asks for."""

    def __init__(self) -> None:
        self.ids = NO_IDS
        """The same object as long as they are the same."""
        self._newest: dict[tuple[str, int], _Led] = {}
        """By the topic's id and the partition's number."""
        self._topics: frozenset[str] = frozenset()
        self._question: Question | None = None

    def question(self, topics: Collection[str]) -> Question:
        """Return the question for the leaders of the topics, none: of all; the same as before for the same topics.

        The library's own would have Kafka create what is missing: a topic deleted while it is read would return at
        once, empty and with the broker's default settings.
        """
        if self._question is None or self._topics != topics:
            self._topics = frozenset(topics)
            self._question = Question(TopicsRequest(self._topics or None, with_rights=False))
        return self._question

    def take(self, came: Came, cluster: Any) -> bool:
        """Let the library's metadata follow an answer; return whether anything may be another than before."""
        if came.response is None:
            for listen in tuple(cluster._listeners):  # noqa: SLF001  # the group compares these with its own knowledge
                listen(cluster)
            return False
        cluster.update_metadata(self.settled(came.response))
        came.keep()
        return True

    def settled(self, response: Any) -> MetadataResponse_v5:
        """Return the answer to a `TopicsRequest` as aiokafka's own, with the newest leader known of each partition.

        An answer without ids, as brokers before 2.8 give it, is believed as it is.
        """
        newest: dict[tuple[str, int], _Led] = {}
        topics, ids = [], {}
        for error, name, topic_id, is_internal, partitions in leaders(response):
            settled = []
            ids[name] = topic_id
            for trouble, number, leader, epoch, *rest in partitions:
                led = _Led(epoch, leader)
                if topic_id:
                    led = newest[topic_id, number] = max(led, self._newest.get((topic_id, number), led), key=_epoch)
                settled.append((trouble, number, led.leader, *rest))
            topics.append((error, name, is_internal, settled))
        self._newest = newest
        told = TopicIds.printed(ids)
        if told != self.ids:
            self.ids = told
        brokers = [tuple(broker[:4]) for broker in response.brokers]  # node, host, port, rack
        return MetadataResponse_v5(
            response.throttle_time_ms, brokers, response.cluster_id, response.controller_id, topics
        )


def _epoch(led: _Led) -> int:
    return led.epoch
