"""What the page draws over time, and the verdicts that an episode opens."""

from collections.abc import Callable
from typing import Any

from proxy.reports import activity
from proxy.reports.episode_verdicts import BEFORE_S, FIRST, LAST, episode_verdicts
from proxy.reports.episodes import episodes
from proxy.reports.latency import merged

Make = Callable[..., Any]


def test_consumed_time_is_that_of_what_was_consumed_in_each_stretch(read: Make, record: Make, rows: Make) -> None:
    records = read(
        [record("consumed", at_ms=at, event_ms=at - late) for at, late in ((900, 5), (1_000, 9), (1_001, 40))]
    )
    found = rows(activity.consumed_time_over_time(records.of("consumed"), 1))
    assert sorted((row["t_s"], row["samples"], row["p50_ms"], row["p99_ms"]) for row in found) == [
        (0.5, 2, 5.0, 9.0),
        (1.5, 1, 40.0, 40.0),
    ]


def test_events_a_second_are_those_of_all_replicas_when_a_point_is_two_seconds(
    read: Make, record: Make, rows: Make
) -> None:
    told = [
        record("class", at_ms=at, instance=of, received=30, confirmed=10)
        for at in (1_000, 2_000)
        for of in ("one", "two")
    ]
    (found,) = rows(activity.traffic_over_time(read(told).of("class"), 2))
    assert found == {"run": "run", "class": "P1", "t_s": 1.0, "received_rate": 60.0, "confirmed_rate": 20.0}


def test_what_is_in_flight_is_summed_and_consumers_are_not_when_replicas_share_a_route(
    read: Make, facts: Make, record: Make, rows: Make
) -> None:
    told = [
        record("route", at_ms=900, in_flight=9, consumers=4),
        record("route", at_ms=1_000, in_flight=2, consumers=4),
        record("route", at_ms=1_000, in_flight=5, consumers=3, instance="two"),
    ]
    (found,) = rows(activity.routes_over_time(facts(read(told), "in flight"), 1))
    assert (found["t_s"], found["in_flight"], found["consumers"]) == (0.5, 7, 3)


def test_a_column_of_the_heat_map_is_whole_points_and_an_interval_of_types_when_that_is_longer() -> None:
    assert activity.heat_width(60.0, 1, 1.0) == 1
    assert activity.heat_width(60.0, 2, 9.5) == 10
    assert activity.heat_width(86_400.0, 300, 10.0) == 1_500


def test_the_slowest_types_of_each_class_are_told_in_every_run_when_there_are_more(
    read: Make, facts: Make, record: Make, rows: Make
) -> None:
    def of_type(number: int, bucket: int, name: str = "P1") -> dict[str, Any]:
        made: dict[str, Any] = record("type", class_=name, type_=f"t{number}", confirmed=1, bridge_us={bucket: 1})
        return made

    many = [of_type(number, 1_000 + number) for number in range(activity.TYPES_OF_CLASS + 2)]
    records = read(one=[*many, of_type(99, 10, "P3")], other=[of_type(0, 3_000), of_type(1, 5)])
    latencies = facts(records, "latencies")
    found = rows(activity.types_over_time(latencies, activity.slowest_types(merged(latencies)), 10))
    assert {row["type"] for row in found if row["class"] == "P3"} == {"t99"}
    told = {row["type"] for row in found if row["class"] == "P1"}
    assert len(told) == activity.TYPES_OF_CLASS
    assert "t0" in told, "slowest in the other run"
    assert {"t1", "t2"}.isdisjoint(told)
    (slow,) = [row for row in found if row["run"] == "other"]
    assert (slow["type"], slow["rank"], slow["from_s"], slow["seconds"], slow["confirmed"]) == ("t0", 1, 0, 10, 1)


def test_an_episode_has_its_first_and_last_verdicts_when_there_are_many(
    read: Make, facts: Make, record: Make, rows: Make
) -> None:
    calm = [record("verdict", at_ms=at) for at in (1_000, 4_500)]
    told = [record("verdict", at_ms=5_000 + 10 * n, congested=True, rates={"P3": 2.25, "P2": 7}) for n in range(100)]
    records = read([*calm, *told, record("verdict", at_ms=9_000), record("verdict", at_ms=9_500)])
    verdicts = records.of("verdict")
    found = sorted(rows(episode_verdicts(verdicts, episodes(facts(records, "pieces")))), key=lambda row: row["number"])
    assert BEFORE_S == 1.0
    assert {row["of"] for row in found} == {102}
    assert [row["number"] for row in found] == [*range(1, FIRST + 1), *range(103 - LAST, 103)]
    assert [found[0]["t_s"], found[1]["t_s"], found[-1]["t_s"]] == [4.5, 5.0, 9.0]
    assert (found[1]["from_s"], found[1]["rates"], found[1]["p50_ms"]) == (5.0, "P2 7.0, P3 2.3", 0.9)


def test_a_verdict_belongs_to_the_episode_of_its_own_route_and_run(
    read: Make, facts: Make, record: Make, rows: Make
) -> None:
    told = [record("verdict", at_ms=at, congested=at < 3_000) for at in (1_000, 2_000, 3_000)]
    others = [record("verdict", at_ms=at, route="other") for at in (1_000, 2_000)]
    records = read(one=[*told, *others], two=[record("verdict", at_ms=2_000)])
    verdicts = records.of("verdict")
    found = rows(episode_verdicts(verdicts, episodes(facts(records, "pieces"))))
    assert {(row["run"], row["route"]) for row in found} == {("one", "main")}
    assert len(found) == 3
