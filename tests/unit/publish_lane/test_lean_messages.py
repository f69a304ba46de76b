"""Messages under `origin: id`, read by pamqp's own decoder: the id tells the whole origin, and nothing is empty."""

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.model import Event, Origin, Partition
from proxy.publish_lane.envelope import Envelope
from proxy.publish_lane.headers import UnfitError
from proxy.publish_lane.message_ids import message_id, stamp
from tests.support.amqp_messages import Message, expected_headers, origin_of, read, without_origin
from tests.unit.publish_lane.test_frames import PARTITION, envelope, event, records

OCTETS = "application/octet-stream"
INSTANT = 1_700_000_000_123
IN_BASE_36 = "loyw3v5n"


def lean(partition: Partition = PARTITION, **changes: object) -> Envelope:
    return envelope(partition=partition, **{"origin": Origin.ID, "content_type": OCTETS, "priority": None} | changes)


def told_by(message: Message) -> dict[str, object]:
    return {name: value for name, value in message.properties if value is not None and name != "cluster_id"}


def test_a_message_has_delivery_mode_and_id_and_nothing_else_when_the_record_has_a_value_only() -> None:
    message = read(lean().encode(event(key=None)))
    told = told_by(message)
    assert told == {"delivery_mode": 2, "message_id": f"orders-3-12-{IN_BASE_36}"}
    assert int(IN_BASE_36, 36) == INSTANT
    flags, table = struct.unpack_from(">H", message.frames[1], 7 + 12)[0], 0x2000
    assert not flags & table, "no table, not even an empty one"
    assert message.publish.mandatory


@pytest.mark.parametrize(
    ("changes", "record", "told"),
    [
        ({}, {"key": b"k"}, {"headers": {"tidegate-key": bytearray(b"k")}}),
        ({}, {"key": b""}, {"headers": {"tidegate-key": bytearray()}}),
        ({"carries_key": False}, {"key": b"k"}, {}),
        ({}, {"value": None}, {"headers": {"tidegate-tombstone": True}}),
        ({}, {"headers": (("trace", b"1"),)}, {"headers": {"trace": "1"}}),
        ({}, {"headers": (("content-type", b"a/b"),)}, {"content_type": "a/b"}),
        ({"content_type": "a/b"}, {}, {"content_type": "a/b"}),
        ({"content_type": ""}, {}, {}),
        ({"priority": 0}, {}, {"priority": 0}),
        ({"priority": 7}, {}, {"priority": 7}),
    ],
)
def test_what_says_something_is_told_when_the_rest_is_not(
    changes: dict[str, object], record: dict[str, object], told: dict[str, object]
) -> None:
    found = told_by(read(lean(**changes).encode(event(**{"key": None} | record))))
    del found["delivery_mode"], found["message_id"]
    assert found == told


@given(records, st.booleans())
@settings(max_examples=300)
def test_any_record_reads_as_the_mapping_says_when_its_origin_is_its_id(record: Event, carries_key: bool) -> None:
    made = lean(carries_key=carries_key)
    try:
        data = made.encode(record)
    except UnfitError:
        return  # as under `full`: test_frames
    message = read(data)
    assert data == made._encode_any(record), "the quick way and the one for any shape agree"
    assert message.properties.message_id == message_id(made.address, PARTITION, record).decode()
    assert message.body == (record.value or b"")
    if isinstance(record.position, int):
        assert origin_of(message) == (*PARTITION, str(record.position), record.timestamp_ms)
    own = without_origin(message.headers)
    assert own.pop("tidegate-key", None) == (record.key if carries_key else None)
    assert own.pop("tidegate-tombstone", None) == (True if record.value is None else None)
    assert own == {name: values[0] if len(values) == 1 else values for name, values in expected_headers(record).items()}


@given(st.lists(records, min_size=2, max_size=6))
def test_a_message_is_the_same_at_every_attempt_when_others_went_before(several: list[Event]) -> None:
    made = lean()
    for record in (*several, *reversed(several)):
        try:
            assert made.encode(record) == lean().encode(record)
        except UnfitError:
            continue


@given(st.integers(0, 2**63 - 1))
def test_an_instant_is_read_back_from_base_36_whatever_it_is(milliseconds: int) -> None:
    told = stamp(milliseconds)
    assert int(told, 36) == milliseconds
    assert told == told.lower()
    assert not told.startswith("0") or milliseconds == 0


@pytest.mark.parametrize(("length", "is_lean"), [(219, True), (220, False), (249, False)])
def test_headers_tell_the_origin_when_a_topic_is_so_long_that_an_id_could_exceed_255_bytes(
    length: int, is_lean: bool
) -> None:
    partition = Partition("t" * length, 3)
    greatest = event(position=2**63 - 1, timestamp_ms=2**63 - 1, key=None)
    for record in (event(key=None), greatest):
        message = read(lean(partition).encode(record))
        assert ("tidegate-topic" in message.headers) is not is_lean
        assert len(message.properties.message_id) <= 255
        assert origin_of(message) == (*partition, str(record.position), record.timestamp_ms)


@pytest.mark.parametrize("position", ["p" * 240, "p" * 300, "7:9"])
def test_a_position_that_is_a_text_is_told_whole_when_the_id_has_no_room_for_it(position: str) -> None:
    record = event(position=position)
    assert origin_of(read(lean().encode(record)))[2] == position


def test_a_dead_letter_tells_its_origin_by_headers_when_its_route_does_not() -> None:
    letter = read(envelope(lenient=True, notes=(("tidegate-reason", "refused"),)).encode(event()))
    assert letter.headers["tidegate-topic"] == "orders"
    assert letter.properties.message_id == "orders-3-12"
