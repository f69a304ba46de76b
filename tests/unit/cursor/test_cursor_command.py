"""What `tidegate skip` and `tidegate rewind` refuse before they speak to anybody."""

from pathlib import Path

import pytest
import yaml

from proxy.command_line import command

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
        (["skip", "--type", "order", "--to-end"], 'event type "order" does not exist'),
        (["rewind", "--class", "P9", "--to", "1h"], 'class "P9" does not exist'),
        (["skip", "--to-end"], "say which event types are meant"),
        (["skip", "--type", "orders"], "one of the arguments --to --to-offset --to-end is required"),
        (["skip", "--type", "orders", "--to", "1h", "--to-end"], "not allowed with argument"),
        (["rewind", "--type", "orders", "--to", "1h", "--to-offset", "3"], "not allowed with argument"),
        (["rewind", "--type", "orders", "--to", "yesterday"], "is no time like 2026-11-23T14:00:00Z"),
        (["skip", "--type", "orders", "--to", "2999-01-01"], "--to is a time that has not come yet"),
        (["skip", "--type", "orders", "--to-offset", "-3"], "must be a whole number"),
        (["skip", "--type", "orders", "--to-end", "--why", " "], "must have 1 to 1000 characters"),
        (["skip", "--type", "orders", "--to-end"], "there is no terminal: say --yes, or --dry-run to look"),
    ],
)
def test_a_mistake_is_told_and_ends_with_2_when_arguments_mean_nothing(
    file: Path, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = command([arguments[0], "-c", str(file), *arguments[1:]])
    except SystemExit as ended:
        code = int(str(ended.code))
    assert code == 2
    assert words in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("name", ["skip", "rewind"])
def test_it_is_told_and_ends_with_1_when_kafka_does_not_answer(
    file: Path, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert command([name, "-c", str(file), "--type", "orders", "--to", "1h", "--yes"]) == 1
    told = capfd.readouterr()
    assert not told.out
    assert "Kafka does not answer" in told.err
