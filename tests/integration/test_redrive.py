"""`tidegate redrive` on a real RabbitMQ: letters of classic and of quorum queues."""

import asyncio
import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import aio_pika
import pytest

from load.stack import Stack
from proxy.bridge.broker import QueueState
from proxy.redrive.choice import Choice, Wanted
from proxy.redrive.count import Count
from proxy.redrive.pace import Pace
from proxy.redrive.run import Redrive
from tests.support.letters import STAMP, TOPIC_ID, broker_of, ended, redrive_settings, redriven, started, written
from tests.support.redrive_world import settings
from tests.support.tidegate import Ends, Tidegate, until

pytestmark = pytest.mark.timeout(180)
LETTERS = 200
"""More than the first consumer takes, so that another takes over."""
KINDS = pytest.mark.parametrize("kind", ["classic", "quorum"])


def recorded(folder: Path) -> list[dict[str, Any]]:
    files = sorted((folder / "records").glob("*.jsonl.gz"))
    lines = [json.loads(line) for file in files for line in gzip.decompress(file.read_bytes()).splitlines()]
    return [line for line in lines if line["kind"] == "redrive"]


@KINDS
@pytest.mark.each_rabbitmq
async def test_events_arrive_as_they_would_have_when_their_queue_is_back_and_they_are_redriven(
    stack: Stack, tmp_path: Path, kind: str
) -> None:
    async with Ends.open(stack) as ends:
        topic, dead = await ends.topic(partitions=2), await ends.queue(".dead", **{"x-queue-type": kind})
        target = f"{ends.name}.q"
        defaults = {"route": "main", "class": "P1", "dead_letter": {"routing_key": dead}}
        bridge = ends.settings({topic: {"routing_key": target}}, defaults=defaults)
        with Tidegate(tmp_path, bridge) as tidegate:
            await tidegate.ready()
            for number in range(40):
                await ends.producer.send_and_wait(
                    topic,
                    b"%d" % number,
                    key=b"k",
                    headers=[("CC", b"x")],
                    timestamp_ms=STAMP + number,
                    partition=number % 2,
                )
            await until(lambda: _is_deep(ends, dead, 40), deadline=60)
            assert await tidegate.stop() == 0
        assert await ends.depth(dead) == 40
        await ends.queue(**{"x-queue-type": kind})
        file = redrive_settings(ends, tmp_path, dead, {topic: {"routing_key": target}})
        looked = await redriven(file, "--dry-run")
        assert (looked.code, looked.told["redriven"], await ends.depth(target)) == (0, 40, 0)
        done = await redriven(file, "--rate", "1000", "--why", "queue was missing")
        assert (done.code, done.told["redriven"], await ends.depth(dead)) == (0, 40, 0), done
        messages = await ends.receive(target, 40)
        for part in (0, 1):
            bodies = [int(message.body) for message in messages if int(message.body) % 2 == part]
            assert bodies == sorted(bodies)
        ids = sorted(str(message.message_id) for message in messages)
        assert ids == sorted(f"{topic}-{n % 2}-{n // 2}-{_base_36(STAMP + n)}" for n in range(40))
        assert dict(messages[0].headers) == {"tidegate-redriven": 1, "tidegate-key": b"k", "log.CC": "x"}
        ranges = recorded(tmp_path)
        assert sum(one["count"] for one in ranges) == 40
        assert {(one["topic"], one["reason"], one["attempt"], one["group"]) for one in ranges} == {
            (topic, "unroutable", 1, ends.name)
        }
        assert all(one["topic_id"] for one in ranges)
        assert {one["why"] for one in ranges} == {"queue was missing"}


def _base_36(number: int) -> str:
    digits = ""
    while number:
        number, low = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[low] + digits
    return digits


@KINDS
@pytest.mark.each_rabbitmq
async def test_none_is_lost_and_few_come_twice_when_it_is_killed_midway(
    stack: Stack, tmp_path: Path, kind: str
) -> None:
    count = 4_000
    async with Ends.open(stack) as ends:
        arguments = {"x-queue-type": kind}
        dead, target = await ends.queue(".dead", **arguments), await ends.queue(**arguments)
        for partition in range(2):
            await written(stack, dead, ends.name, range(count // 2), partition=partition)
        file = redrive_settings(ends, tmp_path, dead, {ends.name: {"routing_key": target}})
        for reached in (500, 1_800):
            process = await started(file, "--yes", "--rate", "2000")
            await until(lambda reached=reached: _is_deep(ends, target, reached), deadline=60)  # type: ignore[misc]
            process.kill()
            await process.communicate()
        await until(lambda: _is_given_back(stack, ends, dead, target, count))
        for _ in range(3):  # a quorum queue may give back some of them only when a pass has begun
            done = await redriven(file, "--rate", "5000")
            assert done.code == 0, done
            if not await ends.depth(dead):
                break
        assert await ends.depth(dead) == 0
        messages = await ends.receive(target, await ends.depth(target))
        came = Counter(str(message.message_id) for message in messages)
        assert len(came) == count
        assert sum(came.values()) - count <= 2 * 1_000
        held = {(one["partition"], at) for one in recorded(tmp_path) for at in range(one["first"], one["end"])}
        assert len(held) == count


async def _is_deep(ends: Ends, queue: str, depth: int) -> bool:
    return await ends.depth(queue) >= depth


async def _is_given_back(stack: Stack, ends: Ends, dead: str, target: str, count: int) -> bool:
    """Return whether the broker has noticed that the one who took the letters is gone."""
    connection = await aio_pika.connect(stack.amqp)
    async with connection:
        declared = await (await connection.channel()).declare_queue(dead, passive=True)
        is_alone = not declared.declaration_result.consumer_count
    return is_alone and await ends.depth(dead) + await ends.depth(target) >= count


@pytest.mark.parametrize("kind", ["classic", pytest.param("quorum", marks=pytest.mark.long)])
@pytest.mark.each_rabbitmq
async def test_the_second_is_refused_when_two_redrive_the_same_queue(stack: Stack, tmp_path: Path, kind: str) -> None:
    async with Ends.open(stack) as ends:
        arguments = {"x-queue-type": kind}
        dead, target = await ends.queue(".dead", **arguments), await ends.queue(**arguments)
        await written(stack, dead, ends.name, range(150))
        file = redrive_settings(ends, tmp_path, dead, {ends.name: {"routing_key": target}})
        first = await started(file, "--yes", "--rate", "10")
        await until(lambda: _is_deep(ends, target, 1), deadline=60)
        second = await redriven(file)
        assert (second.code, second.told["redriven"]) == (1, 0)
        assert "other consumer" in second.err
        done = await ended(first)
        assert (done.code, done.told["redriven"], await ends.depth(target)) == (0, 150, 150)


@KINDS
@pytest.mark.each_rabbitmq
async def test_what_can_not_go_stays_in_its_place_and_is_told_when_others_go(
    stack: Stack, tmp_path: Path, kind: str
) -> None:
    async with Ends.open(stack) as ends:
        arguments = {"x-queue-type": kind}
        dead, target = await ends.queue(".dead", **arguments), await ends.queue(**arguments)
        name = ends.name
        await written(stack, dead, f"{name}-unknown", [0, 1])
        await ends.channel.default_exchange.publish(aio_pika.Message(b"foreign", message_id="m"), dead)
        await written(stack, dead, name, [0, 1, 2])
        await written(stack, dead, name, [3], redriven=3)
        await written(stack, dead, name, [4], body=b"x" * 2**20 + b"y")
        await written(stack, dead, f"{name}-nowhere", [0])
        await written(stack, dead, f"{name}-unbound", [0])
        await written(stack, dead, name, [5], reason="expired")
        routes = {
            "main": {"exchange": "", "policy": "static", "queues": [target]},
            "nowhere": {"exchange": f"{name}.none", "policy": "static"},
        }
        types = {
            name: {"routing_key": target},
            f"{name}-nowhere": {"routing_key": "x", "route": "nowhere"},
            f"{name}-unbound": {"routing_key": f"{name}.none"},
        }
        file = redrive_settings(ends, tmp_path, dead, types, routes=routes)
        done = await redriven(file, "--reason", "unroutable")
        assert done.code == 1
        assert done.told["redriven"] == 3
        assert done.stays == {
            "unknown_type": 2,
            "not_ours": 1,
            "too_often": 1,
            "incomplete": 1,
            "no_exchange": 1,
            "refused": 1,
            "not_chosen": 1,
        }
        assert await ends.depth(dead) == 8
        rest = await ends.receive(dead, 8)
        assert rest[2].body == b"foreign"
        again = [str(message.headers.get("tidegate-type")) for message in rest]
        assert again == [f"{name}-unknown"] * 2 + ["None", name, name, f"{name}-nowhere", f"{name}-unbound", name]
        assert sum(one["count"] for one in recorded(tmp_path)) == 3
        assert {one["topic_id"] for one in recorded(tmp_path)} == {TOPIC_ID}


async def test_a_letter_that_dies_again_at_once_is_sent_as_often_as_is_allowed(stack: Stack, tmp_path: Path) -> None:
    async with Ends.open(stack) as ends:
        dead = await ends.queue(".dead")
        # Whatever comes to the target dies at once, and lies among the letters again.
        target = await ends.queue(
            **{"x-message-ttl": 0, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
        )
        await written(stack, dead, ends.name, range(100))
        file = redrive_settings(ends, tmp_path, dead, {ends.name: {"routing_key": target}})
        for attempt in (1, 2):
            done = await redriven(file, "--rate", "1000", "--times", "2")
            assert (done.code, done.told["redriven"], done.told["waiting"]) == (0, 100, 100), done
            await until(lambda: _is_deep(ends, dead, 100))
            assert {one["attempt"] for one in recorded(tmp_path)} == set(range(1, attempt + 1))
        last = await redriven(file, "--rate", "1000", "--times", "2")
        assert (last.code, last.told["redriven"], last.stays) == (0, 0, {"too_often": 100})


class Idle:
    """Depths and records that are never in the way."""

    async def poll(self, queues: Any) -> Any:
        return dict.fromkeys(queues, QueueState(0, 1))

    def why(self, _queue: str) -> str:
        return ""

    async def write(self, _confirmed: Any) -> None:
        return

    async def close(self) -> None:
        return


@pytest.mark.each_rabbitmq
async def test_every_letter_is_looked_at_when_one_consumer_at_a_time_is_active(stack: Stack) -> None:
    async with Ends.open(stack) as ends:
        dead = await ends.queue(".dead", **{"x-single-active-consumer": True})
        await written(stack, dead, "unknown", range(LETTERS))
        assert (await looked_at(stack, dead)).taken == LETTERS


async def looked_at(stack: Stack, dead: str) -> Count:
    """Return what a dry run counts."""
    broker, idle = broker_of(stack), Idle()
    queue = broker.letter_queue(dead)
    pace = Pace(1_000, asyncio.get_running_loop().time())
    redrive = Redrive(queue, broker.redrive_lane(), idle, idle, Choice(settings(), Wanted()), pace, is_dry=True)
    try:
        await redrive.run()
    finally:
        await queue.close()
    return redrive.count


@pytest.mark.each_rabbitmq
@pytest.mark.parametrize("limit", [1, 20])
async def test_no_letter_is_dropped_by_its_quorum_queue_when_it_is_looked_at_often(stack: Stack, limit: int) -> None:
    async with Ends.open(stack) as ends:
        dead = await ends.queue(".dead", **{"x-queue-type": "quorum", "x-delivery-limit": limit})
        await written(stack, dead, "unknown", range(LETTERS))
        anew = 0
        for _ in range(6):
            count = await looked_at(stack, dead)
            assert count.taken == LETTERS
            anew += count.anew
        assert anew >= 3 * LETTERS, "every other time; every time where the copies are taken before the end, too"
        bodies = [message.body for message in await ends.receive(dead, LETTERS)]
        assert bodies == [b"v"] * LETTERS
