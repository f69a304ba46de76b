"""The report's tables: their first rows for the page, Parquet files for everybody else."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.storagelevel import StorageLevel

from proxy.reports.files import as_spark_path
from proxy.reports.places import Places, join, written_to
from proxy.reports.session import for_little

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_COLLECTED = 20_000
"""So many rows of a table reach report.json and the page; Parquet holds all."""

Row = dict[str, Any]
BY_CLASS = ("run", "class")
BY_TYPE = ("run", "class", "type")


class Part(NamedTuple):
    """One of several tables that come from one query."""

    name: str
    of: tuple[str, str | None]
    """The column that says which rows are of it, and its value; null stands for any value."""
    columns: Mapping[str, str]
    """Its columns, and what each is called in the query."""
    order: Sequence[str]


@dataclass
class Tables:
    """What the reports found: Parquet files under `folder`, and their rows in order.

    A table small enough to be collected is written from here, without asking Spark again. Threads may add tables side
    by side.
    """

    spark: SparkSession
    folder: str
    say: Callable[[str], None]
    rows: dict[str, list[Row]] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Ask for the file systems once."""
        self._places = Places(self.spark)

    def add(self, name: str, frame: DataFrame, order: Sequence[str], *, many: bool = False) -> None:
        """Write the table and keep its first rows in the order of the columns given.

        One of more rows than are collected is asked for twice: where there may be so `many`, it is worked out once.
        """
        self.say(f"table {name}")
        if many:
            frame = frame.persist(StorageLevel.MEMORY_AND_DISK)
        found = frame.orderBy(*order).limit(ROWS_COLLECTED + 1).toArrow()
        if found.num_rows <= ROWS_COLLECTED:
            self.put(name, found)
        else:
            path = join(self.folder, name)
            frame.write.mode("overwrite").parquet(written_to(path))
            self.rows[name] = found.slice(0, ROWS_COLLECTED).to_pylist()
            self.totals[name] = self.spark.read.schema(frame.schema).parquet(as_spark_path(path)).count()
        if many:
            frame.unpersist()

    def add_parts(self, frame: DataFrame, parts: Sequence[Part]) -> None:
        """Write several tables that come from one query, which is asked once if what it gives is small."""
        frame = frame.persist(StorageLevel.MEMORY_AND_DISK)
        found = frame.limit(ROWS_COLLECTED + 1).toArrow()
        for part in parts:
            if found.num_rows <= ROWS_COLLECTED:
                self.say(f"table {part.name}")
                self.put(part.name, _part(found, part))
            else:
                column, value = part.of
                own = fn.col(column).isNotNull() if value is None else fn.col(column) == value
                named = [fn.col(source).alias(name) for name, source in part.columns.items()]
                self.add(part.name, frame.where(own).select(*named), part.order)
        frame.unpersist()

    def put(self, name: str, table: "pa.Table") -> None:
        """Write a table that is at hand; one whose name begins with `_` is only kept, until it is taken."""
        from pyarrow import parquet

        self.rows[name], self.totals[name] = table.to_pylist(), table.num_rows
        if name.startswith("_"):
            return
        self.remove(name)
        place = join(self.folder, name, "part-0.parquet")
        with TemporaryDirectory(prefix="tidegate-report-") as folder:
            parquet.write_table(table, Path(folder, "part"))
            self._places.upload(Path(folder, "part"), place)

    def put_rows(self, name: str, rows: Sequence[Row], columns: Mapping[str, str]) -> None:
        """Write a table of rows that were made here; `columns` and their types as Arrow names them."""
        import pyarrow as pa

        schema = pa.schema([(column, pa.type_for_alias(kind)) for column, kind in columns.items()])
        self.put(name, pa.Table.from_pylist(list(rows), schema=schema))

    def frame(self, name: str, columns: str) -> DataFrame:
        """Return some columns (name and Spark's type) of a table's rows, for Spark to go on with.

        They go as one text: for single rows it would start Python processes.
        """
        struct = ", ".join(column.strip().replace(" ", ":", 1) for column in columns.split(","))
        query = f"SELECT inline(from_json(:rows, 'array<struct<{struct}>>'))"
        return for_little(self.spark).sql(query, {"rows": json.dumps(self.rows[name])})

    def taken(self, name: str) -> list[Row]:
        """Return the rows of a table and forget it."""
        self.totals.pop(name, None)
        return self.rows.pop(name, [])

    def remove(self, *names: str) -> None:
        """Remove tables that an earlier report may have left where this one has none."""
        for name in names:
            self._places.delete(join(self.folder, name))


def same(*names: str) -> dict[str, str]:
    """Return columns that are called the same in a part and in its query."""
    return {name: name for name in names}


def _part(found: "pa.Table", part: Part) -> "pa.Table":
    from pyarrow import compute

    column, value = part.of
    own = compute.is_valid(found[column]) if value is None else compute.equal(found[column], value)
    kept = found.filter(own).select(list(part.columns.values())).rename_columns(list(part.columns))
    return kept.sort_by([(name, "ascending") for name in part.order])
