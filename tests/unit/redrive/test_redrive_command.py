"""What `tidegate redrive` refuses before it speaks to anybody, and what it takes times for."""

import argparse
import json
import socket
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from proxy.command_line import command
from proxy.operations.instant import instant
from proxy.redrive.choice import Wanted, letter_queues
from proxy.redrive.count import Count
from proxy.redrive.words import progress
from proxy.settings import BrokerSettings, DeadLetter, EventType, LogSettings, Route, RoutingKey, Settings, TypePattern

TRAITS = {"route": "main", "routing_key": "q", "dead_letter": {"routing_key": "dead"}}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found = tmp_path / "tidegate.yaml"
    settings = {
        "log": {"hosts": ["localhost:1"], "group": "g"},
        "broker": {"hosts": ["localhost:1"]},
        "routes": {"main": {"exchange": ""}},
        "defaults": TRAITS,
        "event_types": {"orders": {"class": "P1"}},
    }
    found.write_text(yaml.safe_dump(settings))
    return found


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--type", "order"], 'event type "order" does not exist'),
        (["--class", "P9"], 'class "P9" does not exist'),
        (["--since", "2026-01-02", "--until", "2026-01-01"], "--since is not before --until"),
        ([], "there is no terminal: say --yes"),
        (["--rate", "0"], "must be a whole number from 1 to 100000"),
        (["--times", "x"], "must be a whole number from 1 to 1000"),
        (["--since", "yesterday"], "is no time like 2026-11-23T14:00:00Z"),
        (["--reason", "unrouteable"], "must be one of unroutable, too_large"),
        (["--reason", "queue_rejected"], "there is no terminal: say --yes"),
        (["--why", " "], "must have 1 to 500 characters"),
    ],
)
def test_a_mistake_is_told_and_ends_with_2_when_arguments_mean_nothing(
    file: Path, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = command(["redrive", "-c", str(file), *arguments])
    except SystemExit as ended:
        code = int(str(ended.code))
    assert code == 2
    assert words in " ".join(capsys.readouterr().err.split())


def test_it_is_told_and_ends_with_1_when_a_port_takes_connections_and_says_nothing(
    file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        settings = yaml.safe_load(file.read_text())
        settings |= {"broker": {"hosts": [f"127.0.0.1:{port}"]}, "limits": {"connect_deadline": "500ms"}}
        file.write_text(yaml.safe_dump(settings))
        assert command(["redrive", "-c", str(file), "--dry-run"]) == 1
    assert (
        f"127.0.0.1:{port}: no answer within 0.5 s: if RabbitMQ runs there, is this its port" in capfd.readouterr().err
    )


def test_it_is_told_and_ends_with_1_when_no_broker_answers(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert command(["redrive", "-c", str(file), "--yes", "--json"]) == 1
    told = capfd.readouterr()
    assert "localhost:1" in told.err
    assert not told.out or json.loads(told.out) == []


def test_nothing_is_sent_and_it_ends_with_2_when_no_record_can_be_kept(
    file: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "taken").touch()
    settings = yaml.safe_load(file.read_text()) | {"metric_log": {"folder": str(tmp_path / "taken")}}
    file.write_text(yaml.safe_dump(settings))
    assert command(["redrive", "-c", str(file), "--yes"]) == 2
    assert "metric_log.folder: no record can be kept there, so nothing was sent" in capfd.readouterr().err


def test_times_are_utc_or_so_long_ago() -> None:
    assert instant("2026-11-23T14:00:00") == datetime(2026, 11, 23, 14, tzinfo=UTC).timestamp() * 1000
    assert instant("2026-11-23T15:00:00+01:00") == instant("2026-11-23T14:00:00Z")
    assert instant("2h") == pytest.approx((time.time() - 7200) * 1000, abs=60_000)


@pytest.mark.parametrize("given", ["0001-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "3000000h"])
def test_a_time_is_refused_when_it_lies_before_1970(given: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="before 1970"):
        instant(given)


def test_a_dry_pass_does_not_say_that_it_has_redriven_when_it_tells_how_far_it_is() -> None:
    count = Count()
    count.waiting = count.taken = 3
    assert progress("dead", count, is_dry=True) == "dead: 3 of 3 letters looked at, 0 would go"
    assert progress("dead", count, is_dry=False) == "dead: 3 of 3 letters looked at, 0 redriven"


def kind(name: str, dead: DeadLetter | None, priority: str = "P1") -> EventType:
    key = RoutingKey(constant="q")
    return EventType(name=name, topic=name, priority=priority, route="r", routing_key=key, dead_letter=dead)


def test_queues_are_those_that_types_name_when_letters_go_there_by_name() -> None:
    first, second = DeadLetter(routing_key="dead"), DeadLetter(routing_key="other")
    pattern = TypePattern(
        pattern="m.*", priority="P3", route="r", routing_key=RoutingKey(constant="q"), dead_letter=second
    )
    settings = Settings(
        log=LogSettings(hosts=["kafka:9092"], group="g"),
        broker=BrokerSettings(hosts=["rabbit:5672"]),
        routes={"r": Route(exchange="x")},
        event_types={
            one.name: one
            for one in (
                kind("a", first),
                kind("b", None),
                kind("c", second, "P2"),
                kind("d", DeadLetter(exchange="e", routing_key="k")),
            )
        },
        patterns=(pattern,),
    )
    assert letter_queues(settings, Wanted()) == {"dead": {"a"}, "other": {"c", "m.*"}, "": {"d"}}
    assert letter_queues(settings, Wanted(classes=frozenset({"P3"}))) == {"other": {"m.*"}}
    assert letter_queues(settings, Wanted(types=frozenset({"a"}))) == {"dead": {"a"}}
    assert letter_queues(settings, Wanted(types=frozenset({"m.x"}))) == {"other": {"m.*"}}
