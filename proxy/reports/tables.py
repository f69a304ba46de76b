"""The report's tables: their first rows for the page, Parquet files for everybody else."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from proxy.reports.files import as_spark_path
from proxy.reports.places import Places, join, written_to

ROWS_COLLECTED = 20_000
"""So many rows of a table reach report.json and the page; Parquet holds all."""

Row = dict[str, Any]


@dataclass
class Tables:
    """What the reports found: Parquet files under `folder`, and their rows in order.

    A table small enough to be collected is computed once; what builds on it starts from its rows. Threads may add
    tables side by side.
    """

    spark: SparkSession
    folder: str
    say: Callable[[str], None]
    rows: dict[str, list[Row]] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=dict)
    frames: dict[str, DataFrame] = field(default_factory=dict)
    """Each table for further use."""

    def add(self, name: str, frame: DataFrame, order: Sequence[str]) -> DataFrame:
        """Write the table, keep its first rows in the order of the columns given, and return it for further use."""
        self.say(f"table {name}")
        path = join(self.folder, name)
        found = [row.asDict(recursive=True) for row in frame.orderBy(*order).limit(ROWS_COLLECTED + 1).collect()]
        self.rows[name] = found[:ROWS_COLLECTED]
        if len(found) <= ROWS_COLLECTED:
            self.totals[name] = len(found)
            table = self._from_rows(found, frame.schema.simpleString())
            table.write.mode("overwrite").parquet(written_to(path))
        else:
            frame.write.mode("overwrite").parquet(written_to(path))
            table = self.spark.read.schema(frame.schema).parquet(as_spark_path(path))
            self.totals[name] = table.count()
        self.frames[name] = table
        return table

    def remove(self, *names: str) -> None:
        """Remove tables that an earlier report may have left where this one has none."""
        for name in names:
            Places(self.spark).delete(join(self.folder, name))

    def _from_rows(self, rows: Sequence[Row], struct: str) -> DataFrame:
        """Return rows as a table. They go as one text: for single rows Spark would start Python processes."""
        return self.spark.sql(f"SELECT inline(from_json(:rows, 'array<{struct}>'))", {"rows": json.dumps(rows)})
