"""The layers of a report, from a store and from what is not in it yet."""

from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from proxy.reports.facts import BY_MINUTE, FACTS, rows_of
from proxy.reports.files import ReportError
from proxy.reports.intake import Row, Taken, united
from proxy.reports.layers import Layers, Span, lines_of, read_as, spans, width_of
from proxy.reports.retained import Window
from proxy.reports.schema import KINDS
from proxy.reports.store.shelf import GRAINS_MS, LASTING, MINUTE, Batch, Shelf, whole

MINUTE_S = GRAINS_MS[MINUTE] // 1000


def opened(
    shelf: Shelf, runs: Mapping[str, Sequence[str]], window: Window, unfinished: Mapping[str, DataFrame], more: Taken
) -> Layers:
    """Return what a store holds of runs in a window, and of the files that are still written (`unfinished`, `more`).

    Points of a graph that stand for less than a minute are made from records, the others from facts; then a window's
    edges are those of the minutes that they lie in. Of batches whose records were removed there are only facts. Raises
    `ReportError` if a run has no records in the window.
    """
    is_cut = window != Window()
    batches = [batch for batch in shelf.batches() if batch.run in runs]
    within = [batch for batch in batches if any(_overlaps(kind, window) for kind in batch.kinds)]
    taken = _counted(within, window, more)
    told = {kind["run"] for kind in taken.kinds}
    if is_cut and (empty := [run for run in runs if run not in told]):
        raise ReportError(f"{', '.join(runs[empty[0]])}: no metric records in this time (--since, --until)")
    found = spans(taken, runs)
    width_s = width_of(taken.kinds, found)
    by_facts = width_s >= MINUTE_S or not all(batch.has_records for batch in within)
    if by_facts:
        width_s = max(1, -(-width_s // MINUTE_S)) * MINUTE_S
        window = window.in_minutes()
        found = {run: _floored(span, width_s) for run, span in found.items()}
    records = _records(shelf, batches, window, unfinished, lines_of(taken))
    facts = _facts(shelf, batches, window, unfinished, width_s) if by_facts else None
    return Layers(taken, records, facts, found, width_s, is_cut, _going_on(batches, window))


def _counted(batches: Sequence[Batch], window: Window, more: Taken) -> Taken:
    """Return what was counted of the lines of batches, kind by kind."""
    sums: dict[tuple[str, str], Row] = {}
    for told in (*(kind for batch in batches for kind in batch.kinds), *more.kinds):
        kind = _clipped(told, window)
        if kind["first_ms"] > kind["last_ms"]:
            continue
        both = sums.setdefault((kind["run"], kind["kind"]), kind | {"lines": 0})
        both["lines"] += kind["lines"]
        both["first_ms"] = min(both["first_ms"], kind["first_ms"])
        both["last_ms"] = max(both["last_ms"], kind["last_ms"])
        both["interval_s"] = max(filter(None, (both["interval_s"], kind["interval_s"])), default=None)
    rejected = united(row for batch in batches for row in batch.rejected)
    return Taken([sums[key] for key in sorted(sums)], united([*rejected, *more.rejected]))


def _going_on(batches: Sequence[Batch], window: Window) -> frozenset[str]:
    """Return the runs of which a store has something behind the window."""
    end_ms = window.until_ms
    return frozenset(batch.run for batch in batches if end_ms is not None and batch.last_ms > end_ms)


def _clipped(kind: Row, window: Window) -> Row:
    """Return what is told of a kind as if nothing lay outside the window, but for the number of lines."""
    first, last = kind["first_ms"], kind["last_ms"]
    since = first if window.since_ms is None else max(first, window.since_ms)
    return kind | {"first_ms": since, "last_ms": last if window.until_ms is None else min(last, window.until_ms)}


def _floored(span: Span, width_s: int) -> Span:
    width_ms = 1000 * width_s
    return Span(span.start_ms // width_ms * width_ms, span.end_ms)


def _records(
    shelf: Shelf,
    batches: Sequence[Batch],
    window: Window,
    unfinished: Mapping[str, DataFrame],
    lines: Mapping[str, int],
) -> dict[str, DataFrame]:
    """Return the records of each kind; of processes' starts those before the window, too.

    `lines`: about how many there are of each.
    """
    found = {}
    for kind in KINDS:
        wanted = Window(None, window.until_ms) if kind in LASTING else window
        folders = [shelf.records(batch.name) for batch in batches if _has(batch, kind, wanted)]
        parts = [read_as(shelf.spark, kind, folders, lines.get(kind, 0))] if folders else []
        parts += [unfinished[kind]] if kind in unfinished else []
        if parts:
            found[kind] = _inside(reduce(DataFrame.unionByName, parts), wanted)
    return found


def _facts(
    shelf: Shelf, batches: Sequence[Batch], window: Window, unfinished: Mapping[str, DataFrame], width_s: int
) -> dict[str, DataFrame]:
    """Return the facts by the longest grain that a point of a graph and the window's edges are made of."""
    edges = [1000 * width_s, *(edge for edge in (window.since_ms, window.until_ms) if edge is not None)]
    grain = max(
        (name for name, grain_ms in GRAINS_MS.items() if not any(edge % grain_ms for edge in edges)),
        key=lambda name: GRAINS_MS[name],
    )
    # What is merged says nothing of its kinds itself.
    own = [batch for batch in whole(batches) if batch.merged or any(_overlaps(kind, window) for kind in batch.kinds)]
    found = {}
    for name in FACTS:
        parts = [shelf.read_fact(name, own, grain)] if any(name in batch.facts for batch in own) else []
        new = rows_of(name, unfinished)
        parts += [] if new is None else [new]
        if parts:
            found[name] = _inside(reduce(DataFrame.unionByName, parts), window)
    if grain != MINUTE and "latencies" in found:
        found[BY_MINUTE] = _inside(shelf.read_fact("latencies", own, MINUTE), window)
    return found


def _has(batch: Batch, kind: str, window: Window) -> bool:
    return batch.has(kind, window.since_ms, window.until_ms)


def _overlaps(kind: Row, window: Window) -> bool:
    return (window.since_ms is None or kind["last_ms"] > window.since_ms) and (
        window.until_ms is None or kind["first_ms"] <= window.until_ms
    )


def _inside(frame: DataFrame, window: Window) -> DataFrame:
    """Return the rows of a window."""
    if window.since_ms is not None:
        frame = frame.where(fn.col("at_ms") > window.since_ms)
    return frame if window.until_ms is None else frame.where(fn.col("at_ms") <= window.until_ms)
