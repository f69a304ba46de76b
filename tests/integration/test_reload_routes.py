"""Routes on real brokers: steered otherwise under full load, and one that comes and goes; nothing lost or twice."""

import asyncio
import contextlib
import getpass
import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from load.checker import tally
from load.drain import Drain
from load.events import Bulk
from load.producer import fill
from load.stack import Stack
from tests.integration.test_reload import assigned, recorded
from tests.support.tidegate import Ends, Tidegate, until

pytestmark = pytest.mark.timeout(500)

PARTITIONS, CHANGES = 2, 40
EVENTS = 100_000
"""Of each partition: more than go while there are changes."""
BULK = Bulk(100, seed=1)
STEERED: list[dict[str, Any]] = [
    {"policy": "class_budget"},
    {"policy": "class_budget", "law": "vegas", "strategy": "min", "untether": True},
    {"policy": "class_budget", "law": "cubic", "cap": {"events": 200_000}},
    {"policy": "static", "cap": {"events": 200_000, "strict": True}},
    {"policy": "per_type"},
    {"policy": "static", "in_flight_events": 150},
    {"policy": "class_budget", "in_flight_bound": 1_000, "cap": {"bytes": "200MiB"}},
    {"policy": "static"},
]


async def test_nothing_pauses_is_lost_or_comes_twice_when_routes_are_steered_otherwise_come_and_go_under_full_load(
    stack: Stack, tmp_path: Path
) -> None:
    async with Ends.open(stack) as ends:
        steered, moved = await ends.topic(".steered", PARTITIONS), await ends.topic(".moved", PARTITIONS)
        queues = {topic: await ends.queue(topic.removeprefix(ends.name)) for topic in (steered, moved)}
        types: dict[str, dict[str, Any]] = {topic: {"routing_key": queues[topic]} for topic in queues}
        main = {"exchange": "", "queues": [queues[steered], queues[moved]]}
        routes: dict[str, Any] = {"main": main | {"policy": "static"}}
        settings = ends.settings(types, routes=routes, metric_log={"folder": str(tmp_path / "metrics")})
        for topic in queues:
            await fill(stack.kafka, topic, [EVENTS] * PARTITIONS, BULK)
        with contextlib.ExitStack() as running:
            drains = {at: running.enter_context(Drain(stack.amqp_port, queues[at])) for at in queues}
            tidegate = running.enter_context(Tidegate(tmp_path, settings))
            await tidegate.ready()
            await until(lambda: drains[steered].count > 5_000)
            moves = 0
            for number in range(CHANGES):
                routes["main"] = main | STEERED[number % len(STEERED)]
                if number % 10 == 4:
                    moves += 1
                    if number % 20 == 4:
                        routes["other"] = {"exchange": "", "policy": "static", "queues": [queues[moved]]}
                        types[moved]["route"] = "other"
                    else:
                        del types[moved]["route"], routes["other"]
                tidegate.write(yaml.safe_dump(settings))
                tidegate.process.send_signal(signal.SIGHUP)
                await until(lambda: tidegate.metrics()['tidegate_reloads_total{result="applied"}'] == number + 1)  # noqa: B023
                await asyncio.sleep(0.05)  # the policy has its say
            left = 2 * PARTITIONS * EVENTS - sum(drain.count for drain in drains.values())
            for topic in queues:
                await until(lambda: ends.all_committed(topic, PARTITIONS, PARTITIONS * EVENTS), deadline=300)  # noqa: B023
            assert set(await_routes(tidegate)) == {"main"}, "the other one's lane is closed"
            assert await tidegate.stop() == 0
            for drain in drains.values():
                places = [BULK.read(delivery.body) for delivery in drain.end()]
                for partition in range(PARTITIONS):
                    found = tally(EVENTS, [number for at, number in places if at == partition])
                    assert (found.lost, found.duplicates, found.late, found.foreign) == (0, 0, 0, 0)
        assert left > 0, "all was gone before the last change: no full load"
        assert len(assigned(tmp_path / "metrics", steered)) == PARTITIONS, "it went on all the time"
        assert len(assigned(tmp_path / "metrics", moved)) == PARTITIONS * (1 + moves)


def await_routes(tidegate: Tidegate) -> list[str]:
    """Return the routes that have a window now."""
    prefix = 'tidegate_window_events{route="'
    return [name.removeprefix(prefix).rstrip('"}') for name in tidegate.metrics() if name.startswith(prefix)]


async def asked(tidegate: Tidegate, *words: str) -> tuple[int, str]:
    """Run a command of an incident; return its exit code, and what it says in JSON."""
    command = [sys.executable, "-m", "proxy", words[0], "-c", str(tidegate.config), *words[1:], "--json"]
    ran = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    told, _ = await ran.communicate()
    return ran.returncode or 0, told.decode()


async def test_a_type_stays_resumed_and_the_log_tells_what_is_in_force_when_a_reload_gives_it_another_class(
    stack: Stack, tmp_path: Path
) -> None:
    async with Ends.open(stack) as ends:
        topic, queue, folder = await ends.topic(partitions=PARTITIONS), await ends.queue(), tmp_path / "metrics"
        traits = {"routing_key": queue, "class": "P2"}
        settings = ends.settings({topic: traits}, metric_log={"folder": str(folder)})
        with Tidegate(tmp_path, settings) as tidegate:
            await tidegate.ready()
            assert (await asked(tidegate, "pause", "--type", topic, "--for", "10m"))[0] == 0
            code, told = await asked(tidegate, "resume", "--class", "P2")
            assert (code, json.loads(told)["types"]) == (0, [topic])
            routes = {"main": settings["routes"]["main"] | {"policy": "class_budget", "shadow": True}}
            other = settings | {"event_types": {topic: traits | {"class": "P1"}}, "routes": routes}
            tidegate.write(yaml.safe_dump(other))
            tidegate.process.send_signal(signal.SIGHUP)
            await until(lambda: tidegate.events("settings_reloaded"))
            await ends.produce(topic, [b"%d" % n for n in range(50)], partition=0)
            await until(lambda: ends.all_committed(topic, PARTITIONS, 50))
            assert await tidegate.stop() == 0
        (record,) = recorded(folder, "settings")
        assert record["routes"]["main"]["policy"] == "class_budget"
        assert json.loads(record["settings"])["routes"]["main"]["shadow"] is True


async def test_a_route_has_another_policy_for_a_time_when_a_person_asks_for_it(stack: Stack, tmp_path: Path) -> None:
    async with Ends.open(stack) as ends:
        topic, queue = await ends.topic(partitions=PARTITIONS), await ends.queue()
        settings = ends.settings({topic: {"routing_key": queue}}, metric_log={"folder": str(tmp_path / "metrics")})

        with Tidegate(tmp_path, settings) as tidegate:
            await tidegate.ready()
            code, told = await asked(
                tidegate, "policy", "main", "per_type", "--for", "10m", "--why", "a test", "--by", "ann"
            )
            answer = json.loads(told)
            assert (code, answer["routes"], answer["policy"]) == (0, ["main"], "per_type")
            assert [one["answer"]["types"] for one in answer["replicas"]] == [1]
            await ends.produce(topic, [b"%d" % n for n in range(50)], partition=0)
            assert await until(lambda: f'tidegate_batch_size_events{{type="{topic}"}}' in tidegate.metrics())
            assert (await asked(tidegate, "resume", "--route", "main"))[0] == 0
            await until(lambda: f'tidegate_batch_size_events{{type="{topic}"}}' not in tidegate.metrics())
            code, told = await asked(tidegate, "policy", "main", "class_budget", "--for", "10s")
            assert code == 0
            await until(lambda: len(tidegate.events("intervention_ended")) == 2)
            ended = [(one["policy"], one.get("ended_by")) for one in tidegate.events("intervention_ended")]
            assert ended == [("per_type", getpass.getuser()), ("class_budget", None)]
            assert (await asked(tidegate, "policy", "other", "static", "--for", "3s"))[0] == 2
            await until(lambda: ends.all_committed(topic, 1, 50))
            assert await tidegate.stop() == 0
