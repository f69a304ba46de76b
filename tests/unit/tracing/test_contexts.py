"""Which events are sampled, by W3C trace context."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.model import Event
from proxy.tracing.contexts import Context, context, sampled

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def parent(flags: str = "01", *, trace: str = TRACE, span: str = SPAN, version: str = "00", more: str = "") -> bytes:
    return f"{version}-{trace}-{span}-{flags}{more}".encode()


def event(*headers: tuple[str, bytes | None]) -> Event:
    return Event(0, None, None, b"x", headers, 1)


def test_events_are_sampled_when_the_lowest_bit_of_the_flags_is_set() -> None:
    events = [
        event(),
        event(("traceparent", parent("00"))),
        event(("baggage", b"a=b"), ("traceparent", parent("01"))),
        event(("traceparent", None)),
        event(("traceparent", parent("03")), ("traceparent", parent("00"))),
        event(("traceparent", b"01")),
        event(("traceparent", parent("ff"))),
        event(("traceparent", parent("f2"))),
    ]
    assert sampled(events) == [events[2], events[4], events[6]]


@given(st.integers(0, 255))
def test_every_flag_is_read_as_a_number_would_be(flags: int) -> None:
    assert bool(sampled([event(("traceparent", parent(f"{flags:02x}")))])) is bool(flags & 1)


def test_a_context_is_read_with_what_vendors_have_noted() -> None:
    told = context((("tracestate", b"a=1,b=2"), ("traceparent", parent())))
    assert told == Context(int(TRACE, 16), int(SPAN, 16), "a=1,b=2")
    later = context((("traceparent", parent(version="01", more="-anything")),))
    assert later == Context(int(TRACE, 16), int(SPAN, 16), "")


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        parent(trace="0" * 32),
        parent(span="0" * 16),
        parent(version="ff"),
        parent(more="-01"),
        parent(trace=TRACE.upper()),
        parent("0g"),
        b"\xff" * 55,
        parent()[:-1],
    ],
)
def test_there_is_no_context_when_it_is_not_of_the_form(value: bytes | None) -> None:
    assert context((("traceparent", value),)) is None


def test_vendors_notes_are_left_out_when_they_are_too_long_or_no_text() -> None:
    for state in (b"a" * 513, b"a=\xff"):
        told = context((("traceparent", parent()), ("tracestate", state)))
        assert told is not None
        assert told.state == ""


@given(st.lists(st.tuples(st.sampled_from(["traceparent", "tracestate", "x"]), st.none() | st.binary(max_size=70))))
def test_nothing_fails_whatever_headers_hold(headers: list[tuple[str, bytes | None]]) -> None:
    context(tuple(headers))
    sampled([event(*headers)])
