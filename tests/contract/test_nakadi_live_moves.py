"""`tidegate skip` and `tidegate rewind` on Nakadi while it is being read, under virtual time: exactly what is told."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from random import Random
from typing import Any

import pytest

from proxy.bridge.move import Direction, Moved
from proxy.model import Partition
from proxy.operations.plan import Plan, PlannedTopic
from proxy.settings import LogSettings
from proxy.simulation import virtual_time
from tests.nakadi.event_types import Problem
from tests.nakadi.moving import lose_the_answer, made
from tests.nakadi.stream import Parameters, Stream
from tests.nakadi.subscription import Subscription
from tests.wire.chance import seeded
from tests.wire.loop import WireLoop
from tests.wire.nakadi import URL, NakadiPeer

EVENTS = 20
WHO = {"owning_application": "tests", "consumer_group": "g"}
KEY = ("orders", "0")
ORDERS = Partition("orders", 0)


class Story:
    """A Nakadi with twenty events in one partition, four of which are committed, and a replica that reads."""

    def __init__(self, peer: NakadiPeer) -> None:
        self.peer = peer
        self.asked = 0
        self.moves: list[tuple[int, int]] = []
        """What was committed when cursors moved, and after it."""
        peer.bus.create("orders", 1, created_at=peer.wall())
        peer.bus.append("orders", 0, [b"{}"] * EVENTS, peer.wall())
        self.found: Subscription
        self.found, _ = peer.bus.subscribe({**WHO, "event_types": ["orders"], "read_from": "begin"}, peer.wall())
        self.found.move({KEY: 4}, peer.wall())
        self.found.on_move = lambda _, before, after, __: self.moves.append((before, after))
        move = self.found.move

        def counted(ends: Any, now: float) -> Any:
            self.asked += 1
            return move(ends, now)

        self.found.move = counted  # type: ignore[method-assign]
        self.replica = self.open(commit_timeout=30.0)

    def open(self, **more: Any) -> Stream:
        """Open a stream as a replica does, and send it two batches of three."""
        asked = Parameters(batch_limit=3, max_uncommitted_events=6, **more)
        stream = self.found.open(asked, Random(len(self.moves)), self.peer.wall())
        for _ in range(2):
            stream.pull(self.peer.wall())
        return stream

    def commit(self, end: int, stream: Stream | None = None) -> None:
        """Commit what stands before an index, as the replica."""
        stream = stream or self.replica
        offset = self.found.parts[KEY].log.offset(end - 1)
        cursor = {"event_type": "orders", "partition": "0", "offset": offset, "cursor_token": stream.token(KEY, offset)}
        self.found.commit(stream.id, [cursor], self.peer.wall())

    @property
    def committed(self) -> int:
        self.found.advance(self.peer.wall())
        return self.found.parts[KEY].committed

    async def move(self, direction: Direction, to: int) -> list[Moved]:
        """Do as the command does with a plan that was made when four events were committed."""
        settings = LogSettings.model_validate({"nakadi": {"url": URL, **WHO}})
        plan = Plan("1-a", direction, "me", None, 0, 1000, (PlannedTopic("orders", "", ((0, 4, to),)),))
        return await made(settings, lambda _: True, plan)


def lived(told: Callable[[Story], Awaitable[Any]]) -> Any:
    async def life() -> Any:
        peer = NakadiPeer(Random(1))
        await peer.start()
        try:
            return await told(Story(peer))
        finally:
            await peer.close()

    with seeded(Random(1)):
        return virtual_time.run(life(), partial(WireLoop, Random(1)))


@pytest.mark.parametrize(("direction", "to"), [(Direction.SKIP, EVENTS), (Direction.REWIND, 0)])
def test_what_is_told_begins_where_nakadi_moved_when_a_replica_commits_meanwhile(direction: Direction, to: int) -> None:
    async def told(story: Story) -> None:
        moving = asyncio.create_task(story.move(direction, to))
        await asyncio.sleep(2)
        assert story.committed == 4, "nothing is moved before the replica has settled what it was sent"
        story.commit(7)
        await asyncio.sleep(2)
        story.commit(10)
        [moved] = await moving
        assert (moved.done, moved.to) == (10, to)
        assert story.moves == [(10, to)]
        assert story.committed == to

    lived(told)


def test_a_skip_never_goes_back_when_replicas_have_passed_its_end_meanwhile() -> None:
    async def told(story: Story) -> None:
        moving = asyncio.create_task(story.move(Direction.SKIP, 8))
        await asyncio.sleep(2)
        story.commit(10)
        [moved] = await moving
        assert (moved.done, moved.to) == (10, 10)
        assert (story.asked, story.committed) == (0, 10)

    lived(told)


def test_what_is_held_back_is_moved_when_its_stream_is_given_up() -> None:
    async def told(story: Story) -> None:
        story.commit(7)
        [moved] = await story.move(Direction.SKIP, EVENTS)
        assert (moved.done, moved.to, story.moves) == (7, EVENTS, [(7, EVENTS)])
        assert asyncio.get_running_loop().time() < 150, "the replica's commit timeout, the grip's, and some"

    lived(told)


def test_a_late_commit_changes_nothing_when_its_stream_is_gone() -> None:
    async def told(story: Story) -> None:
        await story.move(Direction.REWIND, 0)
        with pytest.raises(Problem, match="not found"):
            story.commit(10)
        again = story.open()
        assert again.readings[KEY].sent == 6, "it is sent from the beginning"
        with pytest.raises(Problem):
            story.commit(10, again)
        assert story.committed == 0

    lived(told)


def test_nobody_opens_a_stream_between_the_look_and_the_move_when_it_is_held() -> None:
    async def told(story: Story) -> None:
        moving = asyncio.create_task(story.move(Direction.REWIND, 0))
        await asyncio.sleep(2)
        story.commit(10)
        story.found.close(story.replica, "it ends", story.peer.wall())
        refused = 0
        while not moving.done():
            with pytest.raises(Problem):
                story.open()
            refused += 1
            await asyncio.sleep(0.05)
        assert refused > 100
        assert story.moves == [(10, 0)]

    lived(told)


def test_nothing_is_moved_when_what_was_held_is_lost_before_it_is_asked_for() -> None:
    async def told(story: Story) -> None:
        story.commit(10)
        ask = story.found.cursors

        def lose() -> Any:
            for each in list(story.found.streams.values()):
                if each.parameters.partitions:
                    each.uncommitted = 0  # as if it had sent nothing, and its node were gone
                    story.found.close(each, "lost", story.peer.wall())
            return ask()

        story.found.cursors = lose  # type: ignore[method-assign]
        assert await story.move(Direction.REWIND, 0) == []
        assert (story.asked, story.committed) == (0, 10)

    lived(told)


@pytest.mark.parametrize(("direction", "to", "known"), [(Direction.SKIP, EVENTS, 0), (Direction.REWIND, 0, 1)])
def test_only_what_replicas_can_t_have_reached_alone_is_told_when_the_answer_is_lost(
    direction: Direction, to: int, known: int
) -> None:
    async def told(story: Story) -> None:
        story.commit(10)
        lose_the_answer(story.found, story.peer)
        assert len(await story.move(direction, to)) == known
        assert (story.asked, story.moves) == (1, [(10, to)])

    lived(told)


def test_nothing_is_moved_when_another_holds_it_for_good() -> None:
    async def told(story: Story) -> None:
        story.commit(10)
        story.found.open(Parameters(partitions=(KEY,)), Random(9), story.peer.wall())
        assert await story.move(Direction.REWIND, 0) == []
        assert (story.asked, story.committed) == (0, 10)

    lived(told)


def test_nothing_is_moved_and_it_is_said_when_nakadi_does_not_answer_while_it_is_held() -> None:
    async def told(story: Story) -> None:
        story.commit(10)

        def fail() -> Any:
            raise ConnectionResetError("nobody answers")

        story.found.cursors = fail  # type: ignore[method-assign]
        assert await story.move(Direction.REWIND, 0) == []
        assert (story.asked, story.committed) == (0, 10)

    lived(told)


def test_the_grip_names_its_partitions_and_takes_one_event_at_most_when_it_is_opened() -> None:
    async def told(story: Story) -> None:
        story.commit(10)
        seen: list[Parameters] = []
        story.found.on_open = lambda _, stream: seen.append(stream.parameters)
        await story.move(Direction.SKIP, EVENTS)
        [asked] = seen
        assert asked.partitions == (KEY,)
        assert (asked.batch_limit, asked.max_uncommitted_events) == (1, 1)

    lived(told)
