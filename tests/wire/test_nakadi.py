"""The scripted Nakadi in the network in memory, with aiohttp's client at the other end, under virtual time."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from hashlib import sha256
from itertools import pairwise
from random import Random
from typing import Any

import aiohttp
import pytest

from proxy.simulation import virtual_time
from tests.nakadi.mischief import Kind
from tests.wire.chance import seeded
from tests.wire.loop import WireLoop
from tests.wire.nakadi import AT, URL, NakadiPeer

EVENTS = 60
SECONDS = 900.0


def lived(story: Callable[[NakadiPeer, aiohttp.ClientSession], Awaitable[Any]], seed: int = 1) -> Any:
    """Live a story with one server and one client, and return what it returns."""

    async def life() -> Any:
        peer = NakadiPeer(Random(seed))
        peer.bus.create("a", 2)
        await peer.start()
        try:
            async with asyncio.timeout(SECONDS), aiohttp.ClientSession() as session:
                return await story(peer, session)
        finally:
            await peer.close()

    with seeded(Random(seed)):
        return virtual_time.run(life(), partial(WireLoop, Random(seed)))


async def subscribed(session: aiohttp.ClientSession) -> str:
    asked = {"owning_application": "tests", "event_types": ["a"], "read_from": "begin"}
    while True:
        try:
            async with session.post(f"{URL}/subscriptions", json=asked) as answer:
                if answer.status < 300:
                    return f"{URL}/subscriptions/{(await answer.json())['id']}"
        except aiohttp.ClientError:
            pass
        await asyncio.sleep(1.0)


async def read_patiently(peer: NakadiPeer, session: aiohttp.ClientSession) -> list[tuple[float, str, int]]:
    """Read, commit and begin again after each failure, until everything is committed; return all that came."""
    place = await subscribed(session)
    received: list[tuple[float, str, int]] = []
    asked = {"batch_limit": 4, "batch_flush_timeout": 1, "max_uncommitted_events": 8, "stream_timeout": 20}
    (found,) = peer.bus.subscriptions.values()

    def is_done() -> bool:
        return bool(found.parts) and all(part.committed == part.log.end == EVENTS for part in found.parts.values())

    while not is_done():
        try:
            async with session.get(f"{place}/events", params=asked) as stream:
                told = {"X-Nakadi-StreamId": stream.headers.get("X-Nakadi-StreamId", "")}
                async for text in stream.content:
                    if stream.status != 200 or not text.endswith(b"\n"):
                        break
                    batch = json.loads(text)
                    number = batch["cursor"]["partition"]
                    received += [(peer.loop.time(), number, event) for event in batch.get("events", [])]
                    if "events" in batch:
                        async with session.post(
                            f"{place}/cursors", json={"items": [batch["cursor"]]}, headers=told
                        ) as answer:
                            await answer.read()
                    if is_done():
                        break
        except aiohttp.ClientError:
            pass
        await asyncio.sleep(1.0)
    return received


def published(peer: NakadiPeer) -> None:
    for number in range(2):
        peer.bus.append("a", number, [b"%d" % event for event in range(EVENTS)], peer.wall())


async def story(
    peer: NakadiPeer, session: aiohttp.ClientSession, rates: dict[Kind, float]
) -> list[tuple[float, str, int]]:
    published(peer)
    peer.mischief.rates = rates
    return await read_patiently(peer, session)


def test_an_hours_stream_is_read_in_no_time_when_nothing_goes_wrong() -> None:
    received = lived(partial(story, rates={}))
    assert [event for _, number, event in received if number == "0"] == list(range(EVENTS))
    assert [event for _, number, event in received if number == "1"] == list(range(EVENTS))


@pytest.mark.parametrize("seed", range(5))
def test_everything_arrives_in_the_end_when_everything_goes_wrong_by_chance(seed: int) -> None:
    rates: dict[Kind, float] = {
        "slow": 0.1,
        "refused": 0.1,
        "unheard": 0.1,
        "unanswered": 0.1,
        "conflict": 0.1,
        "cut": 0.03,
        "short": 0.03,
        "silent": 0.03,
        "mute": 0.03,
        "ended": 0.03,
    }
    received = lived(partial(story, rates=rates), seed)
    for name in ("0", "1"):
        events = [event for _, number, event in received if number == name]
        assert set(events) == set(range(EVENTS))
        assert all(after <= before + 1 for before, after in pairwise(events))


def test_a_life_is_the_same_to_the_instant_when_it_is_lived_again() -> None:
    rates: dict[Kind, float] = {"cut": 0.1, "unanswered": 0.1, "slow": 0.2}
    lives = {sha256(repr(lived(partial(story, rates=rates), 7)).encode()).hexdigest() for _ in range(2)}
    assert len(lives) == 1


def test_a_stream_waits_for_who_reads_slowly_when_kernels_are_full() -> None:
    async def slowly(peer: NakadiPeer, session: aiohttp.ClientSession) -> int:
        peer.bus.append("a", 0, [b'"%b"' % (b"x" * 1_000)] * 2_000, peer.wall())
        place = await subscribed(session)
        asked = {"batch_limit": 10, "max_uncommitted_events": 10_000}
        async with session.get(f"{place}/events", params=asked):
            await asyncio.sleep(5.0)
            (found,) = peer.bus.subscriptions.values()
            return next(iter(found.streams.values())).uncommitted

    assert 10 < lived(slowly) < 1_500


def test_a_stream_is_noticed_as_dead_when_the_network_breaks_it() -> None:
    async def broken(peer: NakadiPeer, session: aiohttp.ClientSession) -> str:
        published(peer)
        place = await subscribed(session)
        async with session.get(f"{place}/events") as stream:
            await stream.content.readline()
            (found,) = peer.bus.subscriptions.values()
            (its,) = found.streams.values()
            peer.loop.network.reset(AT)
            await asyncio.sleep(1.0)
            was = its.state
            await asyncio.sleep(60.0)
            return f"{was} {its.state}"

    assert lived(broken) == "closing gone"
