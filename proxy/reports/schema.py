"""The records of a metric log as Spark types, and what makes one believable.

`proxy.records` declares them and docs/metric-log.md shows them. A field that is neither optional nor added later must
be there; fields unknown here are passed over, so that a newer writer of the same version can add some.
"""

from functools import reduce
from typing import Any, get_args, get_origin

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

from proxy import records
from proxy.records import Buckets, Part, fields_of

CORRUPT = "_corrupt"
"""Where Spark puts the text of a line that does not fit its schema."""
MOST = 10**13
"""No count and no time in milliseconds (the year 2286) is larger; 900,000 of the largest can be added up."""
LAST_BUCKET = 3286
"""Index of one hour, the highest value of the layout."""
BUCKETS = MapType(StringType(), LongType())
"""Sparse bucket counts: index as text, as JSON has it, and count."""
_SCALARS: dict[Any, DataType] = {
    str: StringType(),
    bool: BooleanType(),
    int: LongType(),
    float: DoubleType(),
    Buckets: BUCKETS,
}


def schema_of(part: type[Part]) -> StructType:
    """Return the Spark type of a kind, or of a part of one."""
    return StructType(
        [StructField(field.name, _type_of(field.type), nullable=not field.is_required) for field in fields_of(part)]
    )


def _type_of(kind: Any) -> DataType:
    if kind in _SCALARS:
        return _SCALARS[kind]
    if isinstance(kind, type) and issubclass(kind, Part):
        return schema_of(kind)
    if get_origin(kind) is list:
        return ArrayType(_type_of(get_args(kind)[0]))
    if get_origin(kind) is dict:
        _, value = get_args(kind)
        return MapType(StringType(), _type_of(next((one for one in get_args(value) if one is not type(None)), value)))
    raise TypeError(f"no Spark type is known for {kind}")


ENVELOPE = schema_of(records.Envelope)
KINDS = {
    name: schema_of(records.KINDS[name])
    for name in (
        *("start", "route", "class", "type", "verdict", "incident", "drops", "stop", "produced", "consumed"),
        *("assigned", "committed", "skip", "rewind", "discard", "redrive", "shadow"),
    )
}
"""The kinds that the reports read. What else is declared is counted and passed over, as is what nobody knows."""


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
    if isinstance(kind, ArrayType) and isinstance(kind.elementType, StructType):
        return fn.forall(value, lambda one: fn.coalesce(_is_believable(kind.elementType, one), fn.lit(col=False)))
    if isinstance(kind, MapType) and isinstance(kind.valueType, LongType | DoubleType):
        return fn.forall(fn.map_values(value), lambda number: number.isNull() | number.between(0, MOST))
    return fn.when(value.isNotNull(), fn.lit(col=True))


def _is_bucket(index: Column) -> Column:
    return index.rlike("^[0-9]{1,4}$") & (fn.try_to_number(index, fn.lit("9999")) <= LAST_BUCKET)
