"""Other settings on real brokers: types change, come and go under flow, and what can't be used changes nothing."""

import asyncio
import contextlib
import gzip
import json
import signal
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from load.checker import tally
from load.drain import Drain
from load.events import Bulk
from load.producer import fill
from load.stack import Stack
from tests.support.tidegate import Ends, Tidegate, until

pytestmark = pytest.mark.timeout(180)

PARTITIONS = 2
RELOADS, TYPES = 100, 5
EVENTS = 130_000
"""Of each partition, under full load: more than go while there are reloads."""
BULK = Bulk(100, seed=1)


class Traffic:
    """Numbers, written to some topics without a pause."""

    def __init__(self, ends: Ends, topics: list[str]) -> None:
        self._ends = ends
        self.written = dict.fromkeys(topics, 0)
        self._is_over = False

    @classmethod
    @contextlib.asynccontextmanager
    async def flowing(cls, ends: Ends, *topics: str) -> AsyncIterator["Traffic"]:
        """Write until left."""
        traffic = cls(ends, list(topics))
        writing = asyncio.create_task(traffic._write())
        try:
            yield traffic
        finally:
            traffic._is_over = True
            await writing

    async def _write(self) -> None:
        while not self._is_over:
            for topic in self.written:
                for partition in range(PARTITIONS):
                    first = self.written[topic]
                    await self._ends.produce(topic, [b"%d" % n for n in range(first, first + 10)], partition=partition)
                    self.written[topic] += 10
            await asyncio.sleep(0.02)


def assigned(folder: Path, topic: str) -> list[int]:
    """Return where each epoch of a topic's partitions began."""
    return [one["first"] for one in recorded(folder, "assigned") if one["topic"] == topic]


def recorded(folder: Path, kind: str) -> list[Mapping[str, Any]]:
    """Return the records of a kind in finished files."""
    lines = [line for file in folder.glob("**/*.gz") for line in gzip.decompress(file.read_bytes()).splitlines()]
    return [record for record in map(json.loads, lines) if record["kind"] == kind]


async def numbers(ends: Ends, *queues: str) -> list[int]:
    """Return what lies in some queues, one after another, in their order."""
    found: list[int] = []
    for queue in queues:
        if count := await ends.depth(queue):
            found += [int(message.body) for message in await ends.receive(queue, count)]
    return found


async def test_only_types_that_changed_begin_anew_and_no_event_is_lost_or_comes_twice(
    stack: Stack, tmp_path: Path
) -> None:
    async with Ends.open(stack) as ends:
        moved, steady = await ends.topic(".moved", PARTITIONS), await ends.topic(".steady", PARTITIONS)
        before, after, other = await ends.queue(".before"), await ends.queue(".after"), await ends.queue(".other")
        records = tmp_path / "metrics"

        def settings(**changed: Any) -> dict[str, Any]:
            types = {moved: {"routing_key": before} | changed, steady: {"routing_key": other}}
            return ends.settings(types, metric_log={"folder": str(records)})

        with Tidegate(tmp_path, settings()) as tidegate:
            await tidegate.ready()
            async with Traffic.flowing(ends, moved, steady) as traffic:
                await until(lambda: traffic.written[moved] >= 200)
                tidegate.write(yaml.safe_dump(settings(routing_key=after)))
                (said,) = await until(lambda: tidegate.events("settings_reloaded"))
                assert said["changed"] == {moved: [f"routing_key: {{constant: {before}}} -> {{constant: {after}}}"]}
                await until(lambda: ends.depth(after))

                for round_ in range(5):
                    tidegate.write(yaml.safe_dump(settings(routing_key=after, content_type=f"text/{round_}")))
                    tidegate.process.send_signal(signal.SIGHUP)
                    await until(lambda: len(tidegate.events("settings_reloaded")) == round_ + 2)  # noqa: B023
                enough = traffic.written[moved] + 100
                await until(lambda: traffic.written[moved] >= enough)
            total = traffic.written[moved]
            for topic in (moved, steady):
                await until(lambda: ends.all_committed(topic, PARTITIONS, traffic.written[topic]))  # noqa: B023
            assert await tidegate.stop() == 0
        first, second = await numbers(ends, before), await numbers(ends, after)
        assert sorted(first + second) == list(range(total)), "each once, by the old key or by the new one"
        assert await numbers(ends, other) != []
        for run in (first, second):
            for part in (0, 1):  # ten in turn
                mine = [n for n in run if n // 10 % PARTITIONS == part]
                assert mine == sorted(mine)
        assert assigned(records, steady) == [0, 0], "its partitions went on as they were"
        begun = len(assigned(records, moved))
        assert begun % PARTITIONS == 0
        assert 3 * PARTITIONS < begun <= 7 * PARTITIONS, (
            "a change that follows at once may begin with the one before it"
        )


async def test_nothing_changes_and_it_is_said_when_the_files_are_wrong_or_need_a_restart(
    stack: Stack, tmp_path: Path
) -> None:
    async with Ends.open(stack) as ends:
        topic, queue = await ends.topic(partitions=PARTITIONS), await ends.queue()
        settings = ends.settings({topic: {"routing_key": queue}}, metric_log={"folder": str(tmp_path / "metrics")})
        needs_restart = settings | {"limits": {"commit_interval": "3s"}}
        with Tidegate(tmp_path, settings) as tidegate:
            await tidegate.ready()
            async with Traffic.flowing(ends, topic) as traffic:
                refused = [
                    (yaml.safe_dump(settings)[:-20] + "\n]", ""),
                    (yaml.safe_dump(settings | {"event_types": {topic: {"routing_ky": queue}}}), "routing_ky"),
                    (yaml.safe_dump(needs_restart), "limits.commit_interval"),
                    ("a: " + "[" * 5000, ""),
                    ("", "empty"),
                ]
                for count, (text, word) in enumerate(refused, 1):
                    tidegate.write(text)
                    tidegate.process.send_signal(signal.SIGHUP)
                    said = await until(lambda: tidegate.events("settings_not_reloaded")[count - 1 :])  # noqa: B023
                    assert word in " ".join(said[0]["why"])
                    await until(lambda: tidegate.metrics()["tidegate_settings_refused"] == 1)
                tidegate.config.unlink()
                await until(lambda: len(tidegate.events("settings_not_reloaded")) == len(refused) + 1)
                assert tidegate.metrics()['tidegate_reloads_total{result="refused"}'] == len(refused) + 1
                tidegate.write(yaml.safe_dump(settings))
                await until(lambda: tidegate.events("settings_unchanged"))
                assert tidegate.metrics()["tidegate_settings_refused"] == 0
            await until(lambda: ends.all_committed(topic, PARTITIONS, traffic.written[topic]))
            assert not tidegate.events("settings_reloaded")
            assert await tidegate.stop() == 0
        assert sorted(await numbers(ends, queue)) == list(range(traffic.written[topic]))
        assert assigned(tmp_path / "metrics", topic) == [0, 0]


async def test_types_come_and_go_when_the_link_to_a_folder_of_them_is_swapped(stack: Stack, tmp_path: Path) -> None:
    """As Kubernetes does it with a ConfigMap."""
    async with Ends.open(stack) as ends:
        stays, goes, comes = [await ends.topic(f".{name}", PARTITIONS) for name in ("stays", "goes", "comes")]
        queues = {topic: await ends.queue(topic.removeprefix(ends.name)) for topic in (stays, goes, comes)}

        def publish(version: str, *topics: str) -> None:
            folder = tmp_path / version
            folder.mkdir()
            types = {topic: {"routing_key": queues[topic]} for topic in topics}
            (folder / "types.yaml").write_text(yaml.safe_dump({"event_types": types}))
            (tmp_path / "..next").symlink_to(version)
            (tmp_path / "..next").rename(tmp_path / "..data")

        publish("one", stays, goes)
        main = ends.settings({}, include="..data")
        del main["event_types"]
        with Tidegate(tmp_path, main) as tidegate:
            await tidegate.ready()
            async with Traffic.flowing(ends, stays, goes, comes) as traffic:
                await until(lambda: traffic.written[stays] >= 100)
                publish("two", stays, comes)
                (said,) = await until(lambda: tidegate.events("settings_reloaded"))
                assert (said["added"], said["removed"]) == (comes, goes)
                await until(lambda: ends.depth(queues[comes]))
                left = [await ends.committed(goes, partition) for partition in range(PARTITIONS)]
                publish("three", stays, comes, goes)
                await until(lambda: len(tidegate.events("settings_reloaded")) == 2)
            for topic in (stays, goes, comes):
                await until(lambda: ends.all_committed(topic, PARTITIONS, traffic.written[topic]))  # noqa: B023
            assert sum(one or 0 for one in left) < traffic.written[goes], "it stood still meanwhile"
            assert await tidegate.stop() == 0
        for topic in (stays, goes, comes):
            assert sorted(await numbers(ends, queues[topic])) == list(range(traffic.written[topic]))


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_a_hundred_reloads_lose_and_repeat_nothing_and_pause_what_changed_alone_when_all_goes_at_full_speed(
    stack: Stack, tmp_path: Path
) -> None:
    async with Ends.open(stack) as ends:
        topics = [await ends.topic(f".{number}", PARTITIONS) for number in range(TYPES)]
        queues = {topic: await ends.queue(topic.removeprefix(ends.name)) for topic in topics}
        types = {topic: {"routing_key": queues[topic]} for topic in topics}
        settings = ends.settings(types, metric_log={"folder": str(tmp_path / "metrics")})
        for topic in topics:
            await fill(stack.kafka, topic, [EVENTS] * PARTITIONS, BULK)
        with contextlib.ExitStack() as running:
            drains = {at: running.enter_context(Drain(stack.amqp_port, queues[at])) for at in topics}

            def taken() -> int:
                return sum(drain.count for drain in drains.values())

            tidegate = running.enter_context(Tidegate(tmp_path, settings))
            await tidegate.ready()
            await until(lambda: taken() > 10_000)
            began, first = time.monotonic(), taken()
            for number in range(RELOADS):
                types[topics[number % TYPES]]["content_type"] = f"text/{number}"
                tidegate.write(yaml.safe_dump(settings))
                tidegate.process.send_signal(signal.SIGHUP)
                await until(lambda: tidegate.metrics()['tidegate_reloads_total{result="applied"}'] == number + 1)  # noqa: B023
            during = (taken() - first) / (time.monotonic() - began)
            left = TYPES * PARTITIONS * EVENTS - taken()
            began, first = time.monotonic(), taken()
            for topic in topics:
                await until(lambda: ends.all_committed(topic, PARTITIONS, PARTITIONS * EVENTS), deadline=240)  # noqa: B023
            after = (taken() - first) / (time.monotonic() - began)
            assert await tidegate.stop() == 0
            for drain in drains.values():
                places = [BULK.read(delivery.body) for delivery in drain.end()]
                for partition in range(PARTITIONS):
                    found = tally(EVENTS, [number for at, number in places if at == partition])
                    assert (found.lost, found.duplicates, found.late, found.foreign) == (0, 0, 0, 0)
        assert during > after / 2, f"{during:.0f} events a second during the reloads, {after:.0f} after them"
        assert left > 0, "all was gone before the last reload: no full load"
        for topic in topics:
            begun = len(assigned(tmp_path / "metrics", topic)) / PARTITIONS
            # a change that comes before the one before it has begun, for a commit took longer, begins with it
            assert RELOADS // TYPES // 2 < begun <= 1 + RELOADS // TYPES, "only what changed begins anew"
