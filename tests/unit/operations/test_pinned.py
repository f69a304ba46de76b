"""What holds now, by what is pinned: the last one counts, and what has no effect is not told."""

from dataclasses import replace

import pytest

from proxy.errors import SettingsError
from proxy.model import Mode, Note
from proxy.operations.intervention import MOST_NAMES, Answer, Intervention
from proxy.operations.pinned import Pinned

CLASSES = {"order": "P1", "alert": "P3", "flash": "P3"}
NOW = 50_000
ANSWER = Answer("1", "host-1", "member-1", 2, 40_000)


def one(
    id_: str, mode: Mode = Mode.PAUSE, *, types: str = "", classes: str = "", until_ms: int = 100_000
) -> Intervention:
    return Intervention(id_, mode, tuple(types.split()), tuple(classes.split()), "ann", None, 1_000, until_ms)


def cap(id_: str, **scope: str) -> Intervention:
    return replace(one(id_, **scope), mode=Mode.CAP, rate=5.0)


def policy(id_: str, routes: str, mode: Mode = Mode.POLICY) -> Intervention:
    """Return one that sets the policy of some routes, or a run that takes it back."""
    said = "static" if mode is Mode.POLICY else None
    return replace(one(id_, types="x"), mode=mode, types=(), routes=tuple(routes.split()), policy=said)


def pinned(*said: Intervention | Answer) -> Pinned:
    made = Pinned(CLASSES.get)
    made.take(Note(each.key, each.as_json()) for each in said)
    return made


def ids(made: Pinned, now_ms: int = NOW) -> list[str]:
    return [each.id for each in made.holding(now_ms)]


@pytest.mark.parametrize(
    ("earlier", "later", "left"),
    [
        (one("1", types="alert"), one("2", Mode.DISCARD, types="alert"), ["2"]),
        (one("1", types="alert"), one("2", Mode.DISCARD, classes="P3"), ["2"]),
        (one("1", types="alert", classes="P3"), one("2", Mode.DISCARD, classes="P3 P2"), ["2"]),
        (one("1", classes="P3"), one("2", Mode.DISCARD, types="alert flash"), ["1", "2"]),
        (one("1", types="alert"), one("2", Mode.DISCARD, types="alert", until_ms=99_999), ["1", "2"]),
        (one("1", types="alert order"), one("2", types="alert"), ["1", "2"]),
        (one("1", classes="P3"), one("2", Mode.RUN, classes="P3"), []),
        (one("1", classes="P3"), one("2", Mode.RUN, types="alert"), ["1", "2"]),
        (one("1", types="alert"), one("2", Mode.RUN, types="order"), ["1"]),
        (one("1", classes="P3", until_ms=NOW), one("2", Mode.RUN, types="alert"), []),
        (one("1", Mode.RUN, classes="P3"), one("2", types="alert"), ["2"]),
        (cap("1", types="alert"), one("2", classes="P3"), ["1", "2"]),
        (one("1", types="alert"), cap("2", classes="P3"), ["1", "2"]),
        (cap("1", types="alert"), cap("2", classes="P3"), ["2"]),
        (cap("1", types="alert"), one("2", Mode.RUN, classes="P3"), []),
        (policy("1", "mail"), policy("2", "mail text"), ["2"]),
        (policy("1", "mail text"), policy("2", "mail"), ["1", "2"]),
        (policy("1", "mail"), policy("2", "mail", Mode.RUN), []),
        (policy("1", "mail"), policy("2", "text", Mode.RUN), ["1"]),
        (policy("1", "mail"), one("2", Mode.RUN, classes="P1 P2 P3"), ["1"]),
        (one("1", classes="P3"), policy("2", "mail"), ["1", "2"]),
        (policy("1", "mail"), one("2", classes="P3"), ["1", "2"]),
        (policy("1", "mail"), cap("2", classes="P3"), ["1", "2"]),
    ],
)
def test_what_has_an_effect_is_told_when_a_later_one_means_the_same_types(
    earlier: Intervention, later: Intervention, left: list[str]
) -> None:
    assert ids(pinned(earlier, later)) == left


def test_a_resume_of_a_class_names_the_types_that_are_held_by_name_so_that_another_class_brings_nothing_back() -> None:
    paused = one("1", types="alert order unheard-of")
    capped, over = cap("2", types="flash", until_ms=90_000), one("3", types="over", until_ms=NOW)
    masked = one("4", classes="P3", until_ms=80_000)
    classes = {**CLASSES, "over": "P3"}
    made = Pinned(classes.get)
    made.take(Note(each.key, each.as_json()) for each in (paused, capped, over, masked))
    resumed = made.resuming(one("5", Mode.RUN, classes="P3", until_ms=200_000), NOW)
    assert resumed is not None
    assert (resumed.types, resumed.classes, resumed.until_ms) == (("alert", "flash"), ("P3",), 100_000)
    made.take([Note(resumed.key, resumed.as_json())])
    classes["flash"] = "P2"
    assert "2" not in ids(made), "it is resumed still"


def test_a_resume_of_a_class_names_what_a_later_pause_of_the_class_hides() -> None:
    made = pinned(one("1", types="alert"), one("2", classes="P3"))
    assert ids(made) == ["2"]
    resumed = made.resuming(one("3", Mode.RUN, classes="P3"), NOW)
    assert resumed is not None
    assert resumed.types == ("alert",)


def test_a_resume_of_a_class_is_refused_with_the_way_out_when_more_are_held_by_name_than_a_note_can_name() -> None:
    names = [f"t{number}" for number in range(MOST_NAMES + 1)]
    made = Pinned(lambda _: "P3")
    for part in (names[:-1], names[-1:]):
        paused = one(f"of-{len(part)}", types=" ".join(part))
        made.take([Note(paused.key, paused.as_json())])
    with pytest.raises(SettingsError, match="resume some of them first, by name: t0"):
        made.resuming(one("3", Mode.RUN, classes="P3"), NOW)


def test_nothing_is_told_any_more_when_its_time_is_over() -> None:
    made = pinned(one("1", types="alert"))
    assert [ids(made, now) for now in (99_999, 100_000)] == [["1"], []]


def test_the_one_pinned_last_stands_last_when_it_was_pinned_before() -> None:
    first, second = one("1", types="alert"), one("2", types="order")
    assert ids(pinned(first, second, first)) == ["2", "1"]


def test_a_note_counts_no_more_when_it_is_taken_back_or_no_longer_understood() -> None:
    for value in (None, b"{}"):
        made = pinned(one("1", types="alert"), ANSWER)
        made.take([Note(one("1", types="alert").key, value), Note(ANSWER.key, value)])
        assert ids(made) == []
        assert made.answers(one("1", types="alert")) == {}
        assert len(made.not_understood) == (0 if value is None else 2)


def test_a_note_is_told_as_not_understood_until_it_is_put_right() -> None:
    made = Pinned(CLASSES.get)
    said = one("1", types="alert")
    made.take([Note(said.key, b"no JSON")])
    assert made.not_understood == {said.key: "the note is no JSON"}
    made.take([Note(said.key, said.as_json())])
    assert made.not_understood == {}
    assert ids(made) == ["1"]


def test_each_member_has_its_latest_answer_to_one_intervention() -> None:
    again = replace(ANSWER, instance="host-1 again", at_ms=41_000)
    other = replace(ANSWER, id="2", member="member-2")
    assert pinned(again, ANSWER, other).answers(one("1", types="alert")) == {"member-1": again}


def test_only_answers_that_know_of_its_end_count_when_one_was_ended_before_its_time() -> None:
    ended = replace(one("1", types="alert"), ended_by="bob")
    made = pinned(one("1", types="alert"), ANSWER, ended)
    assert (ids(made), made.answers(ended)) == ([], {})
    late = replace(ANSWER, has_ended=True)
    made.take([Note(late.key, late.as_json())])
    assert made.answers(ended) == {"member-1": late}


def test_nothing_is_kept_of_what_is_over_when_it_is_read_for_weeks() -> None:
    made = pinned(one("1", types="alert"), one("2", types="alert", until_ms=200_000), ANSWER, replace(ANSWER, id="2"))
    made.forget(100_000)
    assert (made.found("1", 1_000), made.answers(one("1", types="alert"))) == (None, {})
    assert made.found("2", 199_999) is not None
    assert len(made.answers(one("2", types="alert"))) == made.standing(199_999) == 1
    assert made.found("2", 200_000) is None


@pytest.mark.parametrize(
    ("these", "those", "overlap"),
    [
        (one("1", classes="P3"), one("2", types="alert"), True),
        (one("1", types="alert"), one("2", classes="P3"), True),
        (one("1", types="alert"), one("2", types="flash"), False),
        (one("1", classes="P1"), one("2", types="alert", classes="P2"), False),
        (one("1", types="unheard-of"), one("2", types="unheard-of"), True),
        (one("1", classes="P3"), one("2", classes="P3 P2"), True),
    ],
)
def test_two_overlap_when_some_type_may_be_meant_by_both(
    these: Intervention, those: Intervention, overlap: bool
) -> None:
    assert pinned().overlap(these, those) is overlap
