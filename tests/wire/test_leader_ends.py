"""Kafka loses the end of what it acknowledged; what takes the place of that is read, and nothing else twice.

docs/design/0068-where-a-leader-ended.md.
"""

import asyncio
from random import Random
from typing import Any

import pytest
from structlog.testing import capture_logs

from proxy.kafka_log import KafkaLog
from proxy.settings import Limits, LogSettings
from tests.contract.log_adapters import Owner
from tests.wire.bridge import DEADLINE, PLACE, Bridge, lived, until
from tests.wire.kafka import mischief
from tests.wire.kafka.cluster import ScriptedCluster
from tests.wire.kafka.messages import Api, Error
from tests.wire.kafka.mischief import Rule, Trick
from tests.wire.kafka.node import Node


async def all_come(bridge: Bridge) -> None:
    """Wait until everything produced has come out, and the group is where the log ends."""

    def is_done() -> bool:
        bridge.take()
        committed = bridge.kafka.group("bridge").committed.get(PLACE)
        is_committed = committed is not None and committed.offset == bridge.kafka.tracks[PLACE].end
        return is_committed and len(bridge.received) == bridge.produced

    await until(is_done)


async def begun(bridge: Bridge) -> None:
    for _ in range(10):
        bridge.produce()
    await all_come(bridge)


@pytest.mark.parametrize("more", [0, 1, 4, 5, 30])
@pytest.mark.parametrize("kept", [6, 9, 10])
def test_every_event_is_read_once_when_the_log_was_cut_behind_its_reader(kept: int, more: int) -> None:
    async def story() -> None:
        async with Bridge.running() as bridge:
            await begun(bridge)
            with capture_logs() as said:
                bridge.kafka.cut(PLACE, kept)
                for _ in range(more):
                    bridge.produce()
                await asyncio.sleep(3)  # that it ends before the position is seen by the next fetch
                bridge.produce()
                await all_come(bridge)
            assert set(bridge.received.values()) == {1}
            cut = [(entry["wanted"], entry["kept"]) for entry in said if entry["event"] == "log_cut_back"]
            assert cut == ([(10, kept)] if kept < 10 else [])

    lived(story)


def test_nothing_comes_twice_when_one_leader_follows_the_other() -> None:
    async def story() -> None:
        async with Bridge.running() as bridge:
            await begun(bridge)
            for _ in range(20):
                bridge.kafka.move_leader(PLACE, 1)
                bridge.produce()
                await asyncio.sleep(0.1)
            await all_come(bridge)
            assert set(bridge.received.values()) == {1}

    lived(story)


def test_no_epoch_of_another_log_is_committed_when_a_topic_was_made_anew() -> None:
    async def story() -> None:
        async with Bridge.running() as bridge:
            for _ in range(3):
                bridge.kafka.move_leader(PLACE, 1)
                bridge.produce()
                await all_come(bridge)
            assert bridge.kafka.group("bridge").committed[PLACE].leader_epoch == 3
            bridge.kafka.delete_topic(PLACE.topic)
            bridge.kafka.create_topic(PLACE.topic)
            bridge.produce()
            await all_come(bridge)
            assert bridge.kafka.group("bridge").committed[PLACE].leader_epoch == 0

    lived(story)


@pytest.mark.parametrize("more", [0, 2, 30])
def test_every_event_is_read_once_when_the_log_was_cut_while_nobody_read_it(more: int) -> None:
    async def story() -> None:
        loop: Any = asyncio.get_running_loop()
        cluster = ScriptedCluster(Random(1), [("kafka", 9092)])
        cluster.create_topic(PLACE.topic)
        node = Node(1, cluster)
        loop.network.serve("kafka:9092", node.serve)

        async def read(first: int, last: int) -> None:
            """Read all from one offset to another, and commit it."""
            log = KafkaLog(LogSettings(hosts=("kafka:9092",), group="g"), Limits())
            owner: Any = Owner()
            await log.start(owner)
            await log.subscribe(frozenset({PLACE.topic}))
            while not owner.received.get(PLACE) or owner.received[PLACE][-1].position != last:
                owner.take(await log.poll(0.05))
            assert [event.position for event in owner.received[PLACE]] == list(range(first, last + 1))
            await log.commit({PLACE: last})
            await log.stop()

        def produce(count: int) -> None:
            for _ in range(count):
                cluster.produce(PLACE.topic, value=b"event")

        produce(5)
        cluster.move_leader(PLACE, 1)
        produce(5)
        await read(0, 9)
        cluster.cut(PLACE, 6)
        produce(4 + more)
        produce(1)
        await read(6, 10 + more)
        await node.close()
        cluster.close()

    lived(story)


def test_others_are_read_on_when_the_node_of_one_partition_does_not_tell_where_its_leader_ended() -> None:
    async def story() -> None:
        loop: Any = asyncio.get_running_loop()
        cluster = ScriptedCluster(Random(1), [("kafka-1", 9092), ("kafka-2", 9092)])
        cluster.create_topic(PLACE.topic, 2)
        nodes = [Node(number, cluster) for number in (1, 2)]
        for node in nodes:
            loop.network.serve(f"kafka-{node.number}:9092", node.serve)
        places = {node: next(at for at in cluster.tracks if cluster.place(at).leader == node) for node in (1, 2)}
        log = KafkaLog(LogSettings(hosts=("kafka-1:9092", "kafka-2:9092"), group="g"), Limits())
        owner: Any = Owner()
        await log.start(owner)
        await log.subscribe(frozenset({PLACE.topic}))

        async def read(count: int, *wanted: int) -> None:
            async with asyncio.timeout(DEADLINE):
                while any(len(owner.received.get(places[node], ())) < count for node in wanted):
                    owner.take(await log.poll(0.05))

        def produce() -> None:
            for at in places.values():
                cluster.produce(*at, value=b"event")

        produce()
        await read(1, 1, 2)
        silent = cluster.mischief.begin(Rule(Trick.HANG_UP, 1, frozenset({Api.LEADER_ENDS}), frozenset({2})))
        for number in (2, 1):
            cluster.move_leader(places[number], number)
            cluster.produce(*places[number], value=b"event")
            for _ in range(20):
                owner.take(await log.poll(0.05))
        await read(2, 1)
        assert len(owner.received[places[2]]) == 1
        cluster.mischief.end(silent)
        await read(2, 2)
        await log.stop()
        for node in nodes:
            await node.close()
        cluster.close()

    lived(story)


@pytest.mark.parametrize("error", [Error.NOT_LEADER, Error.UNKNOWN])
def test_every_event_is_read_in_the_end_when_nobody_tells_at_first_where_the_leader_ended(
    error: Error, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(mischief.ERRORS, Api.LEADER_ENDS, (error,))

    async def story() -> None:
        async with Bridge.running() as bridge:
            await begun(bridge)
            untold = bridge.kafka.mischief.begin(Rule(Trick.ERROR, 1, frozenset({Api.LEADER_ENDS})))
            bridge.kafka.cut(PLACE, 6)
            for _ in range(20):
                bridge.produce()
            await asyncio.sleep(5)
            bridge.take()
            if error is Error.NOT_LEADER:
                assert len(bridge.received) == 10
            bridge.kafka.mischief.end(untold)
            bridge.produce()
            last = bridge.produced - 1

            def has_come() -> bool:
                bridge.take()
                return last in bridge.received

            await until(has_come)
            if error is Error.NOT_LEADER:
                await all_come(bridge)
                assert set(bridge.received.values()) == {1}

    lived(story)
