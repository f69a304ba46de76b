"""Where the parts of a store lie, and the manifests of its batches."""

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field

from pyspark.sql import DataFrame, SparkSession

from proxy.reports.files import ReportError, as_spark_path
from proxy.reports.intake import Row
from proxy.reports.places import BESIDE, Places, join, written_to
from proxy.reports.store.lease import LOCKS
from proxy.reports.store.lock import LOCK, held

VERSION = 1
"""Of the layout, of the columns of the records and of the facts. A store of another one is made anew."""
CLEARING = -1
"""Instead of the version, as long as the parts are being removed."""
MARKER = "store.json"
"""Tells the version. A folder without it, or with one of somebody else's, is no store."""
_MADE_FIRST = {LOCK, LOCKS, f".{MARKER}{BESIDE}"}
PARTS = ("checkpoints", "batches", "facts", "records")
MINUTE, HOUR, DAY = "minute", "hour", "day"
GRAINS_MS = {MINUTE: 60_000, HOUR: 3_600_000, DAY: 86_400_000}
LASTING = ("start", "settings", "stop", "drops")
"""Kinds of which a process writes a few in its life: they are kept as long as the facts."""


@dataclass(frozen=True)
class Batch:
    """One batch of a store, as its manifest tells."""

    name: str
    run: str
    files: Sequence[str] = ()
    """Names of the log files in it."""
    kinds: Sequence[Row] = field(default_factory=list)
    """See `intake.Taken`."""
    rejected: Sequence[Row] = field(default_factory=list)
    facts: Sequence[str] = ()
    """Of which facts it has any."""
    merged: Sequence[str] = ()
    """Names of the batches whose facts are in this one; the batches themselves keep no others."""
    level: int = 0
    """How often its facts were merged."""
    has_records: bool = True
    """Whether there are more than those of `LASTING` kinds."""

    @property
    def last_ms(self) -> int:
        """The last instant told of, in milliseconds since 1970; 0 if there is no record."""
        return max((kind["last_ms"] for kind in self.kinds), default=0)

    def has(self, kind: str, since_ms: int | None, until_ms: int | None) -> bool:
        """Return whether there are records of a kind between two instants."""
        return (self.has_records or kind in LASTING) and any(
            told["kind"] == kind
            and (since_ms is None or told["last_ms"] > since_ms)
            and (until_ms is None or told["first_ms"] <= until_ms)
            for told in self.kinds
        )


class Shelf:
    """A store's folder."""

    def __init__(self, spark: SparkSession, store: str) -> None:
        self.spark, self.store, self.places = spark, store, Places(spark)
        self._check_held: Callable[[], None] | None = None

    @contextlib.contextmanager
    def prepared(self, *, rebuild: bool) -> Iterator[None]:
        """Have the store to oneself, made, or made anew if told so or if that was killed halfway.

        Raises `ReportError` if it is no store, one of another version, or another report has it.
        """
        self._check_ours()
        with held(self.places, self.store, self.spark.sparkContext.cancelAllJobs) as self._check_held:
            version = self._version()
            if rebuild or version == CLEARING:
                self._clear()
            elif version is None:
                self._mark(VERSION)
            elif version != VERSION:
                raise ReportError(f"{self.store}: a store of version {version}; --rebuild makes it anew")
            yield

    def _check_ours(self) -> None:
        """Raise `ReportError` if the folder has something in it and is no store: nothing there may be touched."""
        entries = {entry.place.rpartition("/")[2] for entry in self.places.entries(self.store)}
        if (entries - _MADE_FIRST and MARKER not in entries) or self._version() == 0:
            raise ReportError(f"{self.store}: is no store, and not empty; give a folder of its own by --store")

    def _version(self) -> int | None:
        """Return the version of the layout; null if the store is not made yet, 0 if what should tell it does not."""
        marker = join(self.store, MARKER)
        if not self.places.exists(marker):
            return None
        try:
            told = json.loads(self.places.read_text(marker))
        except ValueError:
            return 0
        version = told["v"] if isinstance(told, dict) and told.keys() == {"v"} else None
        return version if isinstance(version, int) else 0

    def _clear(self) -> None:
        """Remove the parts of the store, and nothing else that lies there.

        Killed in between, the streams' books would name files as read of which no batch tells any more.
        """
        self._mark(CLEARING)
        for part in PARTS:
            self.places.delete(join(self.store, part))
        self._mark(VERSION)

    def _mark(self, version: int) -> None:
        self.places.write_text(join(self.store, MARKER), json.dumps({"v": version}) + "\n")

    def batches(self) -> list[Batch]:
        """Return all batches, in order of their names."""
        found = (entry.place for entry in self.places.entries(join(self.store, "batches")))
        return [self._batch(place) for place in found if place.endswith(".json")]

    def has_batch(self, name: str) -> bool:
        """Return whether a batch is whole."""
        return self.places.exists(self._manifest(name))

    def put(self, batch: Batch) -> None:
        """Say that all of a batch is here. Raises `ReportError` if another process has the store by now."""
        if self._check_held is not None:
            self._check_held()
        self.places.write_text(self._manifest(batch.name), json.dumps(asdict(batch)) + "\n")

    def records(self, batch: str) -> str:
        """Return the folder of a batch's records."""
        return join(self.store, "records", batch)

    def facts(self, batch: str) -> str:
        """Return the folder of a batch's facts."""
        return join(self.store, "facts", batch)

    def checkpoint(self, stream: str) -> str:
        """Return the folder of a stream's own books, as Spark takes it."""
        place = join(self.store, "checkpoints", stream)
        return written_to(place)

    def write_fact(self, rows: DataFrame, batch: str, grain: str, fact: str) -> None:
        """Write facts over what a killed attempt may have left."""
        place = join(self.facts(batch), grain, fact)
        rows.write.mode("overwrite").parquet(written_to(place))

    def read_fact(self, fact: str, batches: Sequence[Batch], grain: str) -> DataFrame:
        """Return a fact of batches, by a grain; of what was not merged yet there are only minutes."""
        own = [(batch.name, grain if batch.merged else MINUTE) for batch in batches if fact in batch.facts]
        return self.spark.read.parquet(*[as_spark_path(join(self.facts(name), by, fact)) for name, by in own])

    def _batch(self, manifest: str) -> Batch:
        try:
            return Batch(**json.loads(self.places.read_text(manifest)))
        except (ValueError, TypeError) as error:
            raise ReportError(f"{manifest}: is damaged; --rebuild makes the store anew") from error

    def _manifest(self, name: str) -> str:
        return join(self.store, "batches", f"{name}.json")


def whole(batches: Sequence[Batch]) -> list[Batch]:
    """Return the batches whose own facts count: those that are merged in no other."""
    gone = {name for batch in batches for name in batch.merged}
    return [batch for batch in batches if batch.name not in gone]
