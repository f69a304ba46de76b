"""What each record does to the ledger, one fact after another; all in one query, a run each."""

from typing import Any

import pytest

from tests.reports.conftest import DEFAULTS
from tests.reports.ledger.books import ledger_of, letter, part, short


def told(kind: str, at_ms: int = 1_000, **changes: Any) -> dict[str, Any]:
    return {"v": 2, "kind": kind, "at_ms": at_ms, "instance": "a", **DEFAULTS[kind], **changes}


def committed(*ranges: Any, **changes: Any) -> dict[str, Any]:
    return told("committed", ranges=list(ranges), **changes)


def assigned(first: int, committed: int | None, end: int | None = None, **changes: Any) -> dict[str, Any]:
    return told("assigned", first=first, committed=committed, end=end, **changes)


def truncated(first: int, end: int, **changes: Any) -> dict[str, Any]:
    where = {"topic": "order", "partition": 0, "topic_id": "id", "group": "g", "count": end - first}
    return told("incident", name="truncated", first=first, end=end, **{**where, **changes})


Short = list[tuple[Any, ...]]
FACTS: dict[str, tuple[list[dict[str, Any]], Short, Short]] = {
    "neighbours_of_one_fate_are_one_row": (
        [committed(part(0, 10)), committed(part(10, 25, epoch=2), instance="b")],
        [(0, 25, "delivered")],
        [],
    ),
    "dead_letters_stand_where_they_are": (
        [committed(part(0, 10, None, letter(3, 5), letter(5, 6, "expired")))],
        [(0, 3, "delivered"), (3, 5, "dead_lettered unroutable"), (5, 6, "expired"), (6, 10, "delivered")],
        [],
    ),
    "what_is_absent_is_known_by_number_when_only_the_number_is_told": (
        [committed(part(0, 10, 7, letter(4, 5)))],
        [(0, 10, "absent", 2), (0, 10, "delivered", 7), (4, 5, "dead_lettered unroutable")],
        [],
    ),
    "nothing_but_gaps_is_absent_exactly": ([committed(part(0, 10, 0))], [(0, 10, "absent")], []),
    "dead_letters_without_a_place_are_known_by_number": (
        [committed(part(0, 9, 4, letter(0, 1), dead_lettered={"unroutable": 3, "expired": 2}))],
        [
            (0, 1, "dead_lettered unroutable"),
            (1, 9, "dead_lettered unroutable", 2),
            (1, 9, "delivered", 4),
            (1, 9, "expired", 2),
        ],
        [],
    ),
    "a_range_that_no_record_tells_of_is_unrecorded_when_a_later_one_begins_behind_it": (
        [
            assigned(0, 0),
            committed(part(0, 10)),
            assigned(30, 30, 50, instance="b"),
            committed(part(30, 40), instance="b"),
        ],
        [(0, 10, "delivered"), (10, 30, "unrecorded"), (30, 40, "delivered"), (40, 50, "in_log")],
        [],
    ),
    "a_hole_in_an_epoch_is_unrecorded_when_the_log_dropped_a_record": (
        [assigned(0, 0), committed(part(0, 10)), committed(part(15, 20))],
        [(0, 10, "delivered"), (10, 15, "unrecorded"), (15, 20, "delivered")],
        [],
    ),
    "what_was_committed_by_the_next_one_s_word_is_unrecorded_when_the_process_was_killed": (
        [assigned(0, None, 12), assigned(12, 12, 12, instance="b")],
        [(0, 12, "unrecorded")],
        [],
    ),
    "the_ledger_begins_where_records_begin": ([committed(part(1_000, 1_010))], [(1_000, 1_010, "delivered")], []),
    "what_is_left_is_still_in_the_log": (
        [assigned(0, None, 20), committed(part(0, 5))],
        [(0, 5, "delivered"), (5, 20, "in_log")],
        [],
    ),
    "what_the_log_dropped_unread_is_truncated": (
        [assigned(0, 0), committed(part(0, 20, 15)), truncated(10, 15)],
        [(0, 10, "delivered"), (10, 15, "truncated"), (15, 20, "delivered")],
        [],
    ),
    "a_truncation_without_its_topic_s_id_is_of_the_epoch_that_tells_it": (
        [assigned(0, 0), committed(part(0, 20, 15)), truncated(10, 15, at_ms=2_000, topic_id=None)],
        [(0, 10, "delivered"), (10, 15, "truncated"), (15, 20, "delivered")],
        [],
    ),
    "nobody_s_range_is_a_gap_when_reading_went_on_behind_it_and_nothing_was_committed": (
        [
            assigned(0, 0),
            committed(part(0, 10)),
            assigned(30, None, instance="b"),
            committed(part(30, 40), instance="b"),
        ],
        [(0, 10, "delivered"), (10, 30, "passed_over"), (30, 40, "delivered")],
        [(10, 30, "gap")],
    ),
    "what_was_committed_before_the_gap_is_not_of_it": (
        [assigned(0, 0), assigned(30, 20, instance="b"), committed(part(30, 40), instance="b")],
        [(0, 20, "unrecorded"), (20, 30, "passed_over"), (30, 40, "delivered")],
        [(20, 30, "gap")],
    ),
    "a_skip_is_no_gap": (
        [committed(part(0, 10)), told("skip", first=10, end=30, count=None), committed(part(30, 40))],
        [(0, 10, "delivered"), (10, 30, "skipped"), (30, 40, "delivered")],
        [],
    ),
    "a_skip_counts_where_the_range_that_was_committed_holds_it": (
        [committed(part(0, 40, 20)), told("skip", first=10, end=30, count=15)],
        [(0, 10, "delivered"), (10, 30, "absent", 5), (10, 30, "skipped", 15), (30, 40, "delivered")],
        [],
    ),
    "a_rewind_takes_a_skip_back_and_its_range_is_in_the_log_until_it_is_read": (
        [
            committed(part(0, 10)),
            told("skip", first=10, end=30, at_ms=2_000),
            told("rewind", first=10, end=30, at_ms=3_000),
            assigned(10, 10, 30, epoch=2, at_ms=3_100),
        ],
        [(0, 10, "delivered"), (10, 30, "in_log")],
        [],
    ),
    "what_a_rewind_lets_come_again_is_no_finding": (
        [
            committed(part(0, 10)),
            told("rewind", first=4, end=10),
            assigned(4, 4, epoch=2),
            committed(part(4, 12, epoch=2)),
        ],
        [(0, 12, "delivered")],
        [],
    ),
    "what_comes_again_without_a_rewind_is_a_finding": (
        [committed(part(0, 10)), assigned(4, 4, instance="b"), committed(part(4, 12, epoch=2), instance="b")],
        [(0, 12, "delivered")],
        [(4, 10, "overlap")],
    ),
    "two_replicas_that_claim_one_range_are_a_finding": (
        [committed(part(0, 10)), committed(part(0, 10), instance="b")],
        [(0, 10, "delivered")],
        [(0, 10, "overlap")],
    ),
    "commits_that_went_back_are_a_finding_before_anything_is_committed_again": (
        [committed(part(0, 10)), assigned(4, 4, instance="b", epoch=9)],
        [(0, 10, "delivered")],
        [(4, 10, "went_back")],
    ),
    "an_epoch_that_begins_where_another_s_ended_went_not_back": (
        [committed(part(0, 10)), assigned(10, 10, instance="b"), committed(part(10, 20), instance="b")],
        [(0, 20, "delivered")],
        [],
    ),
    "more_events_than_positions_are_a_finding": (
        [committed(part(0, 10, 13))],
        [(0, 10, "delivered")],
        [(0, 10, "repeated", 3)],
    ),
    "a_dead_letter_that_is_delivered_later_is_delivered": (
        [
            committed(part(0, 10, None, letter(4, 6))),
            told("rewind", first=4, end=6),
            committed(part(4, 6, epoch=2), instance="b"),
        ],
        [(0, 10, "delivered")],
        [],
    ),
    "what_was_delivered_stays_so_when_it_is_dead_lettered_later": (
        [
            committed(part(0, 10)),
            told("rewind", first=4, end=6),
            committed(part(4, 6, None, letter(4, 6), epoch=2), instance="b"),
        ],
        [(0, 10, "delivered")],
        [],
    ),
    "a_dead_letter_that_is_sent_again_is_delivered_and_its_neighbour_not": (
        [
            committed(part(0, 10, None, letter(3, 6), letter(7, 8, "refused"))),
            told("redrive", first=4, end=9, reason="unroutable", count=2),
        ],
        [
            (0, 3, "delivered"),
            (3, 4, "dead_lettered unroutable"),
            (4, 7, "delivered"),
            (7, 8, "dead_lettered refused"),
            (8, 10, "delivered"),
        ],
        [],
    ),
    "a_letter_that_no_record_tells_of_is_delivered_when_it_was_sent_again": (
        [committed(part(0, 10)), assigned(20, 20), told("redrive", first=14, end=16, count=2)],
        [(0, 10, "delivered"), (10, 14, "unrecorded"), (14, 16, "delivered"), (16, 20, "unrecorded")],
        [],
    ),
    "the_longer_of_two_ranges_tells_what_is_absent": (
        [committed(part(0, 5, 4)), committed(part(0, 10, 8), instance="b")],
        [(0, 10, "absent", 2), (0, 10, "delivered", 8)],
        [(0, 5, "overlap")],
    ),
    "what_a_zombie_committed_is_counted_once": (
        [committed(part(0, 9)), committed(part(4, 18, 13), instance="b")],
        [(0, 9, "delivered"), (9, 18, "absent", 1), (9, 18, "delivered", 8)],
        [(4, 9, "overlap")],
    ),
    "what_a_discarding_type_read_is_discarded": (
        [committed(part(0, 10, 0)), told("discard", first=0, end=10, count=8), committed(part(10, 12))],
        [(0, 10, "absent", 2), (0, 10, "discarded", 8), (10, 12, "delivered")],
        [],
    ),
    "a_topic_made_anew_has_a_ledger_of_its_own_and_what_was_left_of_the_old_one_is_deleted": (
        [
            assigned(0, None, 20),
            committed(part(0, 15)),
            assigned(0, None, 4, epoch=2, topic_id="new", at_ms=500),
            committed(part(0, 4, epoch=2, topic_id="new")),
        ],
        [(0, 4, "delivered"), (0, 15, "delivered"), (15, 20, "deleted")],
        [(15, 20, "deleted")],
    ),
    "each_group_has_a_ledger_of_its_own": (
        [committed(part(0, 10)), committed(part(5, 15), group="h", instance="b")],
        [(0, 10, "delivered"), (5, 15, "delivered")],
        [],
    ),
    "a_record_of_before_groups_were_told_counts": (
        [{name: value for name, value in committed(part(0, 10)).items() if name != "group"}],
        [(0, 10, "delivered")],
        [],
    ),
}


@pytest.fixture
def found(spark: Any) -> dict[str, tuple[Short, Short]]:
    """Ledger and findings of every fact."""
    rows, findings = ledger_of(spark, {name: records for name, (records, _, _) in FACTS.items()})
    return {
        name: tuple(short([one for one in some if one.key[0] == name]) for some in (rows, findings))  # type: ignore[misc]
        for name in FACTS
    }


def test_every_fact_holds(found: dict[str, tuple[Short, Short]]) -> None:
    assert found == {name: (rows, findings) for name, (_, rows, findings) in FACTS.items()}
