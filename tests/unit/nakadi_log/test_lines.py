"""Events come out of a stream with the bytes they went in with, however the stream was cut."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.nakadi_log.lines import BadLineError, Lines, LongLineError, batch

_TEXT = st.text(max_size=20) | st.sampled_from(['"', "\\", '\\"', "]}", '"events":[', "\u2028", "\U0001f600", "\n"])
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4),
    max_leaves=12,
)
_OBJECTS = st.dictionaries(_TEXT, _JSON, max_size=4)


def written(value: Any, *, ascii_only: bool, spaced: bool) -> bytes:
    separators = (" , ", " : ") if spaced else (",", ":")
    return json.dumps(value, ensure_ascii=ascii_only, separators=separators).encode("utf-8", "replace")


def line(events: list[bytes], offset: str = "001-0001-000000000000000099", blank: bytes = b"") -> bytes:
    cursor = {"partition": "3", "offset": offset, "event_type": "orders", "cursor_token": "t"}
    told = blank + b"," + blank
    return b'{"cursor":%b,"events":[%b%b%b]}' % (json.dumps(cursor).encode(), blank, told.join(events), blank)


@given(
    st.lists(st.tuples(_OBJECTS, st.booleans(), st.booleans()), min_size=1, max_size=6),
    st.sampled_from([b"", b" ", b"\t ", b"  "]),
)
def test_an_event_has_the_bytes_it_was_written_with_when_it_is_cut_out_of_its_batch(
    objects: list[tuple[dict[str, Any], bool, bool]], blank: bytes
) -> None:
    events = [written(value, ascii_only=plain, spaced=spaced) for value, plain, spaced in objects]
    found = batch(line(events, blank=blank))
    assert found is not None
    assert [event.value for event in found.events] == events
    assert [event.position for event in found.events] == list(range(100 - len(events), 100))
    assert (found.number, found.place, found.size) == (3, 99, sum(map(len, events)))


@given(
    st.lists(st.binary(max_size=30).map(lambda some: some.replace(b"\n", b" ")), max_size=8),
    st.lists(st.integers(1, 12), max_size=40),
)
def test_lines_are_whole_when_they_come_in_any_pieces(lines: list[bytes], sizes: list[int]) -> None:
    stream, reader, found = b"".join(each + b"\n" for each in lines), Lines(30), list[bytes]()
    for size in [*sizes, len(stream) + 1]:
        found += reader.feed(stream[:size])
        stream = stream[size:]
    assert found == [each for each in lines if each.strip()]


def test_a_line_is_refused_when_it_grows_beyond_its_bound() -> None:
    reader = Lines(10)
    assert list(reader.feed(b"0123456789\n01234")) == [b"0123456789"]
    with pytest.raises(LongLineError):
        list(reader.feed(b"567890"))
    with pytest.raises(LongLineError):
        list(Lines(10).feed(b"0123456789a\n"))


def test_the_bridge_gets_key_and_instant_when_metadata_has_them() -> None:
    metadata = {
        "eid": "e",
        "occurred_at": "2024-03-05T11:22:33.987+01:00",
        "partition_compaction_key": "k\u00e4",
        "span_ctx": {"a": 1},
    }
    found = batch(line([json.dumps({"metadata": metadata}).encode(), b'{"metadata":{}}', b"{}"]))
    assert found is not None
    first, second, third = found.events
    assert (first.timestamp_ms, first.key) == (1_709_634_153_987, "kä".encode())
    assert first.size == len(first.value or b"") + 3
    assert [(event.timestamp_ms, event.key) for event in (second, third)] == [(None, None)] * 2


@pytest.mark.parametrize(
    ("metadata", "key"),
    [
        ({"occurred_at": "yesterday", "partition_compaction_key": "k"}, b"k"),
        ({"occurred_at": "2024-03-05T11:22:33", "partition_compaction_key": "k"}, b"k"),
        ({"occurred_at": 7, "partition_compaction_key": "k"}, b"k"),
        ({"partition_compaction_key": 7}, None),
        ("none", None),
        (None, None),
    ],
)
def test_an_event_goes_through_when_its_metadata_is_not_as_it_should_be(metadata: object, key: bytes | None) -> None:
    value = json.dumps({"metadata": metadata}).encode()
    found = batch(line([value]))
    assert found is not None
    [event] = found.events
    assert (event.value, event.timestamp_ms, event.key) == (value, None, key)


def test_a_line_without_events_is_a_keep_alive_when_it_has_a_cursor() -> None:
    found = batch(line([]).replace(b',"events":[]', b""))
    assert found is not None
    assert (found.place, found.events) == (99, [])
    assert batch(b'{"info":{"debug":"Stream timed out"}}') is None


@pytest.mark.parametrize(
    "bad",
    [b"<html>", b"[]", b"{", line([b"{}"], "soon"), line([b"{}"]).replace(b'"3"', b'"three"'), line([b"{]"])],
)
def test_a_line_is_refused_when_it_is_none_of_the_api(bad: bytes) -> None:
    with pytest.raises(BadLineError):
        batch(bad)
