"""Pausing and discarding on real brokers: all replicas obey and answer, over restarts, and the metric logs tell it."""

import gzip
import json
import time
from pathlib import Path
from typing import Any

import pytest

from load.stack import Stack
from proxy.kafka_log import KafkaBoard
from proxy.model import Mode, Note
from proxy.operations.intervention import Answer, Intervention, read
from proxy.settings import LogSettings
from tests.support.tidegate import Ends, Tidegate, until

pytestmark = pytest.mark.timeout(180)


class Operator:
    """A person with the group's board."""

    def __init__(self, settings: dict[str, Any]) -> None:
        log = {name: settings["log"][name] for name in ("hosts", "group")}
        self.board = KafkaBoard(LogSettings.model_validate(log))
        self.notes: list[Note] = []

    async def ask(self, name: str, mode: Mode, *types: str, seconds: int = 600) -> Intervention:
        now_ms = int(time.time() * 1000)
        one = Intervention(name, mode, types, (), "ann", "a flood", now_ms, now_ms + 1000 * seconds)
        await self.board.create()
        await self.board.pin(one.key, one.as_json())
        return one

    async def answered(self, name: str, replicas: int) -> set[str]:
        """Wait until so many members have answered; return them."""
        members: set[str] = set()

        async def have() -> bool:
            self.notes += await self.board.news()
            said = [one for one in map(read, self.notes) if isinstance(one, Answer) and one.id == name]
            members.update(one.member for one in said)
            return len(members) >= replicas

        await until(have)
        return members


def told(folder: Path, kind: str) -> list[dict[str, Any]]:
    lines = [line for file in folder.glob("**/*.gz") for line in gzip.decompress(file.read_bytes()).splitlines()]
    return [record for record in map(json.loads, lines) if record["kind"] == kind]


async def test_every_replica_obeys_and_answers_and_the_next_one_does_when_it_was_killed(
    stack: Stack, tmp_path: Path
) -> None:
    async with Ends.open(stack) as ends:
        held, flows = await ends.topic(".held", partitions=2), await ends.topic(".flows", partitions=2)
        queue = await ends.queue()
        settings = ends.settings({held: {"routing_key": queue}, flows: {"routing_key": queue}})
        operator = Operator(settings)
        try:
            with Tidegate(tmp_path, settings) as first, Tidegate(tmp_path, settings) as second:
                await first.ready()
                await second.ready()
                await operator.ask("one", Mode.PAUSE, held)
                members = await operator.answered("one", 2)
                assert members == {one.id for one in await operator.board.members()}
                for topic in (held, flows):
                    for partition in (0, 1):
                        await ends.produce(topic, [topic.encode()] * 50, partition=partition)
                bodies = {message.body for message in await ends.receive(queue, 100)}
                assert bodies == {flows.encode()}
                await until(lambda: ends.all_committed(flows, 2, 100))
                second.process.kill()
                with Tidegate(tmp_path, settings) as third:
                    await operator.answered("one", 3)
                    assert await ends.depth(queue) == 0
                    await operator.ask("two", Mode.RUN, held)
                    bodies = {message.body for message in await ends.receive(queue, 100)}
                    assert bodies == {held.encode()}
                    assert await third.stop() == 0
                assert await first.stop() == 0
        finally:
            await operator.board.close()


async def test_what_is_discarded_is_committed_unsent_and_recorded_to_the_position(stack: Stack, tmp_path: Path) -> None:
    async with Ends.open(stack) as ends:
        topic, queue = await ends.topic(), await ends.queue()
        settings = ends.settings({topic: {"routing_key": queue}}, metric_log={"folder": str(tmp_path / "metrics")})
        operator = Operator(settings)
        try:
            with Tidegate(tmp_path, settings) as tidegate:
                await tidegate.ready()
                await ends.produce(topic, [b"before"] * 100)
                await ends.receive(queue, 100)
                await operator.ask("one", Mode.DISCARD, topic)
                await operator.answered("one", 1)
                await ends.produce(topic, [b"dropped"] * 5_000)
                await until(lambda: ends.all_committed(topic, 1, 5_100))
                await operator.ask("two", Mode.RUN, topic)
                await operator.answered("two", 1)
                await ends.produce(topic, [b"after"] * 100)
                assert {message.body for message in await ends.receive(queue, 100)} == {b"after"}
                assert await tidegate.stop() == 0
        finally:
            await operator.board.close()
        ranges = [one for record in told(tmp_path / "metrics", "committed") for one in record["ranges"]]
        assert sum(one["delivered"] for one in ranges) == 200
        discards = told(tmp_path / "metrics", "discard")
        assert sum(one["count"] for one in discards) == 5_000
        assert (min(one["first"] for one in discards), max(one["end"] for one in discards)) == (100, 5_100)
        assert {(one["by"], one["why"]) for one in discards} == {("ann", "a flood")}
        phases = [(one["id"], one["phase"], one["ended_by"]) for one in told(tmp_path / "metrics", "intervention")]
        assert phases == [("one", "begun", None), ("one", "ended", "ann"), ("two", "begun", None)]
