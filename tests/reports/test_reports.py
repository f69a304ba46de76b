"""Each report on a few records whose answer is known."""

from collections.abc import Callable
from itertools import chain
from typing import Any

import pytest

from proxy.reports import cross_checks as checks
from proxy.reports import timeline
from proxy.reports.episodes import blind_time, episodes
from proxy.reports.incidents import incidents
from proxy.reports.latency import latency
from proxy.reports.overview import processes
from proxy.reports.proof import alike, events, proof, with_whereabouts
from proxy.reports.traffic import dead_letters, letters, traffic

BY_CLASS = ["run", "class"]
Make = Callable[..., Any]


def test_traffic_is_the_sum_over_intervals_and_replicas(record: Make, read: Make, rows: Make) -> None:
    records = read(
        [
            record("class", received=10, confirmed=8, dead_lettered={"expired": 1, "unroutable": 1}, resent_unknown=2),
            record(
                "class",
                received=5,
                confirmed=7,
                dead_lettered={"expired": 2},
                overtaken=3,
                uncommitted=4,
                instance="two",
            ),
            record("class", class_="P3", received=1),
        ]
    ).of("class")
    first, third = rows(traffic(records, BY_CLASS))
    names = ("class", "received", "confirmed", "dead_lettered", "possible_duplicates", "overtaken")
    assert [first[name] for name in names] == ["P1", 15, 15, 4, 6, 3]
    assert [third[name] for name in names] == ["P3", 1, 0, 0, 0, 0]
    assert [(row["reason"], row["dead_lettered"]) for row in rows(dead_letters(letters(records), BY_CLASS))] == [
        ("expired", 3),
        ("unroutable", 1),
    ]


def verdicts_of(record: Make, said: str, instance: str = "one", route: str = "main") -> list[Any]:
    """A verdict a second: c congested, . not, ? nothing said, space none at all."""
    meaning = {"c": True, ".": False, "?": None}
    return [
        record("verdict", at_ms=1_000 * number, congested=meaning[letter], instance=instance, route=route)
        for number, letter in enumerate(said)
        if letter in meaning
    ]


EPISODES: dict[str, list[tuple[float, float, bool]]] = {
    "....": [],
    "..cc..": [(2.0, 4.0, True)],
    "cc": [(0.0, 1.0, False)],
    ".c....c.": [(1.0, 2.0, True), (6.0, 7.0, True)],
    ".c??c.": [(1.0, 5.0, True)],
    ".c??.": [(1.0, 4.0, True)],
    ".c   .": [(1.0, 5.0, True)],
    "????": [],
}


def test_an_episode_lasts_from_the_first_congested_verdict_to_the_next_that_is_not(
    record: Make, read: Make, facts: Make, rows: Make
) -> None:
    lines = [verdict for said in EPISODES for verdict in verdicts_of(record, said, route=said)]
    found: dict[str, list[tuple[float, float, bool]]] = {said: [] for said in EPISODES}
    for row in rows(episodes(facts(read(lines), "pieces"))):
        assert row["seconds"] == row["to_s"] - row["from_s"]
        found[row["route"]].append((row["from_s"], row["to_s"], row["ended"]))
    assert {said: sorted(stretches) for said, stretches in found.items()} == EPISODES


def test_episodes_of_replicas_are_one_where_they_overlap_and_routes_stay_apart(
    record: Make, read: Make, facts: Make, rows: Make
) -> None:
    lines = [
        *verdicts_of(record, ".ccc......cc.", "one"),
        *verdicts_of(record, "..cccc.......", "two"),
        *verdicts_of(record, "c.", "one", route="other"),
    ]
    found = rows(episodes(facts(read(lines), "pieces")))
    assert sorted((row["route"], row["from_s"], row["to_s"], row["verdicts"]) for row in found) == [
        ("main", 1.0, 6.0, 7),
        ("main", 10.0, 12.0, 2),
        ("other", 0.0, 1.0, 1),
    ]


def test_stretches_of_any_replica_are_one_episode_where_they_are_close_and_it_says_how_long_it_was_congested(
    record: Make, read: Make, facts: Make, rows: Make
) -> None:
    lines = [
        *verdicts_of(record, ".cc..............c.", "one"),
        *verdicts_of(record, "....cc...c.........", "two"),  # 1 s behind the first, then 3 s: close, 7 s: another
        *verdicts_of(record, "c...c.", "one", route="other"),
    ]
    told = ("route", "from_s", "to_s", "seconds", "congested_s", "stretches", "verdicts")
    assert sorted(tuple(row[name] for name in told) for row in rows(episodes(facts(read(lines), "pieces")))) == [
        ("main", 1.0, 10.0, 9.0, 5.0, 3, 5),
        ("main", 17.0, 18.0, 1.0, 1.0, 1, 1),
        ("other", 0.0, 5.0, 5.0, 2.0, 2, 2),
    ]


def test_an_episode_names_its_causes_and_its_worst_latency(record: Make, read: Make, facts: Make, rows: Make) -> None:
    lines = [
        record("verdict", at_ms=0, congested=True, cause="latency", p50_us=70_000, errors=1),
        record("verdict", at_ms=1, congested=True, cause="errors", p50_us=None, errors=5),
        record("verdict", at_ms=2, congested=False),
    ]
    (found,) = rows(episodes(facts(read(lines), "pieces")))
    assert (found["causes"], found["worst_p50_ms"], found["errors"]) == ("errors, latency", 70.0, 6)


def controlled(record: Make, at_ms: int, **changes: Any) -> Any:
    """A verdict of a route under class_budget."""
    seen = {"cause": "none", "p50_us": None, "cuts": 0, "hot": [], "queue_delay_us": 20_000, "drain_rate": 300.0}
    rates = {"P2": 300.0, "P3": 290.0}
    return record("verdict", at_ms=at_ms, **seen | {"depth": 6, "rates": rates} | changes)


def test_an_episode_shows_its_longest_queue_delay_and_its_cuts_when_a_budget_was_judged(
    record: Make, read: Make, facts: Make, rows: Make
) -> None:
    lines = [
        controlled(
            record, 0, congested=True, cause="depth", hot=["P3"], cuts=1, queue_delay_us=90_000, ruled_by="slow"
        ),
        controlled(record, 100, congested=True, cause="depth", hot=["P2", "P3"], cuts=2, queue_delay_us=250_000),
        controlled(record, 150, congested=True, cause="depth", hot=["P3"], ruled_by="mail", queues={"mail": 90_000}),
        controlled(record, 200, congested=None, cause="blind", queue_delay_us=None, depth=None),
        controlled(record, 300, congested=True, cause="unconfirmed", queue_delay_us=None),
        controlled(record, 400, congested=False),
        controlled(record, 500, congested=True, cause="blocked", route="other", queue_delay_us=None),
    ]
    main, other = rows(episodes(facts(read(lines), "pieces")))
    names = ("to_s", "causes", "queues", "worst_delay_ms", "cuts", "worst_p50_ms")
    assert [main[name] for name in names] == [0.4, "depth, unconfirmed", "mail, slow", 250.0, 3, None]
    assert [other[name] for name in names] == [0.5, "blocked", "", None, 0, None]


def test_blind_time_lasts_to_the_next_verdict_and_counts_once_when_replicas_are_blind_together(
    record: Make, read: Make, facts: Make, rows: Make
) -> None:
    def blind(second: float, **changes: Any) -> Any:
        return controlled(record, int(1_000 * second), congested=None, cause="blind", queue_delay_us=None, **changes)

    lines = [
        blind(1),
        blind(2),
        controlled(record, 3_000),
        blind(2.5, instance="two"),
        controlled(record, 5_000, instance="two"),
        blind(9),
        controlled(record, 9_500, congested=True, cause="nacks"),
        controlled(record, 0, route="seeing"),
    ]
    (found,) = rows(blind_time(facts(read(lines), "pieces")))
    assert [found[name] for name in ("route", "times", "seconds", "longest_s", "first_s")] == ["main", 2, 4.5, 4.0, 1.0]


def test_queue_delay_and_rates_over_time_are_those_of_all_replicas_together(
    record: Make, read: Make, facts: Make, rows: Make
) -> None:
    lines = [
        controlled(record, 1_000, queue_delay_us=20_000),
        controlled(record, 900, queue_delay_us=70_000, drain_rate=310.0),
        controlled(record, 1_000, queue_delay_us=None, instance="two", rates={"P3": 100.0}),
        controlled(record, 2_000, queue_delay_us=None),
        record("verdict", at_ms=1_000, route="by type"),
    ]
    records = read(lines)
    over_time = rows(timeline.routes_over_time(facts(records, "routes"), 1))
    seen = [row for row in over_time if row["route"] == "main"]
    assert [(row["t_s"], row["delay_ms"], row["drain_rate"]) for row in seen] == [
        (0.5, 70.0, 300.0),
        (1.5, None, 300.0),
    ]
    told = rows(timeline.last_over_time(facts(records, "last"), 1))
    rates = [(row["class"], row["t_s"], row["value"]) for row in told]
    assert sorted(rates) == [("P2", 0.5, 300.0), ("P2", 1.5, 300.0), ("P3", 0.5, 390.0), ("P3", 1.5, 290.0)]


def test_every_event_is_found_delivered_missing_duplicated_or_unexpected(record: Make, read: Make, rows: Make) -> None:
    lines = [
        *(record("produced", id=f"t-0-{number}", at_ms=100) for number in range(10)),
        *(record("consumed", id=f"t-0-{number}", event_ms=100, at_ms=150 + number) for number in range(5)),
        *(record("consumed", id=f"t-0-{n}-loyw3v28", event_ms=100, at_ms=150 + n) for n in range(5, 7)),
        record("consumed", id="t-0-7-", event_ms=100, at_ms=157),
        record("consumed", id="t-0-3", event_ms=100, at_ms=900),
        record("consumed", id="t-0-3-loyw3v28", event_ms=100, at_ms=901),  # by a replica with `origin: id`
        record("consumed", id="t-9-9", event_ms=100, at_ms=101, class_="P3"),
    ]
    records = read(lines)
    first, third = rows(proof(alike(events(records.of("produced"), records.of("consumed"))), BY_CLASS))
    counts = ("produced", "delivered", "missing", "duplicated", "unexpected")
    assert [first[name] for name in counts] == [10, 8, 2, 2, 0]
    assert [third[name] for name in counts] == [0, 0, 0, 0, 1]
    assert (first["consumed_p50_ms"], first["consumed_max_ms"]) == (53.0, 57.0)


def test_the_missing_are_lost_when_neither_dead_letters_nor_the_log_account_for_them(
    record: Make, read: Make, facts: Make, rows: Make
) -> None:
    cases = [(0, None, 0, 3), (1, None, 0, 2), (1, 2, 0, 0), (3, 5, 0, 0), (0, 0, 0, 3), (1, 4, 2, 0), (0, 4, 2, 1)]
    runs = {
        f"case_{number}": [
            *(record("produced", id=f"t-0-{event}") for event in range(5)),
            *(record("consumed", id=f"t-0-{event}") for event in range(2)),
            record("class", dead_lettered={"expired": dead_lettered}, lag=lag, ahead=ahead),
        ]
        for number, (dead_lettered, lag, ahead, _) in enumerate(cases)
    }
    records = read(**runs)
    proven = rows(proof(alike(events(records.of("produced"), records.of("consumed"))), BY_CLASS))
    last = [
        {"run": row["run"], "class": row["class"], "t_s": row["t_s"], "left": row["whole"]}
        for row in rows(timeline.last_over_time(facts(records, "last"), 1))
        if row["measure"] == timeline.LEFT
    ]
    found = with_whereabouts(proven, rows(traffic(records.of("class"), BY_CLASS)), last)
    ordered = sorted(found, key=lambda row: row["run"])
    assert [(row["missing"], row["lost"]) for row in ordered] == [(3, lost) for *_, lost in cases]


def test_the_depth_in_a_stretch_is_the_most_any_replica_saw(record: Make, read: Make, facts: Make, rows: Make) -> None:
    lines = [
        record("route", at_ms=900, depth=5),
        record("route", at_ms=1_000, depth=7, instance="two"),
        record("route", at_ms=1_001, depth=3),
        record("route", at_ms=2_500, depth=None),
    ]
    found = rows(timeline.routes_over_time(facts(read(lines), "routes"), 1))
    assert [(row["t_s"], row["depth"]) for row in found] == [(0.5, 7), (1.5, 3), (2.5, None)]


def test_the_backlog_is_the_sum_of_what_each_replica_last_knew_of_its_own_partitions(
    record: Make, read: Make, facts: Make, rows: Make
) -> None:
    lines = [
        *(record("class", at_ms=1_000 * second, lag=10 * second) for second in (1, 2, 3, 4)),
        *(record("class", at_ms=1_000 * second, lag=100, instance="two") for second in (1, 3)),
        record("class", at_ms=10_000, lag=5),
    ]
    found = rows(timeline.last_over_time(facts(read(lines), "last"), 1))
    assert sorted((row["t_s"], row["whole"]) for row in found if row["measure"] == timeline.LAG) == [
        (0.5, 110),
        (1.5, 120),
        (2.5, 130),
        (3.5, 40),
        (4.5, 40),
        (5.5, 40),
        (6.5, 40),
        (9.5, 5),
    ]


def test_a_run_has_no_time_before_it_when_its_first_record_tells_of_an_instant(
    record: Make, read: Make, facts: Make, rows: Make
) -> None:
    lines = [record("verdict", at_ms=at_ms, drain_rate=9.0, rates={"P3": 0.1}) for at_ms in (0, 1_000, 5_001)]
    lines.append(record("verdict", at_ms=5_002, instance="two", rates={"P3": 0.2}))
    records = read(lines)
    assert [row["t_s"] for row in rows(timeline.routes_over_time(facts(records, "routes"), 5))] == [2.5, 7.5]
    last = rows(timeline.last_over_time(facts(records, "last"), 5))
    assert [(row["t_s"], row["value"]) for row in last] == [(2.5, 0.1), (7.5, 0.3)], "not 0.30000000000000004"


@pytest.mark.parametrize(
    ("seconds", "interval_s", "width"), [(0, 0, 1), (90, 1, 1), (301, 1, 2), (86_400, 1, 300), (60, 7, 10)]
)
def test_a_graph_keeps_to_its_points_and_to_the_interval_of_the_records(
    seconds: float, interval_s: float, width: int
) -> None:
    assert timeline.width_for(seconds, interval_s) == width


def test_like_incidents_are_one_row_with_their_first_and_last_instant(
    record: Make, read: Make, facts: Make, rows: Make
) -> None:
    lines = [
        record("incident", at_ms=1_000, route="main", detail="blocked"),
        record("incident", at_ms=3_000, route="main", detail="open"),
        record("incident", at_ms=2_000, name="truncated", topic="t", partition=0, count=7),
    ]
    states, truncated = rows(incidents(facts(read(lines), "incidents")))
    assert (states["place"], states["times"], states["first_s"], states["last_s"]) == ("route main", 2, 1.0, 3.0)
    assert states["last_detail"] == "open"
    assert (truncated["place"], truncated["count"]) == ("topic t, partition 0", 7)


def test_a_process_shows_its_start_its_end_and_its_losses(record: Make, read: Make, rows: Make) -> None:
    records = read(
        [
            record("start", at_ms=0),
            record("drops", records=3, files=1),
            record("drops", records=4),
            record("stop", at_ms=9_000, unresolved=2),
            record("start", at_ms=1, instance="killed"),
        ]
    )
    ended, killed = sorted(
        rows(processes(records.of("start"), records.of("stop"), records.of("drops"))),
        key=lambda row: row["instance"],
        reverse=True,
    )
    assert (ended["stopped_s"], ended["unresolved"], ended["dropped_records"], ended["dropped_files"]) == (9.0, 2, 7, 1)
    assert (killed["stopped_s"], killed["dropped_records"]) == (None, 0)


def with_left_in_log(proven: Any, by_class: Any, lag: int) -> Any:
    """What became of the missing, with so many events of each class still in the log."""
    left = [{"run": row["run"], "class": row["class"], "t_s": 0.5, "left": lag} for row in by_class]
    return with_whereabouts(proven, by_class, left)


def test_only_what_is_neither_done_with_nor_in_the_log_is_a_difference(record: Make, read: Make, rows: Make) -> None:
    """In a healthy run some events wait: in an inbox, received, or in the log, not even that."""
    records = read(
        [
            record("class", received=9, confirmed=7, dead_lettered={"expired": 1}, publish_us={7: 7}),
            *[record("produced", id=f"a-0-{number}") for number in range(10)],
            *[record("consumed", id=f"a-0-{number}") for number in range(7)],
        ]
    )
    by_class = rows(traffic(records.of("class"), BY_CLASS))
    proven = rows(proof(alike(events(records.of("produced"), records.of("consumed"))), BY_CLASS))
    for left_in_log, difference in ((2, 0), (0, -2), (5, 3)):
        checked = checks.bridge_against_proof(by_class, with_left_in_log(proven, by_class, left_in_log))
        assert {row["check"]: row["difference"] for row in checks.cross_checks(checked)} == {
            "confirmed + dead-lettered + still in the log = produced": difference,
            "events confirmed = consumed": 0,
        }


def test_cross_checks_agree_when_records_do_and_show_the_difference_when_they_do_not(
    record: Make, read: Make, rows: Make
) -> None:
    records = read(
        [
            record("class", received=9, confirmed=5, dead_lettered={"expired": 1}, publish_us={7: 5}),
            record("type", type_="a", received=6, confirmed=3, dead_lettered={"expired": 1}),
            record("type", type_="b", received=1, confirmed=2),
            record("route", confirmed=5),
            record("start"),
            record("stop", confirmed=4),
            record("stop", confirmed=9, instance="started before what is read"),
            record("produced", id="a-0-0"),
            record("consumed", id="a-0-0"),
        ]
    )
    classes, types = records.of("class"), records.of("type")
    by_class = rows(traffic(classes, BY_CLASS))
    proven = rows(proof(alike(events(records.of("produced"), records.of("consumed"))), BY_CLASS))
    processes_told = rows(processes(records.of("start"), records.of("stop"), records.of("drops")))
    by_route = [{"run": "run", "confirmed": row["confirmed"]} for row in rows(records.of("route"))]
    found = checks.cross_checks(
        chain(
            checks.classes_against_types(by_class, rows(traffic(types, BY_CLASS))),
            checks.counts_against_buckets(by_class, rows(latency(classes, BY_CLASS))),
            checks.routes_against_classes(by_route, by_class),
            checks.stops_against_classes(processes_told, rows(traffic(classes.drop("type"), ["run", "instance"]))),
            checks.bridge_against_proof(by_class, with_left_in_log(proven, by_class, 0)),
        )
    )
    assert len(found) == 11
    assert {
        (row["check"].partition(" = ")[0], row["subject"]): row["difference"] for row in found if row["difference"]
    } == {
        ("class records", "P1 received"): 2,
        ("stop record", "confirmed, one"): -1,
        ("confirmed + dead-lettered + still in the log", "P1"): 5,
        ("events confirmed", "P1"): 4,
    }
