"""What a report is made of: the records of its runs, the facts that they come to, and what was counted of the lines."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from proxy.reports.activity import heat_width
from proxy.reports.files import ReportError
from proxy.reports.intake import Row, Taken, stored, take_in
from proxy.reports.records import read_lines
from proxy.reports.schema import KINDS
from proxy.reports.session import for_little
from proxy.reports.timeline import width_for

PRODUCED = "produced"
FEW = 20_000
"""Records of a kind up to which one task reads them all: then nothing is shuffled, which takes longer than the work.
Nor is code made for them (`session.for_little`)."""


@dataclass(frozen=True)
class Span:
    """One run's first and last instant, in milliseconds since 1970."""

    start_ms: int
    end_ms: int


@dataclass(frozen=True)
class Layers:
    """The layers of one report."""

    taken: Taken
    records: Mapping[str, DataFrame]
    """By kind, of kinds of which there are records: run, file, at_ms, instance and the fields."""
    facts: Mapping[str, DataFrame] | None
    """By name, merged by minutes or longer; null where they are to be made from the records."""
    spans: Mapping[str, Span]
    width_s: int
    """Seconds that one point of a graph stands for; whole minutes if there are facts: runs begin with one then."""
    is_cut: bool = False
    """Of a window: what lies before or behind it was left out."""
    going_on: frozenset[str] = frozenset()
    """Runs of which something lies behind the window: that a process did not stop in it says nothing."""

    @property
    def heat_s(self) -> int:
        """Seconds that a column of the heat map stands for."""
        longest = max((span.end_ms - span.start_ms) / 1000 for span in self.spans.values())
        intervals = [row["interval_s"] or 0.0 for row in self.taken.kinds if row["kind"] == "type"]
        return heat_width(longest, self.width_s, max(intervals, default=0.0))


def spans(taken: Taken, runs: Mapping[str, Sequence[str]]) -> dict[str, Span]:
    """Return the span of each run: it starts with the first event due, where that is known, else the first record.

    Raises `ReportError` for a run without records, with the paths that were given for it.
    """
    return {run: _span(taken, run, paths) for run, paths in runs.items()}


def width_of(kinds: Sequence[Row], spans: Mapping[str, Span]) -> int:
    """Return how many seconds one point of a graph should stand for."""
    longest = max((span.end_ms - span.start_ms) / 1000 for span in spans.values())
    intervals = [kind["interval_s"] or 0.0 for kind in kinds if kind["kind"] != "type"]
    return width_for(longest, max(intervals, default=0.0))


def read(spark: SparkSession, runs: Mapping[str, Sequence[str]], folder: str, say: Callable[[str], None]) -> Layers:
    """Return the layers of these files; their records are kept in `folder`, which must last as long as the layers.

    Raises `ReportError` if a run has no records.
    """
    taken = take_in(read_lines(spark, runs), list(runs), folder, say)
    found = spans(taken, runs)
    return Layers(taken, records_of(spark, taken, folder), None, found, width_of(taken.kinds, found))


def records_of(spark: SparkSession, taken: Taken, folder: str) -> dict[str, DataFrame]:
    """Return the records by kind that were taken into a folder."""
    lines = lines_of(taken)
    return {kind: read_as(spark, kind, [folder], lines[kind]) for kind in sorted(lines.keys() & KINDS.keys())}


def lines_of(taken: Taken) -> Counter[str]:
    """Return how many records there are of each kind, in all runs."""
    lines = Counter[str]()
    for row in taken.kinds:
        lines[row["kind"]] += row["lines"]
    return lines


def read_as(spark: SparkSession, kind: str, folders: Sequence[str], lines: int) -> DataFrame:
    """Return the records of a kind as so many are best read."""
    return stored(for_little(spark), kind, folders).coalesce(1) if lines <= FEW else stored(spark, kind, folders)


def _span(taken: Taken, run: str, paths: Sequence[str]) -> Span:
    found = [kind for kind in taken.kinds if kind["run"] == run]
    if not found:
        rejected = sum(row["lines"] for row in taken.rejected if row["run"] == run)
        raise ReportError(f"{', '.join(paths)}: no metric records ({rejected} lines are none)")
    due = [kind["first_ms"] for kind in found if kind["kind"] == PRODUCED]
    start = due[0] if due else min(kind["first_ms"] for kind in found)
    return Span(start, max(kind["last_ms"] for kind in found))
