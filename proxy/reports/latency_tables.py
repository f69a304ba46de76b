"""The tables of latencies: by class and type, and over time."""

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from proxy.reports import activity, timeline
from proxy.reports.latency import percentiles
from proxy.reports.layers import Layers
from proxy.reports.tables import BY_CLASS, BY_TYPE, Part, Tables, same

_FIGURES = ("measure", "samples", "p50_ms", "p99_ms", "p999_ms", "max_ms")
_SLOWEST = "_slowest_types"


def of_latencies(tables: Tables, merged: DataFrame, over_time: DataFrame, layers: Layers) -> list[Callable[[], None]]:
    """Return what makes the tables of latencies but for `spectra`: of `latency.merged`, and of what it is merged of."""

    def of_classes() -> None:
        told = timeline.bridge_time_over_time(over_time, layers.width_s)
        tables.add("bridge_time_over_time", told, [*BY_CLASS, "t_s"])

    def of_types() -> None:
        tables.add(_SLOWEST, activity.slowest_types(merged), ["class", "rank"])
        names = [row["type"] for row in tables.rows[_SLOWEST]]
        # By name first: what Spark knows before it looks into a distribution, a join comes behind that.
        own = over_time.where(fn.col("type").isin(names))
        told = activity.types_over_time(
            own, tables.frame(_SLOWEST, "class string, type string, rank int"), layers.heat_s
        )
        tables.add("types_over_time", told, ["class", "rank", "run", "from_s"])
        tables.taken(_SLOWEST)

    return [lambda: _by_level(tables, merged), of_classes, of_types]


def _by_level(tables: Tables, merged: DataFrame) -> None:
    by_source = percentiles(merged.where("source != 'route'"), ["run", "source", "class", "type"])
    figures = same(*_FIGURES)
    parts = [
        Part("latency_by_class", ("source", "class"), same(*BY_CLASS) | figures, [*BY_CLASS, "measure"]),
        Part("latency_by_type", ("source", "type"), same(*BY_TYPE) | figures, [*BY_TYPE, "measure"]),
    ]
    tables.add_parts(by_source, parts)
