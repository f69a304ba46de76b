"""A scenario is read whole, or every mistake in it is named with its place."""

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from proxy.congestion import laws
from proxy.errors import SettingsError
from proxy.simulation import scenario_file
from proxy.simulation.command import main
from proxy.simulation.offers import portions

GOOD = """\
name: mine
why: to try
seconds: 20
queues: {work: {capacity: 300}}
routes: {shop: {queues: [work]}}
streams: {orders: {class: P1, rate: 60}, campaign: {class: P3, rate: endless}}
expect: [{figure: use, at_least: 0.9, why: so, fails_with_control_off: true}]
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "mine.yaml"
    path.write_text(text)
    return path


def mistakes(folder: Path, text: str) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        scenario_file.load(written(folder, text))
    return caught.value.mistakes


def test_defaults_fill_in_when_a_scenario_says_little(tmp_path: Path) -> None:
    scenario = scenario_file.load(written(tmp_path, GOOD))
    work = scenario.queues["work"]
    assert (work.most_messages, work.prefetch_each, scenario.replicas) == (600, 4, ((),))


@pytest.mark.parametrize(
    ("part", "instead", "expected"),
    [
        ("capacity: 300", "capacity: -1", "mine.yaml:4: queues.work.capacity: is out of range; allowed: a number, 0.1"),
        ("capacity: 300", "capacty: 300", 'queues.work.capacty: no such setting; did you mean "capacity"?'),
        ("capacity: 300", "capacity: 300, prefetch: much", "queues.work.prefetch: is no duration; allowed: a duration"),
        ("queues: [work]", "queues: [wrok]", 'routes.shop: queue wrok does not exist; did you mean "work"?'),
        ("class: P1, rate: 60", "rate: 60", "mine.yaml:6: streams.orders.class: is missing; allowed: 1 to 128"),
        ("class: P1", "class: P9", "streams.orders.class: allowed: P1, P2, P3, or others under settings.classes"),
        ("rate: 60", "rate: {low: 3}", "streams.orders.rate: is no rate; allowed: events a second, [[second, rate]"),
        (
            "rate: 60",
            "rate: {backlog: 9}",
            "streams.orders.rate: is no rate; allowed: events a second, [[second, rate]",
        ),
        (
            "rate: endless",
            "rate: 9, joins: orders",
            "streams.campaign.joins: class, types, route, cost and size must be those",
        ),
        (
            "rate: endless}",
            "rate: endless}, late: {class: P1, rate: 9, joins: orders, size: 9}",
            "streams.late.joins: class, types, route, cost and size must be those of orders",
        ),
        ("rate: 60", "rate: 9, joins: campaign", "streams.orders.joins: campaign is no stream with topics of its own"),
        ("rate: 60", "rate: [[9, 1], [3, 1]]", "streams.orders.rate: the seconds of the points must rise"),
        ("figure: use", "figure: usage", 'expect[0].figure: usage is unknown; did you mean "use"?'),
        ("at_least: 0.9, ", "", "expect[0]: give at_least or at_most"),
        (", fails_with_control_off: true", "", "mark a figure with fails_with_control_off: true, or say under"),
        ("expect:", "events: [{name: a, at: 3, what: boom}]\nexpect:", 'events[0].what: "boom" is unknown; allowed:'),
        ("expect:", "events: [{name: a, at: 3, what: alarm}]\nexpect:", "events[0]: alarm needs `seconds`"),
        ("expect:", "settings: {broker: {dept: 1}}\nexpect:", "settings: broker.dept: no such setting"),
        ("expect:", "replicas: [[P1], [P2]]\nexpect:", "replicas: class P2 has no stream; allowed: P1, P3"),
        ("rate: 60", "rate: 60, cost: 0.5", "streams.orders.cost: is no whole number"),
        (
            "rate: endless}}\nexpect: [{figure: use",
            "rate: 9, cost: 3}}\nevents: [{name: a, at: 3, what: foreign, to: 1}]\nexpect: [{figure: settled_after.a",
            "expect[0].figure: settled_after.a counts events; not where streams differ in cost",
        ),
        ("seconds: 20", "seconds: 3", "warm_up is not shorter than seconds"),
    ],
)
def test_mistake_is_named_with_its_place_when_a_scenario_is_wrong(
    part: str, instead: str, expected: str, tmp_path: Path
) -> None:
    assert part in GOOD
    assert any(expected in line for line in mistakes(tmp_path, GOOD.replace(part, instead, 1)))


def test_every_mistake_is_named_at_once_when_there_are_several(tmp_path: Path) -> None:
    found = mistakes(tmp_path, GOOD.replace("300", "many").replace("rate: 60", "rate: fast").replace("20", "0"))
    assert len(found) == 3


def test_exit_code_is_2_and_no_traceback_shown_when_a_scenario_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(written(tmp_path, "name: [}"))]) == 2
    assert main(["no-such-scenario"]) == 2
    assert main([]) == 2
    told = capsys.readouterr().err
    assert "not valid YAML" in told
    assert "flash-campaign" in told  # those that ship are named
    assert "Traceback" not in told


def test_one_line_says_so_when_the_package_of_a_law_is_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def found(*, group: str, name: str = "broken") -> list[EntryPoint]:
        entry = EntryPoint(name="broken", value="no_such_package:law", group=group)
        return [entry] if group == laws.GROUP and name == "broken" else []

    monkeypatch.setattr(laws, "entry_points", found)
    assert main([str(written(tmp_path, GOOD)), "--policy", "broken"]) == 2
    (told,) = capsys.readouterr().err.splitlines()
    assert told.startswith("--policy broken: no_such_package:law can't be loaded: ModuleNotFoundError")
    assert told.endswith("repair the package, or uninstall it")


def test_a_replica_is_told_its_classes_topics_only_when_replicas_differ(tmp_path: Path) -> None:
    scenario = scenario_file.load(written(tmp_path, GOOD + "replicas: [[P1], [P3]]\n"))
    topics = [set(scenario_file.settings(scenario, "static", number).by_topic) for number in range(2)]
    assert topics == [{"orders-0"}, {"campaign-0"}]


def test_queues_are_kept_from_tidegate_when_a_route_is_not_watched(tmp_path: Path) -> None:
    text = GOOD.replace("queues: [work]", "queues: [work], watched: false")
    scenario = scenario_file.load(written(tmp_path, text))
    assert scenario_file.settings(scenario, "static").routes["shop"].queues == ()


def test_tidegate_is_told_what_events_cost_when_a_stream_says_it(tmp_path: Path) -> None:
    scenario = scenario_file.load(written(tmp_path, GOOD.replace("endless}", "endless, cost: 10}")))
    settings = scenario_file.settings(scenario, "class_budget")
    assert {name: kind.cost for name, kind in settings.by_topic.items()} == {"orders-0": 1.0, "campaign-0": 10.0}
    assert settings.costs("shop") == ({1.0}, {1.0}, {10.0})


def test_the_unloaded_run_asks_for_a_fifth_of_the_capacity_when_events_are_dear(tmp_path: Path) -> None:
    scenario = scenario_file.load(written(tmp_path, GOOD.replace("rate: 60", "rate: 15, cost: 10")))
    assert scenario_file.unloaded(scenario).streams["orders"].rate.constant == pytest.approx(6.0)


def test_a_stream_that_joins_another_comes_on_partitions_of_its_own_of_the_same_topics(tmp_path: Path) -> None:
    old = "old: {class: P1, rate: {backlog: 9, age: 1h}, joins: orders, types: 2, partitions: 2}"
    late = "late: {class: P1, rate: 5, joins: orders, types: 2}"
    text = GOOD.replace("rate: 60}", f"rate: 60, types: 2, partitions: 3}}, {old}, {late}")
    scenario = scenario_file.load(written(tmp_path, text))
    assert [
        sorted({number for topic, number in scenario.places(name) if topic == "orders-1"})
        for name in ("orders", "old", "late")
    ] == [[0, 1, 2], [3, 4], [5]]
    assert set(scenario_file.settings(scenario, "static").by_topic) == {"orders-0", "orders-1", "campaign-0"}


def test_a_backlog_is_shared_by_its_partitions_and_none_holds_less_than_nothing() -> None:
    assert portions(7, 3) == [3, 3, 1]
    assert portions(5, 4) == [2, 2, 1, 0]
