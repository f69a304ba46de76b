"""How each mistake in a settings file is named: place, what is wrong, what is allowed."""

from pathlib import Path

import pytest

from proxy.config.items import SHOWN
from proxy.congestion.laws import LAWS
from tests.support.settings_files import HEAD, HEAD_LINES, ONE_TYPE, Files


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


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
        ("class_budget: {cubic: {tcp: yes}}", "class_budget.cubic.tcp: is neither true nor false; allowed: true"),
        ("classes: {P2: {catch_up: yes}}", "classes.P2.catch_up: is neither true nor false; allowed: true"),
        ("class_budget: {cubic: {tcp: []}}", "class_budget.cubic.tcp: is neither true nor false; allowed: true"),
        ("class_budget: {cubic: {tcp: 1}}", "class_budget.cubic.tcp: is neither true nor false; allowed: true"),
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
        (r'metric_log: {folder: "a\0b"}', "metric_log.folder: holds a null character; allowed: a text"),
        ("metric_log: {file_bytes: 3GiB}", "metric_log: file_bytes <= total_bytes must hold"),
        (
            "class_budget: {catch_up: off}",
            "class_budget.catch_up: is a text of another form; allowed: a mapping with after and place; {after: off}",
        ),
        ("class_budget: {catch_up: false}", "class_budget.catch_up: is true or false (quote a text); allowed: a"),
        ("class_budget: {catch_up: {after: often}}", "class_budget.catch_up.after: is no duration; allowed: a"),
        ("class_budget: {catch_up: {after: 9ms}}", "class_budget.catch_up.after: is out of range; allowed: a duration"),
        ("class_budget: {catch_up: {place: first}}", 'class_budget.catch_up.place: "first" is unknown; allowed: class'),
        ("classes: {P1: {floor: 20}, P2: {}}", "classes.P1: floor <= increase <= ceiling must hold"),
        ("classes: {P2: {increase: nan}}", "classes.P2.increase: is out of range; allowed: a number, 0.001 to 1000000"),
        ("classes: {P2: {}, vip: {increase: 3}}", "classes.vip.decrease: is missing; allowed: a number, 0.01 to 0.99"),
        (
            "classes: {P2: {slo: 2s}}",
            "classes.P2.slo: is a text of another form; allowed: a mapping with within, share",
        ),
        (
            "classes: {P2: {slo: true}}",
            "classes.P2.slo: is true or false (quote a text); allowed: a mapping with within",
        ),
        (
            "classes: {P2: {slo: {within: 2s, share: 0.9}}}",
            "classes.P2.slo.judges: is missing; allowed: bridge, consumed",
        ),
        (
            "classes: {P2: {slo: {within: 2s, share: 0.9, judges: queue}}}",
            'classes.P2.slo.judges: "queue" is unknown; allowed: bridge, consumed',
        ),
        (
            "classes: {P2: {slo: {within: 31m, share: 0.9, judges: bridge}}}",
            "classes.P2.slo.within: is out of range; allowed: a duration, 1ms to 30m",
        ),
        *(
            (
                f"classes: {{P2: {{slo: {{within: 2s, share: {share}, judges: bridge}}}}}}",
                f"classes.P2.slo.share: {wrong}; allowed: a number, 0.01 to 0.99999",
            )
            for share, wrong in (
                ("1", "is out of range"),
                ("99.9", "is out of range"),
                ("99.9 %", "is a text of another form"),
                ("true", "true and false are no numbers"),
            )
        ),
        (
            "classes: {P2: {slo: {within: 2s, share: 0.9, judges: bridge, per: day}}}",
            "classes.P2.slo.per: no such setting; allowed: within, share, judges",
        ),
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
    ("rule", "expected"),
    [
        *(
            (rule, "message_priority: is no message priority; allowed: class, none, or a whole number, 0 to 255, for")
            for rule in ("rank", "", "4", "[P1]", "{}", "{P1: 256}", "{P1: -1}", "{P1: true}", "{P1: 1.5}", "{P1: }")
        ),
        ("{P1: 9, P9: 3}", 'message_priority.P9: class "P9" does not exist; allowed: P1, P2, P3'),
        ("{gold: 3}", 'message_priority.gold: class "gold" does not exist; allowed: P1, P2, P3'),
    ],
)
def test_a_message_priority_is_refused_when_no_message_can_have_it(files: Files, rule: str, expected: str) -> None:
    found = files.mistakes(HEAD.replace("queues: [mail]", f"queues: [mail], message_priority: {rule}") + ONE_TYPE)
    assert len(found) == 1
    assert f" routes.mails.{expected}" in found[0]


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
            "queues: [mail]",
            "in_flight_events: 50, in_flight_bound: 100",
            "4: routes.mails: in_flight_bound: bounds a window that adapts, and in_flight_events fixes it",
        ),
        (
            "queues: [mail]",
            "policy: per_type, in_flight_bound: 100",
            "4: routes.mails: in_flight_bound: bounds a window that adapts, and under `policy: per_type` it is fixed",
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
        ("a:\n\tb: 1", "tidegate.yaml:2: not valid YAML: a tab, which can't indent; write spaces"),
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
        ("a: !x {b: 1}", "tidegate.yaml:1: a: has a tag; allowed: plain mappings and lists"),
        ("a: !x [b]", "tidegate.yaml:1: a: has a tag; allowed: plain mappings and lists"),
        ("!x {a: 1}", "tidegate.yaml:1: has a tag; allowed: plain mappings and lists"),
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


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("law: cubik", 'law: "cubik" does not exist; did you mean "cubic"? allowed: aimd, cubic, vegas, vegas_capped'),
        ("law: AIMD", 'law: "AIMD" does not exist; did you mean "aimd"? allowed: aimd, cubic, vegas, vegas_capped'),
        ("law: Vegas_Caped", 'law: "Vegas_Caped" does not exist; did you mean "vegas_capped"? allowed: aimd, cubic'),
        (
            "law: null",
            f"law: is null; allowed: the name of a rate law: {', '.join(LAWS)}".replace(",", " (the default),", 1),
        ),
        ("law: 12", "law: is a number (quote a text); allowed: the name of a rate law: aimd (the default), cubic"),
        ("law: cubic, policy: static", "law: belongs to `policy: class_budget`; the other policies ask none"),
    ],
)
def test_a_rate_law_is_refused_when_there_is_none_or_nobody_asks_it(files: Files, keys: str, expected: str) -> None:
    found = files.mistakes(HEAD.replace("queues: [mail]", f"queues: [mail], {keys}") + ONE_TYPE)
    assert len(found) == 1
    assert expected in found[0]


def test_a_queue_is_a_mistake_when_its_route_names_it_twice(files: Files) -> None:
    text = HEAD.replace("queues: [mail]", "queues: [mail, sms, mail]") + ONE_TYPE
    assert files.mistakes(text) == [
        "tidegate.yaml:4: routes.mails: queues: mail stands there twice; its messages would count twice"
    ]


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
        ["tidegate.yaml:1", "log.grup"],
        ["tidegate.yaml:6", "defaults.class"],
        ["tidegate.yaml:7", "event_types.a.order"],
        ["tidegate.yaml:8", "now"],
    ]


def test_every_mistake_of_a_target_is_named_at_once_when_it_has_several(files: Files) -> None:
    slo = "  P2:\n    slo:\n      within: soon\n      share: 2\n      judge: bridge\n"
    found = files.mistakes(HEAD + ONE_TYPE + "classes:\n" + slo)
    places = [mistake.removeprefix("tidegate.yaml:").split(";")[0] for mistake in found]
    assert places == [
        f"{HEAD_LINES + 4}: classes.P2.slo.judges: is missing",
        f"{HEAD_LINES + 5}: classes.P2.slo.within: is no duration",
        f"{HEAD_LINES + 6}: classes.P2.slo.share: is out of range",
        f"{HEAD_LINES + 7}: classes.P2.slo.judge: no such setting",
    ]
    assert 'did you mean "judges"?' in found[-1]


def test_an_inherited_mistake_is_named_once_where_it_was_made_when_many_types_inherit_it(files: Files) -> None:
    text = HEAD.replace("routing_key: mail", "routing_key: {constant: 5}") + "event_types: {a: {}, b: {}, c: {}}\n"
    found = files.mistakes(text)
    assert len(found) == 1
    assert found[0].startswith("tidegate.yaml:6: defaults.routing_key.constant: is a number")


def test_an_inherited_mistake_is_named_when_every_type_overrides_it(files: Files) -> None:
    text = HEAD.replace("class: P2,", "class: P2, max_age: soon,") + "event_types: {a: {max_age: 5s, class: P1}}\n"
    classes = "classes: {P1: {events: {order: any}}, P2: {events: {order: all}}}\n"
    assert [mistake.partition(";")[0] for mistake in files.mistakes(text + classes)] == [
        "tidegate.yaml:6: defaults.max_age: is no duration",
        'tidegate.yaml:8: classes.P1.events.order: "any" is unknown',
        'tidegate.yaml:8: classes.P2.events.order: "all" is unknown',
    ]


def test_a_block_is_a_mistake_when_it_is_no_mapping(files: Files) -> None:
    head = HEAD.partition("defaults:")[0]
    assert [mistake.partition(";")[0] for mistake in files.mistakes(head + "defaults: 5\nevent_types: [a]\n")] == [
        "tidegate.yaml:6: defaults: must be a mapping",
        "tidegate.yaml:7: event_types: must be a mapping from the names of event types",
    ]


def test_a_mistake_in_the_shared_traits_is_named_once_when_topics_are_listed(files: Files) -> None:
    text = HEAD.replace("route: mails, ", "") + "event_types: {shops: {topics: [shop.de, shop.fr]}}\n"
    assert len(files.mistakes(text)) == 1


def test_a_pattern_is_a_mistake_when_it_would_give_a_name_away_twice(files: Files) -> None:
    found = files.mistakes(HEAD + "event_types: {br-a: {topic: other}, x: {pattern: br-*}}\n")
    assert found == [
        "tidegate.yaml:7: event_types.br-a: a pattern matches its name; call it like its topic, or narrow the pattern"
    ]


def test_at_least_one_event_type_is_asked_for_when_there_is_none(files: Files) -> None:
    assert files.mistakes(HEAD)[0].startswith("tidegate.yaml:1: event_types: at least one event type is needed")
    assert files.mistakes(HEAD + "event_types: {}")[0].startswith("tidegate.yaml:7: event_types: at least one")
    assert files.load(HEAD + "event_types: {x: {pattern: '*'}}").patterns[0].pattern == "*"


def test_at_least_one_class_and_route_are_asked_for_when_there_is_none(files: Files) -> None:
    head, defaults = HEAD.partition("routes:")[0], HEAD.splitlines()[-1] + "\n"
    found = files.mistakes(head + "routes: {}\nclasses: []\n" + defaults + "event_types: {a: {}, b: {class: P1}}\n")
    assert [mistake.partition(";")[0] for mistake in found] == [
        "tidegate.yaml:3: routes: at least one is needed",
        "tidegate.yaml:4: classes: at least one is needed",
    ]


def test_the_first_mistakes_are_listed_and_the_others_counted_when_there_are_very_many(files: Files) -> None:
    text = HEAD + ONE_TYPE + "".join(f"key-{number}: 1\n" for number in range(2_000))
    found = files.mistakes(text)
    assert len(found) == SHOWN + 1
    assert found[0].startswith(f"tidegate.yaml:{HEAD_LINES + 2}: key-0: no such setting")
    assert found[-1] == f"tidegate.yaml:{HEAD_LINES + 2 + SHOWN}: and {2_000 - SHOWN} more mistakes from here on"


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (
            "routes: {r: {exchange: '', queues: [q, q], in_flight_events: many, declare: true, law: aimed}}",
            [
                "routes.r.in_flight_events: is a text of another form",
                'routes.r.law: "aimed" does not exist',
                "routes.r: queues: q stands there twice",
                "routes.r: the default exchange can't be declared",
            ],
        ),
        (
            "limits: {confirm_deadline: 1s, event_bytes: 5MiB, headers: 0}\ndetector: {publish_latency_p50: 2s}",
            [
                "detector.publish_latency_p50: could never be exceeded",
                "limits.headers: is out of range",
                "limits: event_bytes (5MiB) <= inbox_bytes (4MiB) <= inboxes_bytes (256MiB) must hold",
            ],
        ),
        (
            "classes: {P1: {increase: x}}\nroutes: {r: {exchange: e, message_priority: {P1: 9, P9: 1}}}",
            [
                "classes.P1.increase: is a text of another form",
                'routes.r.message_priority.P9: class "P9" does not exist',
            ],
        ),
    ],
)
def test_contradictions_are_told_with_the_rest_when_other_settings_are_wrong(
    files: Files, more: str, expected: list[str]
) -> None:
    head = "".join(HEAD.splitlines(keepends=True)[:2])
    routes = "" if "routes" in more else "routes: {r: {exchange: e}}\n"
    types = "event_types: {a: {class: P1, route: r, routing_key: k}}\n"
    found = [
        mistake.split(": ", 1)[1].partition(";")[0] for mistake in files.mistakes(f"{head}{routes}{types}{more}\n")
    ]
    assert sorted(mistake.partition(": an event")[0] for mistake in found) == expected


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("statistics: {intervl: 1s, cron: '* * * * * *'}", "statistics.intervl: no such setting"),
        (
            "log: {hosts: [h:1], group: g, strat: timestamp, start_timestamp: 2026-01-01T00:00:00Z}",
            "log.strat: no such",
        ),
        ("routes: {r: {exchange: e, cap: {evnts: 5}}}", "routes.r.cap.evnts: no such setting"),
        ("class_budget: {lowest_queue_delay: x, highest_queue_delay: 1ms}", None),
    ],
)
def test_what_follows_from_a_wrong_setting_is_not_told_when_that_is(
    files: Files, more: str, expected: str | None
) -> None:
    parts = {"log": "log: {hosts: [h:1], group: g}", "routes": "routes: {r: {exchange: e}}"}
    head = "\n".join(text for part, text in parts.items() if not more.startswith(part))
    rest = "broker: {hosts: [b:1]}\nevent_types: {a: {class: P1, route: r, routing_key: k}}\n"
    found = files.mistakes(f"{head}\n{rest}{more}\n")
    if expected is None:
        assert not [mistake for mistake in found if "must hold" in mistake]
    else:
        assert len(found) == 1, found
        assert expected in found[0]


@pytest.mark.parametrize("text", ["", "# only words\n", "---\n", "{}\n"])
def test_an_empty_file_is_one_mistake_that_names_the_example_to_begin_with(files: Files, text: str) -> None:
    [mistake] = files.mistakes(text)
    assert mistake.startswith("tidegate.yaml:")
    assert mistake.endswith(" is empty; log, broker, routes and event_types are needed: begin with config/minimal.yaml")


def test_the_keys_that_are_needed_are_told_first_and_few_others_when_a_block_is_missing(files: Files) -> None:
    found = files.mistakes("limits: {}\n")
    assert "tidegate.yaml:1: log: is missing; allowed: a mapping with hosts, group, group_instance_id, " in found[2]
    assert found[2].endswith(", client_rack and 12 more")
    assert max(map(len, found)) < 140


@pytest.mark.parametrize(
    ("line", "allowed"),
    [
        ("limits: {confirm_deadline: soon}", "a duration, 100ms to 10m, like 250ms, 5s, 10m"),
        ("throttling: {tick: 1ms}", "a duration, 10ms to 10s, like 250ms, 5s"),
        ("limits: {event_bytes: 1MB}", "a size, 1B to 128MiB, like 512B, 64KiB, 4MiB"),
    ],
)
def test_only_examples_that_are_allowed_are_given_when_a_quantity_is_wrong(
    files: Files, line: str, allowed: str
) -> None:
    (found,) = files.mistakes(f"{HEAD}{ONE_TYPE}{line}\n")
    assert found.endswith(f"; allowed: {allowed}")
