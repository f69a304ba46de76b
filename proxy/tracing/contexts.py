"""Which events a producer has sampled, by the W3C trace context in their headers; pure."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from proxy.model import Event

TRACEPARENT, TRACESTATE = "traceparent", "tracestate"
_ODD = frozenset(b"13579bdf")
_FLAG = 54
"""Where the last digit of the flags stands, whose lowest bit says that the trace is sampled."""
_FORM = re.compile(rb"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}(-.*)?", re.DOTALL)
_MOST_STATE = 512
"""Bytes of a `tracestate` that are read; the form promises no more."""


class Context(NamedTuple):
    """Where a trace stands."""

    trace: int
    span: int
    state: str
    """What vendors have noted; empty if nothing."""


def sampled(events: Iterable[Event]) -> list[Event]:
    """Return the events whose context says that it is sampled; whether it is one at all, `context` says."""
    found = []
    for event in events:
        for name, value in event.headers:
            if name == TRACEPARENT:
                if value is not None and len(value) > _FLAG and value[_FLAG] in _ODD:
                    found.append(event)
                break
    return found


def context(headers: Sequence[tuple[str, bytes | None]]) -> Context | None:
    """Return the context in headers; None if there is none of the form."""
    told = dict(reversed(headers))  # of a name that stands there twice the first counts
    form = _FORM.fullmatch(told.get(TRACEPARENT) or b"")
    if form is None or (form[1] == b"00" and form[4] is not None):
        return None
    state = told.get(TRACESTATE) or b""
    is_fit = len(state) <= _MOST_STATE and state.isascii()
    return Context(int(form[2], 16), int(form[3], 16), state.decode("ascii") if is_fit else "")
