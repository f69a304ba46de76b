"""`log.nakadi`: what may stand beside it, what `check` says of it, what is refused because of it."""

from pathlib import Path

import pytest

from proxy import config
from proxy.__main__ import main
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
    assert "keep     event types for at least the longest stop to be borne + 1h\n" in told
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
        (f"{{group: mails, nakadi: {{{WHO}}}}}", "log: nakadi stands in place of Kafka, whose group must be left out"),
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


def test_what_contradicts_is_told_at_once_when_values_are_wrong_too(files: Files) -> None:
    nakadi = "{url: 'ftp://nakadi', owning_application: shop, consumer_group: '', commit_timeout: 20s, batch_wait: x}"
    log = f'{{hosts: ["a:1"], group: g, start: timestamp, session_timeout: 8s, answer_deadline: 0s, nakadi: {nakadi}}}'
    found = [one.partition(": ")[2] for one in files.mistakes(text(log) + "notices: {topic: notices}\n")]
    assert [one.partition(";")[0] for one in found if not one.startswith("log.")] == [
        "log: Nakadi can't begin at a time",
        "log: nakadi stands in place of Kafka, whose hosts, group must be left out",
        "log: session_timeout must be a quarter of nakadi.commit_timeout at most: 5s",
        "notices.topic: is a topic on Kafka, and this log is Nakadi",
    ]
    assert [one.partition(":")[0] for one in found if one.startswith("log.")] == [
        "log.answer_deadline",
        "log.nakadi.batch_wait",
        "log.nakadi.consumer_group",
        "log.nakadi.url",
    ]


def test_a_session_is_judged_when_something_else_in_nakadi_contradicts(files: Files) -> None:
    nakadi = f"{{{WHO}, tls: {{}}, commit_timeout: 20s}}"
    found = [one.partition(": ")[2] for one in files.mistakes(text(f"{{session_timeout: 8s, nakadi: {nakadi}}}"))]
    assert found == [
        "log.nakadi: tls goes with an https url only",
        "log: session_timeout must be a quarter of nakadi.commit_timeout at most: 5s",
    ]


@pytest.mark.parametrize(("given", "expected"), [("20s", 5.0), ("10s", 2.5), ("60s", 6.0)])
def test_a_session_is_a_quarter_of_the_commit_timeout_when_that_is_less_than_usual(
    files: Files, given: str, expected: float
) -> None:
    assert files.load(text(f"{{nakadi: {{{WHO}, commit_timeout: {given}}}}}")).log.session_timeout == expected


def test_a_routing_key_out_of_a_header_is_warned_of_when_the_log_is_nakadi(files: Files) -> None:
    kafka, nakadi = '{hosts: ["a:1"], group: g}', f"{{nakadi: {{{WHO}}}}}"
    told = {
        log: config.warnings(files.load(text(log).replace("{order-confirmed: {}", "{paid: {routing_key: {header: h}}")))
        for log in (kafka, nakadi)
    }
    expected = "event_types: events of Nakadi have no headers, so no routing_key of paid is ever found"
    assert expected in told[nakadi]
    assert expected not in told[kafka]


def test_notices_by_a_topic_are_refused_when_there_is_no_kafka(files: Files) -> None:
    found = files.mistakes(text(f"{{nakadi: {{{WHO}}}}}") + "notices: {topic: notices}\n")
    assert [one.partition(": ")[2] for one in found] == [
        "notices.topic: is a topic on Kafka, and this log is Nakadi; give webhook"
    ]


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        (["pause", "--class", "P3", "--for", "10m"], "take the event types out of the settings and reload"),
        (["discard", "--class", "P3", "--for", "10m", "--yes"], "pass over events by tidegate skip, with replicas"),
        (["cap", "--class", "P3", "--rate", "10", "--for", "10m"], "give the route a cap in the settings and reload"),
        (["policy", "mails", "static", "--for", "10m"], "give the route another policy in the settings and reload"),
        (["resume", "--class", "P3"], "nothing is held back by a command here"),
        (["interventions"], "nothing is held back by a command here"),
    ],
)
def test_a_command_that_needs_a_topic_says_what_to_do_instead_when_the_log_is_nakadi(
    files: Files, capsys: pytest.CaptureFixture[str], words: list[str], remedy: str
) -> None:
    path = files.write("tidegate.yaml", text(f"{{nakadi: {{{WHO}}}}}"))
    assert main([words[0], "-c", str(path), *words[1:]]) == 2
    told = capsys.readouterr().err
    assert f"{words[0]} needs a topic on Kafka, where replicas learn what people want, and this log is Nakadi; " in told
    assert remedy in told
