"""Incidents, as docs/operations.md tells them: replicas at work, and whoever is on duty."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from load.incident import play
from load.incident.play import AFTER, BOUND, CAMPAIGN, REPLICAS
from load.incident.play import ALERTS as LETTERS
from load.stack import Stack
from tests.support.tidegate import Ends, Tidegate, until

pytestmark = pytest.mark.timeout(180)

ALERTS, ORDERS = 40, 20


@pytest.fixture
async def ends(stack: Stack) -> AsyncIterator[Ends]:
    async with Ends.open(stack) as ends:
        yield ends


async def ask(replica: Tidegate, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command with the settings of a replica."""
    config = replica.log_path.with_suffix(".yaml")
    return await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "proxy", command, "-c", str(config), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | {"PYTHONDEVMODE": ""},
    )


async def test_alerts_wait_then_are_dropped_and_orders_go_on_when_duty_says_so(ends: Ends, tmp_path: Path) -> None:
    queue = await ends.queue()
    alerts, orders = await ends.topic(".alerts", 2), await ends.topic(".orders", 2)
    types = {
        alerts: {"class": "P3", "routing_key": queue},
        orders: {"class": "P1", "routing_key": queue},
    }
    settings = ends.settings(types)
    with Tidegate(tmp_path, settings) as one, Tidegate(tmp_path, settings) as other:
        await asyncio.gather(one.ready(), other.ready())
        paused = await ask(one, "pause", "--class", "P3", "--for", "10m", "--why", "mail is down")
        assert paused.returncode == 0, paused
        assert paused.stdout.count(" done, for 1 event type that it serves\n") == 2

        await ends.produce(alerts, [b"waits"] * ALERTS)
        await ends.produce(orders, [b"order"] * ORDERS)
        assert {message.body for message in await ends.receive(queue, ORDERS)} == {b"order"}
        assert await ends.depth(queue) == 0

        resumed = await ask(one, "resume", "--class", "P3")
        assert resumed.returncode == 0, resumed
        assert {message.body for message in await ends.receive(queue, ALERTS)} == {b"waits"}

        dropped = await ask(other, "discard", "--type", alerts, "--for", "10m", "--yes")
        assert dropped.returncode == 0, dropped
        await ends.produce(alerts, [b"dropped"] * ALERTS)
        await ends.produce(orders, [b"order"] * ORDERS)
        assert {message.body for message in await ends.receive(queue, ORDERS)} == {b"order"}
        await until(lambda: ends.all_committed(alerts, 2, 2 * ALERTS))
        await until(lambda: ends.all_committed(orders, 2, 2 * ORDERS))  # or they come twice

        other.process.kill()
        with Tidegate(tmp_path, settings) as third:
            await third.ready()

            async def is_answered_by_both() -> bool:
                told = (await ask(one, "interventions")).stdout.splitlines()
                return len(told) == 3 and all(" done, for " in line for line in told[1:])

            await until(is_answered_by_both)
            assert await ends.depth(queue) == 0
            assert await one.stop() == await third.stop() == 0
    after = await ask(one, "resume", "--type", alerts)
    assert after.returncode == 0
    assert f"no replica is in group {ends.name} now: it holds for whoever starts" in after.stderr


async def test_every_event_is_accounted_for_when_a_campaign_is_paused_skipped_and_alerts_are_redriven(
    stack: Stack, tmp_path: Path
) -> None:
    ended = await play(stack, tmp_path)
    told = ended.told
    assert ended.differences == []
    status, is_html, answers = told["page"]
    assert (status, is_html) == (200, True)
    assert answers.keys() == {"late", "why", "drop", "better"}
    assert "P3" in told["top"]["answers"]["drop"]
    assert len(told["top"]["replicas"]) == REPLICAS
    assert told["pause"] == [201, REPLICAS, []]
    assert told["dry_run"] == ended.skipped > 0
    assert told["answered"] == [True] * REPLICAS
    assert told["again"] is None
    assert told["resumed"] == [200, []]
    assert told["campaign_came"] + ended.skipped == CAMPAIGN
    assert told["orders"] == sum(ended.written.values()) - CAMPAIGN - AFTER - LETTERS > 0
    print(told["order_seconds"], told["others_before_an_order"], told["seconds"])  # noqa: T201 - seen with -s
    assert told["redriven"] == [LETTERS, LETTERS, []]
    assert told["others_before_an_order"] < BOUND / 4, "orders wait behind the campaign"
