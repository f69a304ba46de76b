"""What a settings file means: inheritance, event types, and what `tidegate check` prints of them."""

import json
from importlib.metadata import EntryPoint
from pathlib import Path
from textwrap import dedent

import pytest

from proxy import config
from proxy.congestion import laws
from proxy.settings import Secret, Settings
from tests.support.settings_files import HEAD, ONE_TYPE, Files


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
    ("lines", "adapts", "most"),
    [
        ("", True, 4_000),
        (", in_flight_bound: 60", True, 60),
        (", in_flight_events: 60", False, 60),
        (", policy: static", True, 4_000),
        (", policy: per_type", False, 200),
        (", policy: per_type, in_flight_events: 60", False, 60),
    ],
)
def test_a_window_adapts_unless_it_is_set_or_its_latency_judged(
    files: Files, lines: str, adapts: bool, most: int
) -> None:
    route = files.load(HEAD.replace("queues: [mail]", "queues: [mail]" + lines) + ONE_TYPE).routes["mails"]
    assert (route.adapts, route.most_in_flight) == (adapts, most)


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


def test_logins_and_certificates_are_taken_when_they_are_complete(files: Files) -> None:
    text = HEAD.replace('["localhost:5672"]', '["a:1"], tls: {ca_file: a, certificate_file: c, key_file: k}')
    security = "{protocol: SASL_SSL, mechanism: SCRAM-SHA-512, username: u, password: p, ca_file: a}"
    settings = files.load(text.replace("group: tidegate", f"group: g, security: {security}") + ONE_TYPE)
    assert settings.broker.tls is not None
    assert settings.broker.tls.key_file == "k"
    assert settings.log.security.password is not None
    assert settings.log.security.password == Secret.of("p")


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
        "routes.mails: no `queues`, therefore nothing is known of their depth",
        "routes.pushes: no event type takes it",
        "classes.P1: grows slower or is cut deeper than P2, which is less important",
        "event_types: topics that match *.y and an earlier pattern go to it: x.*",
        "event_types: without `dead_letter` the first undeliverable event stops a type; so x.*, *.y",
        "log.session_timeout: Kafka refuses less than 6s unless its brokers are set otherwise",
    ]


def test_a_budget_that_can_not_work_well_is_warned_of_when_queues_or_thresholds_are_odd(files: Files) -> None:
    text = HEAD.replace("queues: [mail]", "queues: [mail, sms, fax]").replace("queues: [push]", "queues: [fax, sms]")
    text = text.replace(
        "defaults:", "  blind: {exchange: events}\n  seed: {exchange: e, policy: per_type, queues: [fax]}\ndefaults:"
    )
    text += "classes: {P1: , P2: {queue_delay: 50ms}, P3: {queue_delay: 50ms}}\n"
    text += "event_types: {a: {}, b: {route: pushes}, c: {route: blind}, d: {route: seed}}\n"
    shared = "name the same queues: {}; class_budget then takes their consumers for slower than they are and sends less"
    assert [found for found in config.warnings(files.load(text)) if "nobody said what leads to" not in found] == [
        "routes.blind: no `queues`, therefore steered by nacks and latency only: its queues may grow long",
        f"routes: mails, pushes {shared.format('sms')}",
        f"routes: mails, pushes, seed {shared.format('fax')}",
    ]
    text = text.replace("P3: {queue_delay: 50ms}", "P3: ")
    assert config.warnings(files.load(text))[-1] == (
        "classes.P2: its queue delay of 50ms is below 80ms of P3, which is less important and would give way later"
    )


@pytest.mark.parametrize(
    ("broker", "told"),
    [
        (
            "depth_interval: 5s",
            "broker.depth_interval: 5s is too long to keep queues short; class_budget wants 200ms at most",
        ),
        (
            "depth_polls: 4",
            "broker.depth_polls: 4 a second for all queues are too few to keep any of them short",
        ),
    ],
)
def test_a_depth_that_is_rarely_asked_is_warned_of_when_a_route_is_steered_by_it(
    files: Files, broker: str, told: str
) -> None:
    text = HEAD.replace('"localhost:5672"]', f'"localhost:5672"], {broker}')
    text += "event_types: {a: {}, b: {route: pushes}}\n"
    assert config.warnings(files.load(text)) == [told]
    for queues in ("queues: [mail]", "queues: [push]"):
        text = text.replace(queues, f"{queues}, policy: static")
    assert config.warnings(files.load(text)) == []


def test_nothing_is_said_of_thresholds_and_shared_queues_when_no_route_has_a_budget(files: Files) -> None:
    text = HEAD.replace("queues: [push]", "policy: per_type, queues: [mail]")
    text = text.replace("events, queues: [mail]}", "events, policy: static, queues: [mail]}", 1)
    text += "classes: {P1: {queue_delay: 10ms}, P2: , P3: }\nevent_types: {a: {}, b: {route: pushes}}\n"
    assert config.warnings(files.load(text)) == []
    assert "queue delay" not in config.describe(files.load(text))


def test_a_class_that_can_not_be_lifted_is_named_and_how_long_topics_must_be_kept_is_told(files: Files) -> None:
    text = HEAD + "event_types: {a: {}, b: {route: pushes}}\n"
    settings = files.load(text + "classes: {P1: {lift_before_loss: 1h}, P2: {lift_before_loss: 2h}}\n")
    assert [line for line in config.warnings(settings) if "lift_before_loss" in line] == [
        "classes.P1: `lift_before_loss` does nothing: there is no class above"
    ]
    assert "keep     topics for at least the longest stop to be borne + 2h; segments" in config.describe(settings)


def test_a_catch_up_that_does_nothing_is_warned_of_when_someone_asked_for_it(files: Files) -> None:
    text = HEAD + "event_types: {a: {}, b: {route: pushes}}\n"
    for_top = "classes.P1: `catch_up: true` does nothing: what is old of the most important class goes as ever"
    assert config.warnings(files.load(text + "classes: {P1: {catch_up: true}, P2: {catch_up: true}}\n")) == [for_top]
    assert config.warnings(files.load(text + "classes: {P1: {catch_up: false}, P2: {catch_up: false}}\n")) == []
    text += "class_budget: {catch_up: {after: 5m}}\n"
    assert config.warnings(files.load(text)) == []
    for queues in ("queues: [mail]", "queues: [push]"):
        text = text.replace(queues, f"{queues}, policy: static")
    nobody = "class_budget.catch_up: no route has `policy: class_budget`, which alone looks for what is old"
    assert config.warnings(files.load(text)) == [nobody]


def test_a_package_s_law_is_warned_of_when_tidegate_s_own_has_its_name(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    brought = [EntryPoint(name=name, value=f"my_laws:{name}", group=laws.GROUP) for name in ("aimd", "halving")]
    monkeypatch.setattr(laws, "entry_points", lambda **_: brought)
    told = [line for line in config.warnings(files.load(HEAD + ONE_TYPE)) if "law" in line]
    assert told == [
        "law aimd: my_laws:aimd of an installed package is never used: Tidegate's own has that name; rename it"
    ]


def test_nothing_is_warned_of_when_all_is_well(files: Files) -> None:
    settings = files.load(HEAD + "event_types: {a: {}, b: {route: pushes}}\n")
    assert config.warnings(settings) == []


def test_the_summary_counts_types_per_route_and_class_when_there_are_some(files: Files) -> None:
    text = config.describe(files.load(HEAD + "event_types: {a: {}, b: {class: P1, route: pushes}, c: {}}\n"))
    assert "class    1. P1: +15 x0.8 from 1 to 5000, queue delay 500ms, 1 types" in text
    assert (
        "class    2. P2: +10 x0.6 from 1 to 5000, queue delay 200ms, older than 10m behind what is live, 2 types"
        in text
    )
    assert (
        "class    3. P3: +5 x0.4 from 1 to 5000, queue delay 80ms, older than 10m behind what is live, 0 types" in text
    )
    assert "route    mails: events, mail, class_budget, in flight up to 4000 events / 8MiB, 2 types" in text
    assert "commit   every 500ms, 5000 ahead per partition" in text


@pytest.mark.parametrize(
    ("cap", "shown"),
    [
        ("{events: 150}", "at most 150 events/s, in flight"),
        ("{events: 0.5, strict: true}", "at most 0.5 events/s (strict), in flight"),
        ("{bytes: 10MiB}", "at most 10MiB/s, in flight"),
    ],
)
def test_the_summary_shows_a_routes_cap_and_a_classes_own_threshold_when_there_are(
    files: Files, cap: str, shown: str
) -> None:
    text = HEAD.replace("queues: [mail]", f"queues: [mail], cap: {cap}")
    told = config.describe(files.load(text + ONE_TYPE + "classes: {P1: {queue_delay: 2s}, P2: , P3: }\n"))
    assert f"class_budget, {shown}" in told
    assert "from 1 to 5000, queue delay 2s, 0 types" in told


def test_the_summary_says_what_is_promised_of_a_class_when_something_is(files: Files) -> None:
    first = "P1: {slo: {within: 2s, share: 0.999, judges: bridge}}"
    second = "P2: {slo: {within: 1m, share: 0.99999, judges: consumed}}"
    loaded = files.load(HEAD + ONE_TYPE + f"classes: {{{first}, {second}, P3: {{}}}}\n")
    lines = [line for line in config.describe(loaded).splitlines() if line.startswith("class ")]
    assert [line.partition("slo ")[2].partition(", ")[0] for line in lines] == [
        "99.9 % within 2s of bridge time",
        "99.999 % within 1m of consumed time",
        "",
    ]
    assert json.loads(config.as_json(loaded))["classes"]["P1"]["slo"]["within"] == 2
    assert config.warnings(loaded) == ["routes.pushes: no event type takes it"]


def test_the_summary_shows_a_route_s_law_when_it_is_not_the_usual_one(files: Files) -> None:
    text = HEAD.replace("queues: [mail]", "queues: [mail], law: cubic")
    assert "class_budget by cubic, in flight" in config.describe(files.load(text + ONE_TYPE))
    assert "class_budget, in flight" in config.describe(files.load(HEAD + ONE_TYPE))


@pytest.mark.parametrize(
    ("rule", "shown"),
    [
        ("class", "class_budget, in flight"),
        ("none", "class_budget, message priority none, in flight"),
        ("{P1: 9, P2: '4'}", "class_budget, message priority P1 9, P2 4, in flight"),
    ],
)
def test_the_summary_shows_a_route_s_message_priority_when_it_is_not_the_usual_one(
    files: Files, rule: str, shown: str
) -> None:
    text = HEAD.replace("queues: [mail]", f"queues: [mail], message_priority: {rule}")
    assert shown in config.describe(files.load(text + ONE_TYPE))


def test_the_summary_says_how_messages_tell_their_origin_when_routes_differ(files: Files) -> None:
    text = HEAD.replace("queues: [mail]", "queues: [mail], origin: full, key: none")
    (alike,) = [line for line in config.describe(files.load(HEAD + ONE_TYPE)).splitlines() if "messages" in line]
    assert alike == (
        "messages topic, partition, position and instant stand in the message id, no header repeats them (origin: id); "
        "the key is a header"
    )
    apart = [line for line in config.describe(files.load(text + ONE_TYPE)).splitlines() if "messages" in line]
    assert [line.partition(": ")[0] for line in apart] == ["messages of mails", "messages of pushes"]
    assert apart[0].endswith("headers, too (origin: full); the key is not sent")


def test_the_json_holds_every_setting_in_force_when_printed(files: Files) -> None:
    settings = files.load(HEAD + ONE_TYPE)
    shown = json.loads(config.as_json(settings))
    assert set(shown) == set(Settings.model_fields)
    assert shown["broker"]["password"] == "**********"
    assert shown["event_types"]["order-confirmed"]["routing_key"]["constant"] == "mail"


def test_cost_is_inherited_shown_by_class_and_said_to_be_idle_where_nobody_charges_it(files: Files) -> None:
    text = HEAD.replace("queues: [mail]", "queues: [mail], policy: {}") + dedent("""\
        classes: {P1: , P2: , P3: {events: {cost: 10}}}
        event_types: {a: {class: P1}, b: {class: P3}, c: {class: P3, cost: 2.5}}
        """)
    settings = files.load(text.replace("policy: {}", "policy: class_budget"))
    assert [settings.event_types[name].cost for name in "abc"] == [1.0, 10.0, 2.5]
    assert settings.costs("mails") == ({1.0}, {1.0}, {2.5, 10.0})
    told = config.describe(settings)
    assert "queue delay 80ms, older than 10m behind what is live, cost 2.5 to 10, 2 types" in told
    assert "queue delay 500ms, 1 types" in told
    idle = "event_types: only `policy: class_budget` charges `cost`; it does nothing for b, c"
    assert idle not in config.warnings(settings)
    assert idle in config.warnings(files.load(text.replace("policy: {}", "policy: static")))
