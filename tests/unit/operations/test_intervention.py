"""What is pinned to the board comes back as it was meant, and nothing that can't be meant comes back at all."""

import json
from dataclasses import asdict, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.model import Mode, Note
from proxy.operations.intervention import LONGEST_MS, MOST_CHARACTERS, MOST_NAMES, Answer, Intervention, read
from proxy.settings import POLICIES

PAUSE = Intervention(
    id="20261123-5f2a",
    mode=Mode.PAUSE,
    types=("brand-alert",),
    classes=("P3",),
    by="ann",
    why="campaign floods",
    at_ms=1_000,
    until_ms=601_000,
)
ANSWER = Answer(id=PAUSE.id, instance="host-7-1", member="tidegate-1f", types=2, at_ms=2_000)

texts = st.text(max_size=MOST_CHARACTERS)
ids = st.from_regex(r"[A-Za-z0-9._-]{1,64}", fullmatch=True)
times = st.integers(0, 10**13)
interventions = st.builds(
    lambda seconds, **fields: Intervention(until_ms=fields["at_ms"] + seconds, **fields),
    seconds=st.integers(1, LONGEST_MS),
    id=ids,
    mode=st.sampled_from([mode for mode in Mode if mode not in {Mode.CAP, Mode.POLICY}]),
    types=st.lists(texts, min_size=1, max_size=5).map(tuple),
    classes=st.lists(texts, max_size=5).map(tuple),
    by=texts,
    why=st.none() | texts,
    at_ms=times,
)
policies = st.builds(
    lambda seconds, **fields: Intervention(until_ms=fields["at_ms"] + seconds, types=(), classes=(), **fields),
    seconds=st.integers(1, LONGEST_MS),
    id=ids,
    mode=st.just(Mode.POLICY),
    routes=st.lists(texts, min_size=1, max_size=5).map(tuple),
    policy=st.sampled_from(POLICIES),
    by=texts,
    why=st.none() | texts,
    at_ms=times,
)
answers = st.builds(Answer, id=ids, instance=texts, member=texts, types=st.integers(0, 10**6), at_ms=times)


@given(interventions | policies | answers)
def test_a_note_is_read_as_it_was_written_when_it_is_anything_within_bounds(said: Intervention | Answer) -> None:
    assert read(Note(said.key, said.as_json())) == said


@given(
    st.binary() | st.recursive(st.none() | st.integers() | texts, st.lists).map(lambda any_: json.dumps(any_).encode())
)
def test_a_value_is_refused_as_such_when_it_is_no_note(value: bytes) -> None:
    for kind in (Intervention, Answer):
        with pytest.raises(ValueError, match=r"the note is no JSON|is no "):
            kind.from_json(value)


def test_a_value_is_refused_as_such_when_it_is_nested_deeper_than_can_be_read() -> None:
    with pytest.raises(ValueError, match="the note is no JSON"):
        Answer.from_json(b"[" * 200_000)


def with_field(said: Intervention | Answer, name: str, value: object) -> bytes:
    return json.dumps(asdict(said) | {name: value}).encode()


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("id", "a/b", "id is not 1 to 64 of the characters"),
        ("id", "", "id is not 1 to 64"),
        ("id", 7, "id is no text"),
        ("mode", "stop", 'the mode "stop" is none of run, pause, discard, cap'),
        ("types", "brand-alert", "types is no list of texts"),
        ("types", [1], "types is no list of texts"),
        ("types", ["a"] * (MOST_NAMES + 1), "an intervention names 1 to 1000 event types and classes"),
        ("classes", None, "classes is no list of texts"),
        ("by", None, "by is no text"),
        ("why", 1, "why is no text"),
        ("why", "x" * (MOST_CHARACTERS + 1), "a text is longer than 1000 characters"),
        ("at_ms", True, "at_ms is no whole number"),
        ("at_ms", -1, "at_ms is no time between 1970 and 9999"),
        ("until_ms", 1e5, "until_ms is no whole number"),
        ("mode", "cap", "a cap has a rate, and nothing else has one"),
        ("rate", 7.0, "a cap has a rate, and nothing else has one"),
        ("rate", "7", "rate is no number"),
        ("rate", True, "rate is no number"),
        ("until_ms", 1_000, "an intervention ends after it began, within 7 days"),
        ("until_ms", 1_001 + LONGEST_MS, "an intervention ends after it began, within 7 days"),
        ("until_ms", 10**30, "until_ms is no time between 1970 and 9999"),
    ],
)
def test_an_intervention_is_refused_with_its_reason_when_a_field_is_wrong(name: str, value: object, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Intervention.from_json(with_field(PAUSE, name, value))


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("id", "", "id is not 1 to 64"),
        ("instance", None, "instance is no text"),
        ("member", "m" * 1_001, "a text is longer"),
        ("types", -1, "types is less than 0"),
        ("types", ["a"], "types is no whole number"),
        ("at_ms", "now", "at_ms is no whole number"),
    ],
)
def test_an_answer_is_refused_with_its_reason_when_a_field_is_wrong(name: str, value: object, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Answer.from_json(with_field(ANSWER, name, value))


def test_an_intervention_that_names_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="names 1 to 1000"):
        replace(PAUSE, types=(), classes=())


@pytest.mark.parametrize("rate", [0.0, 0.09, -1.0, 1e10, float("nan"), float("inf")])
def test_a_cap_is_refused_when_its_rate_is_none_that_can_be_held(rate: float) -> None:
    with pytest.raises(ValueError, match=r"rate is not 0\.1 to 1e\+09 events a second"):
        replace(PAUSE, mode=Mode.CAP, rate=rate)


CAP = replace(PAUSE, mode=Mode.CAP, rate=7.5)


@pytest.mark.parametrize("said", [PAUSE, CAP, ANSWER])
def test_a_newer_versions_field_is_passed_over(said: Intervention | Answer) -> None:
    assert read(Note(said.key, with_field(said, "colour", {"deep": [1]}))) == said


@pytest.mark.parametrize(
    "note", [Note(PAUSE.key, None), Note(ANSWER.key, None), Note("skip/1", b"of a newer version"), Note("", b"")]
)
def test_a_note_says_nothing_when_it_is_taken_back_or_of_another_kind(note: Note) -> None:
    assert read(note) is None


def test_a_note_is_refused_when_it_stands_under_anothers_key() -> None:
    with pytest.raises(ValueError, match="a key that is not its own"):
        read(Note(PAUSE.key + "x", PAUSE.as_json()))


def test_every_process_answers_each_intervention_under_a_key_of_its_own() -> None:
    others: list[dict[str, Any]] = [{"id": "other"}, {"instance": "host-8-1"}]
    assert len({ANSWER.key, *(replace(ANSWER, **other).key for other in others)}) == 3


@pytest.mark.parametrize(
    ("event_type", "priority", "is_meant"),
    [("brand-alert", "P1", True), ("order", "P3", True), ("order", "P1", False), ("P3", "brand-alert", False)],
)
def test_a_type_is_meant_when_its_name_or_its_class_is_named(event_type: str, priority: str, is_meant: bool) -> None:
    assert PAUSE.names(event_type, priority, "r") is is_meant


def test_it_holds_until_its_end_and_no_longer_even_when_the_askers_clock_is_ahead() -> None:
    assert [PAUSE.holds(now) for now in (0, 600_999, 601_000)] == [True, True, False]
