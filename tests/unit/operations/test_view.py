"""What /stream tells: everything to whoever comes, then what has changed, with bounds."""

import asyncio
import json
from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import pytest

from proxy.operations import view as module
from proxy.operations.steps import Steps
from proxy.operations.view import COLUMNS, POINTS
from tests.support.events import PARTITION
from tests.support.process import Process


@pytest.fixture
async def process() -> AsyncIterator[Process]:
    process = Process()
    async with asyncio.timeout(10):
        while len(process.app.assignment.listeners) < 2:  # noqa: ASYNC110 - seen by looking
            await asyncio.sleep(0.005)
    yield process
    process.lane.finish()
    process.app.stop()
    await process.running


async def look(process: Process, *, is_told: bool = True) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(await process.app.view.look(Steps(), is_told=is_told))
    return told


async def test_everything_is_told_to_whoever_comes(process: Process) -> None:
    await process.feed(PARTITION, 0, 3)
    await look(process)
    whole = json.loads(process.app.view.whole())
    assert whole["instance"] == "i"
    assert whole["columns"] == list(COLUMNS)
    assert set(whole["types"]) == {"orders", "news.a"}
    assert list(whole["classes"]) == ["P1", "P2", "P3"]
    assert set(whole["answers"]) == {"late", "why", "drop", "better"}
    assert len(whole["points"]) == 1
    assert whole["decisions"].keys() == whole["routes"].keys() == {"r"}


async def test_only_what_has_changed_is_told_at_the_next_look(process: Process) -> None:
    assert set((await look(process))["types"]) == {"orders", "news.a"}
    assert (await look(process))["types"] == {}
    process.log.paused |= set(process.app.assignment.on_assigned([PARTITION]))
    assert (await look(process))["types"]["orders"][COLUMNS.index("partitions")] == 1


async def test_partitions_that_come_are_no_trend_when_their_lag_comes_with_them(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    view, seconds, lags = process.app.view, count(1_000), {"P1": 10, "P2": 0, "P3": 0}
    monkeypatch.setattr(view, "_wall", lambda: next(seconds))
    monkeypatch.setattr(view._state, "classes", lambda _: classes().items())

    def classes() -> dict[str, dict[str, Any]]:
        return {name: {"lag": lag, "lag_age_s": None} for name, lag in lags.items()}

    for _ in range(20):
        told = await look(process, is_told=False)
    assert told["answers"]["better"] == "It stays as it is: 10 events."
    process.log.paused |= set(process.app.assignment.on_assigned([PARTITION]))
    for second in range(20):
        if second == 1:  # records tell a second later
            lags["P1"] = 5_000
        told = await look(process, is_told=False)
    assert told["answers"]["better"] == "It stays as it is: 5,000 events."
    lags["P1"] = 4_000
    for _ in range(5):
        told = await look(process, is_told=False)
    assert told["answers"]["better"].startswith("Yes: 4,000 events")


async def test_a_type_that_has_gone_is_told_as_null(process: Process) -> None:
    await look(process)
    del process.app.assignment.listeners["news.a"]
    assert (await look(process))["types"] == {"news.a": None}
    assert set(json.loads(process.app.view.whole())["types"]) == {"orders"}


async def test_event_types_are_left_alone_when_nobody_is_told(process: Process) -> None:
    assert "types" not in await look(process, is_told=False)


async def test_curves_are_kept_for_so_many_points_and_no_more(process: Process) -> None:
    for _ in range(POINTS + 3):
        await look(process, is_told=False)
    assert len(json.loads(process.app.view.whole())["points"]) == POINTS


async def test_those_with_events_are_told_of_when_there_are_too_many_types(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TYPES", 1)
    process.app.assignment.listeners["news.a"].is_stopped = True
    told = await look(process)
    assert (set(told["types"]), told["types_in_all"]) == ({"news.a"}, 2)
