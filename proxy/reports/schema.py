"""The records of a metric log as Spark types, and what makes one believable.

docs/metric-log.md says what each field means. A field that is not nullable here must be there; fields unknown here are
passed over, so that a newer writer of the same version can add some.
"""

from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as fn
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

VERSION = 1
CORRUPT = "_corrupt"
"""Where Spark puts the text of a line that does not fit its schema."""
MOST = 10**13
"""No count and no time in milliseconds (the year 2286) is larger; 900,000 of the largest can be added up."""
LAST_BUCKET = 3286
"""Index of one hour, the highest value of the layout."""

_STRING, _BOOLEAN, _LONG, _DOUBLE = StringType(), BooleanType(), LongType(), DoubleType()
_COUNTS = MapType(StringType(), LongType())


BUCKETS = MapType(StringType(), LongType())
"""Sparse bucket counts: index as text, as JSON has it, and count."""


def _struct(required: dict[str, DataType], optional: dict[str, DataType] | None = None) -> StructType:
    fields = [StructField(name, kind, nullable=False) for name, kind in required.items()]
    return StructType(fields + [StructField(name, kind) for name, kind in (optional or {}).items()])


ENVELOPE = _struct({"v": _LONG, "kind": _STRING, "at_ms": _LONG}, {"instance": _STRING})

_ROUTE = _struct({"policy": _STRING, "queues": ArrayType(_STRING)})
_LAYOUT = _struct({"unit": _STRING, "lowest": _LONG, "highest": _LONG, "digits": _LONG})
_TRAFFIC: dict[str, DataType] = {
    "interval_s": _DOUBLE,
    "class": _STRING,
    "received": _LONG,
    "received_bytes": _LONG,
    "confirmed": _LONG,
    "confirmed_bytes": _LONG,
    "nacked": _LONG,
    "unknown": _LONG,
    "dead_lettered": _COUNTS,
    "resent": _LONG,
    "resent_unknown": _LONG,
    "overtaken": _LONG,
    "waiting": _LONG,
    "publish_us": BUCKETS,
    "bridge_us": BUCKETS,
}
_BACKLOG: dict[str, DataType] = {"lag": _LONG, "lag_age_s": _DOUBLE}
_BATCH_SIZES = _struct({"sum": _DOUBLE, "min": _DOUBLE, "max": _DOUBLE, "types": _LONG})

_CONTROL: dict[str, DataType] = {
    "cuts": _LONG,
    "hot": ArrayType(_STRING),
    "queue_delay_us": _LONG,
    "drain_rate": _DOUBLE,
    "depth": _LONG,
    "rates": MapType(_STRING, _DOUBLE),
}
"""What a verdict has of a route under `class_budget` only."""

KINDS: dict[str, StructType] = {
    "start": _struct(
        {
            "version": _STRING,
            "layout": _LAYOUT,
            "classes": ArrayType(_STRING),
            "routes": MapType(_STRING, _ROUTE),
        }
    ),
    "route": _struct(
        {
            "interval_s": _DOUBLE,
            "route": _STRING,
            "state": _STRING,
            "in_flight": _LONG,
            "confirmed": _LONG,
            "nacked": _LONG,
            "unknown": _LONG,
            "undeliverable": _LONG,
            "publish_us": BUCKETS,
        },
        {"depth": _LONG, "queues": MapType(_STRING, _LONG), "consumers": _LONG},
    ),
    "class": _struct(_TRAFFIC, {**_BACKLOG, "batch_size": _BATCH_SIZES}),
    "type": _struct(
        {**_TRAFFIC, "type": _STRING, "topic": _STRING, "route": _STRING, "paused": _BOOLEAN},
        {**_BACKLOG, "batch_size": _DOUBLE},
    ),
    "verdict": _struct(
        {"route": _STRING, "cause": _STRING, "errors": _LONG, "samples": _LONG},
        {
            "congested": _BOOLEAN,
            "p50_us": _DOUBLE,
            "threshold_us": _DOUBLE,
            "threshold_errors": _DOUBLE,
            "min_samples": _LONG,
            **_CONTROL,
        },
    ),
    "incident": _struct(
        {"name": _STRING},
        {
            "route": _STRING,
            "type": _STRING,
            "topic": _STRING,
            "partition": _LONG,
            "count": _LONG,
            "detail": _STRING,
        },
    ),
    "drops": _struct({"records": _LONG, "files": _LONG}),
    "stop": _struct({"confirmed": _LONG, "dead_lettered": _LONG, "unresolved": _LONG}),
    "produced": _struct({"type": _STRING, "class": _STRING, "id": _STRING}),
    "consumed": _struct({"type": _STRING, "class": _STRING, "id": _STRING, "event_ms": _LONG}),
}


def is_sound(schema: StructType, record: Column) -> Column:
    """Return whether a parsed record has what its schema requires, every number between 0 and `MOST`."""
    return reduce(
        Column.__and__, [_fits(field, record[field.name]) for field in schema.fields], record[CORRUPT].isNull()
    )


def with_corrupt(schema: StructType) -> StructType:
    """Return the schema with room for the text of a line that does not fit it."""
    return StructType([*schema.fields, StructField(CORRUPT, StringType())])


def _fits(field: StructField, value: Column) -> Column:
    fits = _is_believable(field.dataType, value)
    return fn.coalesce(fits, fn.lit(field.nullable) & value.isNull())


def _is_believable(kind: DataType, value: Column) -> Column:
    """Return whether the value can be counted with; null where it is null."""
    if isinstance(kind, LongType | DoubleType):
        return value.between(0, MOST)
    if kind is BUCKETS:
        indexes = fn.forall(fn.map_keys(value), _is_bucket)
        return indexes & fn.forall(
            fn.map_values(value), lambda count: fn.coalesce(count.between(0, MOST), fn.lit(col=False))
        )
    if isinstance(kind, StructType):
        inner = [_fits(field, value[field.name]) for field in kind.fields]
        return fn.when(value.isNotNull(), reduce(Column.__and__, inner))
    if isinstance(kind, MapType) and isinstance(kind.valueType, LongType | DoubleType):
        return fn.forall(fn.map_values(value), lambda number: number.isNull() | number.between(0, MOST))
    return fn.when(value.isNotNull(), fn.lit(col=True))


def _is_bucket(index: Column) -> Column:
    return index.rlike("^[0-9]{1,4}$") & (fn.try_to_number(index, fn.lit("9999")) <= LAST_BUCKET)
