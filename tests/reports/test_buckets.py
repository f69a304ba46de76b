"""Percentiles from merged buckets against the samples themselves."""

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

from pyspark.sql import functions as fn

from proxy.congestion import buckets as layout
from proxy.reports.buckets import PERCENTILES, highest_of, with_percentiles
from proxy.reports.latency import latency
from proxy.reports.schema import LAST_BUCKET


def test_the_highest_value_of_every_bucket_is_the_bridge_s_own(spark: Any) -> None:
    frame = spark.range(LAST_BUCKET + 1).select("id", highest_of(fn.col("id")).alias("value"))
    assert [row["value"] for row in frame.orderBy("id").collect()] == [
        layout.highest_of(index) for index in range(LAST_BUCKET + 1)
    ]
    assert layout.index_of(layout.HIGHEST_US) == LAST_BUCKET


def samples_of(seed: int, size: int) -> list[int]:
    chance = random.Random(seed)
    return [min(layout.HIGHEST_US, int(chance.lognormvariate(9, 3))) for _ in range(size)]


def buckets_of(samples: list[int]) -> dict[int, int]:
    return dict(Counter(map(layout.index_of, samples)))


def test_percentiles_are_those_of_the_samples_within_a_bucket_when_many_records_are_merged(
    record: Callable[..., Any], read: Callable[..., Any], rows: Callable[..., Any]
) -> None:
    samples = samples_of(1, 5_000)
    records = [
        record("class", at_ms=number, confirmed=100, bridge_us=buckets_of(samples[number : number + 100]))
        for number in range(0, 5_000, 100)
    ]
    (found,) = [row for row in rows(latency(read(records).of("class"), ["class"])) if row["measure"] == "bridge time"]
    assert found["samples"] == 5_000
    for name, mille in PERCENTILES.items():
        exact_ms = sorted(samples)[-(-mille * 5_000 // 1_000) - 1] / 1_000
        assert exact_ms <= found[f"{name}_ms"] + 0.0005
        assert found[f"{name}_ms"] <= exact_ms * (1 + 1 / 128) + 0.0005
    assert max(samples) / 1_000 <= found["max_ms"] <= max(samples) / 1_000 * (1 + 1 / 128)


def test_two_replicas_merged_give_the_figures_of_one_that_saw_everything(
    record: Callable[..., Any], read: Callable[..., Any], rows: Callable[..., Any]
) -> None:
    some, others = samples_of(2, 700), samples_of(3, 40)
    split = [
        record("class", instance="one", publish_us=buckets_of(some)),
        record("class", instance="two", publish_us=buckets_of(others)),
    ]
    whole = [record("class", publish_us=buckets_of(some + others))]
    found = rows(latency(read(split=split, whole=whole).of("class"), ["run", "class"]))
    of_split, of_whole = ([row | {"run": ""} for row in found if row["run"] == run] for run in ("split", "whole"))
    assert of_split
    assert of_split == of_whole


def test_a_percentile_is_no_average_of_percentiles_when_intervals_differ_in_size(
    record: Callable[..., Any], read: Callable[..., Any], rows: Callable[..., Any]
) -> None:
    records = [record("class", publish_us={100: 990}), record("class", publish_us={200: 10})]
    (found,) = rows(latency(read(records).of("class"), ["class"]))
    assert (found["p50_ms"], found["p99_ms"], found["p999_ms"]) == (0.1, 0.1, 0.2)


def test_single_values_have_exact_percentiles_when_they_are_not_bucketed(spark: Any, rows: Callable[..., Any]) -> None:
    frame = spark.range(1, 1_001).select(fn.lit("a").alias("key"), fn.col("id").alias("ms"))
    (found,) = rows(with_percentiles(frame.groupBy("key", fn.col("ms").alias("value")).count(), ["key"], unit_ms=1.0))
    assert found == {
        "key": "a",
        "samples": 1_000,
        "p50_ms": 500.0,
        "p99_ms": 990.0,
        "p999_ms": 999.0,
        "max_ms": 1_000.0,
    }


def test_empty_buckets_count_for_nothing(
    record: Callable[..., Any], read: Callable[..., Any], rows: Callable[..., Any]
) -> None:
    assert rows(latency(read([record("class", publish_us={5: 0})]).of("class"), ["class"])) == []
