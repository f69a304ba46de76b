"""Frames against pamqp's own decoder: any record becomes the message that the mapping promises, or says why not."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.bridge.broker import Address
from proxy.model import Event, Partition, Reason
from proxy.publish_lane.envelope import Envelope
from proxy.publish_lane.frames import PIECE_BYTES, cut, each
from proxy.publish_lane.headers import UnfitError
from proxy.publish_lane.message_ids import message_id
from proxy.settings import RoutingKey
from tests.support.amqp_messages import as_field, expected_headers, frames_of, read, written

PARTITION = Partition("orders", 3)
FRAME_MAX = 131_072
CONSTANT = RoutingKey(constant="key")


def envelope(routing_key: RoutingKey = CONSTANT, partition: Partition = PARTITION, **changes: Any) -> Envelope:
    given = {"channel": 7, "frame_max": FRAME_MAX, "event_bytes": 1024**2, "headers": 64} | changes
    options = {
        name: given.pop(name)
        for name in ("notes", "lenient", "priority", "exchange", "content_type", "origin", "carries_key")
        if name in given
    }
    address = Address(**{"exchange": "ex", "content_type": "text/plain"} | options, routing_key=routing_key)
    return Envelope(address, partition, **given)


def event(**fields: Any) -> Event:
    record = {"position": 12, "timestamp_ms": 1_700_000_000_123, "key": b"k", "value": b"v", "headers": ()} | fields
    size = len(record["key"] or b"") + len(record["value"] or b"")
    size += sum(len(name.encode(errors="replace")) + len(value or b"") for name, value in record["headers"])
    return Event(**record, size=size)


names = st.text(max_size=60) | st.sampled_from(
    ["CC", "BCC", "x-delay", "tidegate-key", "Content-Type", "content-type", "trace", "log.CC"]
)
texts = st.text(max_size=40).map(str.encode)
records = st.builds(
    event,
    position=st.integers(0, 2**63) | st.text(max_size=20),
    timestamp_ms=st.none() | st.integers(0, (2**32 - 1) * 1000) | st.integers(-(2**40), -1),
    key=st.none() | st.binary(max_size=400),
    value=st.none() | st.binary(max_size=400),
    headers=st.lists(st.tuples(names, st.none() | st.binary(max_size=40) | texts), max_size=12).map(tuple),
)


@pytest.mark.parametrize("priority", [None, 0, 2, 255])
@pytest.mark.parametrize("fields", [{}, {"value": None}, {"timestamp_ms": None}])
def test_the_message_has_the_address_s_priority_when_it_is_of_any_shape(
    priority: int | None, fields: dict[str, Any]
) -> None:
    properties = read(envelope(priority=priority).encode(event(**fields))).properties
    assert (properties.priority, properties.message_id) == (priority, "orders-3-12")


def test_the_property_takes_no_byte_when_the_address_has_no_priority() -> None:
    zero, none = (read(envelope(priority=priority).encode(event())).frames for priority in (0, None))
    assert [len(frame) for frame in zero] == [len(none[0]), len(none[1]) + 1, len(none[2])]


@pytest.mark.parametrize("priority", [None, 2])
@pytest.mark.parametrize("longer", [-1, 0, 1])
def test_the_message_id_is_whole_up_to_255_bytes_when_there_is_a_priority_or_none(
    priority: int | None, longer: int
) -> None:
    partition = Partition("t" * (255 - len("-3-12") + longer), 3)
    made = envelope(partition=partition, priority=priority)
    told = read(made.encode(event())).properties.message_id
    assert told == message_id(made.address, partition, event()).decode()
    assert len(told) == (32 if longer > 0 else 255 + longer)


@given(records)
@settings(max_examples=150)
def test_any_record_reads_as_the_mapping_says_when_it_fits(record: Event) -> None:
    types = [value for name, value in record.headers if name.lower() == "content-type" and value is not None]
    if types and isinstance(as_field(types[-1]), bytearray):
        with pytest.raises(UnfitError, match="content type is not UTF-8"):
            envelope().encode(record)
        return
    made = envelope()
    message = read(made.encode(record))
    assert (message.publish.exchange, message.publish.routing_key) == ("ex", "key")
    assert message.body == (record.value or b"")
    own = dict(message.headers)
    assert own.pop("tidegate-topic") == "orders"
    assert own.pop("tidegate-partition") == 3
    assert own.pop("tidegate-position") == str(record.position)
    assert own.pop("tidegate-timestamp", None) == record.timestamp_ms
    assert own.pop("tidegate-key", None) == record.key
    assert own.pop("tidegate-tombstone", None) == (True if record.value is None else None)
    assert own == {name: values[0] if len(values) == 1 else values for name, values in expected_headers(record).items()}
    seconds = message.properties.timestamp and int(message.properties.timestamp.timestamp())
    positive = record.timestamp_ms is not None and record.timestamp_ms >= 0
    assert seconds == (record.timestamp_ms // 1000 if positive else None)
    assert message.properties.message_id == message_id(made.address, PARTITION, record).decode()
    assert message.properties.content_type == (types[-1].decode() if types else "text/plain")


@given(records, st.integers(1, 300), st.integers(0, 4), st.integers(5_500, 9_000))
@settings(max_examples=100)
def test_a_lenient_address_carries_every_record_whatever_does_not_fit(
    record: Event, event_bytes: int, headers: int, frame_max: int
) -> None:
    made = envelope(
        RoutingKey(key=True),
        lenient=True,
        event_bytes=event_bytes,
        headers=headers,
        frame_max=frame_max,
        notes=(("tidegate-reason", "refused"),),
    )
    message = read(made.encode(record))
    assert message.headers["tidegate-reason"] == "refused"
    assert message.body == (record.value or b"")[:event_bytes]
    assert message.headers.get("tidegate-original-size", len(record.value or b"")) == len(record.value or b"")
    assert max(map(len, message.frames)) <= frame_max


@given(st.integers(0, 300_000), st.sampled_from([4_096, 65_536, 131_072, 0]))
@settings(max_examples=60)
def test_a_body_is_split_into_frames_that_fit_whatever_its_length(length: int, frame_max: int) -> None:
    record = event(value=bytes(length))
    data = written(envelope(frame_max=frame_max).encode(record))
    message = read(data)
    assert len(message.body) == length
    assert all(len(raw) <= min(frame_max or PIECE_BYTES, PIECE_BYTES) for raw in message.frames[2:])
    pieces = list(cut(data, PIECE_BYTES))
    assert b"".join(pieces) == data
    assert all(len(piece) <= PIECE_BYTES for piece in pieces)
    for piece in pieces:
        assert b"".join(raw for raw, _, _ in frames_of(piece)) == piece


@pytest.mark.parametrize("size", [1, 5, 255, 256, 5000])
def test_the_common_shape_and_any_shape_encode_alike(size: int) -> None:
    record = event(key=b"k" * min(size, 255), value=b"v" * size)
    made = envelope()
    assert made.encode(record) == made._encode_any(record)


def test_long_positions_and_topics_get_a_short_message_id_that_stays_the_same() -> None:
    partition = Partition("t" * 249, 12)
    first = read(envelope(partition=partition).encode(event(position=10**18))).properties.message_id
    again = read(envelope(partition=partition).encode(event(position=10**18))).properties.message_id
    other = read(envelope(partition=partition).encode(event(position=10**18 + 1))).properties.message_id
    assert first == again != other
    assert len(first) == 32


@pytest.mark.parametrize(
    ("record", "reason", "words"),
    [
        (event(value=b"x" * 2001), Reason.TOO_LARGE, "limits.event_bytes is 2000"),
        (event(headers=(("a", b""),) * 5), Reason.TOO_MANY_HEADERS, "5 headers"),
        (event(headers=(("n" * 256, b""),)), Reason.BAD_PROPERTY, "header name"),
        (event(headers=(("x-" + "n" * 250, b""),)), Reason.BAD_PROPERTY, "256 bytes"),
        (event(headers=(("content-type", b"\xff"),)), Reason.BAD_PROPERTY, "content type is not UTF-8"),
        (event(headers=(("content-type", b"x" * 256),)), Reason.BAD_PROPERTY, "content type has 256 bytes"),
        (event(headers=(("\ud800", b""),)), Reason.BAD_PROPERTY, "not UTF-8"),
    ],
)
def test_what_cannot_be_carried_is_named_when_it_is_refused(record: Event, reason: Reason, words: str) -> None:
    with pytest.raises(UnfitError) as raised:
        envelope(event_bytes=2000, headers=4).encode(record)
    assert raised.value.reason is reason
    assert words in raised.value.detail


@pytest.mark.parametrize(
    ("source", "record", "words"),
    [
        (RoutingKey(header="to"), event(), "no header 'to'"),
        (RoutingKey(header="to"), event(headers=(("to", None),)), "no header 'to'"),
        (RoutingKey(header="to"), event(headers=(("to", b"\xff"),)), "header 'to', is not UTF-8"),
        (RoutingKey(key=True), event(key=b"\xff"), "the record's key, is not UTF-8"),
        (RoutingKey(key=True), event(key=b"k" * 256), "256 bytes"),
    ],
)
def test_a_missing_or_unfit_routing_key_is_a_bad_property(source: RoutingKey, record: Event, words: str) -> None:
    with pytest.raises(UnfitError) as raised:
        envelope(source).encode(record)
    assert raised.value.reason is Reason.BAD_PROPERTY
    assert words in raised.value.detail


def test_the_routing_key_comes_from_key_or_header_when_told_so() -> None:
    assert read(envelope(RoutingKey(key=True)).encode(event(key="ä".encode()))).publish.routing_key == "ä"
    assert read(envelope(RoutingKey(key=True)).encode(event(key=None))).publish.routing_key == ""
    record = event(headers=(("to", b"first"), ("to", b"second")))
    assert read(envelope(RoutingKey(header="to")).encode(record)).publish.routing_key == "second"


def test_headers_beyond_one_frame_are_a_bad_property_and_left_out_of_a_dead_letter() -> None:
    record = event(key=b"k" * 4000, headers=(("small", b"1"), ("large", b"x" * 5000), ("last", b"2")))
    with pytest.raises(UnfitError, match="longer than one frame"):
        envelope(frame_max=8192).encode(record)
    message = read(envelope(frame_max=8192, lenient=True).encode(record))
    assert message.headers["tidegate-omitted"] == "'key', 'large'"
    assert (message.headers["small"], message.headers["last"]) == ("1", "2")


def test_a_dead_letter_without_a_usable_routing_key_says_so() -> None:
    message = read(envelope(RoutingKey(key=True), lenient=True).encode(event(key=b"\xff")))
    assert message.publish.routing_key == ""
    assert "not UTF-8" in message.headers["tidegate-unfit-routing-key"]


@pytest.mark.parametrize("field", ["exchange", "content_type"])
def test_an_address_that_cannot_be_carried_is_a_bad_property(field: str) -> None:
    with pytest.raises(UnfitError):
        envelope(**{field: "ä" * 200})


def test_frames_are_told_apart_with_kind_and_channel() -> None:
    first, second = (
        written(envelope(channel=number).encode(event(value=bytes(size)))) for number, size in ((1, 9), (2, 100_000))
    )
    told = list(each(first + second))
    assert [(kind, channel) for kind, channel, _ in told] == [(1, 1), (2, 1), (3, 1), (1, 2), (2, 2), (3, 2), (3, 2)]
    assert b"".join(frame for _, _, frame in told) == first + second


def test_a_dead_letter_is_cut_to_what_the_broker_takes_and_tells_how_long_it_was() -> None:
    lenient = Address("", RoutingKey(constant="dead"), "text/plain", lenient=True)
    message = written(
        Envelope(
            lenient, PARTITION, channel=1, frame_max=131_072, event_bytes=5_000, headers=10, body_bytes=1_000
        ).encode(event(value=bytes(3_000)))
    )
    (header,) = [frame for _, _, frame in frames_of(message) if frame.name == "ContentHeader"]
    assert header.body_size == 1_000
    assert header.properties.headers["tidegate-original-size"] == 3_000
