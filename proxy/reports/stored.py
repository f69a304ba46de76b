"""A report from a store: what is new is taken in, what is old removed, and the rest is not read again."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from proxy.reports.retained import Keep, Window

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from proxy.reports.analysis import Analysis
    from proxy.reports.layers import Layers
    from proxy.reports.store import Shelf

OPEN = ".open"
"""Ends the name of a file that a process still writes."""
_SCRATCH = "_unfinished"


@dataclass(frozen=True)
class Stored:
    """How a report is made from a store."""

    store: str
    keep: Keep = field(default_factory=Keep)
    window: Window = field(default_factory=Window)
    rebuild: bool = False

    @classmethod
    def of(
        cls, store: str, keep: Sequence[str], since_ms: int | None, until_ms: int | None, *, rebuild: bool
    ) -> "Stored":
        """Return what options say. Raises `ReportError`."""
        place = store if "://" in store or not store else str(Path(store).absolute())
        return cls(place, Keep.of(keep), Window.of(since_ms, until_ms), rebuild)

    def analyse(
        self,
        spark: "SparkSession",
        runs: Mapping[str, Sequence[str]],
        files: Mapping[str, Sequence[str]],
        tables: str,
        say: Callable[[str], None],
    ) -> "Analysis":
        """Take in what is new of the runs' paths, and make the tables; `files` tells which are still written.

        Raises `ReportError` if a run has no records, or the store can't be used, or another report has it; what Spark
        raises otherwise.
        """
        from proxy.reports.analysis import tabled
        from proxy.reports.places import join
        from proxy.reports.store import Shelf

        shelf, scratch = Shelf(spark, self.store), join(tables, _SCRATCH)
        with shelf.prepared(rebuild=self.rebuild):
            try:
                return tabled(spark, self.layers(shelf, runs, files, scratch, say), tables, say)
            finally:
                shelf.places.delete(scratch)

    def layers(
        self,
        shelf: "Shelf",
        runs: Mapping[str, Sequence[str]],
        files: Mapping[str, Sequence[str]],
        scratch: str,
        say: Callable[[str], None],
    ) -> "Layers":
        """Return the layers of a store that is prepared.

        Records of files that are still written are in `scratch` as long as the layers are used.
        What `files` lacks of what lies in the runs' paths came meanwhile, or can't be read to its end.
        """
        from proxy.reports.files import log_files
        from proxy.reports.intake import Taken, take_in
        from proxy.reports.layers import records_of
        from proxy.reports.places import looked_up
        from proxy.reports.records import read_lines
        from proxy.reports.store import merge, opened, remove_old, take_new

        for run, paths in runs.items():
            lacking = set(looked_up(log_files(paths), shelf.places)).difference(files[run])
            unreadable = {file.rpartition("/")[2] for file in lacking if not shelf.places.is_readable(file)}
            take_new(shelf, run, paths, unreadable, say)
            merge(shelf, run, say)
        remove_old(shelf, self.keep)
        unfinished = {run: [file for file in some if file.endswith(OPEN)] for run, some in files.items()}
        unfinished = {run: some for run, some in unfinished.items() if some}
        spark = shelf.spark
        more = take_in(read_lines(spark, unfinished), list(unfinished), scratch, say) if unfinished else Taken()
        return opened(shelf, runs, self.window, records_of(spark, more, scratch), more)
