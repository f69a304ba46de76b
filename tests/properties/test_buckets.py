"""The bucket layout agrees with hdrhistogram and keeps its promised precision, over the whole range."""

from collections import Counter

from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st

from proxy.congestion.buckets import DIGITS, HIGHEST_US, LOWEST_US, highest_of, index_of, quantile

LAST = index_of(HIGHEST_US)
VALUES = st.one_of(
    st.integers(0, HIGHEST_US),
    st.integers(0, 2_000),
    st.integers(0, 31).map(lambda bits: min(HIGHEST_US, 1 << bits)),
    st.integers(1, 31).map(lambda bits: min(HIGHEST_US, (1 << bits) - 1)),
)


@given(VALUES)
def test_the_index_is_that_of_hdrhistogram_when_the_value_is_in_range(us: int) -> None:
    histogram = HdrHistogram(LOWEST_US, HIGHEST_US, DIGITS)
    histogram.record_value(us)
    assert histogram.counts[index_of(us)] == 1
    assert histogram.get_highest_equivalent_value(us) == highest_of(index_of(us))


@given(VALUES)
def test_a_bucket_reports_no_less_than_its_value_and_less_than_one_128th_more(us: int) -> None:
    top = highest_of(index_of(us))
    assert us <= top
    assert top - us <= us / 128


@given(VALUES, VALUES)
def test_indexes_are_in_the_order_of_the_values(one: int, other: int) -> None:
    if one <= other:
        assert index_of(one) <= index_of(other)


@given(st.integers(0, LAST - 1))
def test_the_highest_value_of_a_bucket_lies_in_it_and_the_next_one_does_not(index: int) -> None:
    assert index_of(highest_of(index)) == index
    assert index_of(highest_of(index) + 1) == index + 1


@given(st.lists(VALUES, min_size=1, max_size=200), st.integers(1, 1000))
def test_a_quantile_is_the_bucket_of_the_ranked_sample(samples: list[int], mille: int) -> None:
    rank = max(1, -(-mille * len(samples) // 1000))
    assert quantile(dict(Counter(map(index_of, samples))), mille / 1000) == highest_of(
        index_of(sorted(samples)[rank - 1])
    )


@given(st.lists(VALUES, min_size=1), st.lists(VALUES))
def test_quantiles_of_merged_counts_equal_those_of_all_samples_when_counts_are_added(
    some: list[int], others: list[int]
) -> None:
    merged = Counter(map(index_of, some)) + Counter(map(index_of, others))
    everything = Counter(map(index_of, some + others))
    for share in (0.5, 0.99, 0.999):
        assert quantile(dict(merged), share) == quantile(dict(everything), share)
