"""Interventions: which one counts, when it ends, what a replica answers and records."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import cast

import pytest
from structlog.testing import capture_logs

from proxy import records
from proxy.bridge.move import Direction
from proxy.errors import LogError
from proxy.model import Cap, Mode, Note, Stance
from proxy.operations.intervention import Answer, Intervention, read
from proxy.operations.interventions import Interventions
from proxy.operations.moves import Moves
from proxy.operations.pinned import Pinned
from proxy.operations.plan import Plan, PlannedTopic
from proxy.steering.caps import Caps
from tests.support.events import PARTITION, events
from tests.support.memory_board import MemoryBoard
from tests.support.world import WALL_OFFSET, World, lived

MINUTE = 60_000


class Replica:
    """A world whose listener does as the board says; the type is `orders`, of class P1."""

    def __init__(self, world: World, board: MemoryBoard) -> None:
        loop = asyncio.get_running_loop()
        self.world, self.board, self.member = world, board, "m-1"
        self.board_of_people = board.beside()
        self.made = Interventions(
            board,
            lambda: [world.listener],
            lambda: self.member,
            record=world.recorded.append,
            wall=lambda: loop.time() + WALL_OFFSET,
            instance="host-1",
            moves=Moves(
                board, lambda _: (), lambda: ["orders"], lambda: self.member, wall=self._wall, instance="host-1"
            ),
        )

    @staticmethod
    def _wall() -> float:
        return asyncio.get_running_loop().time() + WALL_OFFSET

    @property
    def now_ms(self) -> int:
        return int((asyncio.get_running_loop().time() + WALL_OFFSET) * 1000)

    def asked(
        self,
        name: str,
        mode: Mode,
        *,
        types: tuple[str, ...] = (PARTITION.topic,),
        classes: tuple[str, ...] = (),
        ms: int = MINUTE,
    ) -> Intervention:
        return Intervention(name, mode, types, classes, "ann", "a flood", self.now_ms, self.now_ms + ms)

    async def ask(self, one: Intervention) -> None:
        await self.board_of_people.pin(one.key, one.as_json())
        await asyncio.sleep(1.5)

    @property
    def mode(self) -> Mode:
        return self.world.listener.stance.mode

    @property
    def answers(self) -> list[tuple[str, str, int]]:
        said = [read(note) for note in self.board.notes]
        return [(one.id, one.member, one.types) for one in said if isinstance(one, Answer)]

    @property
    def told(self) -> list[tuple[str, str]]:
        return [(one.id, one.phase) for one in self.world.recorded if isinstance(one, records.Intervention)]


def replica(story: Callable[[Replica], Awaitable[None]]) -> None:
    async def told(world: World) -> None:
        one = Replica(world, MemoryBoard())
        running = asyncio.create_task(one.made.run())
        try:
            await story(one)
            assert not running.done()
        finally:
            running.cancel()

    lived(told)


def test_a_type_pauses_within_a_second_and_goes_on_at_the_end_without_another_word() -> None:
    async def story(one: Replica) -> None:
        await one.ask(one.asked("a", Mode.PAUSE))
        assert one.world.listener.stance == Stance(Mode.PAUSE, "ann", "a flood")
        await one.world.feed(*events(0, 3))
        await asyncio.sleep(50)
        assert one.world.written == []
        await asyncio.sleep(12)
        assert one.world.written == ["p0", "p1", "p2"]
        assert one.told == [("a", "begun"), ("a", "ended")]

    replica(story)


def test_what_was_taken_back_is_not_told_as_held_when_its_time_is_not_over() -> None:
    async def story(one: Replica) -> None:
        await one.ask(one.asked("a", Mode.PAUSE))
        assert [each.id for each in one.made.effective] == ["a"]
        await one.ask(replace(one.asked("b", Mode.RUN), by="bob", why="it is over"))
        assert one.mode is Mode.RUN
        assert len(one.made.held) == 2
        assert one.made.effective == []
        assert one.told == [("a", "begun"), ("a", "ended"), ("b", "begun")]
        ended = one.world.recorded[-2]
        assert (ended.by, ended.ended_by, ended.ended_why) == ("ann", "bob", "it is over")
        await asyncio.sleep(62)
        assert one.told[3:] == [("b", "ended")]

    replica(story)


def test_what_has_an_effect_follows_the_class_of_a_type_when_other_settings_have_changed_it() -> None:
    async def story(one: Replica) -> None:
        await one.ask(one.asked("a", Mode.PAUSE))
        await one.ask(one.asked("b", Mode.DISCARD, types=(), classes=("P3",)))
        assert [each.id for each in one.made.effective] == ["a", "b"]
        listener = one.world.listener
        listener.event_type = listener.event_type.model_copy(update={"priority": "P3"})
        assert [each.id for each in one.made.effective] == ["b"]

    replica(story)


def test_every_replica_answers_once_with_how_many_of_its_types_are_named() -> None:
    async def story(one: Replica) -> None:
        await one.ask(one.asked("a", Mode.PAUSE, types=(), classes=("P1",)))
        await one.ask(one.asked("b", Mode.PAUSE, types=("another",)))
        await asyncio.sleep(5)
        assert one.answers == [("a", "m-1", 1), ("b", "m-1", 0)]
        one.member = "m-2"
        await asyncio.sleep(1.5)
        assert one.answers[2:] == [("a", "m-2", 1), ("b", "m-2", 0)]

    replica(story)


def test_no_answer_is_given_before_the_group_has_a_name_for_the_replica() -> None:
    async def story(one: Replica) -> None:
        one.member = ""
        await one.ask(one.asked("a", Mode.PAUSE))
        assert (one.mode, one.answers) == (Mode.PAUSE, [])

    replica(story)


def test_the_one_pinned_last_counts_and_the_one_before_when_that_ends() -> None:
    async def story(one: Replica) -> None:
        await one.ask(one.asked("a", Mode.PAUSE))
        await one.ask(one.asked("b", Mode.DISCARD, types=(), classes=("P1",), ms=10_000))
        assert one.mode is Mode.DISCARD
        await asyncio.sleep(11)
        assert one.mode is Mode.PAUSE
        await one.ask(one.asked("c", Mode.RUN, types=(), classes=("P1",)))
        assert one.mode is Mode.RUN
        one.world.lane.room = asyncio.Semaphore(0)
        await one.world.feed(*events(0, 300))
        one.world.lane.give_room(300)
        await asyncio.sleep(1)
        assert len(one.world.written) == 300, "what the lane could not take is not discarded any more"

    replica(story)


def test_a_type_that_was_resumed_with_its_class_is_not_paused_again_when_a_reload_gives_it_another_class() -> None:
    async def story(one: Replica) -> None:
        await one.ask(one.asked("a", Mode.PAUSE))
        pinned = Pinned(lambda _: "P1")
        pinned.take(one.board.notes)
        resumed = pinned.resuming(one.asked("b", Mode.RUN, types=(), classes=("P1",)), one.now_ms)
        assert resumed is not None
        await one.ask(resumed)
        moved = one.world.listener.event_type.model_copy(update={"priority": "P2"})
        assert one.made.stance(moved).mode is Mode.RUN

    replica(story)


def test_one_that_is_ended_before_its_time_holds_no_more_and_that_is_answered_by_whoever_comes_later_too() -> None:
    async def story(one: Replica) -> None:
        asked = one.asked("a", Mode.PAUSE)
        await one.ask(asked)
        await one.ask(replace(asked, ended_by="bob", ended_why="done with"))
        assert one.mode is Mode.RUN
        assert one.told == [("a", "begun"), ("a", "ended")]
        (*_, ended) = one.world.recorded
        assert (ended.by, ended.ended_by, ended.ended_why) == ("ann", "bob", "done with")
        one.member = "m-2"
        await asyncio.sleep(1.5)
        said = [read(note) for note in one.board.notes]
        assert [(its.member, its.has_ended) for its in said if isinstance(its, Answer)] == [
            ("m-1", False),
            ("m-1", True),
            ("m-2", True),
        ]
        await asyncio.sleep(60)
        one.member = "m-3"
        await asyncio.sleep(1.5)
        assert len(one.answers) == 3, "its time is over"

    replica(story)


class FakeCaps:
    """Obeys when it is told to."""

    def __init__(self, world: World) -> None:
        self.world, self.is_divided = world, False

    def release(self) -> None:
        pass

    async def follow(self) -> None:
        if not self.is_divided:
            raise LogError("the log does not tell")

    def holds(self, id_: str) -> bool:  # noqa: ARG002
        return self.is_divided


def test_a_cap_holds_beside_a_pause_is_answered_when_it_is_obeyed_and_taken_back_by_run() -> None:
    async def story(one: Replica) -> None:
        caps = FakeCaps(one.world)
        one.made._caps = cast("Caps", caps)
        cap = replace(one.asked("a", Mode.RUN), mode=Mode.CAP, rate=50.0)
        with capture_logs() as said:
            await one.ask(cap)
            await one.ask(one.asked("b", Mode.PAUSE))
        assert [line["event"] for line in said].count("caps_undivided") == 1
        assert one.world.listener.stance == Stance(Mode.PAUSE, "ann", "a flood", Cap("a", 50.0))
        assert [answer[0] for answer in one.answers] == ["b"], "nobody has obeyed the cap yet"
        caps.is_divided = True
        await one.ask(replace(cap, id="c", rate=20.0))
        assert sorted(answer[0] for answer in one.answers) == ["a", "b", "c"]
        assert one.world.listener.stance.cap == Cap("c", 20.0)
        assert [its.rate for its in one.world.recorded if isinstance(its, records.Intervention)] == [
            50.0,
            None,
            50.0,
            20.0,
        ]
        await one.ask(one.asked("d", Mode.RUN))
        assert one.world.listener.stance == Stance(Mode.RUN, "ann", "a flood")

    replica(story)


def test_a_type_that_is_not_named_goes_on() -> None:
    async def story(one: Replica) -> None:
        await one.ask(one.asked("a", Mode.DISCARD, types=("another",), classes=("P2",)))
        assert one.mode is Mode.RUN

    replica(story)


def test_what_is_over_or_taken_back_does_not_hold() -> None:
    async def story(one: Replica) -> None:
        old = one.asked("a", Mode.PAUSE)
        await asyncio.sleep(61)
        await one.ask(old)
        assert (one.mode, one.told) == (Mode.RUN, [])
        back = one.asked("b", Mode.PAUSE)
        await one.ask(back)
        await one.board_of_people.pin(back.key, None)
        await asyncio.sleep(1.5)
        assert (one.mode, one.told) == (Mode.RUN, [("b", "begun"), ("b", "ended")])

    replica(story)


def test_what_held_holds_on_and_it_is_said_once_when_the_board_can_not_be_read() -> None:
    async def story(one: Replica) -> None:
        await one.ask(one.asked("a", Mode.PAUSE))
        one.board.failure = LogError("the log does not answer")
        with capture_logs() as said:
            await asyncio.sleep(5)
            assert one.mode is Mode.PAUSE
            one.board.failure = None
            await asyncio.sleep(2)
        assert [entry["event"] for entry in said] == ["board_unread", "board_read"]

    replica(story)


@pytest.mark.parametrize("value", [b"no json", b"{}", b'{"id": "b", "mode": "explode"}'])
def test_a_note_that_can_not_be_meant_is_said_and_passed_over(value: bytes) -> None:
    async def story(one: Replica) -> None:
        with capture_logs() as said:
            one.board.notes.append(Note("intervention/b", value))
            await one.ask(one.asked("a", Mode.PAUSE))
        assert "note_not_understood" in [entry["event"] for entry in said]
        assert one.mode is Mode.PAUSE

    replica(story)


@pytest.mark.parametrize("has_begun", [True, False])
def test_what_was_asked_just_now_is_told_as_passed_over_when_it_is_past_by_this_replica_s_clock(
    has_begun: bool,
) -> None:
    async def story(world: World) -> None:
        one = Replica(world, MemoryBoard())
        if has_begun:
            await one.made.begin()
        then = one.now_ms - 60 * MINUTE
        pause = Intervention("a", Mode.PAUSE, (PARTITION.topic,), (), "ann", None, then, then + MINUTE)
        ended = replace(pause, id="b", ended_by="bob")
        plan = Plan(
            "1-f", Direction.SKIP, "ann", None, then, then + MINUTE, (PlannedTopic("orders", "", ((0, 0, 5),)),)
        )
        with capture_logs() as said:
            for asked in (pause, ended, plan):
                await one.board_of_people.pin(asked.key, asked.as_json())
            if not has_begun:
                await one.made.begin()
            running = asyncio.create_task(one.made.run())
            await asyncio.sleep(3)
            running.cancel()
        told = [(entry["id"], entry["over_for_s"]) for entry in said if entry["event"] == "asked_too_late"]
        assert [name for name, _ in told] == (["a", "1-f"] if has_begun else [])
        assert all(3540 <= seconds <= 3543 for _, seconds in told)
        assert one.answers == []

    lived(story)


def test_what_holds_is_known_before_anything_is_read_when_a_replica_starts() -> None:
    async def story(world: World) -> None:
        one = Replica(world, MemoryBoard())
        asked = one.asked("a", Mode.PAUSE)
        await one.board_of_people.pin(asked.key, asked.as_json())
        await one.made.begin()
        assert one.made.stance(world.listener.event_type).mode is Mode.PAUSE

    lived(story)


def test_a_replica_starts_when_the_board_does_not_answer() -> None:
    class Silent(MemoryBoard):
        async def news(self) -> list[Note]:
            await asyncio.sleep(3600)
            return []

    async def story(world: World) -> None:
        one = Replica(world, Silent())
        before = asyncio.get_running_loop().time()
        await one.made.begin()
        assert asyncio.get_running_loop().time() - before < 6
        assert one.made.stance(world.listener.event_type).mode is Mode.RUN

    lived(story)
