"""Where a move takes a cursor, and which of two moves is the later one."""

import pytest

from proxy.bridge.move import Direction, Move, is_id, number, serial


def _move(direction: Direction, first: int, to: int) -> Move:
    return Move("1-ab", direction, "id", first, to, "me", None)


@pytest.mark.parametrize(("done", "end"), [(19, 19), (20, 50), (49, 50), (50, 50), (60, 60)])
def test_a_skip_passes_over_nothing_but_what_the_plan_names_wherever_the_group_is_by_then(done: int, end: int) -> None:
    assert _move(Direction.SKIP, 20, 50).end(done) == end


@pytest.mark.parametrize(("done", "end"), [(10, 10), (20, 20), (50, 20), (90, 20)])
def test_a_rewind_never_goes_forward_wherever_the_group_is_by_then(done: int, end: int) -> None:
    assert _move(Direction.REWIND, 50, 20).end(done) == end


def test_the_later_of_two_moves_is_the_one_of_the_greater_number_when_their_names_say_otherwise() -> None:
    assert serial("10-aa") > serial("9-ff") > serial("9-ab") > serial("")
    assert (number("10-aa"), number("")) == (10, 0)


@pytest.mark.parametrize("text", ["", "1", "1-", "-ab", "1-xy", "1-ab ", "a-ab", "1-" + "a" * 17])
def test_a_text_is_no_id_when_its_form_is_another(text: str) -> None:
    assert not is_id(text)
