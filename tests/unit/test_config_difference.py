"""What two settings do not share is named exactly, and no secret with it."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from proxy.config import Difference, difference
from proxy.settings import EventType, RoutingKey, Settings
from tests.support.process import TRAITS, settings
from tests.support.settings_files import HEAD, ONE_TYPE, Files


def compared(folder: Path, before: str, after: str) -> Difference:
    files = Files(folder)
    return difference(files.load(before), files.load(after))


def test_nothing_differs_when_files_say_the_same_in_other_words(tmp_path: Path) -> None:
    spelt = HEAD.replace("class: P2, ", "").replace("defaults: {", "defaults: {class: P2, ")
    assert not compared(tmp_path, HEAD + ONE_TYPE, "# a comment\n" + spelt + ONE_TYPE)


def test_types_are_told_apart_when_some_come_go_and_change(tmp_path: Path) -> None:
    found = compared(
        tmp_path,
        HEAD + "event_types: {stays: {}, goes: {}, changes: {}}\n",
        HEAD + "event_types: {stays: {}, comes: {}, changes: {class: P1, max_age: 1h}}\n",
    )
    assert (found.added, found.removed) == (("comes",), ("goes",))
    assert found.changed == {"changes": ("class: P2 -> P1", "max_age: none -> 3600.0")}
    assert (found.patterns, found.fixed) == (False, ())


def test_every_type_changes_when_the_defaults_do(tmp_path: Path) -> None:
    types = "event_types: {a: {}, b: {}, c: {class: P1}}\n"
    found = compared(tmp_path, HEAD + types, HEAD.replace("class: P2", "class: P3") + types)
    assert set(found.changed) == {"a", "b"}


def test_all_else_is_named_by_its_key_and_never_by_its_value_when_it_differs(tmp_path: Path) -> None:
    before = HEAD.replace("5672", "5672").replace(
        '["localhost:5672"]}', '["localhost:5672"], password: "first-secret"}'
    )
    after = before.replace("first-secret", "other-secret").replace("queues: [push]", "queues: [push, text]")
    found = compared(tmp_path, before + ONE_TYPE, after + ONE_TYPE)
    assert found.fixed == ("broker.password",)
    assert found.parts == ("routes.pushes.queues: push -> push, text",)
    assert "secret" not in str(found) + str(found.told())


def test_only_what_bounds_the_bridge_itself_changes_of_the_limits_without_a_restart() -> None:
    now = settings()
    limits = now.limits.model_copy(update={"inbox_events": 7, "confirm_deadline": 9.0})
    found = difference(now, settings(limits=limits))
    assert found.parts == ("limits.inbox_events: 2000 -> 7",)
    assert found.fixed == ("limits.confirm_deadline",)


def test_a_route_is_named_when_it_is_new_or_gone(tmp_path: Path) -> None:
    more = HEAD.replace("defaults:", "  texts: {exchange: events, queues: [text]}\ndefaults:")
    assert compared(tmp_path, HEAD + ONE_TYPE, more + ONE_TYPE).parts == ("routes.texts: none -> new",)
    assert compared(tmp_path, more + ONE_TYPE, HEAD + ONE_TYPE).parts == ("routes.texts: there -> gone",)


def test_the_order_of_classes_is_a_difference_when_their_words_are_the_same() -> None:
    now = settings()
    turned = now.model_copy(update={"classes": dict(reversed(now.classes.items()))})
    assert difference(now, turned).fixed == ("classes (their order)",)


def test_the_answer_is_bounded_when_a_thousand_types_change() -> None:
    def many(priority: str) -> Settings:
        traits = TRAITS | {"priority": priority}
        return settings(event_types={f"t{n}": EventType(name=f"t{n}", topic=f"t{n}", **traits) for n in range(1_000)})

    told = difference(many("P1"), many("P2")).told()
    assert (told["changed_types"], len(told["changed"])) == (1_000, 20)
    assert len(str(told)) < 2_000


_TYPES = st.dictionaries(
    st.sampled_from("abcd"), st.tuples(st.sampled_from(["P1", "P2"]), st.sampled_from(["q", "k"])), max_size=4
)


@given(_TYPES, _TYPES)
def test_what_is_told_leads_from_one_to_the_other_when_types_are_any(
    first: dict[str, tuple[str, str]], second: dict[str, tuple[str, str]]
) -> None:
    def made(types: dict[str, tuple[str, str]]) -> Settings:
        kinds = {
            name: EventType(name=name, topic=name, priority=priority, route="r", routing_key=RoutingKey(constant=key))
            for name, (priority, key) in types.items()
        }
        return settings(event_types=kinds)

    found = difference(made(first), made(second))
    assert set(found.added) == second.keys() - first.keys()
    assert set(found.removed) == first.keys() - second.keys()
    assert set(found.changed) == {name for name in first.keys() & second.keys() if first[name] != second[name]}
    assert bool(found) == (first != second)
