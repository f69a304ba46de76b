"""The settings file: what it may say, and how each mistake in it is named."""

import json
from pathlib import Path
from textwrap import dedent

import pytest

from proxy import config
from proxy.errors import SettingsError
from proxy.settings import Settings

HEAD = """\
log: {hosts: ["localhost:9092"], group: tidegate}
broker: {hosts: ["localhost:5672"]}
routes:
  mails: {exchange: events, queues: [mail]}
  pushes: {exchange: events, queues: [push]}
defaults: {class: P2, route: mails, routing_key: mail, dead_letter: {routing_key: dead}}
"""
HEAD_LINES = HEAD.count("\n")
ONE_TYPE = "event_types: {order-confirmed: {}}\n"


class Files:
    """A folder of settings files, loaded by the first of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.main = folder / "tidegate.yaml"

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), encoding="utf-8")
        return path

    def load(self, text: str, environ: dict[str, str] | None = None) -> Settings:
        self.main.write_text(text, encoding="utf-8")
        return config.load(self.main, environ or {})

    def mistakes(self, text: str, environ: dict[str, str] | None = None) -> list[str]:
        with pytest.raises(SettingsError) as caught:
            self.load(text, environ)
        return [mistake.removeprefix(f"{self.folder}/") for mistake in caught.value.mistakes]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def test_every_part_takes_its_default_when_the_file_leaves_it_out(files: Files) -> None:
    settings = files.load(HEAD + ONE_TYPE)
    assert list(settings.classes) == ["P1", "P2", "P3"]
    assert settings.classes["P3"].decrease == 0.4
    assert settings.limits.inbox_events == 2_000
    assert settings.statistics.period == 1.0
    assert settings.event_types["order-confirmed"].topic == "order-confirmed"


@pytest.mark.parametrize(
    ("addition", "expected"),
    [
        (
            "limits: {headres: 64}",
            'limits.headres: no such setting; did you mean "headers"? allowed: event_bytes, headers',
        ),
        ("colour: blue", "colour: no such setting; allowed: include, log, broker"),
        ("limits: {headers: 0}", "limits.headers: is out of range; allowed: a whole number, 1 to 10000"),
        ("limits: {headers: true}", "limits.headers: true and false are no numbers; allowed: a whole number"),
        ("limits: {headers: 1.5}", "limits.headers: is no whole number; allowed: a whole number, 1 to 10000"),
        ("limits: {headers: many}", "limits.headers: is a text of another form; allowed: a whole number, 1 to 10000"),
        ("limits: {headers: [1]}", "limits.headers: is a list; allowed: a whole number, 1 to 10000"),
        ("limits: {headers: null}", "limits.headers: is null; allowed: a whole number, 1 to 10000"),
        ("limits: 12", "limits: is a number (quote a text); allowed: a mapping with event_bytes"),
        (
            "limits: {confirm_deadline: 5 minutes}",
            "limits.confirm_deadline: is no duration; allowed: a duration, 100ms to 10m",
        ),
        (
            "limits: {confirm_deadline: 11m}",
            "limits.confirm_deadline: is out of range; allowed: a duration, 100ms to 10m",
        ),
        ("limits: {confirm_deadline: .inf}", "limits.confirm_deadline: is no duration"),
        ("limits: {confirm_deadline: 1e999}", "limits.confirm_deadline: is out of range"),
        (
            "limits: {event_bytes: 1MB}",
            "limits.event_bytes: is no size; allowed: a size, 1B to 128MiB, like 512B, 64KiB",
        ),
        (
            "limits: {event_bytes: 5MiB}",
            "limits: event_bytes (5MiB) <= inbox_bytes (4MiB) <= inboxes_bytes (256MiB) must hold",
        ),
        (
            "admin: {listen: localhost}",
            "admin.listen: is no host:port; allowed: host:port, an IPv6 address in brackets",
        ),
        ("throttling: {tick: 1ms}", "throttling.tick: is out of range; allowed: a duration, 10ms to 10s"),
        ("statistics: {interval: 1s, cron: '* * * * * *'}", "statistics: give interval or cron, not both"),
        (
            "statistics: {cron: '* * * * *'}",
            "statistics.cron: is no cron expression that ever comes true; allowed: six fields",
        ),
        ("statistics: {cron: '61 * * * * *'}", "statistics.cron: is no cron expression that ever comes true"),
        ("statistics: {cron: '0 0 0 30 2 *'}", "statistics.cron: is no cron expression that ever comes true"),
        ("statistics: {cron: 'R * * * * *'}", "statistics.cron: is no cron expression that ever comes true"),
        (
            "detector: {publish_latency_p50: 30s}",
            "detector.publish_latency_p50: could never be exceeded; allowed: less than",
        ),
        ("metric_log: {file_bytes: 3GiB}", "metric_log: file_bytes <= total_bytes must hold"),
        ("classes: {P1: {floor: 20}, P2: {}}", "classes.P1: floor <= increase <= ceiling must hold"),
        ("classes: {P2: {increase: nan}}", "classes.P2.increase: is out of range; allowed: a number, 0.001 to 1000000"),
        ("classes: {P2: {}, vip: {increase: 3}}", "classes.vip.decrease: is missing; allowed: a number, 0.01 to 0.99"),
        (
            "classes: {P2: {events: {class: P2}}}",
            "classes.P2.events.class: no such setting; allowed: route, routing_key",
        ),
        ("classes: {P2: {events: {max_age: old}}}", "classes.P2.events.max_age: is no duration; allowed: a duration"),
        (
            "classes: {P2: {}, 'a b': {increase: 1, decrease: 0.5}}",
            'classes."a b": can\'t be called so; allowed: 1 to 128',
        ),
    ],
)
def test_a_mistake_is_named_with_its_place_and_remedy_when_a_setting_is_wrong(
    files: Files, addition: str, expected: str
) -> None:
    found = files.mistakes(HEAD + ONE_TYPE + addition + "\n")
    assert [mistake for mistake in found if mistake.startswith(f"tidegate.yaml:{HEAD_LINES + 2}: {expected}")], found
    assert len(found) == 1


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("x: {class: P9}", 'event_types.x.class: class "P9" does not exist; allowed: P1, P2, P3'),
        (
            "x: {route: mail}",
            'event_types.x.route: route "mail" does not exist; did you mean "mails"? allowed: mails, pushes',
        ),
        ("x: {priority: P1}", "event_types.x.priority: no such setting; allowed: class, route, routing_key"),
        ("x: {order: partitions}", 'event_types.x.order: "partitions" is unknown; allowed: partition, strict, none'),
        ("x: {max_age: 0s}", "event_types.x.max_age: is out of range; allowed: a duration, 1ms to 3650d"),
        ("x: {routing_key: {}}", "event_types.x.routing_key: give exactly one of constant, header, key"),
        (
            "x: {routing_key: {header: h, key: true}}",
            "event_types.x.routing_key: give exactly one of constant, header, key",
        ),
        ("x: {routing_key: {key: false}}", 'event_types.x.routing_key.key: "false" is unknown; allowed: true'),
        (
            "x: {routing_key: {constant: 5}}",
            "event_types.x.routing_key.constant: is a number (quote a text); allowed: a text",
        ),
        (
            "x: {dead_letter: {exchange: e}}",
            "event_types.x.dead_letter.routing_key: is missing; allowed: a text of 1 to 255",
        ),
        (
            "x: {topic: a b}",
            "event_types.x.topic: has another form than it must; allowed: what Kafka takes for a topic",
        ),
        ("x y: {}", 'event_types."x y": has another form than it must; allowed: what Kafka takes for a topic'),
        (
            "x: {pattern: 'a[bc]'}",
            "event_types.x.pattern: has another form than it must; allowed: 1 to 249 of the characters",
        ),
        ("x: {topic: a, pattern: b}", "event_types.x: gives topic, pattern; allowed: one of them, or none"),
        ("x: {topics: a}", "event_types.x.topics: must be a list of topics"),
        ("x: {topics: [a, 5]}", "event_types.x.topics[1]: is a number (quote a text); allowed: what Kafka takes"),
        ("x: mail", "event_types.x: must be a mapping; allowed keys: class, route"),
        ("x: {topic: order-confirmed}", "event_types.x: its topic is given already at "),
        ("x: {topics: [order-confirmed]}", "event_types.x.topics[0]: its name is given already at "),
    ],
)
def test_a_mistake_is_named_with_its_place_and_remedy_when_an_event_type_is_wrong(
    files: Files, line: str, expected: str
) -> None:
    found = files.mistakes(f"{HEAD}event_types:\n  order-confirmed: {{}}\n  {line}\n")
    assert len(found) == 1, found
    assert found[0].startswith(f"tidegate.yaml:{HEAD_LINES + 3}: {expected}"), found


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            'log: {hosts: ["localhost:9092"], group: tidegate}\n',
            "",
            "1: log: is missing; allowed: a mapping with hosts, group",
        ),
        ("group: tidegate", "group: ''", "1: log.group: is too short; allowed: a text of 1 to 249 characters"),
        (
            "group: tidegate",
            "group: 7",
            "1: log.group: is a number (quote a text); allowed: a text of 1 to 249 characters",
        ),
        ("group: tidegate", "group: g, start: timestamp", "1: log: start_timestamp goes with `start: timestamp`"),
        (
            "group: tidegate",
            "group: g, start: timestamp, start_timestamp: 2026-01-31T12:00:00",
            "1: log.start_timestamp: has no time zone; allowed: a date and time with its zone",
        ),
        (
            "group: tidegate",
            "group: g, security: {protocol: SASL_SSL}",
            "1: log.security: protocol SASL_SSL needs username",
        ),
        (
            "group: tidegate",
            "group: g, security: {username: u}",
            "1: log.security: protocol PLAINTEXT sends no username",
        ),
        (
            "group: tidegate",
            "group: g, security: {protocol: SSL, key_file: k}",
            "1: log.security: certificate_file and key_file go together",
        ),
        (
            "group: tidegate",
            "group: g, security: {ca_file: c}",
            "1: log.security: protocol PLAINTEXT uses no certificates",
        ),
        ('"localhost:5672"', "localhost", "2: broker.hosts[0]: is no host:port; allowed: host:port with a port from 1"),
        ('"localhost:5672"', '"::1:5672"', "2: broker.hosts[0]: is no host:port"),
        ('"localhost:5672"', '"host:65536"', "2: broker.hosts[0]: is no host:port"),
        ('"localhost:5672"', '"host:0"', "2: broker.hosts[0]: port 0 can't be connected to"),
        ('"localhost:5672"', '"amqp://me:hunter2@host:5672"', "2: broker.hosts[0]: is no host:port"),
        ('["localhost:5672"]', "[]", "2: broker.hosts: holds too few; allowed: a list of 1 to 64"),
        ('["localhost:5672"]', '["a:1"], backoff: 3s', "2: broker: backoff <= backoff_limit must hold"),
        (
            '["localhost:5672"]',
            '["a:1"], tls: {key_file: k}',
            "2: broker.tls: certificate_file and key_file go together",
        ),
        (
            "queues: [mail]",
            "in_flight_bytes: 1KiB",
            "4: routes.mails.in_flight_bytes: the largest event allowed could never be",
        ),
        (
            "exchange: events, queues: [mail]",
            "exchange: '', declare: true",
            "4: routes.mails: the default exchange can't be",
        ),
        ("exchange: events, queues: [mail]", "queues: [mail]", "4: routes.mails.exchange: is missing; allowed: a text"),
        ("queues: [mail]", "policy: cubic", '4: routes.mails.policy: "cubic" is unknown; allowed: static, per_type'),
        ("route: mails", "route: nails", '6: defaults.route: route "nails" does not exist; did you mean "mails"?'),
        (
            "class: P2, ",
            "",
            "7: event_types.order-confirmed.class: is missing here, in the class's `events` and in `defaults`",
        ),
        ("route: mails, ", "", "7: event_types.order-confirmed.route: is missing here"),
    ],
)
def test_a_mistake_is_named_with_its_place_and_remedy_when_the_head_is_wrong(
    files: Files, old: str, new: str, expected: str
) -> None:
    assert old in HEAD
    found = files.mistakes(HEAD.replace(old, new, 1) + ONE_TYPE)
    assert found[0].startswith(f"tidegate.yaml:{expected}"), found
    assert len(found) == 1, found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("log: [a\nbroker: b", "tidegate.yaml:2: not valid YAML: "),
        (
            "log: {a: ${X}}",
            "tidegate.yaml:1: not valid YAML: expected ',' or '}', but got '{'; inside [ ] and { } write \"${NAME}\"",
        ),
        ("a: *nowhere", "tidegate.yaml:1: not valid YAML: `*` and `&` begin anchors"),
        ("\n\na: !e!x 1", "tidegate.yaml:3: not valid YAML: `!` begins a tag"),
        ("a: 1\n--- \nb: 1", "tidegate.yaml:2: not valid YAML: "),
        ("a: \x01", "tidegate.yaml:1: not valid YAML: holds a control character"),
        ('a: "\\UFFFFFFFF"', "tidegate.yaml:1: not valid YAML: a number in an escape"),
        ('a: "\\ud800"', "tidegate.yaml:1: a: holds characters that are no Unicode; allowed: what UTF-8 can carry"),
        ('{a: {"\\ud800": 1}}', "tidegate.yaml:1: a: has a key of characters that are no Unicode"),
        ("a: !!int x1", "tidegate.yaml:1: a: can't be read as int; quote a text"),
        (
            f"a: {'1' * 5000}",
            "tidegate.yaml:1: a: can't be read as int; quote a text, write a number with fewer digits",
        ),
        ("a: !x 1", "tidegate.yaml:1: a: has a tag; allowed: plain texts, numbers"),
        ("a: {<<: 5}", "tidegate.yaml:1: a: `<<` merges mappings; allowed: *anchor or a list of them"),
        ("[1, 2]", "tidegate.yaml:1: the file must be a mapping"),
        ("[" * 40, "tidegate.yaml:1: not valid YAML: nested deeper than 32 levels"),
        ("a: &a [*a]", "tidegate.yaml:1: nests deeper than 32 levels once its anchors are expanded"),
        ("a: &a {<<: *a}", "tidegate.yaml:1: nests deeper than 32 levels once its anchors are expanded"),
    ],
)
def test_the_file_is_refused_with_its_line_when_it_is_no_yaml(files: Files, text: str, expected: str) -> None:
    found = files.mistakes(text)
    assert any(mistake.startswith(expected) for mistake in found), found


def test_the_file_is_refused_when_its_anchors_multiply(files: Files) -> None:
    levels = "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 20)}]\n" for i in range(1, 12))
    assert files.mistakes("a0: &a0 [lol]\n" + levels) == [
        "tidegate.yaml:1: holds more than 200000 values once its anchors are expanded"
    ]


def test_the_file_is_refused_when_it_is_missing_or_no_text(files: Files) -> None:
    with pytest.raises(SettingsError, match=r"tidegate\.yaml:1: can't be read: No such file or directory"):
        config.load(files.main, {})
    files.main.write_bytes(b"log: 1\n\xff")
    with pytest.raises(SettingsError, match=r"tidegate\.yaml:2: is not UTF-8"):
        config.load(files.main, {})
    files.main.write_bytes(b"#" * (4 * 1024**2 + 1))
    with pytest.raises(SettingsError, match=r"tidegate\.yaml:1: is too large"):
        config.load(files.main, {})


def test_a_key_is_a_mistake_when_it_is_given_twice_or_is_no_name(files: Files) -> None:
    found = files.mistakes(HEAD + "event_types:\n  a: {}\n  b: {}\n  a: {class: P1}\n  ? [x]\n  : {}\n")
    assert found == [
        "tidegate.yaml:10: event_types.a: is given twice, first in line 8; keep one",
        "tidegate.yaml:11: event_types: has a key that is a list or a mapping; allowed: a plain name",
    ]


def test_all_mistakes_are_named_in_the_order_of_lines_when_there_are_several(files: Files) -> None:
    text = (
        HEAD.replace("P2", "P7").replace("group: tidegate", "grup: tidegate") + "event_types: {a: {order: x}}\nnow: 1\n"
    )
    assert [mistake.split(": ")[:2] for mistake in files.mistakes(text)] == [
        ["tidegate.yaml:1", "log.group"],
        ["tidegate.yaml:1", "log.grup"],
        ["tidegate.yaml:6", "defaults.class"],
        ["tidegate.yaml:7", "event_types.a.order"],
        ["tidegate.yaml:8", "now"],
    ]


def test_an_inherited_mistake_is_named_once_where_it_was_made_when_many_types_inherit_it(files: Files) -> None:
    text = HEAD.replace("routing_key: mail", "routing_key: {constant: 5}") + "event_types: {a: {}, b: {}, c: {}}\n"
    found = files.mistakes(text)
    assert len(found) == 1
    assert found[0].startswith("tidegate.yaml:6: defaults.routing_key.constant: is a number")


def test_the_type_wins_over_the_class_and_the_class_over_defaults_when_all_say_it(files: Files) -> None:
    settings = files.load(
        HEAD
        + dedent("""\
        classes:
          P1: {events: {route: pushes, max_age: 10s, routing_key: {header: channel}}}
          P2:
        event_types:
          plain:
          urgent: {class: P1}
          own: {class: P1, max_age: 5s, routing_key: {key: true}, dead_letter: null}
        """)
    )
    plain, urgent, own = settings.event_types.values()
    assert (plain.priority, plain.route, plain.max_age, plain.routing_key.constant) == ("P2", "mails", None, "mail")
    assert (urgent.priority, urgent.route, urgent.max_age, urgent.routing_key.header) == (
        "P1",
        "pushes",
        10.0,
        "channel",
    )
    assert (own.route, own.max_age, own.routing_key.key, own.routing_key.header) == ("pushes", 5.0, True, None)
    assert urgent.dead_letter is not None
    assert own.dead_letter is None
    assert (settings.rank("P1"), settings.rank("P2"), len(settings.classes)) == (0, 1, 2)


def test_one_event_type_per_topic_is_made_when_topics_are_listed(files: Files) -> None:
    settings = files.load(HEAD + "event_types: {shops: {topics: [shop.de, shop.fr], class: P3}}\n")
    assert {name: (entry.topic, entry.priority) for name, entry in settings.event_types.items()} == {
        "shop.de": ("shop.de", "P3"),
        "shop.fr": ("shop.fr", "P3"),
    }


def test_a_mistake_in_the_shared_traits_is_named_once_when_topics_are_listed(files: Files) -> None:
    text = HEAD.replace("route: mails, ", "") + "event_types: {shops: {topics: [shop.de, shop.fr]}}\n"
    assert len(files.mistakes(text)) == 1


def test_anchors_and_merge_keys_work_when_the_file_uses_them(files: Files) -> None:
    settings = files.load(
        HEAD
        + dedent("""\
        event_types:
          a: &a {class: P1, max_age: 5s}
          b: {<<: *a, max_age: 7s}
          c: *a
        """)
    )
    assert [(entry.priority, entry.max_age) for entry in settings.event_types.values()] == [
        ("P1", 5.0),
        ("P1", 7.0),
        ("P1", 5.0),
    ]


def test_words_that_yaml_once_took_for_booleans_and_dates_are_texts_when_plain(files: Files) -> None:
    settings = files.load(HEAD + "event_types: {no: {routing_key: on}, 2024-01-31: {order: none}}\n")
    assert list(settings.event_types) == ["no", "2024-01-31"]
    assert settings.event_types["no"].routing_key.constant == "on"


def test_included_files_add_to_the_main_one_in_order_of_name_when_a_folder_is_given(files: Files) -> None:
    files.write("more/b.yaml", "event_types: {from-b: {route: extra}}\n")
    files.write("more/a.yml", "routes: {extra: {exchange: x}}\nevent_types: {from-a: {class: low}}\n")
    files.write("more/c.yaml", "classes: {low: {increase: 1, decrease: 0.5}}\n")
    files.write("more/ignored.txt", "[")
    settings = files.load("include: more\nclasses: {P2: }\n" + HEAD + ONE_TYPE)
    assert list(settings.event_types) == ["order-confirmed", "from-a", "from-b"]
    assert list(settings.classes) == ["P2", "low"]
    assert list(settings.routes) == ["mails", "pushes", "extra"]


def test_both_places_are_named_when_an_included_file_defines_a_name_again(files: Files) -> None:
    files.write("more/a.yaml", "\nroutes:\n  mails: {exchange: x}\nlog: {}\n")
    files.write("more/b.yaml", "event_types:\n  x: {order: later}\n")
    found = files.mistakes("include: more\n" + HEAD + ONE_TYPE)
    assert found == [
        f"more/a.yaml:3: routes.mails: is already defined at {files.main}:5; keep one",
        "more/a.yaml:4: log: belongs into the main file; allowed in an included one: routes, classes, event_types",
        'more/b.yaml:2: event_types.x.order: "later" is unknown; allowed: partition, strict, none',
    ]


def test_the_include_itself_is_a_mistake_when_it_is_no_folder(files: Files) -> None:
    assert files.mistakes("include: nowhere\n" + HEAD + ONE_TYPE) == [
        "tidegate.yaml:1: include: can't be read: No such file or directory; allowed: a folder, relative to this file"
    ]
    assert files.mistakes("include: [a]\n" + HEAD + ONE_TYPE) == [
        "tidegate.yaml:1: include: is no folder; allowed: the path of one, relative to this file"
    ]


def test_an_included_file_is_told_of_when_it_can_not_be_used(files: Files) -> None:
    files.write("more/a.yaml", "[1]\n")
    files.write("more/b.yaml", "routes: [x]\nclasses:\nevent_types: {a: [\n")
    files.write("more/c.yaml", "routes: [x]\nclasses:\n")
    (files.folder / "more" / "d.yaml").mkdir()
    found = files.mistakes("include: more\n" + HEAD + ONE_TYPE)
    assert [mistake.partition(";")[0] for mistake in found] == [
        "more/a.yaml:1: the file must be a mapping",
        "more/b.yaml:4: not valid YAML: expected the node content, but found '<stream end>'",
        "more/c.yaml:1: routes: must be a mapping from names",
        "more/d.yaml:1: can't be read: Is a directory",
    ]


def test_an_included_file_alone_may_define_the_routes_when_the_main_file_has_none(files: Files) -> None:
    files.write("more/a.yaml", "routes: {mails: {exchange: x}}\n")
    head, defaults = HEAD.partition("routes:")[0], HEAD.splitlines()[-1] + "\n"
    assert files.load("include: more\n" + head + defaults + ONE_TYPE).routes["mails"].exchange == "x"


def test_the_file_is_told_of_when_its_name_can_be_no_file_s(files: Files) -> None:
    assert files.mistakes('include: "a\\0b"\n' + HEAD + ONE_TYPE) == [
        "tidegate.yaml:1: include: can't be read: no folder can be called so; allowed: a folder, relative to this file"
    ]
    text = HEAD.replace('["localhost:5672"]', '["a:1"], password: {file: "a\\0b"}') + ONE_TYPE
    assert files.mistakes(text) == [
        "tidegate.yaml:2: broker.password: the secret's file can't be read: no file can be called so"
    ]


def test_the_folder_is_told_of_when_it_holds_too_many_files(files: Files) -> None:
    for number in range(1_001):
        files.write(f"more/{number:04}.yaml", "")
    found = files.mistakes("include: more\n" + HEAD + ONE_TYPE)
    assert found == ["tidegate.yaml:1: include: holds 1001 files; allowed: at most 1000"]


def test_variables_are_filled_in_when_the_environment_has_them(files: Files) -> None:
    text = HEAD.replace("group: tidegate", 'group: "${TEAM}-$${x}", session_timeout: "${SESSION:-7}"') + ONE_TYPE
    text = text.replace("queues: [mail]", 'in_flight_events: "${WINDOW:-50}"') + "metric_log:\n  folder: ${FOLDER:-}\n"
    settings = files.load(text, {"TEAM": "blue", "SESSION": ""})
    assert settings.log.group == "blue-${x}"
    assert settings.log.session_timeout == 7.0
    assert settings.routes["mails"].in_flight_events == 50
    assert settings.metric_log.folder is None


def test_the_variable_is_named_once_when_it_is_not_set(files: Files) -> None:
    text = HEAD.replace("group: tidegate", 'group: "${TEAM}"').replace("route: mails", 'route: "${ROUTE}"') + ONE_TYPE
    assert files.mistakes(text) == [
        "tidegate.yaml:1: log.group: environment variable TEAM is not set; set it or write ${NAME:-default}",
        "tidegate.yaml:6: defaults.route: environment variable ROUTE is not set; set it or write ${NAME:-default}",
    ]


@pytest.mark.parametrize("reference", ["${", "${}", "${1}", "${A-b}", "${A B}"])
def test_a_reference_is_a_mistake_when_it_is_malformed(files: Files, reference: str) -> None:
    found = files.mistakes(HEAD.replace("group: tidegate", f'group: "{reference}"') + ONE_TYPE)
    assert found == [
        "tidegate.yaml:1: log.group: has a bad `${`; allowed: ${NAME}, ${NAME:-default}, and $${ for ${ itself"
    ]


def test_the_secret_is_read_without_its_line_end_when_a_file_is_named(files: Files) -> None:
    files.write("secret", "hunter2 \n")
    settings = files.load(HEAD.replace('["localhost:5672"]', '["a:1"], password: {file: secret}') + ONE_TYPE)
    assert settings.broker.password.get_secret_value() == "hunter2 "


def test_logins_and_certificates_are_taken_when_they_are_complete(files: Files) -> None:
    text = HEAD.replace('["localhost:5672"]', '["a:1"], tls: {ca_file: a, certificate_file: c, key_file: k}')
    security = "{protocol: SASL_SSL, mechanism: SCRAM-SHA-512, username: u, password: p, ca_file: a}"
    settings = files.load(text.replace("group: tidegate", f"group: g, security: {security}") + ONE_TYPE)
    assert settings.broker.tls is not None
    assert settings.broker.tls.key_file == "k"
    assert settings.log.security.password is not None
    assert settings.log.security.password.get_secret_value() == "p"


@pytest.mark.parametrize(
    ("password", "expected"),
    [
        ("{file: nowhere}", "the secret's file can't be read: No such file or directory"),
        ("{file: empty}", "the secret's file is empty"),
        ("{file: 5}", "has no file; allowed: {file: PATH}"),
        ("{flie: x}", "must be a text (a number in quotes), ${NAME} or {file: PATH}"),
        ("12345", "must be a text (a number in quotes), ${NAME} or {file: PATH}"),
        ("null", "is null; allowed: a text, ${NAME} or {file: PATH}"),
    ],
)
def test_the_secret_is_a_mistake_when_it_can_not_be_had(files: Files, password: str, expected: str) -> None:
    files.write("empty", "\n")
    found = files.mistakes(HEAD.replace('["localhost:5672"]', f'["a:1"], password: {password}') + ONE_TYPE)
    assert len(found) == 1
    assert found[0].startswith(f"tidegate.yaml:2: broker.password: {expected}"), found


SECRET = "hunter2-correct-horse"


@pytest.mark.parametrize(
    "broker",
    [
        f"password: {SECRET}",
        'password: "${PASSWORD}"',
        "password: {file: secret}",
        f"pasword: {SECRET}",
        f"password: [{SECRET}]",
        f"password: {{file: {{a: {SECRET}}}}}",
        f"password: *{SECRET}",
        f"password: !{SECRET} x",
        f"password: &{SECRET} x, username: &{SECRET} y",
        f"password: !{SECRET}!b x",
        f'password: "{SECRET}',
        f"password: '{SECRET}'x",
        f"password: %{SECRET}, username: @{SECRET}",
        'username: "${PASSWORD}", virtual_host: "${PASSWORD}x", heartbeat: "${PASSWORD}", hosts: ["${PASSWORD}"]',
    ],
)
@pytest.mark.parametrize("also_wrong", [False, True])
def test_no_secret_is_in_any_message_or_summary_when_there_is_one(files: Files, broker: str, also_wrong: bool) -> None:
    files.write("secret", SECRET)
    text = HEAD.replace('["localhost:5672"]}', f'["a:1"], {broker}}}') + ONE_TYPE + ("x: 1\n" if also_wrong else "")
    text = text.replace("route: mails", 'route: "${ROUTE}"')
    try:
        settings = files.load(text, {"PASSWORD": SECRET, "ROUTE": SECRET if also_wrong else "mails"})
    except SettingsError as error:
        shown = str(error)
    else:
        shown = "\n".join(
            [
                repr(settings),
                str(settings),
                config.describe(settings),
                config.as_json(settings),
                *config.warnings(settings),
            ]
        )
    assert SECRET not in shown


def test_topics_find_their_event_type_when_types_and_patterns_meet(files: Files) -> None:
    settings = files.load(
        HEAD
        + dedent("""\
        event_types:
          events.de.marketing: {class: P1}
          first: {pattern: events.*.marketing, class: P3, route: pushes}
          second: {pattern: "*"}
        """)
    )
    exact, first, second = (
        config.event_type_for(settings, topic) for topic in ("events.de.marketing", "events.fr.x.marketing", "_other")
    )
    assert exact is settings.event_types["events.de.marketing"]
    assert first is not None
    assert (first.name, first.topic, first.priority, first.route) == (*["events.fr.x.marketing"] * 2, "P3", "pushes")
    assert second is not None
    assert second.route == "mails"
    assert config.event_type_for(settings, "__consumer_offsets") is None


def test_a_pattern_is_a_mistake_when_it_would_give_a_name_away_twice(files: Files) -> None:
    found = files.mistakes(HEAD + "event_types: {br-a: {topic: other}, x: {pattern: br-*}}\n")
    assert found == [
        "tidegate.yaml:7: event_types.br-a: a pattern matches its name; call it like its topic, or narrow the pattern"
    ]


def test_at_least_one_event_type_is_asked_for_when_there_is_none(files: Files) -> None:
    assert files.mistakes(HEAD)[0].startswith("tidegate.yaml:1: event_types: at least one event type is needed")
    assert files.mistakes(HEAD + "event_types: {}")[0].startswith("tidegate.yaml:7: event_types: at least one")
    assert files.load(HEAD + "event_types: {x: {pattern: '*'}}").patterns[0].pattern == "*"


def test_what_is_allowed_but_odd_is_warned_of_once_when_it_is_there(files: Files) -> None:
    text = HEAD.replace("queues: [mail]", "policy: static").replace(", dead_letter: {routing_key: dead}", "")
    text = text.replace("group: tidegate", "group: g, session_timeout: 2s")
    text += dedent("""\
        classes: {P1: {increase: 1}, P2: }
        event_types:
          a: {dead_letter: {routing_key: dead}}
          b: {pattern: "x.*"}
          c: {pattern: "*.y"}
        """)
    found = config.warnings(files.load(text))
    assert found == [
        "routes.mails: no `queues`, therefore steered by nacks and latency only",
        "routes.pushes: no event type takes it",
        "classes.P1: grows slower or is cut deeper than P2, which is less important",
        "event_types: topics that match *.y and an earlier pattern go to it: x.*",
        "event_types: without `dead_letter` the first undeliverable event stops a type; so x.*, *.y",
        "log.session_timeout: Kafka refuses less than 6s unless its brokers are set otherwise",
    ]


def test_at_least_one_class_and_route_are_asked_for_when_there_is_none(files: Files) -> None:
    head, defaults = HEAD.partition("routes:")[0], HEAD.splitlines()[-1] + "\n"
    found = files.mistakes(head + "routes: {}\nclasses: []\n" + defaults + "event_types: {a: {}, b: {class: P1}}\n")
    assert [mistake.partition(";")[0] for mistake in found] == [
        "tidegate.yaml:3: routes: at least one is needed",
        "tidegate.yaml:4: classes: at least one is needed",
    ]


def test_nothing_is_warned_of_when_all_is_well(files: Files) -> None:
    settings = files.load(HEAD + "event_types: {a: {}, b: {route: pushes}}\n")
    assert config.warnings(settings) == []


def test_the_summary_counts_types_per_route_and_class_when_there_are_some(files: Files) -> None:
    text = config.describe(files.load(HEAD + "event_types: {a: {}, b: {class: P1, route: pushes}, c: {}}\n"))
    assert "class    1. P1: +15 x0.8 from 1 to 5000, 1 types" in text
    assert "class    2. P2: +10 x0.6 from 1 to 5000, 2 types" in text
    assert "route    mails: events, mail, per_type, in flight 200 events / 8MiB, 2 types" in text
    assert "commit   every 500ms, 5000 ahead per partition" in text


def test_the_json_holds_every_setting_in_force_when_printed(files: Files) -> None:
    settings = files.load(HEAD + ONE_TYPE)
    shown = json.loads(config.as_json(settings))
    assert set(shown) == set(Settings.model_fields)
    assert shown["broker"]["password"] == "**********"
    assert shown["event_types"]["order-confirmed"]["routing_key"]["constant"] == "mail"
