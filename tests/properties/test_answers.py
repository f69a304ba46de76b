"""However bytes are cut into pieces, every answer of a node is handed over whole and in order."""

import struct
import tracemalloc
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.kafka_log.answers import Answers


class Reader:
    """What the library reads from."""

    def feed_data(self, data: bytes) -> None:
        raise AssertionError(f"{len(data)} bytes reach the library's own reader")


class Taken:
    """Remembers what is handed over; one of a content that can't be believed raises."""

    def __init__(self) -> None:
        self.answers: list[bytes] = []
        self.failures: list[Exception] = []

    def take(self, answer: bytes) -> None:
        if answer == b"odd":
            raise LookupError("it is odd")
        self.answers.append(answer)


def framed(answers: Sequence[bytes]) -> bytes:
    return b"".join(struct.pack(">i", len(answer)) + answer for answer in answers)


def fed(data: bytes, cuts: Sequence[int]) -> Taken:
    reader, taken = Reader(), Taken()
    Answers(reader, taken.take, taken.failures.append)
    at = 0
    for size in (*cuts, len(data)):
        reader.feed_data(data[at : at + size])
        at += size
    return taken


cuts = st.lists(st.integers(0, 30), max_size=40)


@given(st.lists(st.binary(max_size=50).filter(lambda one: one != b"odd"), max_size=8), cuts)
def test_each_answer_is_handed_over_whole_however_bytes_come(answers: list[bytes], sizes: list[int]) -> None:
    taken = fed(framed(answers), sizes)
    assert (taken.answers, taken.failures) == (answers, [])


@given(st.lists(st.binary(max_size=20), max_size=3), cuts)
def test_nothing_is_believed_after_an_answer_that_can_not_be_taken(before: list[bytes], sizes: list[int]) -> None:
    before = [one for one in before if one != b"odd"]
    for bad in (framed([b"odd"]), struct.pack(">i", -1)):
        taken = fed(framed(before) + bad + framed([b"after"]), sizes)
        assert (taken.answers, len(taken.failures)) == (before, 1)


@given(st.lists(st.integers(1, 200_000), min_size=1, max_size=6), st.data())
def test_what_is_still_looked_at_stays_as_it_was_when_more_answers_come(sizes: list[int], data: st.DataObject) -> None:
    reader, kept, expected = Reader(), [], []
    looks = [data.draw(st.booleans()) for _ in sizes]
    number = 0

    def take(answer: bytes | memoryview) -> None:
        if looks[number]:
            kept.append(memoryview(answer))
            expected.append(bytes(answer))

    Answers(reader, take, lambda error: pytest.fail(str(error)))
    for number, size in enumerate(sizes):  # `take` reads it
        whole = framed([bytes([number + 1]) * size])
        for at in range(0, len(whole), 60_000):
            reader.feed_data(whole[at : at + 60_000])
    assert [bytes(one) for one in kept] == expected
    assert [set(one) for one in expected] == [{number + 1} for number, looked in enumerate(looks) if looked]


def test_no_room_is_made_for_what_only_was_announced_when_somebody_speaks_no_kafka() -> None:
    reader, taken = Reader(), Taken()
    answers = Answers(reader, taken.take, taken.failures.append)
    tracemalloc.start()
    try:
        reader.feed_data(b"HTTP/1.1 400 Bad Request\r\n")  # 1.2 GB, read as a size
        reader.feed_data(bytes(1024**2))
        assert tracemalloc.get_traced_memory()[1] < 16 * 1024**2
    finally:
        tracemalloc.stop()
    assert (answers._filled, taken.answers, taken.failures) == (1024**2 + 22, [], [])


def test_an_answer_of_megabytes_is_joined_once_when_it_comes_in_many_pieces() -> None:
    answer = bytes(8 * 1024**2)
    taken = fed(framed([answer]), [64 * 1024] * 130)
    assert taken.answers == [answer]
