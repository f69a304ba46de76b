"""What comes again after `kill -9` in full flow: as much as docs/design/0014-commit-cadence.md says."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from load.stack import Stack
from tests.support.tidegate import Ends, Tidegate, until

KILLS = 8
BACKLOG = 120_000
WINDOW = 200
"""Events whose confirm may be open."""
ROUND_TRIP = 0.2
"""Seconds of a commit's way there and back on a machine that others use, too."""
SAMPLE = 0.3


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_only_what_a_commit_could_not_tell_yet_comes_again_when_killed_in_full_flow(
    stack: Stack, tmp_path: Path
) -> None:
    again, bounds = [], []
    for kill in range(KILLS):
        async with Ends.open(stack) as ends:
            topic, queue = await ends.topic(partitions=2), await ends.queue()
            await ends.produce(topic, [b"%0200d" % number for number in range(BACKLOG)])
            folder = tmp_path / str(kill)
            folder.mkdir()
            with Tidegate(folder, _settings(ends, topic, queue)) as tidegate:
                await until(lambda ends=ends, queue=queue, kill=kill: _is_deep(ends, queue, 15_000 + 1_500 * kill))
                before = await ends.depth(queue)
                await asyncio.sleep(SAMPLE)
                rate = (await ends.depth(queue) - before) / SAMPLE
                tidegate.process.kill()
                await tidegate.ended()
            stored = len(await ends.receive(queue, await _settled(ends, queue)))
            committed = sum([await ends.committed(topic, partition) or 0 for partition in (0, 1)])
            assert rate > 0, "it was in full flow"
            again.append(stored - committed)
            bounds.append(WINDOW + max(500, 0.1 * rate) + ROUND_TRIP * rate)
    assert [events for events, bound in zip(again, bounds, strict=True) if not 0 <= events <= bound] == []


def _settings(ends: Ends, topic: str, queue: str) -> dict[str, Any]:
    route = {"exchange": "", "policy": "static", "in_flight_events": WINDOW}
    return ends.settings({topic: {"routing_key": queue}}, routes={"main": route})


async def _is_deep(ends: Ends, queue: str, depth: int) -> bool:
    return await ends.depth(queue) >= depth


async def _settled(ends: Ends, queue: str) -> int:
    """Return the depth once it no longer grows."""
    depth = -1
    while (now := await ends.depth(queue)) != depth:
        depth = now
        await asyncio.sleep(0.5)
    return depth
