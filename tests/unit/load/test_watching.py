"""What a watcher of a run sees: whole lines of the metric log once each, rates from totals, gaps said as such."""

import gzip
import json
from pathlib import Path

from load.consumer import Capacity
from load.metric_tail import MetricTail
from load.progress import Glance


def test_a_line_is_read_once_and_only_when_it_is_whole(tmp_path: Path) -> None:
    file, tail = tmp_path / "a.jsonl.open", MetricTail(tmp_path)
    file.write_bytes(b'{"n":1}\n{"n":')
    assert tail.poll() == [{"n": 1}]

    with file.open("ab") as more:
        more.write(b'2}\n{"n":3}\n')
    assert tail.poll() == [{"n": 2}, {"n": 3}]
    assert tail.poll() == []


def test_a_file_that_is_finished_meanwhile_is_no_fault(tmp_path: Path) -> None:
    file, tail = tmp_path / "a.jsonl.open", MetricTail(tmp_path)
    file.write_bytes(b'{"n":1}\n')
    tail.poll()
    file.unlink()
    (tmp_path / "b.jsonl.open").write_bytes(b'{"n":9}\n')

    assert tail.poll() == [{"n": 9}]


def test_the_last_lines_are_read_when_their_file_was_finished_meanwhile(tmp_path: Path) -> None:
    file, tail = tmp_path / "a.jsonl.open", MetricTail(tmp_path)
    file.write_bytes(b'{"n":1}\n{"n"')
    assert tail.poll() == [{"n": 1}]
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(b'{"n":1}\n{"n":2}\n'))
    file.unlink()
    (tmp_path / "b.jsonl.open").write_bytes(b'{"n":3}\n')

    assert tail.poll() == [{"n": 2}, {"n": 3}]
    assert tail.poll() == []


def test_rates_are_the_growth_of_totals_over_the_time_between() -> None:
    glance = Glance(["P1"])
    glance.count("produced", {"P1": 100}, now=10.0)
    glance.count("produced", {"P1": 160}, now=12.0)

    assert glance.rows()[0][:2] == ["P1", "30"]


def test_what_is_not_known_is_not_shown_as_zero() -> None:
    row = Glance(["P1"]).rows()[0]

    assert row[4:] == ["?", "-", "off"]
    assert Glance(["P1"]).route_text() == "no record yet"


def test_the_verdict_is_said_in_words_with_what_it_saw() -> None:
    glance = Glance(["P1"])
    verdict = {"kind": "verdict", "congested": True, "cause": "errors", "p50_us": 500, "errors": 17}
    glance.take([json.loads(json.dumps(verdict))])

    assert glance.verdict_text() == "congested (errors): confirm latency P50 0.5 ms, 17 errors"


def test_the_deepest_queue_is_kept_when_it_drains_again() -> None:
    glance = Glance(["P1"])
    glance.take([{"kind": "route", "depth": depth} for depth in (3, 299, None, 7)])

    assert glance.peak_depth == 299


def test_services_together_hold_at_most_a_tenth_of_a_second_of_their_capacity() -> None:
    for rate, services in ((300, 4), (50, 4), (1000, 7)):
        capacity = Capacity(rate, services)
        assert capacity.prefetch * services <= max(services, 0.1 * rate)
        assert capacity.seconds * rate == services
