"""What came of each class, second by second, and what lay in the log before.

`received` is what was read, and reading is held back; what came is what was done with and what is left.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from proxy.tuning.recording import Record, Recording
from proxy.tuning.sums import Sum

LAG_PAUSE = 1.0
"""Seconds in which the lag is asked once, however often it is recorded: one that did not change is old for so long."""
ASKED_EARLY = 0.05
"""A question may come so much earlier than that, by the clock's rounding."""
LIVE = 1.0
"""Seconds since the oldest came up to which what lies in the log at first is no backlog."""
AT_FIRST = 2.0
"""Seconds in which a process must have begun to record, to have been there when the window began."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Of one class."""

    rates: tuple[float, ...]
    """Events that came in each second of the window."""
    backlog: int
    """Events that were in the log when it began."""
    backlog_age: float
    """Seconds since the oldest of them had come, as far as it was read."""
    size: int
    """Bytes of an event."""


def arrivals(recording: Recording, name: str) -> Arrivals | None:
    """Return what came of a class; None if its lag was never known."""
    oldest = 0.0
    sums: list[Sum] = []
    for records in recording.by_process("class", **{"class": name}):
        known = [record for record in _fresh(recording, records) if record["lag"] is not None]
        if not known:
            continue
        came = list(_came(recording, records, known))
        begins = recording.at(records[0])
        if begins <= AT_FIRST:
            oldest = max(oldest, known[0]["lag_age_s"] or 0.0)
        else:
            came.insert(0, (begins, 0.0))  # what it found there was another's before
        if recording.seconds - recording.at(records[-1]) > AT_FIRST:
            came.append((recording.at(records[-1]) + LAG_PAUSE, _done(records)))  # ... and what it left, is another's
        sums.append(Sum(came))
    if not sums:
        return None
    rates, most = [], sum(one.at(0.0) for one in sums)
    backlog = most
    for second in range(1, int(recording.seconds) + 1):
        now = max(most, sum(one.at(second) for one in sums))
        rates.append(now - most)
        most = now
    if oldest < LIVE and rates:
        rates[0], backlog = rates[0] + backlog, 0.0
    received = recording.of_kind("class")
    count = sum(record["received"] for record in received if record["class"] == name)
    bytes_ = sum(record["received_bytes"] for record in received if record["class"] == name)
    return Arrivals(tuple(rates), round(backlog), oldest, max(1, round(bytes_ / count)) if count else 1)


def _fresh(recording: Recording, records: Sequence[Record]) -> Iterator[Record]:
    """Yield the records whose lag was asked for them."""
    before: Record | None = None
    for record in records:
        if before is None or record["lag"] != before["lag"] or _is_due(recording, before, record):
            before = record
            yield record


def _is_due(recording: Recording, before: Record, record: Record) -> bool:
    return recording.at(record) - recording.at(before) >= LAG_PAUSE - ASKED_EARLY


def _came(recording: Recording, records: Sequence[Record], known: Sequence[Record]) -> Iterator[tuple[float, float]]:
    """Yield instants, and how many events had come until then, counted from those at first."""
    asked = {id(record) for record in known}
    done = 0.0
    for record in records:
        done += _done([record])
        if id(record) in asked:
            yield recording.at(record), done + record["lag"] - (record.get("ahead") or 0)


def _done(records: Sequence[Record]) -> float:
    return float(sum(record["confirmed"] + sum(record["dead_lettered"].values()) for record in records))
