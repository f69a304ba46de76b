"""What the benchmark with thousands of event types believes and judges, without brokers."""

import asyncio
import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from load.many_types import ManyTypes
from load.scale_traffic import Feed, Seen
from load.scale_verdict import Phase, goals, percentiles
from load.sender import Record
from load.stack import Stack
from proxy import config

STACK = cast("Stack", SimpleNamespace(kafka="127.0.0.1:9092", amqp_port=5672))
STEADY = Phase("steady", 25.0, 0.3, 0.1, 0.1, 0.1, 120.0, 900.0, 50_000, {"p50": 6.0, "p99": 60.0}, {"p99": 9.0})
IDLE = replace(STEADY, name="idle", cpu=0.06, response_ms={})
START = {"joined": 1.0, "ready": 5.5, "cpu": 1.0}


def test_all_types_have_a_topic_and_a_class_when_shares_do_not_divide_them() -> None:
    topics = ManyTypes(37, 1).topics
    assert len(set(topics)) == 37
    assert Counter(topic.split(".")[1] for topic in topics) == {"P1": 4, "P2": 11, "P3": 22}


def test_every_partition_has_its_turn_when_topics_have_several() -> None:
    places = ManyTypes(50, 4).places
    assert len(set(places)) == 200
    assert len({place.topic for place in places[:20]}) > 10, "an order by names would begin with five topics"


def test_the_patterns_name_each_topic_once_when_the_settings_are_loaded(tmp_path: Path) -> None:
    types = ManyTypes(100, 1)
    settings = config.load(types.write(tmp_path / "tidegate.yaml", STACK, 8080), {})
    for topic in types.topics:
        found = config.event_type_for(settings, topic)
        assert found is not None
        assert found.priority == topic.split(".")[1]


def test_nothing_is_counted_that_was_not_handed_over_when_the_feed_is_halted(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> tuple[int, int]:
        feed, handed, begun = Feed("127.0.0.1:9092", 10_000.0), [0], asyncio.Event()

        async def send(_topic: str, _partition: int, records: list[Record], _on_answer: object) -> None:
            begun.set()
            await asyncio.sleep(0)  # where a cancelled feed would end
            handed[0] += len(records)

        monkeypatch.setattr(feed._sender, "send", send)
        async with asyncio.timeout(10):
            running = asyncio.create_task(feed.run(ManyTypes(10, 1).places))
            await begun.wait()
            feed.halt()
            await running
        return feed.sent, handed[0]

    sent, handed = asyncio.run(run())
    assert 0 < sent == handed


def test_an_event_is_repeated_once_and_not_late_when_it_comes_twice() -> None:
    seen = Seen()
    for number, event in ((0, 1), (1, 2), (0, 1)):
        seen.take(7, number, event)
    assert (seen.repeated, seen.late, len(seen.events)) == (1, 0, 2)


def test_an_event_is_late_when_a_later_one_of_its_partition_came_before() -> None:
    seen = Seen()
    for place, number, event in ((7, 1, 1), (8, 0, 2), (7, 0, 3)):
        seen.take(place, number, event)
    assert (seen.repeated, seen.late) == (0, 1)


@pytest.mark.parametrize(("types", "most_cpu", "judges_idle"), [(1_000, 35.0, True), (5_000, 105.0, False)])
def test_goals_grow_but_for_steps_when_there_are_more_types(types: int, most_cpu: float, judges_idle: bool) -> None:
    found = {one.name: one for one in goals(types, START, [IDLE, STEADY], 26.0)}
    assert found["steady, of a core"].most == most_cpu
    assert not found["longest step of the loop"].is_met
    assert found["ready after the group is joined"].figure == 4.5
    assert ("idle, of a core" in found) == judges_idle


def test_a_goal_is_missed_when_nothing_is_known_of_it() -> None:
    found = goals(1_000, START, [IDLE, replace(STEADY, response_ms={"p50": 6.0})], 20.0)
    assert [one.name for one in found if not one.is_met] == ["steady, P99", "idle, of a core"]


def test_a_percentile_is_left_out_when_too_few_lie_beyond_it() -> None:
    assert percentiles([float(value) for value in range(1000)]) == {"p50": 500.0, "p99": 990.0}


def test_a_long_step_is_told_by_its_task_when_the_process_ends(tmp_path: Path) -> None:
    script = """
import asyncio, sys, time
import proxy.__main__
async def busy():
    until = time.thread_time() + 0.02
    while time.thread_time() < until: pass
def main(arguments):
    assert arguments == ["run"]
    asyncio.run(busy())
    return 3
proxy.__main__.main = main
sys.argv = ["timed_steps", sys.argv[1], "run"]
import runpy
runpy.run_module("load.timed_steps", run_name="__main__")
"""
    file = tmp_path / "steps.json"
    ended = subprocess.run([sys.executable, "-c", script, str(file)], env=os.environ, check=False, timeout=60)
    assert ended.returncode == 3
    told: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    ((_, seconds, name),) = [one for one in told["long"] if one[2] == "busy"]
    assert seconds >= 0.02
    assert told["kinds"]["busy"]["count"] == 1
    assert name == "busy"
