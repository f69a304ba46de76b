"""Takes what is new of a run's log into a store: Structured Streaming says which files, each batch is done whole."""

import hashlib
import re
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from pathlib import Path
from urllib.parse import unquote

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from proxy.reports.facts import by_grain, facts_of
from proxy.reports.files import as_spark_path
from proxy.reports.intake import take_in
from proxy.reports.layers import records_of
from proxy.reports.overview import CUT_SHORT
from proxy.reports.places import is_address
from proxy.reports.records import told_lines
from proxy.reports.store.shelf import MINUTE, Batch, Shelf
from proxy.reports.together import together

FINISHED = "*.{jsonl,jsonl.gz}"
"""What is taken for good. A file that a process still writes (`.open`) is read for each report anew."""
BATCH_BYTES = 256 * 1024**2
"""Of files in one batch: three million records, compressed."""
_ALL_AGES = "36500d"
"""A file counts however late it comes; Spark would pass over what is a week older than the newest one."""


def take_new(
    shelf: Shelf, run: str, paths: Sequence[str], unreadable: AbstractSet[str], say: Callable[[str], None]
) -> None:
    """Take the finished files of a run that no batch of the store has; what was killed is done again, to the same end.

    A file is known by its name, which is one process's own: of copies the one that came first counts. Those called as
    the `unreadable` ones are left out for good, and the report says so each time.
    """
    for path in paths:
        source = shelf.spark.readStream.format("text").option("lineSep", "\n").option("maxFileAge", _ALL_AGES)
        source = source.option("maxBytesPerTrigger", BATCH_BYTES).option("recursiveFileLookup", value=True)
        source = source.option("ignoreCorruptFiles", value=bool(unreadable))
        folder, pattern = _parts(path)
        if not is_address(folder) or shelf.places.exists(folder):
            folder = as_spark_path(folder)  # taken literally, as `places.looked_up` does
        name = hashlib.sha256(f"{run}\0{path}".encode()).hexdigest()[:12]
        text = source.option("pathGlobFilter", pattern).load(folder)
        lines = told_lines(text, run)
        taking = partial(_take, shelf, run, name, frozenset(unreadable), say)
        query = (
            lines.writeStream.foreachBatch(taking)
            .option("checkpointLocation", shelf.checkpoint(name))
            .trigger(availableNow=True)
            .start()
        )
        try:
            query.awaitTermination()
        finally:
            query.stop()


def _parts(path: str) -> tuple[str, str]:
    """Return a folder, and which names in it are meant: a stream watches folders only."""
    if not is_address(path) and Path(path).is_file():
        return str(Path(path).absolute().parent), re.sub(r"([\[\]{}*?\\])", r"\\\1", Path(path).name)
    return path if is_address(path) else str(Path(path).absolute()), FINISHED


def _take(
    shelf: Shelf,
    run: str,
    stream: str,
    unreadable: AbstractSet[str],
    say: Callable[[str], None],
    lines: DataFrame,
    number: int,
) -> None:
    """Make a batch of lines (run, file, value, path)."""
    name = f"{stream}-{number:08d}"
    if shelf.has_batch(name):  # killed when it was whole, before the stream had noted it
        return
    known = {file for batch in shelf.batches() if batch.run == run for file in batch.files}
    paths = sorted(row.path for row in lines.select("path").distinct().collect())
    chosen: dict[str, str] = {}
    for path in paths:
        file = unquote(path.rsplit("/", 1)[-1])
        if file not in unreadable | known:
            chosen.setdefault(file, path)
    short = sorted(unreadable - known)
    left_out = [{"run": run, "file": file, "reason": CUT_SHORT, "lines": 0, "sample": ""} for file in short]
    say(f"batch {name}: {len(chosen)} files")
    if set(chosen.values()) != set(paths):
        lines = lines.where(fn.col("path").isin(*chosen.values()))
    files = sorted([*chosen, *short])
    if not chosen:
        shelf.put(Batch(name, run, files, rejected=left_out))
        return
    folder = shelf.records(name)
    taken = take_in(lines.drop("path"), [run], folder, say)
    spark = lines.sparkSession
    told = facts_of(spark, records_of(spark, taken, folder))
    together(partial(shelf.write_fact, by_grain(fact, rows), name, MINUTE, fact) for fact, rows in told.items())
    shelf.put(Batch(name, run, files, taken.kinds, [*taken.rejected, *left_out], sorted(told)))
