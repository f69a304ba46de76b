"""The scripted cluster's protocol, where its description and the client's meet."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest
from aiokafka import errors
from aiokafka.client import AIOKafkaClient
from aiokafka.protocol.metadata import MetadataRequest
from aiokafka.record.default_records import DefaultRecordBatch
from aiokafka.record.util import calc_crc32c
from hypothesis import given
from hypothesis import strategies as st

from proxy.kafka_log.network import Network
from proxy.kafka_log.nodes import Bounds
from proxy.model import Event
from tests.wire.kafka.cluster import ScriptedCluster
from tests.wire.kafka.codec import INT64, STRING, Input, array, decode, encode, read_varint, struct, write_varint
from tests.wire.kafka.messages import Error
from tests.wire.kafka.mischief import ERRORS
from tests.wire.kafka.node import Node
from tests.wire.kafka.records import batch


@given(st.integers(0, 2**40))
def test_a_number_is_read_as_it_was_written_when_it_takes_seven_bits_a_byte(number: int) -> None:
    out = bytearray()
    write_varint(out, number)
    assert read_varint(Input(bytes(out))) == number


@given(
    st.lists(st.fixed_dictionaries({"name": st.none() | st.text("aé水"), "place": st.integers(-(2**63), 2**63 - 1)}))
)
def test_structures_are_read_as_they_were_written_when_they_nest(values: list[dict[str, object]]) -> None:
    kind = array(struct({"name": STRING, "place": INT64}, tagged=True), compact=True)
    assert decode(kind, encode(kind, values)) == values


def test_the_checksum_of_the_client_is_castagnolis_when_it_is_taken_of_its_check_value() -> None:
    assert calc_crc32c(b"123456789") == 0xE3069283


@pytest.mark.parametrize("compressed", [False, True])
def test_the_client_reads_a_batch_as_it_was_written_when_offsets_are_missing_in_it(compressed: bool) -> None:
    events = [
        (at, Event(at, 1_700_000_000_000 - at, b"k" if at % 2 else None, b"v" * at, (("h", None), ("é", b"x")), 0))
        for at in (7, 9, 10, 300)
    ]
    written = batch(7, 400, events, compressed=compressed)
    read = DefaultRecordBatch(written.data)
    assert read.validate_crc()
    assert (read.base_offset, read.next_offset) == (7, 401)
    assert [
        (one.offset, Event(one.offset, one.timestamp, one.key, one.value, tuple(one.headers), 0)) for one in read
    ] == events


def test_every_error_is_the_clients_of_that_number_when_it_is_told() -> None:
    told = {error for some in ERRORS.values() for error in some} - {Error.UNKNOWN}
    unknown = {error.name for error in told if errors.for_code(error) is errors.UnknownError}
    assert unknown <= {"KAFKA_STORAGE_ERROR", "FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH", "OFFSET_NOT_AVAILABLE",
                       "GROUP_MAX_SIZE_REACHED", "FENCED_INSTANCE", "UNSTABLE_OFFSET_COMMIT"}  # fmt: skip


@asynccontextmanager
async def client_of(
    cluster: ScriptedCluster, kind: type[AIOKafkaClient] = AIOKafkaClient, **login: Any
) -> AsyncIterator[Any]:
    node = Node(1, cluster)
    server = await asyncio.start_server(node.serve, "127.0.0.1", 0)
    host, port = cluster.advertised[1] = server.sockets[0].getsockname()[:2]
    client = kind(bootstrap_servers=f"{host}:{port}", **login)
    try:
        await client.bootstrap()
        yield client
    finally:
        await client.close()
        server.close()
        await node.close()


def plain(password: str) -> dict[str, Any]:
    return {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "reader",
        "sasl_plain_password": password,
    }


async def test_a_client_is_let_in_when_its_password_is_right_and_only_then() -> None:
    cluster = ScriptedCluster(Random(1), [("", 0)])
    cluster.logins = {"reader": "right"}
    cluster.create_topic("t")
    async with client_of(cluster, **plain("right")) as client:
        assert "t" in (await client.fetch_all_metadata()).topics()
    for login in (plain("wrong"), dict[str, Any]()):
        with pytest.raises(errors.KafkaConnectionError):
            async with client_of(cluster, **login):
                pass


async def test_no_topic_is_made_when_our_client_wants_to_know_of_it() -> None:
    cluster = ScriptedCluster(Random(1), [("", 0)])
    async with client_of(cluster, Network) as client:
        client.bounds = Bounds(5.0)
        await client.set_topics(["unwanted"])
        assert not cluster.partitions({"unwanted"})


async def test_topics_are_made_when_a_client_asks_for_that_as_brokers_do_by_default() -> None:
    cluster = ScriptedCluster(Random(1), [("", 0)])
    async with client_of(cluster) as client:
        await client.send(1, MetadataRequest(["wanted"]))
    assert cluster.partitions({"wanted"})
