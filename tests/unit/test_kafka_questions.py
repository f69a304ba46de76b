"""Questions that are asked again: written once, and an answer that is the one that was kept is not read again."""

import asyncio
import struct
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import BytesIO
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition, errors
from aiokafka.protocol.offset import OffsetRequest, OffsetResponse_v1, OffsetResponse_v2, OffsetResponse_v3
from hypothesis import given
from hypothesis import strategies as st

from proxy.errors import LogError
from proxy.kafka_log.client import Reach, teach_manners
from proxy.kafka_log.inquiry import _KEPT, Inquiry
from proxy.kafka_log.network import Network
from proxy.kafka_log.nodes import Bounds
from proxy.kafka_log.protocol import TopicsRequest
from proxy.kafka_log.questions import Came, Question
from proxy.model import Partition
from proxy.settings import LogSettings
from tests.support.scripted_kafka import ScriptedKafka, scripted_kafka

OFFSETS = OffsetRequest(-1, 0, [("orders", [(0, -1), (1, -1)])])
NEWEST = {OffsetRequest.API_KEY: (0, 3)}
ENOUGH = 10.0
ONE, TWO = Partition("orders", 0), Partition("orders", 1)
NOT_LEADER = errors.NotLeaderForPartitionError.errno


def told(offset: int, throttle: int = 0) -> bytes:
    return bytes(OffsetResponse_v3(throttle, [("orders", [(0, 0, -1, offset)])]).encode())


def came(question: Question, body: bytes, versions: dict[int, tuple[int, int]] = NEWEST) -> Came:
    answer = question.prepare(versions).RESPONSE_TYPE.decode(BytesIO(body))
    assert isinstance(answer, Came)
    return answer


def test_an_answer_is_read_again_when_it_is_another_than_the_one_that_was_kept() -> None:
    question = Question(OFFSETS)
    first = came(question, told(5, throttle=7))
    assert first.response.topics == [("orders", [(0, 0, -1, 5)])]
    assert came(question, told(5, throttle=7)).response is not None, "nobody has kept it"
    first.keep("five")
    again = came(question, told(5, throttle=7))
    assert (again.response, again.value, again.throttle_time_ms) == (None, "five", 7)
    assert came(question, told(6)).response is not None
    assert came(question, told(5, throttle=7)).response is None, "what was not kept has changed nothing"


def test_answers_are_told_apart_when_they_come_in_different_versions() -> None:
    question = Question(OFFSETS)
    body = bytes(OffsetResponse_v1([("orders", [])]).encode())
    older = came(question, body, {OffsetRequest.API_KEY: (0, 1)})
    older.keep("older")
    with pytest.raises(ValueError, match=r"."):
        came(question, body)


def test_what_was_kept_stands_when_an_answer_is_kept_while_another_is_looked_at() -> None:
    question = Question(OFFSETS)
    came(question, told(5)).keep("five")
    late = came(question, told(5))
    came(question, told(6)).keep("six")
    assert late.value == "five"


@given(st.sets(st.text(min_size=1, max_size=9)), st.booleans(), st.integers(8, 12))
def test_a_question_is_on_the_wire_what_the_request_is_when_it_is_asked_a_second_time(
    names: set[str], with_rights: bool, newest: int
) -> None:
    versions = {TopicsRequest.API_KEY: (0, newest)}
    request = TopicsRequest(names, with_rights=with_rights)
    question, plain = Question(request), request.prepare(versions)
    for number in range(2):
        asked = question.prepare(versions)
        assert asked.encode() == plain.encode()
        header = asked.build_request_header(correlation_id=number, client_id="tidegate")
        assert header.encode() == plain.build_request_header(correlation_id=number, client_id="tidegate").encode()


@asynccontextmanager
async def network(kafka: ScriptedKafka, seconds: float = ENOUGH) -> AsyncIterator[Network]:
    teach_manners()
    client = Network(bootstrap_servers=kafka.hosts, request_timeout_ms=round(1000 * seconds))
    client.bounds = Bounds(seconds)
    try:
        async with asyncio.timeout(ENOUGH):
            await client.bootstrap()
            yield client
    finally:
        await client.close()


async def test_metadata_are_taken_over_once_when_nothing_has_changed_and_the_library_is_told_all_the_same() -> None:
    async with scripted_kafka(1) as kafka:
        kafka.leaders = {tuple(ONE): 1}
        async with network(kafka) as client:
            await client.set_topics({"orders"})
            changes: list[int] = []
            looks: list[int] = []
            client.on_metadata.append(lambda: changes.append(1))
            client.cluster.add_listener(lambda _: looks.append(1))
            for _ in range(3):
                assert await client.force_metadata_update()
            assert not changes
            assert len(looks) == 3
            kafka.leaders = {tuple(ONE): 1, tuple(TWO): -1}
            assert await client.force_metadata_update()
            assert (len(changes), len(looks)) == (1, 4)
            assert client.cluster.leader_for_partition(TopicPartition(*TWO)) == -1
            kafka.leaders = {tuple(ONE): 1}
            assert await client.force_metadata_update()
            assert client.cluster.leader_for_partition(TopicPartition(*TWO)) is None
            assert len(changes) == 2


async def test_metadata_are_asked_for_by_other_words_when_other_topics_are_to_be_known() -> None:
    async with scripted_kafka(1) as kafka:
        kafka.leaders = {tuple(ONE): 1}
        async with network(kafka) as client:
            await client.set_topics({"orders"})
            asked: list[Any] = []
            kafka.nodes[0].answers["MetadataRequest"] = lambda request: asked.append(request) or kafka.metadata(request)  # type: ignore[func-returns-value]
            await client.set_topics({"orders", "others"})
            await client.force_metadata_update()
            assert [sorted(one.topics) for one in asked] == [["orders", "others"]] * 2


class Cluster:
    """A Kafka that tells offsets, and an inquiry that asks it."""

    def __init__(self, kafka: ScriptedKafka, client: Network) -> None:
        self.kafka = kafka
        self.client = client
        self.ends = {ONE: 5, TWO: 7}
        self.errors: dict[Partition, int] = {}
        settings = LogSettings(hosts=kafka.hosts, group="g")
        self.inquiry = Inquiry(client, settings, Reach(kafka.hosts))
        for node in kafka.nodes:
            node.answers["OffsetRequest"] = self._tell

    def _tell(self, request: Any) -> OffsetResponse_v2:
        rows = {
            topic: [
                (number, self.errors.get(at, 0), -1, self.ends[at])
                for number, _ in numbers
                if (at := Partition(topic, number)) in self.ends
            ]
            for topic, numbers in request.topics
        }
        return OffsetResponse_v2(0, list(rows.items()))


@asynccontextmanager
async def cluster() -> AsyncIterator[Cluster]:
    async with scripted_kafka(2) as kafka:
        kafka.leaders = {tuple(ONE): 1, tuple(TWO): 2}
        async with network(kafka) as client:
            yield Cluster(kafka, client)


async def test_ends_are_what_the_leaders_tell_when_the_same_are_asked_for_again_and_again() -> None:
    async with cluster() as world:
        for _ in range(3):
            assert await world.inquiry.ends([ONE, TWO]) == {ONE: 5, TWO: 7}
        world.ends[TWO] = 9
        assert await world.inquiry.ends([ONE, TWO]) == {ONE: 5, TWO: 9}
        assert await world.inquiry.ends([ONE]) == {ONE: 5}
        found = await world.inquiry.ends([ONE, TWO])
        found.clear()
        assert await world.inquiry.ends([ONE, TWO]) == {ONE: 5, TWO: 9}, "what was given away is not what is kept"


async def test_the_new_leader_is_asked_for_an_end_when_the_one_before_leads_no_more() -> None:
    async with cluster() as world:
        first, second = world.kafka.nodes
        assert await world.inquiry.ends([ONE, TWO]) == {ONE: 5, TWO: 7}
        world.errors[TWO] = NOT_LEADER
        assert await world.inquiry.ends([ONE, TWO]) == {ONE: 5}
        assert await world.inquiry.ends([ONE, TWO]) == {ONE: 5}, "an answer that tells of a move is not kept"
        world.kafka.leaders[tuple(TWO)] = first.number
        world.errors.clear()
        await world.client.force_metadata_update()
        asked = second.asked["OffsetRequest"]
        assert await world.inquiry.ends([ONE, TWO]) == {ONE: 5, TWO: 7}
        assert second.asked["OffsetRequest"] == asked


async def test_leaders_are_looked_up_each_time_when_ends_are_asked_for_and_one_has_none() -> None:
    async with cluster() as world:
        world.kafka.leaders[tuple(TWO)] = -1
        await world.client.force_metadata_update()
        updates: list[int] = []
        for _ in range(2):
            updates.append(
                world.kafka.nodes[0].asked["MetadataRequest"] + world.kafka.nodes[1].asked["MetadataRequest"]
            )
            assert await world.inquiry.ends([ONE, TWO]) == {ONE: 5}
            await world.client.force_metadata_update()
        assert updates[1] > updates[0]
        world.kafka.leaders[tuple(TWO)] = 2
        await world.client.force_metadata_update()
        assert await world.inquiry.ends([ONE, TWO]) == {ONE: 5, TWO: 7}


async def test_the_question_for_ends_fails_when_a_leader_is_silent_although_it_answered_before() -> None:
    async with cluster() as world:
        assert await world.inquiry.ends([TWO]) == {TWO: 7}
        world.kafka.nodes[1].is_silent = True
        world.client.bounds = Bounds(0.05)
        with pytest.raises(LogError):
            await world.inquiry.ends([TWO])


async def test_a_topic_has_its_new_id_when_it_was_made_anew_between_two_questions() -> None:
    ids = {"orders": "one", "others": "two"}

    inquiry = asked_of(ids)
    for _ in range(2):
        assert await inquiry.topic_ids(["orders", "others"]) == {"orders": named("one"), "others": named("two")}
    ids["orders"] = "six"
    assert await inquiry.topic_ids(["others", "orders"]) == {"orders": named("six"), "others": named("two")}


async def test_no_more_questions_for_ids_are_kept_than_are_allowed_when_ever_others_are_asked_for() -> None:
    inquiry = asked_of({})
    for number in range(3 * _KEPT):
        await inquiry.topic_ids([f"orders-{number}"])
        await inquiry.topic_ids(["orders"])
    assert len(inquiry._ids) == _KEPT
    assert frozenset({"orders"}) in inquiry._ids


def asked_of(ids: dict[str, str]) -> Inquiry:
    """Return an inquiry at a node that answers with ids, as version 8 can not."""

    async def ask_any(question: Question, _: str) -> Came:
        return answered(question.prepare({TopicsRequest.API_KEY: (0, 10)}), ids)

    client: Any = SimpleNamespace(on_metadata=[], ask_any=ask_any)
    return Inquiry(client, LogSettings(hosts=["h:1"], group="g"), Reach(["h:1"]))


def named(told: str) -> str:
    """Return an id as the tools print it."""
    return urlsafe_b64encode(told.encode().ljust(16)).rstrip(b"=").decode()


def answered(form: Any, ids: dict[str, str]) -> Came:
    """Return what a node answers that knows topics of these ids, without partitions."""
    body = struct.pack(">i", 0) + b"\x01" + b"\x00" + struct.pack(">i", 1) + bytes([len(ids) + 1])
    for name, told in ids.items():
        body += struct.pack(">h", 0) + bytes([len(name) + 1]) + name.encode() + told.encode().ljust(16)
        body += b"\x00" + b"\x01" + struct.pack(">i", 0) + b"\x00"
    came = form.RESPONSE_TYPE.decode(BytesIO(body + struct.pack(">i", 0) + b"\x00"))
    assert isinstance(came, Came)
    return came
