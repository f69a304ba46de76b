"""`log.nakadi`: what may stand beside it, what `check` says of it, what is refused because of it."""

from pathlib import Path

import pytest

from proxy import config
from proxy.errors import SettingsError
from tests.support.settings_files import HEAD, ONE_TYPE, Files

KAFKA = 'log: {hosts: ["localhost:9092"], group: tidegate}'
WHO = "url: 'http://nakadi:8080', owning_application: shop, consumer_group: mails"


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def text(log: str) -> str:
    return HEAD.replace(KAFKA, f"log: {log}") + ONE_TYPE


def test_the_group_is_nakadi_s_when_the_log_is(files: Files) -> None:
    settings = files.load(text(f"{{start: latest, nakadi: {{{WHO}}}}}"))
    assert settings.log.group == "mails"
    told = config.describe(settings)
    assert "log      Nakadi at http://nakadi:8080, application shop, group mails, from latest" in told
    assert "pause, resume, discard, cap, policy and interventions need a topic on Kafka: there are none" in told
    assert not [line for line in config.warnings(settings) if "Kafka" in line]


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ("{start: earliest}", "log: hosts and group must be given, or nakadi in place of hosts and group"),
        ('{hosts: ["a:1"]}', "log: group must be given, or nakadi in place of hosts and group"),
        (
            f'{{hosts: ["a:1"], fetch_wait: 1s, nakadi: {{{WHO}}}}}',
            "log: nakadi stands in place of Kafka, whose hosts, fetch_wait must be left out",
        ),
        (f"{{group: other, nakadi: {{{WHO}}}}}", "log: nakadi stands in place of Kafka, whose group must be left out"),
        (
            f"{{start: timestamp, nakadi: {{{WHO}}}}}",
            "log: Nakadi can't begin at a time; allowed: start: earliest, start: latest",
        ),
        (
            f"{{session_timeout: 8s, nakadi: {{{WHO}}}}}",
            "log: session_timeout must be a quarter of nakadi.commit_timeout at most: 7.5s",
        ),
        (
            f'{{hosts: ["a:1"], group: g, start: timestamp, session_timeout: 8s, nakadi: {{{WHO}}}}}',
            "log: nakadi stands in place of Kafka, whose hosts, group must be left out; Nakadi can't begin at",
        ),
        ("{nakadi: {url: 'http://nakadi'}}", "log.nakadi.owning_application: is missing"),
        (f"{{nakadi: {{{WHO}, tls: {{}}}}}}", "log.nakadi: tls goes with an https url only"),
        (f"{{nakadi: {{{WHO}, batch_wait: 1500ms}}}}", "log.nakadi: batch_wait must be whole seconds"),
        (f"{{nakadi: {{{WHO}, commit_timeout: 61s}}}}", "log.nakadi.commit_timeout: is out of range"),
        (f"{{nakadi: {{{WHO}, token: {{}}}}}}", "log.nakadi.token: give exactly one of file, command"),
        (f"{{nakadi: {{{WHO.replace('http:', 'ftp:')}}}}}", "log.nakadi.url: has another form than it must; allowed"),
    ],
)
def test_a_mistake_is_named_with_its_place_when_a_log_is_wrong(files: Files, log: str, expected: str) -> None:
    found = files.mistakes(text(log))
    assert any(expected in one for one in found), found


def test_notices_by_a_topic_are_refused_when_there_is_no_kafka(files: Files) -> None:
    found = files.mistakes(text(f"{{nakadi: {{{WHO}}}}}") + "notices: {topic: notices}\n")
    assert [one.partition(": ")[2] for one in found] == [
        "notices.topic: is a topic on Kafka, and this log is Nakadi; give webhook"
    ]


def test_a_command_that_needs_a_topic_is_refused_with_the_reason_when_the_log_is_nakadi(files: Files) -> None:
    settings = files.load(text(f"{{nakadi: {{{WHO}}}}}"))
    with pytest.raises(
        SettingsError, match="a pause leaves its wish in a topic on Kafka, and this log is Nakadi; stop"
    ):
        config.demand_board(settings, "a pause")
