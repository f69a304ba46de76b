"""A ledger held against the truth, both made up: what is right passes, and each thing that is wrong is told."""

from typing import Any

import pytest

from load.ledger_check.compare import compare

PLACE = {"group": "g", "topic": "topic", "topic_id": "id", "partition": 0}
RANGES = ((0, 50, "delivered"), (50, 52, "dead_lettered"), (52, 60, "delivered"), (60, 70, "dropped"))


def life(*ranges: tuple[int, int, str], committed: int = 70, **changes: Any) -> dict[str, Any]:
    """A partition of which all was committed, if nothing else is said."""
    told = ranges or RANGES
    known = {"is_there": True, "end": told[-1][1], "committed": committed, "went_back": [], "ranges": told}
    return {name: value for name, value in PLACE.items() if name != "group"} | known | changes


def truth(one: dict[str, Any], *windows: tuple[int, int]) -> dict[str, Any]:
    """What is true of one partition; in `windows` processes were killed."""
    losses = [{"why": "killed", "windows": [("id", 0, *window)]} for window in windows]
    return {"group": "g", "partitions": [one], "losses": losses}


def row(first: int, end: int, outcome: str, positions: int | None = None) -> dict[str, Any]:
    """A row of the ledger; of all positions in it, if nothing else is said."""
    count = end - first if positions is None else positions
    return PLACE | {"first": first, "end": end, "outcome": outcome, "reason": None, "positions": count}


TOLD = (
    row(0, 40, "delivered"),
    row(40, 45, "unrecorded"),
    row(45, 50, "delivered"),
    row(50, 52, "dead_lettered"),
    row(52, 60, "delivered"),
    row(60, 70, "truncated"),
)


def wrong(one: dict[str, Any], *rows: dict[str, Any], lossy: tuple[int, int] = (38, 47)) -> list[str]:
    return [words.removeprefix("topic-0 (id): ") for words in compare(truth(one, lossy), rows, []).differences]


def test_a_ledger_that_is_right_has_no_difference() -> None:
    found = compare(truth(life(), (38, 47)), TOLD, [])

    assert found.differences == []
    assert found.outcomes == {"delivered": 53, "unrecorded": 5, "dead_lettered": 2, "truncated": 10}
    assert found.unrecorded == {"killed": 5}


def test_one_position_taken_from_the_truth_is_told() -> None:
    one = life((0, 7, "delivered"), (7, 8, "nowhere"), (8, 50, "delivered"), *RANGES[1:])

    assert wrong(one, *TOLD) == ["7 to 8 is delivered, it was nowhere"]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (row(52, 60, "truncated"), "52 to 60 is truncated, it was delivered"),
        (row(52, 60, "passed_over"), "52 to 60 is passed_over, it was delivered"),
        (row(52, 60, "dead_lettered"), "52 to 60 is dead_lettered, it was delivered"),
        (row(52, 60, "absent"), "52 to 60 is absent, it was delivered"),
        (row(52, 60, "unrecorded"), "52 to 60 is unrecorded, and nothing had lost its record"),
        (row(52, 60, "in_log"), "52 to 60 is in_log, the group had committed up to 70"),
        (row(52, 60, "deleted"), "52 to 60 is deleted, the group had committed up to 70"),
        (row(52, 58, "delivered"), "nothing is told of 58 to 60"),
        (row(49, 60, "delivered"), "49 to 50 is told twice"),
        (row(52, 60, "delivered", 7), "8 positions are told of by number, and 7 of them"),
        (row(52, 60, "truncated", 7), "7 positions are truncated by number, it was 0 at most: {'delivered': 8}"),
    ],
)
def test_an_outcome_that_is_not_so_is_told(changed: dict[str, Any], words: str) -> None:
    told = [changed if one["first"] == 52 else one for one in TOLD]

    assert words in wrong(life(), *told)


def test_what_was_lost_is_not_unrecorded_whoever_was_killed() -> None:
    one = life((0, 42, "delivered"), (42, 43, "nowhere"), (43, 50, "delivered"), *RANGES[1:])

    assert wrong(one, *TOLD) == ["42 to 43 is unrecorded, it was nowhere"]


def test_a_ledger_that_ends_before_what_was_committed_is_told() -> None:
    assert wrong(life(), *TOLD[:-1]) == ["nothing is told of 60 to 70, which was committed"]


def test_what_was_not_committed_is_still_in_the_log_or_went_with_its_topic() -> None:
    ranges = ((0, 50, "delivered"), (50, 60, "nowhere"))
    told = (row(0, 50, "delivered"), row(50, 60, "in_log"))
    assert wrong(life(*ranges, committed=50), *told) == []
    assert wrong(life(*ranges, committed=40), *told) == ["40 to 50 is delivered, the group had committed up to 40 only"]
    assert wrong(life(*ranges, committed=50, is_there=False), *told) == [
        "50 to 60 is in_log, the topic is there: False"
    ]

    told = (row(0, 50, "delivered"), row(50, 60, "deleted"))
    assert wrong(life(*ranges, committed=50, is_there=False), *told) == []
    # Nobody looked any more when 40 to 50 were committed.
    assert wrong(life(*ranges, committed=40, is_there=False), *told) == []


def test_what_came_last_and_was_not_committed_is_counted_when_no_record_tells_of_it() -> None:
    one = life((0, 50, "delivered"), (50, 60, "nowhere"), committed=50, is_there=False)

    found = compare(truth(one), [row(0, 50, "delivered"), row(50, 53, "deleted")], [])

    assert (found.differences, found.untold) == ([], 7)


def test_a_position_of_which_the_event_is_unknown_may_be_delivered_or_absent() -> None:
    ranges = ((0, 10, "delivered"), (10, 20, "unknown"))
    assert wrong(life(*ranges, committed=20), row(0, 15, "delivered"), row(15, 20, "absent")) == []
    assert wrong(life(*ranges, committed=20), row(0, 20, "delivered", 18), row(0, 20, "absent", 2)) == []
    assert wrong(life(*ranges, committed=20), row(0, 20, "delivered", 8), row(0, 20, "absent", 12)) == [
        "12 positions are absent by number, it was 10 at most: {'delivered': 10, 'unknown': 10}"
    ]


def test_a_partition_that_there_never_was_is_told() -> None:
    found = compare(truth(life(), (38, 47)), [*TOLD, row(0, 5, "delivered") | {"topic_id": "other"}], [])

    assert found.differences == ["topic-0 (other) was nobody's"]


@pytest.mark.parametrize(("went_back", "is_so"), [([], False), ([(52, 60)], True), ([(53, 60)], False)])
@pytest.mark.parametrize("name", ["overlap", "went_back"])
def test_a_conflict_is_one_only_where_a_commit_went_back(
    went_back: list[tuple[int, int]], name: str, *, is_so: bool
) -> None:
    finding = PLACE | {"first": 52, "end": 58, "finding": name, "positions": 6, "instances": "a, b"}

    found = compare(truth(life(went_back=went_back), (38, 47)), TOLD, [finding])

    assert found.differences == (
        [] if is_so else [f"topic-0 (id): 52 to 58 is a finding, {name}, and no commit went back"]
    )
    assert found.findings == {name: 1}
