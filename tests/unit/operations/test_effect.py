"""Which interventions have an effect now: what the page and `tidegate top` name as held by people."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.model import Mode
from proxy.operations.effect import Sorted
from proxy.operations.intervention import Intervention

CLASSES = {"order": "P1", "alert": "P3", "flash": "P3"}


def one(id_: str, mode: Mode = Mode.PAUSE, *, types: str = "", classes: str = "") -> Intervention:
    rate = 5.0 if mode is Mode.CAP else None
    return Intervention(id_, mode, tuple(types.split()), tuple(classes.split()), "ann", None, 1_000, 100_000, rate=rate)


def policy(id_: str, routes: str, mode: Mode = Mode.POLICY) -> Intervention:
    said = "static" if mode is Mode.POLICY else None
    return replace(one(id_, types="x"), mode=mode, types=(), routes=tuple(routes.split()), policy=said)


@pytest.mark.parametrize(
    ("held", "left"),
    [
        ((one("1", types="alert"), one("2", Mode.DISCARD, types="alert")), ["2"]),
        ((one("1", types="alert"), one("2", Mode.DISCARD, classes="P3")), ["2"]),
        ((one("1", classes="P3"), one("2", Mode.DISCARD, types="alert flash")), ["1", "2"]),
        ((one("1", types="alert order"), one("2", types="alert")), ["1", "2"]),
        ((one("1", classes="P3"), one("2", Mode.RUN, classes="P3")), []),
        ((one("1", Mode.CAP, classes="P3"), one("2", Mode.RUN, classes="P3")), []),
        ((one("1", classes="P3"), one("2", Mode.RUN, types="alert")), ["1", "2"]),
        ((one("1", types="alert"), one("2", Mode.RUN, classes="P3")), []),
        ((one("1", types="alert"), one("2", Mode.RUN, types="order")), ["1"]),
        ((one("1", Mode.RUN, classes="P3"), one("2", types="alert")), ["2"]),
        ((one("1", Mode.CAP, types="alert"), one("2", classes="P3")), ["1", "2"]),
        ((one("1", Mode.CAP, types="alert"), one("2", Mode.CAP, types="alert")), ["2"]),
        ((policy("1", "mail push"), policy("2", "mail")), ["1", "2"]),
        ((policy("1", "mail"), policy("2", "mail")), ["2"]),
        ((policy("1", "mail"), policy("2", "mail", Mode.RUN)), []),
        ((policy("1", "mail push"), policy("2", "mail", Mode.RUN)), ["1", "2"]),
        ((one("1", classes="P1"), policy("2", "mail")), ["1", "2"]),
    ],
)
def test_what_a_later_one_replaces_or_takes_back_has_no_effect_when_both_hold(
    held: tuple[Intervention, ...], left: list[str]
) -> None:
    assert [each.id for each in Sorted(held).effective(CLASSES.get)] == left


_names = st.lists(st.sampled_from([*CLASSES, "unknown"]), max_size=3, unique=True).map(" ".join)
_classes = st.lists(st.sampled_from(["P1", "P2", "P3"]), max_size=2, unique=True).map(" ".join)
_modes = st.sampled_from([Mode.PAUSE, Mode.DISCARD, Mode.CAP, Mode.RUN])


@given(st.lists(st.tuples(_modes, _names, _classes), max_size=6))
def test_whatever_holds_an_event_type_is_among_those_that_have_an_effect(held: list[tuple[Mode, str, str]]) -> None:
    said = [
        one(str(at), mode, types=types, classes=classes)
        for at, (mode, types, classes) in enumerate(held)
        if types or classes
    ]
    found = Sorted(said)
    effective = {each.id for each in found.effective(CLASSES.get)}
    for name, priority in CLASSES.items():
        for told in (found.modes.last(name, priority), found.caps.last(name, priority)):
            if told is not None and told.mode is not Mode.RUN:
                assert told.id in effective
    assert effective <= {each.id for each in said}
