"""What a replica makes of the plans on the board: what is wanted of the log, and when it answers."""

import asyncio
from collections.abc import Collection, Mapping

import structlog

from proxy.bridge.move import Direction, Move
from proxy.errors import LogError
from proxy.model import Note, Partition
from proxy.operations.intervention import Answer
from proxy.operations.moves import Moves
from proxy.operations.plan import LIFE_MS, Plan, PlannedTopic
from tests.support.memory_board import MemoryBoard

AT = Partition("orders", 0)
NOW = 1_700_000_000.0


class Replica:
    """Its log makes a move when the test lets it."""

    def __init__(self) -> None:
        self.board = MemoryBoard()
        self.now = NOW
        self.member = "m-1"
        self.left: Collection[Partition] = ()
        self.wanted: Mapping[Partition, Move] = {}
        self.moves = Moves(
            self.board,
            self.move,
            lambda: {"orders"},
            lambda: self.member,
            wall=lambda: self.now,
            instance="host-1",
        )

    def move(self, wanted: Mapping[Partition, Move]) -> Collection[Partition]:
        self.wanted = wanted
        return self.left

    def ask(self, name: str, to: int) -> Plan:
        at_ms = int(self.now * 1000)
        topics = (PlannedTopic("orders", "id", ((0, 5, to),)), PlannedTopic("others", "id", ((0, 5, to),)))
        plan = Plan(name, Direction.SKIP, "me", None, at_ms, at_ms + LIFE_MS, topics)
        self.moves.take(Note(plan.key, plan.as_json()))
        return plan

    @property
    def answers(self) -> list[tuple[str, str, int]]:
        said = [Answer.from_json(note.value or b"") for note in self.board.notes]
        return [(one.id, one.member, one.types) for one in said]


async def test_a_replica_answers_once_when_nothing_of_a_plan_is_left_to_do_here() -> None:
    replica = Replica()
    replica.ask("1-ab", 9)
    replica.left = [AT]
    await replica.moves.attend()
    assert (replica.wanted[AT].to, replica.answers) == (9, [])
    replica.left = ()
    await replica.moves.attend()
    await replica.moves.attend()
    assert replica.answers == [("1-ab", "m-1", 1)]
    replica.member = "m-2"
    await replica.moves.attend()
    assert replica.answers[1:] == [("1-ab", "m-2", 1)]


async def test_a_skip_leaves_one_line_with_its_reason_when_it_is_answered_as_two_members() -> None:
    replica = Replica()
    with structlog.testing.capture_logs() as said:
        replica.ask("1-ab", 9)
        replica.left = [AT]
        await replica.moves.attend()
        assert said == []
        replica.left = ()
        for replica.member in ("m-1", "m-1", "m-2"):
            await replica.moves.attend()
    (line,) = said
    assert (line["event"], line["by"], line["why"], line["topic"]) == ("skip_done", "me", None, "orders")


async def test_the_later_of_two_plans_counts_in_whatever_order_they_were_read() -> None:
    replica = Replica()
    replica.ask("10-ab", 20)
    replica.ask("9-ab", 9)
    await replica.moves.attend()
    assert replica.wanted[AT].id == "10-ab"


async def test_nothing_is_moved_any_more_when_a_plan_is_ten_minutes_old_or_taken_back() -> None:
    replica = Replica()
    plan = replica.ask("1-ab", 9)
    replica.moves.take(Note(plan.key, None))
    await replica.moves.attend()
    assert replica.wanted == {}
    replica.ask("2-ab", 9)
    replica.now += LIFE_MS / 1000
    await replica.moves.attend()
    assert replica.wanted == {}


async def test_a_replica_goes_on_when_a_note_is_no_plan_and_answers_later_when_the_board_is_away() -> None:
    replica = Replica()
    replica.moves.take(Note("move/1-ab", b"nothing"))
    replica.ask("2-ab", 9)
    replica.board.failure = LogError("away")
    await replica.moves.attend()
    replica.board.failure = None
    await asyncio.wait_for(replica.moves.attend(), 1)
    assert replica.answers == [("2-ab", "m-1", 1)]
