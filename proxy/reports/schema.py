"""The records of a metric log as Spark types, and what makes one believable.

`proxy.records` declares them and docs/metric-log.md shows them. A field that is neither optional nor added later must
be there; fields unknown here are passed over, so that a newer writer of the same version can add some.
"""

from typing import Any, get_args, get_origin

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
        *("assigned", "committed", "skip", "rewind", "discard", "redrive", "shadow", "settings", "intervention"),
    )
}
"""The kinds that the reports read. What else is declared is counted and passed over, as is what nobody knows."""


def is_sound(schema: StructType, record: str) -> str:
    """Return, as SQL, whether a parsed record has what its schema requires, every number between 0 and `MOST`.

    Never null. As text, because a column is built by a question to Java for each of its parts: of all kinds 12,000.
    """
    parts = [f"{record}.{CORRUPT} IS NULL"]
    return " AND ".join(parts + [_fits(field, f"{record}.`{field.name}`") for field in schema.fields])


def with_corrupt(schema: StructType) -> StructType:
    """Return the schema with room for the text of a line that does not fit it."""
    return StructType([*schema.fields, StructField(CORRUPT, StringType())])


def _fits(field: StructField, value: str, depth: int = 0) -> str:
    believable = _is_believable(field.dataType, value, depth)
    if believable is None:
        return "true" if field.nullable else f"{value} IS NOT NULL"
    return f"coalesce({believable}, {f'{value} IS NULL' if field.nullable else 'false'})"


def _is_believable(kind: DataType, value: str, depth: int) -> str | None:
    """Return whether the value can be counted with, which is null where it is null; None if any can."""
    one = f"one_{depth}"
    if isinstance(kind, LongType | DoubleType):
        return f"{value} BETWEEN 0 AND {MOST}"
    if kind is BUCKETS:
        count = f"coalesce({one} BETWEEN 0 AND {MOST}, false)"
        each = (
            f"forall(map_keys({value}), {one} -> {_is_bucket(one)}) AND forall(map_values({value}), {one} -> {count})"
        )
        return f"CASE WHEN {_are_plainly_buckets(value)} THEN true ELSE {each} END"
    if isinstance(kind, StructType):
        inner = [_fits(field, f"{value}.`{field.name}`", depth) for field in kind.fields]
        return f"CASE WHEN {value} IS NOT NULL THEN {' AND '.join(inner)} END"
    if isinstance(kind, ArrayType) and isinstance(kind.elementType, StructType):
        return f"forall({value}, {one} -> coalesce({_is_believable(kind.elementType, one, depth + 1)}, false))"
    if isinstance(kind, MapType) and isinstance(kind.valueType, LongType | DoubleType):
        return f"forall(map_values({value}), {one} -> {one} IS NULL OR {one} BETWEEN 0 AND {MOST})"
    return None


def _are_plainly_buckets(value: str) -> str:
    """Return what is true of all buckets that a writer of ours leaves, if there are any: else each is looked at.

    Whole arrays at once, for which Spark makes code; what is asked of each bucket it interprets, which took as long as
    parsing did. An index is a number as it is written; a count that is null makes that of `array_contains` null.
    """
    indexes, counts = f"try_cast(map_keys({value}) AS ARRAY<INT>)", f"map_values({value})"
    return (
        f"CAST({indexes} AS ARRAY<STRING>) = map_keys({value}) "
        f"AND array_min({indexes}) >= 0 AND array_max({indexes}) <= {LAST_BUCKET} "
        f"AND NOT array_contains({counts}, -1) AND array_min({counts}) >= 0 AND array_max({counts}) <= {MOST}"
    )


def _is_bucket(index: str) -> str:
    """Return whether a text is one to four digits and no more than `LAST_BUCKET`; null where it is no number.

    Each bucket of each record is looked at: a pattern would take as long as reading it did. A number alone may have a
    sign before it and blanks around it.
    """
    digits = f"{index} BETWEEN '0' AND '9999' AND right({index}, 1) BETWEEN '0' AND '9'"
    return f"length({index}) <= 4 AND {digits} AND try_cast({index} AS INT) <= {LAST_BUCKET}"
