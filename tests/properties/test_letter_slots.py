"""The share of the dead-letter lane: bounded in all, and never nothing for a type, whatever others hold."""

from hypothesis import given
from hypothesis import strategies as st

from proxy.bridge.letter_slots import LETTER_BYTES, LETTERS, LetterSlots

wants = st.lists(st.tuples(st.integers(0, 1_000), st.integers(1, 1_000_000)), min_size=1, max_size=60)


@given(wants)
def test_a_type_may_always_send_one_letter_and_all_together_stay_bounded(types: list[tuple[int, int]]) -> None:
    slots = LetterSlots()
    for want, size in types:
        events, room = slots.room(0, 0)
        assert events >= 1
        taken = min(want, events, max(1, room // size))
        slots.take(taken, taken * size)
        assert taken == min(1, want) or slots.room(taken, taken * size)[1] >= 0
    assert slots.events <= LETTERS + len(types)
    assert slots.bytes <= LETTER_BYTES + sum(size for _, size in types)


def test_a_type_alone_may_take_half_and_the_next_half_of_the_rest() -> None:
    slots = LetterSlots()
    for expected in (100, 50, 25):
        assert slots.room(0, 0)[0] == expected
        slots.take(expected, 0)
    assert slots.room(100, 0)[0] == 0
    slots.give(50, 0)
    assert slots.room(0, 0)[0] == 37
