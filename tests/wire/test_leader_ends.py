"""Kafka loses the end of what it acknowledged; what takes the place of that is read, and nothing else twice.

docs/design/0068-where-a-leader-ended.md.
"""

import asyncio

import pytest
from structlog.testing import capture_logs

from tests.wire.bridge import PLACE, Bridge, lived, until
from tests.wire.kafka import mischief
from tests.wire.kafka.messages import Api, Error
from tests.wire.kafka.mischief import Rule, Trick


async def all_come(bridge: Bridge) -> None:
    """Wait until everything produced has come out, and the group is where the log ends."""

    def is_done() -> bool:
        bridge.take()
        committed = bridge.kafka.group("bridge").committed.get(PLACE)
        is_committed = committed is not None and committed.offset == bridge.kafka.tracks[PLACE].end
        return is_committed and len(bridge.received) == bridge.produced

    await until(is_done)


async def begun(bridge: Bridge) -> None:
    for _ in range(10):
        bridge.produce()
    await all_come(bridge)


@pytest.mark.parametrize("more", [0, 1, 4, 5, 30])
@pytest.mark.parametrize("kept", [6, 9, 10])
def test_every_event_is_read_once_when_the_log_was_cut_behind_its_reader(kept: int, more: int) -> None:
    async def story() -> None:
        async with Bridge.running() as bridge:
            await begun(bridge)
            with capture_logs() as said:
                bridge.kafka.cut(PLACE, kept)
                for _ in range(more):
                    bridge.produce()
                await asyncio.sleep(3)  # that it ends before the position is seen by the next fetch
                bridge.produce()
                await all_come(bridge)
            assert set(bridge.received.values()) == {1}
            cut = [(entry["wanted"], entry["kept"]) for entry in said if entry["event"] == "log_cut_back"]
            assert cut == ([(10, kept)] if kept < 10 else [])

    lived(story)


def test_nothing_comes_twice_when_one_leader_follows_the_other() -> None:
    async def story() -> None:
        async with Bridge.running() as bridge:
            await begun(bridge)
            for _ in range(20):
                bridge.kafka.move_leader(PLACE, 1)
                bridge.produce()
                await asyncio.sleep(0.1)
            await all_come(bridge)
            assert set(bridge.received.values()) == {1}

    lived(story)


@pytest.mark.parametrize("error", [Error.NOT_LEADER, Error.UNKNOWN])
def test_every_event_is_read_in_the_end_when_nobody_tells_at_first_where_the_leader_ended(
    error: Error, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(mischief.ERRORS, Api.LEADER_ENDS, (error,))

    async def story() -> None:
        async with Bridge.running() as bridge:
            await begun(bridge)
            untold = bridge.kafka.mischief.begin(Rule(Trick.ERROR, 1, frozenset({Api.LEADER_ENDS})))
            bridge.kafka.cut(PLACE, 6)
            for _ in range(20):
                bridge.produce()
            await asyncio.sleep(5)
            bridge.take()
            if error is Error.NOT_LEADER:
                assert len(bridge.received) == 10
            bridge.kafka.mischief.end(untold)
            bridge.produce()
            await until(lambda: bridge.take() or bridge.produced - 1 in bridge.received)
            if error is Error.NOT_LEADER:
                await all_come(bridge)
                assert set(bridge.received.values()) == {1}

    lived(story)
