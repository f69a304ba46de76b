"""`tidegate skip` and `tidegate rewind` on Nakadi: told exactly, moved once; with replicas running: `live_moves`."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from proxy.command_line import command
from proxy.model import Partition
from proxy.nakadi_log.cursors import NakadiCursors
from proxy.positions.identity import Committed
from proxy.settings import LogSettings
from proxy.simulation import virtual_time
from tests.contract.nakadi_adapter import NakadiWorld
from tests.nakadi.moving import lose_the_answer
from tests.nakadi.stream import Parameters
from tests.nakadi.subscription import Subscription
from tests.wire.chance import seeded
from tests.wire.loop import WireLoop
from tests.wire.nakadi import URL, NakadiPeer

EVENTS = 10
WHO = {"owning_application": "tests", "consumer_group": "g"}


class Duty:
    """Somebody at a terminal, and a Nakadi with ten events in each of two partitions, four of each committed."""

    def __init__(self, world: NakadiWorld, folder: Path) -> None:
        self.world = world
        self._folder = folder
        self._file = folder / "tidegate.yaml"
        settings = {
            "log": {"nakadi": {"url": world.url, **WHO}},
            "broker": {"hosts": ["localhost:1"]},
            "routes": {"main": {"exchange": "x"}},
            "defaults": {"route": "main", "routing_key": "q", "dead_letter": {"routing_key": "dead"}},
            "event_types": {"orders": {"class": "P1"}, "alerts": {"class": "P2"}},
            "metric_log": {"folder": str(folder / "log")},
        }
        self._file.write_text(yaml.safe_dump(settings))
        self.found: Subscription

    async def prepare(self) -> None:
        world = self.world
        await world.create("orders", 2)
        for number in (0, 1):
            await world.produce("orders", [b"%d" % place for place in range(EVENTS)], number)
        self.found, _ = world.bus.subscribe({**WHO, "event_types": ["orders"], "read_from": "begin"}, world.now())
        self.found.move({("orders", "0"): 4, ("orders", "1"): 4}, world.now())

    @property
    def committed(self) -> list[int]:
        return [part.committed for part in self.found.parts.values()]

    def records(self) -> list[dict[str, Any]]:
        return [
            json.loads(line)
            for file in sorted((self._folder / "log").glob("*.jsonl.gz"))
            for line in gzip.open(file, "rt").read().splitlines()
        ]

    async def say(self, *arguments: str) -> int:
        return await asyncio.to_thread(command, [arguments[0], "-c", str(self._file), *arguments[1:]])


@pytest.fixture
async def duty(tmp_path: Path) -> AsyncIterator[Duty]:
    async with NakadiWorld.open() as world:
        made = Duty(world, tmp_path)
        await made.prepare()
        yield made


async def test_a_skip_and_a_rewind_move_every_cursor_when_all_replicas_are_stopped(
    duty: Duty, capfd: pytest.CaptureFixture[str]
) -> None:
    assert await duty.say("skip", "--type", "orders", "--to-end", "--dry-run") == 0
    told = capfd.readouterr().out
    assert "orders: 12 events dropped" in told
    assert "orders-1 [4, 10): 6 events dropped" in told
    assert duty.committed == [4, 4], "a dry run changes nothing"

    assert await duty.say("skip", "--type", "orders", "--to-end", "--partition", "1", "--yes", "--why", "a test") == 0
    assert duty.committed == [4, 10]
    told = capfd.readouterr().out
    assert "1 of 1 partitions moved" in told
    assert await duty.say("skip", "--type", "orders", "--to-end", "--partition", "1", "--yes") == 0
    assert "Nothing is to be moved" in capfd.readouterr().err

    assert await duty.say("rewind", "--type", "orders", "--to-start", "--yes") == 0
    assert "orders: 14 events again" in capfd.readouterr().out
    assert duty.committed == [0, 0]
    kinds = [(one["kind"], one["partition"], one["first"], one["end"]) for one in duty.records()]
    assert sorted(kinds) == [("rewind", 0, 0, 4), ("rewind", 1, 0, 10), ("skip", 1, 4, 10)]


async def test_a_range_is_counted_and_passed_exactly_when_numbers_begin_anew_and_are_left_out(
    duty: Duty, capfd: pytest.CaptureFixture[str]
) -> None:
    log = duty.world.bus.event_types["orders"].partitions[0]
    await duty.world.leave_gap("orders")
    await duty.world.produce("orders", [b"x"] * 3)
    log.switch_timeline()
    await duty.world.produce("orders", [b"y"] * 5)
    where = 2**36 + 2  # the third event of the second timeline
    assert await duty.say("skip", "--type", "orders", "--partition", "0", "--to-offset", str(where), "--yes") == 0
    assert f"orders-0 [4, {where}): 11 events dropped" in capfd.readouterr().out
    assert duty.committed == [15, 4]
    assert await duty.say("rewind", "--type", "orders", "--partition", "0", "--to-offset", "15", "--yes") == 0
    assert f"orders-0 [15, {where}): 4 events again" in capfd.readouterr().out
    assert duty.committed == [11, 4]


async def test_a_rewind_to_the_start_takes_what_is_kept_when_the_beginning_is_gone(
    duty: Duty, capfd: pytest.CaptureFixture[str]
) -> None:
    await duty.world.truncate("orders", 0, 3)
    assert await duty.say("rewind", "--class", "P1", "--to-start", "--yes") == 0
    assert "orders-0 [3, 4): 1 event again" in capfd.readouterr().out
    assert duty.committed == [3, 0]


async def test_cursors_are_moved_and_recorded_when_a_replica_reads(
    duty: Duty, capfd: pytest.CaptureFixture[str]
) -> None:
    duty.found.move({("orders", "0"): EVENTS, ("orders", "1"): EVENTS}, duty.world.now())
    duty.found.open(Parameters(), Random(1), duty.world.now())  # it has nothing to settle: nobody has to wait for it
    assert await duty.say("rewind", "--type", "orders", "--to-offset", "3", "--yes") == 0
    told = capfd.readouterr()
    assert "2 of 2 partitions moved" in told.out
    assert "stands still" in told.err
    assert duty.committed == [3, 3]
    kinds = [(one["kind"], one["partition"], one["first"], one["end"]) for one in duty.records()]
    assert sorted(kinds) == [("rewind", 0, 3, EVENTS), ("rewind", 1, 3, EVENTS)]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["skip", "--type", "orders", "--to", "1h"], "so there is no --to TIME: say --to-offset, or --to-end"),
        (["rewind", "--type", "orders", "--to", "1h"], "say --to-offset, or --to-start"),
        (["skip", "--type", "orders", "--to-offset", "11"], "orders-0 has no offset 11: it holds 0 to 10"),
        (["skip", "--type", "orders", "--to-offset", "2"], "orders-0 stands at 4: skip can't take it to 2"),
        (["skip", "--type", "alerts", "--to-end"], "no topic of event type alerts exists"),
    ],
)
async def test_a_mistake_is_told_and_ends_with_2_when_nakadi_can_t_do_it(
    duty: Duty, capfd: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert await duty.say(*arguments, "--yes") == 2
    assert words in " ".join(capfd.readouterr().err.split())
    assert duty.committed == [4, 4]


async def test_no_subscription_is_made_when_there_is_none(duty: Duty, capfd: pytest.CaptureFixture[str]) -> None:
    await duty.world.create("alerts")
    assert await duty.say("skip", "--type", "alerts", "--to-end", "--yes") == 2
    assert "group g has committed nothing of alerts" in capfd.readouterr().err
    assert len(duty.world.bus.subscriptions) == 1


async def test_nothing_is_moved_when_one_of_several_types_is_not_read_by_the_group(
    duty: Duty, capfd: pytest.CaptureFixture[str]
) -> None:
    await duty.world.create("alerts")
    await duty.world.produce("alerts", [b"x"] * 3)
    assert await duty.say("skip", "--class", "P1", "--class", "P2", "--to-end", "--yes") == 2
    assert "group g has no subscription of alerts" in " ".join(capfd.readouterr().err.split())
    assert duty.committed == [4, 4]


# -- what became of it is not known, under virtual time -------------------------------------------------------------


class Story:
    """A Nakadi in the network in memory; counts how often cursors were asked to move."""

    def __init__(self, peer: NakadiPeer) -> None:
        self.peer = peer
        self.moves = 0
        peer.bus.create("orders", 1, created_at=peer.wall())
        peer.bus.append("orders", 0, [b"{}"] * EVENTS, peer.wall())
        self.found, _ = peer.bus.subscribe({**WHO, "event_types": ["orders"], "read_from": "begin"}, peer.wall())
        self.found.move({("orders", "0"): 4}, peer.wall())
        move = self.found.move

        def counted(ends: Any, now: float) -> Any:
            self.moves += 1
            return move(ends, now)

        self.found.move = counted  # type: ignore[method-assign]

    async def to_the_end(self) -> list[Partition]:
        settings = LogSettings.model_validate({"nakadi": {"url": URL, **WHO}})
        cursors = NakadiCursors(settings, lambda _: True)
        try:
            await cursors.open()
            await cursors.topics()
            return list(await cursors.commit({Partition("orders", 0): Committed(EVENTS, "")}))
        finally:
            await cursors.close()


def lived(told: Callable[[Story], Awaitable[Any]]) -> Any:
    async def life() -> Any:
        peer = NakadiPeer(Random(1))
        story = Story(peer)
        await peer.start()
        try:
            return await told(story)
        finally:
            await peer.close()

    with seeded(Random(1)):
        return virtual_time.run(life(), partial(WireLoop, Random(1)))


def test_it_is_seen_that_it_is_done_and_not_asked_again_when_the_answer_is_lost() -> None:
    async def told(story: Story) -> tuple[list[Partition], int, int]:
        lose_the_answer(story.found, story.peer)
        taken = await story.to_the_end()
        return taken, story.moves, story.found.parts["orders", "0"].committed

    assert lived(told) == ([Partition("orders", 0)], 1, EVENTS)


def test_it_is_not_asked_again_when_it_is_not_known_whether_it_was_heard() -> None:
    async def told(story: Story) -> tuple[list[Partition], int, float]:
        def lost(ends: Any, now: float) -> Any:
            story.moves += 1
            raise ConnectionResetError("nobody knows")

        story.found.move = lost  # type: ignore[method-assign]
        taken = await story.to_the_end()
        return taken, story.moves, asyncio.get_running_loop().time()

    taken, moves, seconds = lived(told)
    assert (taken, moves) == ([], 1)
    assert seconds > 60.0, "Nakadi may take a commit timeout for it"


def test_it_is_asked_again_when_cursors_are_being_moved_by_another() -> None:
    async def told(story: Story) -> tuple[list[Partition], int]:
        peer = story.peer
        stream = story.found.open(Parameters(commit_timeout=20.0), Random(1), peer.wall())
        stream.pull(peer.wall())
        story.found.move({("orders", "0"): 2}, peer.wall())  # hangs until the stream is given up
        for part in story.found.parts.values():
            part.stream = None  # nobody reads any more, and yet it is not over
        taken = await story.to_the_end()
        return taken, story.found.parts["orders", "0"].committed

    assert lived(told) == ([Partition("orders", 0)], EVENTS)
