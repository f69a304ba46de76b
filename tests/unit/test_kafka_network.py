"""The library's client among nodes of which one is silent, slow, or not where it is said to be."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiokafka import TopicPartition, errors
from aiokafka.client import ConnectionGroup
from aiokafka.protocol.admin import ApiVersionResponse_v0
from aiokafka.protocol.coordination import FindCoordinatorResponse_v0
from aiokafka.protocol.fetch import FetchResponse_v4
from aiokafka.protocol.group import HeartbeatRequest, HeartbeatResponse_v0, JoinGroupRequest
from aiokafka.protocol.metadata import MetadataRequest_v5
from structlog.testing import capture_logs

from proxy.kafka_log.client import teach_manners
from proxy.kafka_log.connection import Connection
from proxy.kafka_log.fetch_sessions import Fetch, Wish
from proxy.kafka_log.network import Network
from proxy.kafka_log.nodes import CONNECT, REMEMBERED, Bounds, Nodes
from proxy.kafka_log.protocol import TopicsRequest
from tests.support.scripted_kafka import ScriptedKafka, scripted_kafka

ANSWER = 0.1
"""Seconds a node has for its answers here."""
ENOUGH = 10.0
"""Seconds in which everything ends that ends at all; the library's own timeouts are longer."""
HEARTBEAT = HeartbeatRequest("group", 1, "member")
ORDERS = {TopicPartition("orders", 0): 0}
FETCH = Fetch(Wish(0, 1, 1024, 0, 1024), (0, -1), ORDERS, (), ORDERS)


@pytest.fixture(autouse=True)
def another_is_asked_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.kafka_log.asking.ASK_ANOTHER", 0.05)


@asynccontextmanager
async def network(kafka: ScriptedKafka, *, gather: float = 60.0) -> AsyncIterator[Network]:
    """A client of the cluster, with the library's usual patience where ours is not asked."""
    teach_manners()
    client = Network(bootstrap_servers=kafka.hosts, request_timeout_ms=round(1000 * ENOUGH))
    client.bounds = Bounds(ANSWER, gather=gather)
    try:
        async with asyncio.timeout(ENOUGH):
            await client.bootstrap()
            yield client
    finally:
        await client.close()


async def held_join(kafka: ScriptedKafka, client: Network) -> asyncio.Future[Any]:
    """Return a join that the first node keeps waiting, once the client has looked whether the node still lives."""
    node = kafka.nodes[0]
    node.answers["JoinGroupRequest"] = lambda _: None
    join = JoinGroupRequest("group", 6000, 60_000, "", None, "consumer", [("roundrobin", b"")])
    joining = asyncio.ensure_future(client.send(1, join, group=ConnectionGroup.COORDINATION))
    await node.hears("ApiVersionRequest", 4)  # two connections, then questions
    return joining


def named(said: Any, event: str) -> list[str]:
    return [entry["node"].split()[0] for entry in said if entry["event"] == event]


async def test_the_hosts_of_the_settings_are_asked_when_no_node_is_where_it_was_said_to_be() -> None:
    async with scripted_kafka() as kafka:
        kafka.places = {node.number: ("127.0.0.1", 1) for node in kafka.nodes}
        async with network(kafka) as client:
            assert client.cluster.broker_metadata(1).port == 1
            kafka.places = {}
            with capture_logs() as said:
                async with asyncio.timeout(ENOUGH):
                    while client.cluster.broker_metadata(1).port == 1:
                        await client.force_metadata_update()
            assert {*named(said, "node_unavailable")} <= {"1", "2", "3"}, "a host of the settings is no node"
            assert not [at for at in client._conns if isinstance(at[0], str)]


async def test_the_others_are_asked_when_one_node_is_silent() -> None:
    async with scripted_kafka() as kafka, network(kafka) as client:
        kafka.nodes[0].is_silent = True
        for _ in range(9):
            await client.force_metadata_update()
        assert kafka.nodes[0].asked["MetadataRequest"] <= 1 + 1, "the bootstrap may have asked it, too"
        assert all(node.asked["MetadataRequest"] >= 4 for node in kafka.nodes[1:])


async def test_any_question_is_answered_when_two_of_three_nodes_are_silent() -> None:
    asked: list[None] = []

    def third(_: Any) -> FindCoordinatorResponse_v0 | None:
        asked.append(None)
        return FindCoordinatorResponse_v0(0, 1, "127.0.0.1", 1) if len(asked) == 3 else None

    async with scripted_kafka() as kafka:
        for node in kafka.nodes:
            node.answers["FindCoordinatorRequest"] = third
        async with network(kafka) as client:
            client.bounds = Bounds(ENOUGH)
            assert await client.coordinator_lookup(0, "group") == 1
            assert [node.asked["FindCoordinatorRequest"] for node in kafka.nodes] == [1, 1, 1]


async def test_a_connection_is_made_when_one_to_another_node_is_not_answered() -> None:
    async with scripted_kafka() as kafka:
        kafka.nodes[1].answers["HeartbeatRequest"] = lambda _: HeartbeatResponse_v0(0)
        async with network(kafka) as client:
            client.bounds = Bounds(ENOUGH)
            kafka.nodes[0].is_silent = True
            silent = asyncio.ensure_future(client.send(1, HEARTBEAT))
            await kafka.nodes[0].hears("ApiVersionRequest")
            assert (await client.send(2, HEARTBEAT)).error_code == 0
            assert not silent.done()
            silent.cancel()


async def test_a_silent_node_is_named_once_when_it_falls_silent_and_when_it_answers_again() -> None:
    async with scripted_kafka() as kafka, network(kafka) as client:
        heartbeats = {"HeartbeatRequest": lambda _: HeartbeatResponse_v0(0)}
        kafka.nodes[1].answers |= heartbeats
        await client.send(2, HEARTBEAT)
        with capture_logs() as said:
            kafka.nodes[1].is_silent = True
            for _ in range(5):
                with pytest.raises((errors.RequestTimedOutError, errors.NodeNotReadyError)):
                    await client.send(2, HEARTBEAT)
            assert named(said, "node_unavailable") == ["2"]
            assert f"127.0.0.1:{kafka.nodes[1].port}" in said[0]["node"]
            kafka.nodes[1].is_silent = False
            answered = None
            while answered is None:
                try:
                    answered = await client.send(2, HEARTBEAT)
                except errors.KafkaError:
                    await asyncio.sleep(0.01)
            await client.send(2, HEARTBEAT)
        assert [named(said, event) for event in ("node_unavailable", "node_available")] == [["2"], ["2"]]


async def test_a_node_that_throttles_is_waited_for_and_named_once_and_loses_no_connection() -> None:
    async with scripted_kafka() as kafka, network(kafka) as client:
        node = kafka.nodes[0]
        node.answers["HeartbeatRequest"] = lambda _: HeartbeatResponse_v0(0)
        node.answers["FetchRequest"] = lambda _: FetchResponse_v4(round(4_000 * ANSWER), [])
        node.mutes["FetchRequest"] = 4 * ANSWER
        await client.send(1, HEARTBEAT)
        connections = node.asked["ApiVersionRequest"]
        with capture_logs() as said:
            for _ in range(2):
                _, beat = await asyncio.gather(client.fetch(1, FETCH), client.send(1, HEARTBEAT))  # one sent before ...
                assert beat.error_code == 0
                later = asyncio.ensure_future(client.fetch(1, FETCH))
                assert (await client.send(1, HEARTBEAT)).error_code == 0  # ... and one while it is mute
                await later
        assert node.asked["ApiVersionRequest"] == connections
        assert [entry["event"] for entry in said] == ["node_throttles"]


async def test_no_fetch_is_sent_to_a_node_before_its_throttle_is_over() -> None:
    async with scripted_kafka() as kafka, network(kafka) as client:
        node = kafka.nodes[0]
        node.answers["HeartbeatRequest"] = lambda _: HeartbeatResponse_v0(0)
        node.answers["FetchRequest"] = lambda _: FetchResponse_v4(500, [])
        await client.fetch(1, FETCH)
        waiting = asyncio.ensure_future(client.fetch(1, FETCH))
        await client.send(1, HEARTBEAT)
        assert node.asked["FetchRequest"] == 1
        await waiting
        assert node.asked["FetchRequest"] == 2


def test_that_a_node_throttles_is_said_anew_only_when_it_had_ceased() -> None:
    now = 0.0
    nodes = Nodes(lambda: now)
    with capture_logs() as said:
        for now in (0.0, 1.0, 5.0, 5.0 + REMEMBERED, 8.1 + REMEMBERED, 9.0 + REMEMBERED):
            nodes.answered(1, "h:1", "Fetch")
            if now in {0.0, 1.0, 5.0, 9.0 + REMEMBERED}:
                nodes.throttles(1, "h:1", 3.0)
    names = [entry["event"] for entry in said]
    assert names == ["node_throttles", "node_throttles_no_more", "node_throttles"]


async def test_a_join_ends_when_its_coordinator_falls_silent_and_lasts_while_it_only_waits() -> None:
    async with scripted_kafka() as kafka, network(kafka) as client:
        joining = await held_join(kafka, client)
        assert not joining.done()
        kafka.nodes[0].is_silent = True
        with pytest.raises(errors.KafkaConnectionError):
            await joining


async def test_nobody_watches_a_join_any_more_when_it_is_given_up() -> None:
    async with scripted_kafka() as kafka, network(kafka) as client:
        joining = await held_join(kafka, client)
        watching = [task for task in asyncio.all_tasks() if task.get_name() == "kafka-watch"]
        assert len(watching) == 1
        joining.cancel()
        done, _ = await asyncio.wait(watching, timeout=1)
        for task in watching:
            task.cancel()
        assert done == set(watching)


async def test_a_fetch_is_answered_in_the_end_when_its_node_is_slower_than_silence() -> None:
    async with scripted_kafka() as kafka:
        node = kafka.nodes[0]
        node.delays["FetchRequest"] = 3 * ANSWER
        node.answers["FetchRequest"] = lambda _: FetchResponse_v4(0, [])
        async with network(kafka) as client:
            for _ in range(2):
                with pytest.raises(errors.RequestTimedOutError):
                    await client.fetch(1, FETCH)
            assert (await client.fetch(1, FETCH)).told == []


async def test_a_long_answer_is_waited_for_as_long_as_it_flows_and_given_up_when_it_trickles() -> None:
    long = FetchResponse_v4(0, [("orders", [(0, 0, 1, 1, None, bytes(400_000))])])
    async with scripted_kafka(1) as kafka, network(kafka) as client:
        node = kafka.nodes[0]
        node.answers["FetchRequest"] = lambda _: long
        node.paces["FetchRequest"] = 8_000
        with capture_logs() as said:
            (told,) = (await client.fetch(1, FETCH)).told
        assert (len(told.records), node.asked["FetchRequest"], named(said, "node_unavailable")) == (400_000, 1, [])
        node.paces["FetchRequest"] = 200
        with pytest.raises(errors.RequestTimedOutError):
            await client.fetch(1, FETCH)


async def test_a_question_behind_a_slow_fetch_waits_for_it_when_they_share_a_connection() -> None:
    async with scripted_kafka() as kafka:
        node = kafka.nodes[0]
        node.delays["FetchRequest"], node.delays["HeartbeatRequest"] = 1.25, 0.4  # together more than the fetch has
        node.answers["FetchRequest"] = lambda _: FetchResponse_v4(0, [])
        node.answers["HeartbeatRequest"] = lambda _: HeartbeatResponse_v0(0)
        async with network(kafka) as client:
            client.bounds = Bounds(0.5, fetch_wait=1.0)
            fetch = asyncio.ensure_future(client.fetch(1, FETCH))
            await node.hears("FetchRequest")
            assert (await client.send(1, HEARTBEAT)).error_code == 0
            assert (await fetch).told == []


async def test_a_silent_node_is_known_in_time_when_a_request_of_longer_patience_was_answered_before() -> None:
    async with scripted_kafka() as kafka, network(kafka) as client:
        node = kafka.nodes[0]
        client.bounds = Bounds(ANSWER, fetch_wait=2 * ENOUGH)
        node.answers["FetchRequest"] = lambda _: FetchResponse_v4(0, [])
        await client.fetch(1, FETCH)
        node.is_silent = True
        async with asyncio.timeout(ENOUGH / 2):
            with pytest.raises(errors.RequestTimedOutError):
                await client.send(1, HEARTBEAT)


def test_attempts_to_connect_come_at_ever_longer_pauses_when_a_node_refuses_them() -> None:
    now = 0.0
    nodes = Nodes(lambda: now)
    assert nodes.pause(2) == 0.0
    waits = []
    for _ in range(7):
        nodes.failed(2, "kafka-2:9092", CONNECT, "refused")
        waits.append(round(nodes.pause(2), 1))
        now += waits[-1]
    assert waits == [0.0, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    nodes.answered(2, "kafka-2:9092", CONNECT)
    assert nodes.pause(2) == 0.0


def test_a_node_is_asked_last_for_a_short_while_when_it_was_silent() -> None:
    now = 0.0
    nodes = Nodes(lambda: now)
    nodes.failed(1, "kafka-1:9092", "Fetch", "no answer in time")
    nodes.late(2)
    assert nodes.in_turn([1, 2, 3], lambda _: 0) == [3, 1, 2]
    now += REMEMBERED + 1
    assert nodes.in_turn([1, 2, 3], lambda _: 0) == [1, 2, 3]
    assert nodes.why(1, CONNECT, "Fetch") == "no answer in time", "it has not answered since"


def test_a_node_is_available_again_when_what_failed_succeeds() -> None:
    now = 0.0
    nodes = Nodes(lambda: now)
    nodes.failed(1, "kafka-1:9092", "Fetch", "no answer in time")
    nodes.answered(1, "kafka-1:9092", "Metadata")
    assert nodes.is_failing(1)
    nodes.answered(1, "kafka-1:9092", "Fetch")
    assert not nodes.is_failing(1)


@pytest.mark.parametrize("asker", ["itself", "another"])
async def test_all_nodes_are_asked_in_turn_who_leads_whatever_is_asked_between(asker: str) -> None:
    """With one turn for all, three questions every interval brought each of three nodes the same one for ever."""
    asked: dict[str, list[int]] = {"mine": [], "others": []}
    async with scripted_kafka() as kafka, network(kafka) as client, network(kafka) as other:
        other.nodes = client.nodes
        for node in kafka.nodes:

            def note(request: Any, number: int = node.number) -> Any:
                asked[request.topics[0]].append(number)
                return kafka.metadata(request)

            node.answers["MetadataRequest"] = note
        for _ in range(6):
            await client._metadata_update(client.cluster, ["mine"])
            for _ in range(2):
                await (client if asker == "itself" else other).ask_any(
                    TopicsRequest(["others"], with_rights=False), "ids"
                )
    assert sorted(asked["mine"]) == [1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize("versions", [(0, 7), (-1, 8), (9, 8), None])
async def test_a_node_is_not_connected_with_when_it_lacks_what_every_kafka_of_today_knows(
    versions: tuple[int, int] | None,
) -> None:
    async with scripted_kafka(1) as kafka:
        whole = kafka.nodes[0].answers["ApiVersionRequest"]

        def without_metadata(request: Any) -> Any:
            known = [each for each in whole(request).api_versions if each[0] != MetadataRequest_v5.API_KEY]
            return ApiVersionResponse_v0(0, known + ([(MetadataRequest_v5.API_KEY, *versions)] if versions else []))

        async with network(kafka) as client:
            kafka.nodes[0].answers["ApiVersionRequest"] = without_metadata
            await kafka.nodes[0].hang_up()
            with capture_logs() as said, pytest.raises(errors.NodeNotReadyError):
                await client.send(1, HEARTBEAT)
    assert "does not know Metadata in version 8: Kafka 2.3 or newer is needed" in said[0]["why"]


async def test_what_a_node_knows_is_asked_anew_when_it_seems_to_know_other_versions_only() -> None:
    async with scripted_kafka(1) as kafka:
        node = kafka.nodes[0]
        node.answers["HeartbeatRequest"] = lambda _: HeartbeatResponse_v0(0)
        whole = node.answers["ApiVersionRequest"]

        def too_new(request: Any) -> Any:
            known = [each for each in whole(request).api_versions if each[0] != HEARTBEAT.API_KEY]
            return ApiVersionResponse_v0(0, [*known, (HEARTBEAT.API_KEY, 90, 99)])

        async with network(kafka) as client:
            node.answers["ApiVersionRequest"] = too_new
            with pytest.raises(errors.IncompatibleBrokerVersion):
                await client.send(1, HEARTBEAT)
            node.answers["ApiVersionRequest"] = whole
            assert (await client.send(1, HEARTBEAT)).error_code == 0


async def test_a_fetch_is_not_answered_when_what_comes_is_the_answer_to_something_else() -> None:
    made = Connection("127.0.0.1", 1)
    answer = asyncio.get_running_loop().create_future()
    made._requests.append((7, FETCH, answer))
    with pytest.raises(errors.CorrelationIdError, match="00000007"):
        made._handle_frame((8).to_bytes(4) + bytes(20))
    assert not answer.done(), "it is told when the connection ends over that"
