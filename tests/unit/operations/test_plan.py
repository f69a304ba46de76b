"""What a plan looks like on the board, and which ones can't be meant."""

import json
from typing import Any

import pytest

from proxy.bridge.move import Direction, Move
from proxy.model import Note, Partition
from proxy.operations.plan import LIFE_MS, Plan, PlannedTopic, read_plan

AT_MS = 1_700_000_000_000
PLAN = Plan("3-ab", Direction.SKIP, "me", "why", AT_MS, AT_MS + LIFE_MS, (PlannedTopic("t", "id", ((2, 5, 9),)),))


def test_a_plan_is_the_same_when_it_is_read_again() -> None:
    assert read_plan(Note(PLAN.key, PLAN.as_json())) == PLAN
    assert PLAN.moves() == {Partition("t", 2): Move("3-ab", Direction.SKIP, "id", 5, 9, "me", "why")}


def test_a_field_that_is_not_known_is_passed_over_when_a_newer_version_wrote_it() -> None:
    fields = {**json.loads(PLAN.as_json()), "new": 1}
    assert read_plan(Note(PLAN.key, json.dumps(fields).encode())) == PLAN


@pytest.mark.parametrize("note", [Note(PLAN.key, None), Note("answer/3-ab/x", PLAN.as_json())])
def test_a_note_is_no_plan_when_it_takes_one_back_or_is_of_another_kind(note: Note) -> None:
    assert read_plan(note) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"id": "3"},
        {"direction": "sideways"},
        {"until_ms": AT_MS},
        {"until_ms": AT_MS + LIFE_MS + 1},
        {"topics": []},
        {"topics": [{"topic": "t", "topic_id": "id", "partitions": [[0, -1, 5]]}]},
        {"topics": [{"topic": "t", "topic_id": "id", "partitions": [[0, 1.5, 5]]}]},
        {"by": "x" * 1001},
    ],
    ids=str,
)
def test_a_plan_is_refused_in_one_sentence_when_it_can_not_be_meant(changes: dict[str, Any]) -> None:
    fields = {**json.loads(PLAN.as_json()), **changes}
    with pytest.raises(ValueError, match=r".") as refused:
        read_plan(Note(f"move/{fields['id']}", json.dumps(fields).encode()))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("value", [b"", b"[]", b"\xff", b"nothing"])
def test_a_note_is_refused_when_it_is_no_object(value: bytes) -> None:
    with pytest.raises(ValueError, match="plan"):
        read_plan(Note(PLAN.key, value))


def test_a_plan_is_refused_when_it_stands_under_the_key_of_another() -> None:
    with pytest.raises(ValueError, match="key"):
        read_plan(Note("move/4-ab", PLAN.as_json()))
