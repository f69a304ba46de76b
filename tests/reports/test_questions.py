"""What people ask, on a few records whose answer is known."""

from collections.abc import Callable
from typing import Any

import pytest

from proxy.reports import spectra
from proxy.reports.backlog import fairness, waiting
from proxy.reports.changes import plans
from proxy.reports.decisions import decisions
from proxy.reports.latency import measured
from proxy.reports.proof import events
from proxy.reports.questions import NAMES, answers
from proxy.reports.replicas import clocks, replicas, stuck
from proxy.reports.scaling import scaling
from proxy.reports.traffic import troubles

Make = Callable[..., Any]


def spectrum(found: list[dict[str, Any]], *place: str) -> dict[float, float]:
    """The points of one distribution."""
    return {
        row["percentile"]: row["ms"] for row in found if (row["level"], row["name"], row["measure"]) == place
    }  # fmt: skip


def test_a_spectrum_has_every_percentile_above_which_a_sample_lies_when_intervals_are_merged(
    record: Make, read: Make, rows: Make
) -> None:
    records = read(
        [
            record("class", publish_us={"100": 6_000, "200": 3_000}),
            record("class", publish_us={"100": 1_000, "200": -0}, instance="two"),
            record("class", publish_us={"250": 1}, class_="P3"),
        ]
    )
    found = rows(spectra.spectra(spectra.recorded(measured(records.frames))))
    points = spectrum(found, "class", "P1", "publish latency")
    assert {row["samples"] for row in found if row["name"] == "P1"} == {10_000}
    assert len(points) == len(spectra.ABOVE) == 21
    assert (points[30.0], points[70.0], points[80.0], points[99.99], points[100.0]) == (0.1, 0.1, 0.2, 0.2, 0.2)
    assert spectrum(found, "class", "P3", "publish latency") == {100.0: 0.25}


def test_levels_of_a_spectrum_are_classes_types_and_routes_when_all_left_records(
    record: Make, read: Make, rows: Make
) -> None:
    records = read(
        [
            record("class", publish_us={"10": 1}, bridge_us={"20": 1}),
            record("type", type_="a", publish_us={"11": 1}, bridge_us={"21": 1}),
            record("type", type_="b", publish_us={"12": 1}, bridge_us={"22": 3}),
            record("route", publish_us={"13": 1}),
            record("produced", id="a-0-0"),
            record("consumed", id="a-0-0", event_ms=100, at_ms=140),
        ]
    )
    seen = events(records.of("produced"), records.of("consumed"))
    told = spectra.recorded(measured(records.frames))
    found = rows(spectra.spectra(told.unionByName(spectra.consumed(seen))))
    largest = {
        (row["level"], row["name"], row["measure"]): row["ms"] for row in found if row["percentile"] == 100.0
    }  # fmt: skip
    assert largest == {
        ("class", "P1", "publish latency"): 0.01,
        ("class", "P1", "bridge time"): 0.02,
        ("class", "P1", "consumed time"): 40.0,
        ("type", "a", "publish latency"): 0.011,
        ("type", "a", "bridge time"): 0.021,
        ("type", "b", "publish latency"): 0.012,
        ("type", "b", "bridge time"): 0.022,
        ("type", "order", "consumed time"): 40.0,
        ("route", "main", "publish latency"): 0.013,
        ("route", "main", "bridge time"): 0.022,
    }
    assert spectrum(found, "route", "main", "bridge time") == {30.0: 0.022, 50.0: 0.022, 70.0: 0.022, 100.0: 0.022}


def test_each_replica_shows_its_share_its_lag_and_its_least_bridge_time(record: Make, read: Make, rows: Make) -> None:
    records = read(
        [
            record("class", at_ms=1_000, confirmed=30, lag=7, lag_age_s=2.5, bridge_us={"640": 20, "90": 10}),
            record("class", at_ms=2_000, confirmed=30, lag=3, bridge_us={"1000": 30}, ahead_of_clock=1),
            record("class", at_ms=3_000, received=5, lag=None),
            record("class", confirmed=20, instance="two", bridge_us={"1410": 20}),
            record("class", class_="P3", instance="two"),
        ]
    ).of("class")
    found = {(row["class"], row["instance"]): row for row in rows(replicas(records))}
    one = found["P1", "one"]
    assert (one["seconds"], one["confirmed"], one["share"], one["received"]) == (3.0, 60, 0.75, 5)
    assert (one["lag"], one["worst_lag"], one["worst_age_s"]) == (3, 7, 2.5)
    assert (one["least_bridge_ms"], one["ahead_of_clock"]) == (0.09, 1)
    assert found["P1", "two"]["share"] == 0.25
    assert (found["P1", "two"]["least_bridge_ms"], found["P1", "two"]["worst_age_s"]) == (134.143, None)
    assert (found["P3", "two"]["share"], found["P3", "two"]["least_bridge_ms"]) == (None, None)


def said(record: Make, at_ms: int, instance: str, *, congested: bool, **changes: Any) -> Any:
    """A verdict of a route under class_budget."""
    cause = "depth" if congested else "none"
    return record("verdict", at_ms, instance=instance, congested=congested, **{"cause": cause, "hot": []} | changes)


def test_clocks_are_compared_by_when_replicas_saw_the_same_change(record: Make, read: Make, rows: Make) -> None:
    offsets = {"one": 0, "two": 900, "three": -400}
    lines = [
        said(record, at + offsets[name] + late, name, congested=congested)
        for name in offsets
        for at, congested in ((10_000, False), (20_000, True), (21_000, False), (22_000, True), (23_000, False))
        for late in (30 if name == "two" else 0,)
    ]
    lines += [said(record, 60_000 + offsets[name], name, congested=True) for name in ("one", "two")]
    lines += [  # began in the midst, has a cause of its own, is another policy's, is alone on its route
        *(said(record, at, "late", congested=congested) for at, congested in ((21_500, False), (22_000, True))),
        *(said(record, at, "own", congested=at > 5, cause="blocked") for at in (1, 20_700)),
        *(said(record, at, "seed", congested=at > 5, hot=None) for at in (1, 20_700)),
        *(said(record, at, "lone", congested=at > 5, route="other") for at in (1, 20_700)),
    ]
    found = rows(clocks(read(lines).of("verdict")))
    told = ("instance", "reference", "changes", "offset_ms", "least_ms", "greatest_ms")
    assert [tuple(row[name] for name in told) for row in found] == [
        ("three", "one", 1, -400.0, -400, -400),
        ("two", "one", 2, 915.0, 900, 930),
    ]


def test_a_type_is_stuck_when_events_wait_and_nothing_is_done_for_three_intervals(
    record: Make, read: Make, rows: Make
) -> None:
    def kinds(name: str, said: str, **changes: Any) -> list[Any]:
        """A record every ten seconds: s still, d dead-lettered, m moves, l lag only, i idle, space none."""
        shown: dict[str, dict[str, Any]] = {
            "s": {"waiting": 5, "nacked": 3},
            "d": {"waiting": 5, "dead_lettered": {"expired": 1}},
            "m": {"waiting": 5, "confirmed": 1},
            "l": {"lag": 9, "ahead": 2},
            "i": {"lag": 2, "ahead": 2},
        }
        return [
            record("type", 10_000 * number, type_=name, **shown[one], **changes)
            for number, one in enumerate(said, 1)
            if one != " "
        ]

    lines = [
        *kinds("whole", "mssssm"),
        *kinds("log", "lll"),
        *kinds("twice", "sssdsssi"),
        *kinds("short", "ssmssdss"),
        *kinds("idle", "iiii"),
        *kinds("apart", "ss    ss"),
        *kinds("gone", "ss ss"),
        *kinds("shared", "sss", instance="two"),
        *kinds("shared", "mmm"),
    ]
    found = rows(stuck(read(lines).of("type")))
    told = ("type", "instance", "from_s", "to_s", "seconds", "intervals", "lag", "waiting", "ended")
    assert sorted(tuple(str(row[name]) for name in told) for row in found) == [
        ("gone", "one", "0.0", "50.0", "50.0", "4", "None", "5", "False"),
        ("log", "one", "0.0", "30.0", "30.0", "3", "9", "0", "False"),
        ("shared", "two", "0.0", "30.0", "30.0", "3", "None", "5", "False"),
        ("twice", "one", "0.0", "30.0", "30.0", "3", "None", "5", "True"),
        ("twice", "one", "40.0", "70.0", "30.0", "3", "None", "5", "True"),
        ("whole", "one", "10.0", "50.0", "40.0", "4", "None", "5", "True"),
    ]


def decided(record: Make, read: Make, rows: Make, lines: list[Any]) -> list[dict[str, Any]]:
    routes = {name: {"policy": f"policy of {name}", "queues": []} for name in ("main", "seed")}
    routes["still"] = {"policy": "static", "queues": []}
    records = read([record("start", routes=routes), *lines])
    told = plans(records.of("start"), records.of("settings"))
    found = rows(decisions(told, *[records.of(kind) for kind in ("verdict", "route", "type")]))
    return sorted(found, key=lambda row: (row["route"], str(row["policy"])))


def test_a_cut_was_needed_when_the_queue_held_messages_or_events_were_refused(
    record: Make, read: Make, rows: Make
) -> None:
    def cut(at_ms: int, depth: int | None, **changes: Any) -> Any:
        seen = {"congested": True, "cause": "depth", "cuts": 1, "threshold_us": None, "queue_delay_us": 90_000}
        return record("verdict", at_ms, depth=depth, **seen | changes)

    def seed(at_ms: int, **changes: Any) -> Any:
        return record("verdict", at_ms, route="seed", **{"congested": True, "cause": "latency"} | changes)

    lines = [
        cut(1_500, 12),
        cut(1_600, 3, queue_delay_us=60_000),
        cut(2_500, 0, errors=2),
        cut(3_500, 0),
        record("route", 3_900, depth=5),  # the cut itself saw an empty queue
        cut(4_500, None, queue_delay_us=None),
        record("route", 5_000, depth=0),
        cut(5_500, None, queue_delay_us=None),
        cut(6_500, 0, cuts=0),
        cut(6_500, 9, instance="two"),
        seed(1_000),
        record("route", 1_000, route="seed", depth=4),
        seed(2_000),
        record("route", 2_000, route="seed", depth=0),
        seed(3_000, congested=None),
        seed(4_000, congested=False),
        record("verdict", 1_000, route="still", congested=True),
    ]
    main, by_type, still = decided(record, read, rows, lines)
    told = ("policy", "slowed", "needed", "empty", "unseen", "least_delay_ms")
    assert [main[name] for name in told] == ["policy of main", 7, 4, 2, 1, 60.0]
    assert (still["policy"], still["slowed"], still["unseen"], still["stretches"]) == ("static", 0, 0, 1)
    assert [by_type[name] for name in told] == ["policy of seed", 2, 1, 1, 0, None]


def test_what_was_decided_counts_for_the_policy_that_was_in_force_when_other_settings_come(
    record: Make, read: Make, rows: Make
) -> None:
    def cut(at_ms: int, **changes: Any) -> Any:
        seen = {"congested": True, "cause": "depth", "cuts": 1, "threshold_us": None, "depth": 3}
        return record("verdict", at_ms, **seen | changes)

    def other(at_ms: int, policy: str, **changes: Any) -> Any:
        return record("settings", at_ms, routes={"main": {"policy": policy, "queues": []}}, **changes)

    lines = [
        cut(1_500),
        cut(4_000, instance="two"),  # which told of no settings: as the other one
        other(5_200, "static"),
        cut(6_500),
        cut(7_500, instance="two"),
        other(8_200, "new", instance="two"),
        cut(9_500, instance="two"),
        cut(9_500),
        other(20_000, "never"),
    ]
    found = decided(record, read, rows, lines)
    assert [(row["policy"], row["slowed"]) for row in found] == [("new", 1), ("policy of main", 2), ("static", 0)]


def test_congestion_follows_growth_when_a_rate_had_just_grown(record: Make, read: Make, rows: Make) -> None:
    def seen(at_ms: int, rate: float, *, congested: bool | None, **changes: Any) -> Any:
        rates = {"P2": 500.0, "P3": rate}
        return record("verdict", at_ms, congested=congested, rates=rates, threshold_us=None, cuts=0, **changes)

    lines = [
        seen(1_000, 100, congested=False),
        seen(2_000, 120, congested=False),
        seen(2_300, 90, congested=True),  # had grown
        seen(2_400, 110, congested=None),
        seen(2_500, 90, congested=True),  # the same stretch
        seen(3_500, 90, congested=False),
        seen(3_700, 80, congested=True),  # had not
        seen(4_000, 80, congested=False),
        seen(5_000, 130, congested=False),
        seen(9_000, 100, congested=True),  # long ago
        seen(9_000, 100, congested=True, instance="two"),  # nothing before
    ]
    (found,) = decided(record, read, rows, lines)
    assert (found["stretches"], found["after_growth"]) == (4, 1)


def test_rates_held_somebody_back_when_they_were_used_up_in_front_of_an_empty_queue(
    record: Make, read: Make, rows: Make
) -> None:
    def second(number: int, depth: int, confirmed: int, **changes: Any) -> list[Any]:
        rates = {"P2": 300.0, "P3": 100.0}
        judged = record(
            "verdict", 1_000 * number - 500, depth=depth, rates=rates, drain_rate=200.0, threshold_us=None, **changes
        )
        return [judged, record("route", 1_000 * number, depth=depth, confirmed=confirmed, **changes)]

    lines = [
        *second(1, 0, 100),  # nothing waited
        *second(2, 0, 95),
        *second(3, 0, 92),
        *second(4, 3, 100),  # the queue was not empty
        *second(5, 0, 50),  # the rate was not used
        *second(5, 0, 20, instance="two"),
        record("type", 5_000, interval_s=4.0, waiting=3),
        record("type", 5_000, interval_s=4.0, type_="other", lag=3, ahead=3),
        *second(6, 0, 100),
        record("type", 6_000, interval_s=1.0, lag=3, ahead=3),
    ]
    (found,) = decided(record, read, rows, lines)
    assert (found["held_s"], found["backlog_s"]) == (2.0, 4.0)
    assert found["used"] == pytest.approx((95 + 92 + 100 + 70) / 800, abs=1e-4)


def test_types_are_served_evenly_when_each_gets_the_same_share_of_what_was_there(
    record: Make, read: Make, rows: Make
) -> None:
    def kind(name: str, at_s: int, done: int, left: int, **changes: Any) -> Any:
        return record("type", 1_000 * at_s, type_=name, confirmed=done, waiting=left, **{"class_": "P3"} | changes)

    lines = [
        kind("a", 10, 50, 50),
        kind("b", 10, 4, 6, dead_lettered={"expired": 1}),
        kind("b", 9, 0, 99, instance="one"),  # its last word of the stretch counts, what it did adds up
        kind("a", 20, 90, 0),
        kind("b", 20, 0, 0, lag=12, ahead=2, instance="two"),
        kind("b", 20, 0, 0, instance="one"),
        kind("a", 30, 70, 0),  # nothing was left
        kind("first", 20, 100, 0, class_="P1"),
        kind("first", 30, 100, 0, class_="P1"),
    ]
    (found,) = rows(fairness(read(lines).of("type")))
    shares = (50 / 100, 5 / 11)
    jain = sum(shares) ** 2 / (2 * sum(share * share for share in shares))
    assert (found["class"], found["types"], found["backlog_s"], found["least_jain"]) == ("P3", 2, 30.0, 0.5)
    assert found["jain"] == pytest.approx((jain + 0.5) / 2, abs=1e-4)
    assert found["served"] == pytest.approx(145 / 211, abs=1e-4)
    assert found["of_done"] == pytest.approx(145 / 245, abs=1e-4)
    assert found["of_demand"] == pytest.approx(211 / 311, abs=1e-4)


def test_what_waits_shows_its_age_and_where_that_leads_when_it_grows(record: Make, read: Make, rows: Make) -> None:
    def kind(name: str, at_s: int, left: int, age_s: float | None, **changes: Any) -> Any:
        return record("type", 1_000 * at_s, type_=name, waiting=left, lag_age_s=age_s, **changes)

    lines = [
        *(kind("grows", 10 * number, 3, 5.0 * number) for number in range(3, 11)),
        kind("grows", 10, 40, 300.0),  # long ago
        *(kind("grows", 10 * number, 2, 1.0, instance="two") for number in range(3, 11)),
        *(kind("falls", 10 * number, 3, 100.0 - number) for number in range(1, 5)),
        kind("over", 10, 9, 2.0),
        kind("over", 20, 0, None),
        kind("never", 10, 0, None),
        kind("log", 10, 0, None, lag=7, ahead=1),
    ]
    found = {row["type"]: row for row in rows(waiting(read(lines).of("type")))}
    assert set(found) == {"grows", "falls", "over", "log"}
    grows = found["grows"]
    assert (grows["worst_left"], grows["left"], grows["worst_age_s"], grows["age_s"]) == (40, 5, 300.0, 50.0)
    assert (grows["age_growth"], grows["day_in_s"]) == (0.5, round((86_400 - 50) / 0.5, 1))
    assert (found["falls"]["age_growth"], found["falls"]["day_in_s"]) == (-0.1, None)
    assert (found["over"]["left"], found["over"]["age_s"], found["over"]["day_in_s"]) == (0, 0.0, None)
    assert (found["log"]["left"], found["log"]["worst_age_s"]) == (6, 0.0)


def test_troubles_are_what_happened_and_nothing_else(record: Make, read: Make, rows: Make) -> None:
    lines = [
        record("type", confirmed=300, nacked=3, resent=4, resent_unknown=1, unknown=1, ahead_of_clock=2),
        record("type", confirmed=700, nacked=2, dead_lettered={"unroutable": 2, "expired": 0}, instance="two"),
        record("type", type_="dead", dead_lettered={"expired": 5}),
        record("type", type_="well", confirmed=10),
    ]
    found = {(row["type"], row["what"]): (row["events"], row["per_thousand"]) for row in rows(
        troubles(read(lines).of("type"))
    )}  # fmt: skip
    assert found == {
        ("order", "nacked"): (5, 5.0),
        ("order", "unknown outcome"): (1, 1.0),
        ("order", "resent"): (4, 4.0),
        ("order", "perhaps twice"): (1, 1.0),
        ("order", "before its timestamp"): (2, 2.0),
        ("order", "dead letter: unroutable"): (2, 2.0),
        ("dead", "dead letter: expired"): (5, None),
    }


def test_added_consumers_helped_as_much_as_the_drain_rate_rose(record: Make, read: Make, rows: Make) -> None:
    def route(name: str, second: int, consumers: int | None, drain: float, depth: int = 5) -> list[Any]:
        return [
            record("route", 1_000 * second, route=name, consumers=consumers, depth=depth, confirmed=int(drain / 2)),
            record("route", 1_000 * second, route=name, confirmed=int(drain / 2), instance="two"),
            record("verdict", 1_000 * second, route=name, depth=depth, drain_rate=drain),
        ]

    lines = [
        *(line for second in range(1, 41) for line in route("helped", second, 4, 400.0 if second > 10 else 100.0)),
        *(line for second in range(41, 44) for line in route("helped", second, 6, 410.0)),  # settling
        *(line for second in range(44, 60) for line in route("helped", second, 6, 500.0)),
        *(line for second in range(60, 70) for line in route("helped", second, None, 900.0)),
        *(line for second in range(70, 90) for line in route("helped", second, 3, 250.0)),
        *(line for second in range(1, 21) for line in route("empty", second, 1, 100.0, depth=0)),
        *(line for second in range(21, 41) for line in route("empty", second, 2, 200.0)),
        *(line for second in range(41, 61) for line in route("empty", second, 0, 0.0)),
        *(line for second in range(61, 81) for line in route("empty", second, 2, 200.0)),
        *(line for second in range(1, 21) for line in route("same", second, 2, 200.0)),
    ]
    records = read(lines)
    found = sorted(
        rows(scaling(records.of("route"), records.of("verdict"))), key=lambda row: (row["route"], row["at_s"])
    )  # fmt: skip
    told = ("route", "at_s", "consumers_before", "consumers_after", "drain_before", "drain_after", "gain")
    assert [tuple(row[name] for name in told) for row in found] == [
        ("empty", 21.0, 1, 2, 100.0, 200.0, None),
        ("empty", 41.0, 2, 0, 200.0, 0.0, 1.0),
        ("empty", 61.0, 0, 2, 0.0, 200.0, None),
        ("helped", 41.0, 4, 6, 400.0, 500.0, 0.5),
        ("helped", 70.0, 6, 3, pytest.approx(485.789, abs=0.001), 250.0, pytest.approx(0.971, abs=0.001)),
    ]
    assert (found[0]["busy_before"], found[0]["busy_after"]) == (0.0, 1.0)
    assert (found[3]["confirmed_before"], found[3]["confirmed_after"]) == (400.0, 500.0)


def test_only_what_records_can_answer_is_asked(record: Make, read: Make) -> None:
    records = read([record("class")])

    def names(*kinds: str, are_several: bool) -> set[str]:
        return {one.name for one in answers(records, set(kinds), records.of("class"), None, are_several=are_several)}

    assert names("start", "stop", are_several=True) == set()
    assert names("class", "type", "route", "verdict", are_several=True) == set(NAMES) - {"actions"}
    assert names("rewind", are_several=True) == names("intervention", are_several=True) == {"actions"}
    assert names("class", are_several=True) == {"spectra", "replicas"}
    assert names("verdict", are_several=True) - names("verdict", are_several=False) == {"clocks"}
    assert names("type", are_several=False) == {"spectra", "fairness", "waiting", "troubles", "stuck"}
