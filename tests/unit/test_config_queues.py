"""What a route may say of its queues, what comes of it, and what is warned of."""

import pytest

from proxy import config
from proxy.settings import Route
from tests.support.settings_files import HEAD, Files

TYPES = "event_types: {a: {}, b: {routing_key: sms}, c: {routing_key: {header: key}}, d: {route: pushes}}\n"


@pytest.fixture
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("settings"))


def loaded(files: Files, queues: str, types: str = TYPES) -> tuple[Route, list[str]]:
    """Return the route with these queues (and what else follows), and the warnings on it."""
    settings = files.load(HEAD.replace("queues: [mail]", f"queues: {queues}") + types)
    return settings.routes["mails"], [found for found in config.warnings(settings) if found.startswith("routes.mails")]


@pytest.mark.parametrize(
    ("queues", "judged_by"),
    [
        ("[one]", "min"),
        ("[one, two]", "sum"),
        ("[{name: one}, two]", "sum"),
        ("[{name: one}, {name: two}]", "min"),
        ("[one, two], strategy: min", "min"),
        ("[one, {name: two, tag: true}], strategy: tagged", "tagged"),
    ],
)
def test_queues_are_judged_one_by_one_when_all_say_what_leads_to_them(
    files: Files, queues: str, judged_by: str
) -> None:
    route, _ = loaded(files, queues)
    assert route.judged_by == judged_by
    assert route.queue_names == ("one", "two")[: len(route.queues)]


def test_events_go_where_their_constant_key_or_their_type_leads_and_anywhere_when_nobody_knows(files: Files) -> None:
    settings = files.load(
        HEAD.replace(
            "queues: [mail]",
            "queues: [{name: all}, {name: keyed, routing_keys: [mail]}, {name: typed, event_types: [b]}]",
        )
        + TYPES
    )
    route = settings.routes["mails"]
    ways = {name: route.way(name, settings.event_types[name].routing_key) for name in "abc"}
    assert ways == {"a": ("all", "keyed"), "b": ("all", "typed"), "c": ("all", "keyed")}


@pytest.mark.parametrize(
    ("queues", "said"),
    [
        ("[one, two]", "nobody said what leads to its 2 queues, so they are judged together"),
        ("[{name: one, routing_keys: [mail]}, {name: two}]", "c take their routing key from each event"),
        ("[{name: one, event_types: [a]}, {name: two, event_types: [c]}]", "no queue says that it takes b"),
        ("[one, two], strategy: max", "a queue that does not rule grows to its bound"),
        ("[one, two], strategy: min, untether: true", "a queue that does not rule grows to its bound"),
    ],
)
def test_what_can_not_be_known_or_may_be_lost_is_warned_of(files: Files, queues: str, said: str) -> None:
    _, warnings = loaded(files, queues)
    assert len(warnings) == 1
    assert said in warnings[0]


@pytest.mark.parametrize(
    ("queues", "said"),
    [
        ("[{name: one, routing_keys: [mail]}, {name: two}]", "nor how many consumers one wants"),
        ("[one, {name: two, tag: true}], strategy: tagged", "how many consumers one that may do so wants is not known"),
        ("[one, two], strategy: max", "how many consumers one that may do so wants is not known"),
    ],
)
def test_it_is_warned_of_queues_of_which_nobody_can_tell_how_many_consumers_they_want(
    files: Files, queues: str, said: str
) -> None:
    assert not any("how many" in warning for warning in loaded(files, queues)[1])
    assert [said in warning for warning in loaded(files, f"{queues}, scaling: {{}}")[1]] == [True]


@pytest.mark.parametrize(
    ("queues", "is_told_apart"),
    [
        ("[one]", False),
        ("[one, two]", False),
        ("[{name: one}]", False),
        ("[one, two], strategy: min", True),
        ("[{name: one}, {name: two}]", True),
    ],
)
def test_wanted_consumers_are_told_of_each_queue_when_it_is_judged_by_itself(
    files: Files, queues: str, *, is_told_apart: bool
) -> None:
    route, _ = loaded(files, f"{queues}, scaling: {{}}")
    assert route.scales_apart is is_told_apart
    assert not loaded(files, queues)[0].scales_apart
    told = config.describe(files.load(HEAD.replace("queues: [mail]", f"queues: {queues}, scaling: {{}}") + TYPES))
    assert ("wanted consumers of each queue in multiples of 1, a backlog done in 1m" in told) is is_told_apart


@pytest.mark.parametrize("queues", ["[one]", "[{name: one}, {name: two}]", "[one, two], strategy: sum"])
def test_nothing_is_warned_of_when_all_is_said(files: Files, queues: str) -> None:
    assert loaded(files, queues)[1] == []


@pytest.mark.parametrize(
    ("queues", "mistake"),
    [
        ("[{name: one, routing_keys: [a], event_types: [b]}]", "give routing_keys or event_types, not both"),
        ("[one, {name: one}]", "one stands there twice"),
        ("[one, two], strategy: tagged", "no queue has a tag"),
        ("[one, two], strategy: max, group_min: 1", "belong to strategy min or tagged"),
        ("[one, two], untether: true", "belong to strategy min or tagged"),
        ("[{name: one}], group_min: 2", "2 of 1 queues can never be there"),
        ("[{name: one, event_types: [a]}], declare: true", "bind by routing_keys"),
        ("[{name: one, tagg: true}]", "routes.mails.queues[0].tagg: no such setting"),
        ("[5]", "routes.mails.queues[0]: is a number"),
        ("[{tag: true}]", "routes.mails.queues[0].name: is missing"),
    ],
)
def test_a_mistake_is_told_with_its_place(files: Files, queues: str, mistake: str) -> None:
    (found,) = files.mistakes(HEAD.replace("queues: [mail]", f"queues: {queues}") + TYPES)
    assert mistake in found


def test_the_summary_says_how_several_queues_are_judged(files: Files) -> None:
    settings = files.load(HEAD.replace("queues: [mail]", "queues: [{name: one}, {name: two}]") + TYPES)
    assert "one, two (judged by min)" in config.describe(settings)


def test_it_is_warned_of_dead_letters_when_they_go_where_events_are_worked_on(files: Files) -> None:
    settings = files.load(
        HEAD
        + """\
event_types:
  fine: {}
  by_queue: {dead_letter: {routing_key: mail}}
  of_another_route: {dead_letter: {routing_key: push}}
  by_key: {dead_letter: {exchange: events, routing_key: mail}}
  of_another_exchange: {dead_letter: {exchange: others, routing_key: mail}}
  every: {pattern: "all-*", dead_letter: {routing_key: mail}}
"""
    )
    said = [found for found in config.warnings(settings) if "dead letters of" in found]
    assert [found.partition(", where")[0].partition("dead letters of ")[2] for found in said] == [
        "by_queue, all-* go to mail",
        "of_another_route go to push",
        "by_key go to events:mail",
    ]
