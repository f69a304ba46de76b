"""What records add up to in /metrics."""

from typing import Any

from proxy.operations.totals import DECISIONS, Totals
from proxy.settings import BrokerSettings, LogSettings, Route, Settings

SETTINGS = Settings(
    log=LogSettings(hosts=["kafka:9092"], group="g"),
    broker=BrokerSettings(hosts=["rabbit:5672"]),
    routes={"r": Route(exchange="x", policy="static")},
)


def of_class(**told: Any) -> dict[str, Any]:
    usual = {"nacked": 0, "resent": 0, "confirmed": 0, "dead_lettered": {}, "lag": 5, "lag_age_s": None}
    return {"kind": "class", "class": "P1", "interval_s": 1.0, **usual, **told}


def of_route(**told: Any) -> dict[str, Any]:
    return {"kind": "route", "route": "r", "nacked": 0, "unknown": 0, "publish_us": {}, **told}


def verdict(**told: Any) -> dict[str, Any]:
    return {"kind": "verdict", "route": "r", "congested": False, "cause": "none", "hot": None, **told}


def told(*records: dict[str, Any]) -> dict[tuple[str, ...], float]:
    written: list[Any] = []
    totals = Totals(SETTINGS, written.append)
    for record in records:
        totals.write(record)
    assert written == list(records), "each goes on to the metric log"
    return {
        (sample.name.removeprefix("tidegate_"), *sample.labels.values()): sample.value
        for family in totals.families()
        for sample in family.samples
    }


def test_counters_stand_at_nought_for_every_class_reason_and_route_when_nothing_has_happened() -> None:
    samples = told()
    assert samples["nacked_events_total", "P3"] == samples["resent_events_total", "P2"] == 0
    assert samples["dead_lettered_events_total", "P1", "expired"] == 0
    assert samples["publish_errors_total", "r", "unknown"] == samples["truncated_records_total",] == 0
    assert not any(name[0] in {"publish_p50_seconds", "lag_age_seconds"} for name in samples)


def test_counters_are_sums_over_all_intervals_when_events_are_nacked_resent_and_dead_lettered() -> None:
    once = of_class(nacked=2, resent=3, dead_lettered={"expired": 4})
    samples = told(once, once, of_class(dead_lettered={"refused": 1}))
    assert samples["nacked_events_total", "P1"] == 4
    assert samples["resent_events_total", "P1"] == 6
    assert samples["dead_lettered_events_total", "P1", "expired"] == 8
    assert samples["dead_lettered_events_total", "P1", "refused"] == 1


def test_truncated_records_are_counted_and_other_incidents_are_not() -> None:
    lost = {"kind": "incident", "name": "truncated", "count": 7}
    samples = told(lost, lost, {"kind": "incident", "name": "type_stopped", "count": None})
    assert samples["truncated_records_total",] == 14


def test_the_median_is_of_the_last_interval_and_the_buckets_of_all_when_confirms_come() -> None:
    quick, slow = {"100": 9}, {"1800": 1, "100": 1}  # index 100 is 100 µs, 1800 is 1.06 s
    samples = told(of_route(publish_us=quick, nacked=1), of_route(publish_us=slow, unknown=2))
    assert samples["publish_p50_seconds", "r"] == 0.0001
    assert samples["publish_errors_total", "r", "nacked"] == 1
    assert samples["publish_errors_total", "r", "unknown"] == 2
    assert samples["publish_seconds_bucket", "r", "0.001"] == 10
    assert samples["publish_seconds_bucket", "r", "1.0"] == 10
    assert samples["publish_seconds_bucket", "r", "2.0"] == samples["publish_seconds_count", "r"] == 11


def test_no_median_is_told_when_nothing_was_confirmed_in_the_last_interval() -> None:
    assert ("publish_p50_seconds", "r") not in told(of_route(publish_us={"100": 9}), of_route())


def test_the_lag_age_is_nought_when_nothing_is_left_and_absent_when_it_is_not_known() -> None:
    assert told(of_class(lag_age_s=2.5))["lag_age_seconds", "P1"] == 2.5
    assert told(of_class(lag=0))["lag_age_seconds", "P1"] == 0
    assert ("lag_age_seconds", "P1") not in told(of_class(lag=5))
    assert ("lag_age_seconds", "P1") not in told(of_class(lag=None))


def test_the_last_decisions_are_kept_when_verdicts_say_something_new_and_no_more_of_them() -> None:
    totals = Totals(SETTINGS, lambda _: None)
    for number in range(2 * DECISIONS):
        for _ in range(3):
            totals.write(verdict(congested=number % 2 == 0, cause="depth", at_ms=number))
    assert [one["at_ms"] for one in totals.decisions["r"]] == list(range(DECISIONS, 2 * DECISIONS))
    assert totals.verdicts["r"]["at_ms"] == 2 * DECISIONS - 1
