"""The whole bridge as users run it: a process between a real Kafka and a real RabbitMQ."""

import asyncio
import signal
import socket
from pathlib import Path

import pytest

from load.stack import Stack
from tests.support.tidegate import Ends, Tidegate, until

pytestmark = pytest.mark.timeout(120)


def numbered(start: int, end: int) -> list[bytes]:
    return [b"%d" % number for number in range(start, end)]


@pytest.mark.each_rabbitmq
async def test_every_event_arrives_once_and_is_committed_when_nothing_goes_wrong(stack: Stack, tmp_path: Path) -> None:
    async with Ends.open(stack) as ends:
        topic, queue = await ends.topic(partitions=2), await ends.queue()
        with Tidegate(tmp_path, ends.settings({topic: {"routing_key": queue}})) as tidegate:
            await tidegate.ready()
            await ends.produce(topic, numbered(0, 2000), partition=0)
            await ends.produce(topic, numbered(2000, 3000), partition=1)
            bodies = [message.body for message in await ends.receive(queue, 3000)]
            first, second = ([b for b in bodies if (int(b) < 2000) == low] for low in (True, False))
            assert first == numbered(0, 2000)
            assert second == numbered(2000, 3000)
            assert await tidegate.stop() == 0
            assert [await ends.committed(topic, partition) for partition in (0, 1)] == [2000, 1000]
            assert await ends.depth(queue) == 0


async def test_key_headers_and_timestamp_are_carried_over_when_a_record_has_them(stack: Stack, tmp_path: Path) -> None:
    async with Ends.open(stack) as ends:
        topic, queue = await ends.topic(), await ends.queue()
        headers = [
            ("trace", b"abc"),
            ("raw", b"\xff"),
            ("dup", b"1"),
            ("dup", b"2"),
            ("CC", b"x"),
            ("content-type", b"a/b"),
        ]
        await ends.producer.send_and_wait(topic, b"v", key=b"\x00k", headers=headers, timestamp_ms=1_700_000_000_123)
        await ends.producer.send_and_wait(topic, None, key=b"", timestamp_ms=1_700_000_000_124)
        with Tidegate(tmp_path, ends.settings({topic: {"routing_key": queue}})) as tidegate:
            full, tombstone = await ends.receive(queue, 2)
            assert (full.body, full.content_type, full.message_id) == (b"v", "a/b", f"{topic}-0-0-loyw3v5n")
            assert int("loyw3v5n", 36) == 1_700_000_000_123
            carried = dict(full.headers)
            assert carried["trace"] == "abc"
            assert carried["raw"] == b"\xff"
            assert carried["dup"] == ["1", "2"]
            assert carried["log.CC"] == "x"
            assert "CC" not in carried
            assert carried["tidegate-key"] == b"\x00k"
            assert not {name for name in carried if name.startswith("tidegate-")} - {"tidegate-key"}
            assert full.timestamp is None
            assert full.delivery_mode == 2
            assert (tombstone.body, tombstone.headers["tidegate-tombstone"]) == (b"", True)
            assert tombstone.headers["tidegate-key"] == b""
            assert await tidegate.stop() == 0


async def test_poison_events_are_dead_lettered_with_their_reason_when_others_flow(stack: Stack, tmp_path: Path) -> None:
    async with Ends.open(stack) as ends:
        queue, dead = await ends.queue(), await ends.queue(".dead")
        good, lost, nowhere = [await ends.topic(suffix) for suffix in (".good", ".lost", ".nowhere")]
        settings = ends.settings(
            {
                good: {"routing_key": {"key": True}},
                lost: {"routing_key": f"{ends.name}.no-such-queue"},
                nowhere: {"route": "broken", "routing_key": "x"},
            },
            routes={"main": {"exchange": ""}, "broken": {"exchange": f"{ends.name}.no-such-exchange"}},
            defaults={"route": "main", "class": "P1", "dead_letter": {"routing_key": dead}},
            limits={"event_bytes": "10KiB", "headers": 2},
        )
        key = queue.encode()
        await ends.producer.send_and_wait(good, b"1", key=key)
        await ends.producer.send_and_wait(good, b"x" * 20_000, key=key)
        await ends.producer.send_and_wait(good, b"many", key=key, headers=[("a", b""), ("b", b""), ("c", b"")])
        await ends.producer.send_and_wait(good, b"long key", key=b"k" * 300)
        await ends.producer.send_and_wait(good, b"2", key=key)
        await ends.producer.send_and_wait(lost, b"unroutable")
        await ends.producer.send_and_wait(nowhere, b"refused")
        with Tidegate(tmp_path, settings) as tidegate:
            assert [message.body for message in await ends.receive(queue, 2)] == [b"1", b"2"]
            letters = await ends.receive(dead, 5)
            reasons = sorted(str(letter.headers["tidegate-reason"]) for letter in letters)
            assert reasons == ["bad_property", "refused", "too_large", "too_many_headers", "unroutable"]
            assert await tidegate.stop() == 0
            assert [await ends.committed(topic) for topic in (good, lost, nowhere)] == [5, 1, 1]


async def test_only_its_own_type_stops_when_an_event_has_nowhere_to_go(stack: Stack, tmp_path: Path) -> None:
    async with Ends.open(stack) as ends:
        queue = await ends.queue()
        good, lost = await ends.topic(".good"), await ends.topic(".lost")
        types = {good: {"routing_key": queue}, lost: {"routing_key": f"{ends.name}.none"}}
        with Tidegate(tmp_path, ends.settings(types)) as tidegate:
            await tidegate.ready()
            await ends.produce(lost, numbered(0, 3))
            await until(lambda: tidegate.events("event_type_stopped"))
            await ends.produce(good, numbered(0, 100))
            await ends.receive(queue, 100)
            assert await tidegate.stop() == 0
            assert [await ends.committed(topic) for topic in (good, lost)] == [100, None]


async def test_no_more_than_the_inbox_and_one_fetch_leave_the_log_when_the_throttle_is_slow(
    stack: Stack, tmp_path: Path
) -> None:
    async with Ends.open(stack) as ends:
        topic, queue = await ends.topic(partitions=4), await ends.queue()
        settings = ends.settings(
            {topic: {"routing_key": queue}},
            routes={"main": {"exchange": "", "policy": "per_type"}},
            classes={"P1": {"increase": 1, "decrease": 0.5, "floor": 1, "ceiling": 1}},
            limits={"inbox_events": 100},
            log={"hosts": [stack.kafka], "group": ends.name, "fetch_bytes": "64KiB"},
        )
        await ends.produce(topic, [b"x" * 500] * 20_000)
        with Tidegate(tmp_path, settings) as tidegate:
            await tidegate.ready()
            waiting = f'tidegate_inbox_events{{type="{topic}"}}'
            await until(lambda: tidegate.metrics()[f'tidegate_paused{{type="{topic}"}}'])
            highest = 0.0
            for _ in range(40):
                highest = max(highest, tidegate.metrics()[waiting])
                await asyncio.sleep(0.05)
            one_fetch = 64 * 1024 // 500 + 1
            assert highest <= 100 + one_fetch
            assert await ends.depth(queue) < 100
            assert await tidegate.stop() == 0


async def test_a_type_flows_on_when_others_fill_the_memory_before_a_queue_that_is_full(
    stack: Stack, tmp_path: Path
) -> None:
    async with Ends.open(stack) as ends:
        full = await ends.queue(".full", **{"x-max-length": 1, "x-overflow": "reject-publish"})
        topic, queue = await ends.topic(), await ends.queue()
        stuck = [await ends.topic(f".stuck-{number}") for number in range(6)]
        settings = ends.settings(
            {topic: {"class": "P3", "routing_key": queue}} | {one: {"routing_key": full} for one in stuck},
            limits={"event_bytes": "64KiB", "inbox_bytes": "2MiB", "inboxes_bytes": "8MiB"},
        )
        with Tidegate(tmp_path, settings) as tidegate:
            await tidegate.ready()
            for one in stuck:
                await ends.produce(one, [bytes(2048)] * 1_200)

            def are_paused() -> bool:
                told = tidegate.metrics()
                return all(told[f'tidegate_paused{{type="{one}"}}'] for one in stuck)

            await until(are_paused, deadline=30)
            await ends.produce(topic, numbered(0, 500))
            assert [message.body for message in await ends.receive(queue, 500)] == numbered(0, 500)
            assert await tidegate.stop() == 0


async def test_nothing_is_lost_when_a_replica_is_killed_midway(stack: Stack, tmp_path: Path) -> None:
    total = 12_000
    async with Ends.open(stack) as ends:
        topic, queue = await ends.topic(partitions=2), await ends.queue()
        settings = ends.settings(
            {topic: {"routing_key": queue}},
            routes={"main": {"exchange": "", "policy": "per_type"}},
            classes={"P1": {"increase": 300, "decrease": 0.5, "ceiling": 300}},
        )
        await ends.produce(topic, numbered(0, total))
        with Tidegate(tmp_path, settings) as first:
            await until(lambda: _is_deep(ends, queue, 3_000))
            first.process.kill()
            await first.ended()
        assert await ends.depth(queue) < total
        with Tidegate(tmp_path, settings) as second:
            await second.ready()
            await until(lambda: ends.all_committed(topic, 2, total), deadline=60)
            assert await second.stop() == 0
        bodies = [message.body for message in await ends.receive(queue, await ends.depth(queue))]
        assert set(bodies) == set(numbered(0, total))
        assert len(bodies) - total <= 2 * 5_000


async def _is_deep(ends: Ends, queue: str, depth: int) -> bool:
    return await ends.depth(queue) >= depth


async def test_it_waits_and_says_so_once_when_the_broker_is_absent_at_the_start(stack: Stack, tmp_path: Path) -> None:
    async with Ends.open(stack) as ends:
        topic, queue = await ends.topic(), await ends.queue()
        await ends.produce(topic, numbered(0, 10))
    stack.stop_rabbitmq()
    try:
        with Tidegate(tmp_path, ends.settings({topic: {"routing_key": queue}})) as tidegate:
            await until(lambda: [entry for entry in tidegate.said if entry.get("state") == "lost"])
            await asyncio.sleep(2)
            stack.start_rabbitmq()
            async with Ends.open(stack) as later:
                await later.receive(queue, 10)
            assert len([e for e in tidegate.said if e.get("state") == "lost" and e.get("route") == "main"]) == 1
            assert await tidegate.stop() == 0
    finally:
        stack.start_rabbitmq()


async def test_it_waits_and_recovers_when_the_log_is_absent_at_the_start(stack: Stack, tmp_path: Path) -> None:
    async with Ends.open(stack) as ends:
        topic, queue = await ends.topic(), await ends.queue()
        await ends.produce(topic, numbered(0, 10))
        stack.stop_kafka()
        try:
            with Tidegate(tmp_path, ends.settings({topic: {"routing_key": queue}})) as tidegate:
                await until(lambda: [entry for entry in tidegate.said if entry["event"] == "log_unavailable"])
                stack.start_kafka()
                await ends.receive(queue, 10)
                assert len(tidegate.events("log_unavailable")) == 1
                assert await tidegate.stop() == 0
        finally:
            stack.start_kafka()


async def test_data_flows_on_when_metric_log_and_admin_fail(stack: Stack, tmp_path: Path) -> None:
    async with Ends.open(stack) as ends:
        topic, queue = await ends.topic(), await ends.queue()
        (tmp_path / "no-folder").write_text("a file where a folder should be")
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            settings = ends.settings(
                {topic: {"routing_key": queue}},
                admin={"listen": f"127.0.0.1:{taken.getsockname()[1]}"},
                metric_log={"folder": str(tmp_path / "no-folder")},
            )
            with Tidegate(tmp_path, settings) as tidegate:
                await ends.produce(topic, numbered(0, 10))
                await ends.receive(queue, 10)
                await until(lambda: tidegate.events("admin_unavailable"))
                assert await tidegate.stop() == 0


async def test_one_clear_message_and_code_2_when_the_credentials_are_wrong(stack: Stack, tmp_path: Path) -> None:
    async with Ends.open(stack) as ends:
        topic, queue = await ends.topic(), await ends.queue()
        host = f"127.0.0.1:{stack.amqp_port}"
        settings = ends.settings({topic: {"routing_key": queue}}, broker={"hosts": [host], "password": "wrong"})
        with Tidegate(tmp_path, settings) as tidegate:
            assert await tidegate.ended() == 2
            said = tidegate.events("login_refused")
            assert len(said) == 1
            assert "broker.username" in said[0]["why"]


async def test_it_ends_at_once_when_a_second_signal_comes(stack: Stack, tmp_path: Path) -> None:
    async with Ends.open(stack) as ends:
        topic, queue = await ends.topic(), await ends.queue()
        with Tidegate(tmp_path, ends.settings({topic: {"routing_key": queue}})) as tidegate:
            await tidegate.ready()
            stack.rabbitmqctl("set_vm_memory_high_watermark", "absolute", "1000000")
            try:
                await ends.produce(topic, numbered(0, 100))
                await until(lambda: [entry for entry in tidegate.said if entry.get("state") == "blocked"])
                tidegate.process.send_signal(signal.SIGTERM)
                await until(lambda: tidegate.events("stopping"))
                tidegate.process.send_signal(signal.SIGTERM)
                assert await tidegate.ended(deadline=3) == 128 + signal.SIGTERM
            finally:
                stack.rabbitmqctl("set_vm_memory_high_watermark", "0.4")
