"""A recording: records as they were written, in the order of their instants, by kind and process."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Recording:
    """The records of one window; instants are in seconds from its begin."""

    begins_ms: int
    """Milliseconds since 1970."""
    seconds: float
    by_kind: Mapping[str, Sequence[Record]]

    @classmethod
    def of(cls, records: Iterable[Record], begins_ms: int | None = None, seconds: float | None = None) -> "Recording":
        """Order the records of a window; by default it begins with the first interval and ends with the last one.

        There must be a `class` record. `start` records count whenever they were written, `settings` that came before
        the window, too.
        """
        ordered = sorted(records, key=lambda record: record["at_ms"])
        intervals = [record for record in ordered if record["kind"] == "class"]
        if begins_ms is None:
            begins_ms = min(round(record["at_ms"] - 1000 * record["interval_s"]) for record in intervals)
        if seconds is None:
            seconds = (intervals[-1]["at_ms"] - begins_ms) / 1000
        ends_ms = begins_ms + 1000 * seconds
        by_kind: dict[str, list[Record]] = defaultdict(list)
        for record in ordered:
            is_plan = record["kind"] == "start" or (record["kind"] == "settings" and record["at_ms"] <= ends_ms)
            if is_plan or begins_ms <= record["at_ms"] <= ends_ms:
                by_kind[record["kind"]].append(record)
        return cls(begins_ms, seconds, by_kind)

    def of_kind(self, kind: str) -> Sequence[Record]:
        """Return the records of a kind, the earliest first."""
        return self.by_kind.get(kind, ())

    def at(self, record: Record) -> float:
        """Return when it was written."""
        return float(record["at_ms"] - self.begins_ms) / 1000

    @property
    def in_force(self) -> Record | None:
        """What was in force at the end: the last `start` record, or what came later; None if there is no start."""
        start = next(reversed(self.of_kind("start")), None)
        later = next(reversed(self.of_kind("settings")), None)
        if start is None or later is None or later["at_ms"] < start["at_ms"]:
            return start
        return {**start, **{name: later[name] for name in ("routes", "settings")}}

    def by_process(self, kind: str, **fields: str) -> Iterator[list[Record]]:
        """Yield the records of each process that has some with these fields."""
        found: dict[str, list[Record]] = defaultdict(list)
        for record in self.of_kind(kind):
            if all(record[name] == value for name, value in fields.items()):
                found[record["instance"]].append(record)
        yield from found.values()

    @property
    def classes(self) -> list[str]:
        """The classes with events, the most important first as a `start` record has them, else by name."""
        busy = {
            record["class"]
            for record in self.of_kind("class")
            if record["received"] or record["confirmed"] or record["lag"]
        }
        start = self.in_force
        return [name for name in (start["classes"] if start is not None else sorted(busy)) if name in busy]
