"""A consumer that looks at nothing while it lasts: counts and messages are right however the stream was cut."""

import struct

import pytest

from load.drain import ANSWER, Taken
from load.events import Bulk

BULK = Bulk(256, seed=1)


def frame(kind: int, payload: bytes) -> bytes:
    return struct.pack(">BHI", kind, 1, len(payload)) + payload + b"\xce"


def message(number: int) -> bytes:
    body = BULK.value(0, number)
    head = struct.pack(">HHQ", 60, 0, len(body)) + b"\x10\x00\x02"
    return frame(1, b"\x00\x3c\x00\x3c\x05drain") + frame(2, head) + frame(3, body[:100]) + frame(3, body[100:])


@pytest.mark.parametrize("size", [1, 7, 300, 100_000])
def test_every_message_is_counted_and_given_back_when_the_stream_comes_in_pieces(size: int) -> None:
    stream = b"".join(map(message, range(5))) + ANSWER
    taken = Taken()
    ended = [taken.add(stream[at : at + size]) for at in range(0, len(stream), size)]

    assert taken.count == 5
    assert [BULK.read(one.body) for one in taken.deliveries()] == [(0, number) for number in range(5)]
    assert {one.properties for one in taken.deliveries()} == {b"\x10\x00\x02"}
    assert ended == [False] * (len(ended) - 1) + [True]


def test_a_message_is_left_out_when_its_end_has_not_come() -> None:
    taken = Taken()
    taken.add(message(0) + message(1)[:-1])

    assert [BULK.read(one.body) for one in taken.deliveries()] == [(0, 0)]
