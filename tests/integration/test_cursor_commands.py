"""`tidegate skip` and `tidegate rewind` as whoever is on duty runs them, on real brokers with real replicas."""

import asyncio
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from load.stack import Stack
from tests.integration.test_interventions import told
from tests.support.tidegate import Ends, Tidegate, until

pytestmark = pytest.mark.timeout(180)


class Ended(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def ranges(self) -> dict[int, tuple[int, int]]:
        return {one["partition"]: (one["first"], one["end"]) for one in self.json["partitions"]}


async def run(folder: Path, settings: dict[str, Any], command: str, *arguments: str) -> Ended:
    file = folder / "command.yaml"
    file.write_text(yaml.safe_dump(settings))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "proxy", command, "-c", str(file), *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(90):
        out, err = await process.communicate()
    ended = Ended(process.returncode or 0, out.decode(), err.decode())
    assert "Traceback" not in ended.err
    return ended


async def produce(ends: Ends, topic: str, first: int, count: int) -> None:
    for partition in (0, 1):
        await ends.produce(topic, [b"%d-%d" % (partition, first + at) for at in range(count)], partition=partition)


async def test_two_replicas_rewind_and_skip_once_while_events_flow(stack: Stack, tmp_path: Path) -> None:
    async with Ends.open(stack) as ends:
        topic, queue = await ends.topic(partitions=2), await ends.queue()
        settings = ends.settings({topic: {"routing_key": queue}}, metric_log={"folder": str(tmp_path / "metrics")})
        with Tidegate(tmp_path, settings) as first, Tidegate(tmp_path, settings) as second:
            await first.ready()
            await second.ready()
            await produce(ends, topic, 0, 100)
            await ends.receive(queue, 200)
            await until(lambda: ends.all_committed(topic, 2, 200))
            back = ("--type", topic, "--to-offset", "40", "--json")
            looked = await run(tmp_path, settings, "rewind", *back, "--dry-run")
            assert (looked.code, looked.ranges) == (0, {0: (40, 100), 1: (40, 100)})
            assert [one["events"] for one in looked.json["partitions"]] == [60, 60]
            assert (await ends.depth(queue)) == 0
            flowing = asyncio.create_task(produce(ends, topic, 100, 50))
            done = await run(tmp_path, settings, "rewind", *back, "--yes", "--why", "lost, ticket 4711")
            await flowing
            assert done.code == 0, done
            assert [one["is_moved"] for one in done.json["partitions"]] == [True, True]
            assert [one["answered"] for one in done.json["replicas"]] == [True, True]
            got = Counter([message.body for message in await ends.receive(queue, 220)])
            assert {one for one in got if int(one.split(b"-")[1]) < 40} == set()
            assert all(got[b"%d-%d" % (partition, at)] for partition in (0, 1) for at in range(40, 150))
            await until(lambda: ends.all_committed(topic, 2, 300))
            again = await run(tmp_path, settings, "rewind", *back, "--yes")
            assert (again.code, again.json["id"]) == (0, None)
            skipped = await run(tmp_path, settings, "skip", "--type", topic, "--to-end", "--yes", "--json")
            assert (skipped.code, skipped.json["id"]) == (0, None)  # there is nothing to pass over
            assert await first.stop() == 0
            assert await second.stop() == 0
        rewinds = told(tmp_path / "metrics", "rewind")
        assert {(one["partition"], one["first"], one["why"]) for one in rewinds} == {
            (0, 40, "lost, ticket 4711"),
            (1, 40, "lost, ticket 4711"),
        }


async def test_a_skip_is_made_and_recorded_by_the_command_when_every_replica_is_stopped(
    stack: Stack, tmp_path: Path
) -> None:
    async with Ends.open(stack) as ends:
        topic, queue = await ends.topic(partitions=2), await ends.queue()
        settings = ends.settings({topic: {"routing_key": queue}}, metric_log={"folder": str(tmp_path / "metrics")})
        with Tidegate(tmp_path, settings) as tidegate:
            await tidegate.ready()
            await produce(ends, topic, 0, 10)
            await ends.receive(queue, 20)
            assert await tidegate.stop() == 0
        await produce(ends, topic, 10, 50)
        ahead = ("--type", topic, "--to-offset", "30", "--yes", "--json")
        done = await run(tmp_path, settings, "skip", *ahead)
        assert (done.code, done.ranges, done.json["replicas"]) == (0, {0: (10, 30), 1: (10, 30)}, []), done
        again = await run(tmp_path, settings, "skip", *ahead)
        assert (again.code, again.json["id"]) == (0, None)
        with Tidegate(tmp_path, settings) as tidegate:
            await tidegate.ready()
            got = Counter([message.body for message in await ends.receive(queue, 60)])
            assert got == {b"%d-%d" % (partition, at): 1 for partition in (0, 1) for at in range(30, 60)}
            await until(lambda: ends.all_committed(topic, 2, 120))
            behind = await run(tmp_path, settings, "skip", "--type", topic, "--to-offset", "5", "--yes")
            assert behind.code == 2
            assert "skip can't take it to 5; rewind goes back" in behind.err
            beyond = await run(tmp_path, settings, "skip", "--type", topic, "--to-offset", "500", "--yes")
            assert (beyond.code, beyond.out) == (2, "")
            assert "has no offset 500: it holds 0 to 60" in beyond.err
            assert await tidegate.stop() == 0
        skips = told(tmp_path / "metrics", "skip")
        assert {(one["partition"], one["first"], one["end"]) for one in skips} == {(0, 10, 30), (1, 10, 30)}
