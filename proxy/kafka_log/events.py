"""From the library's records to events: the one loop of this adapter that runs per event."""

from collections.abc import Iterable
from typing import Any

from proxy.model import Event

_new = tuple.__new__


def events(records: Iterable[Any]) -> list[Event]:
    """Return the records as events, in order.

    The tuples are made directly: `Event.__new__` is a Python call more for each.
    """
    made: list[Event] = []
    append = made.append
    for record in records:
        key = record.key
        value = record.value
        headers = record.headers
        timestamp = record.timestamp
        size = (len(key) if key else 0) + (len(value) if value else 0)
        if headers:
            for name, content in headers:
                size += (len(name) if name.isascii() else len(name.encode())) + (len(content) if content else 0)
        if timestamp is not None and timestamp < 0:
            timestamp = None  # the oldest format has none, and the library's record says so itself
        append(_new(Event, (record.offset, timestamp, key, value, tuple(headers), size)))
    return made
