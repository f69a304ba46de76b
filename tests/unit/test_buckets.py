"""The bucket layout at the places where it changes, and quantiles of known samples."""

import pytest

from proxy.congestion.buckets import HIGHEST_US, highest_of, index_of, quantile


@pytest.mark.parametrize(
    ("us", "index"),
    [(0, 0), (1, 1), (127, 127), (128, 128), (255, 255), (256, 256), (257, 256), (511, 383), (512, 384), (515, 384)],
)
def test_a_value_has_the_bucket_written_down_when_it_is_near_a_change_of_width(us: int, index: int) -> None:
    assert index_of(us) == index


def test_a_value_counts_in_the_first_or_last_bucket_when_it_is_out_of_range() -> None:
    assert index_of(-1) == index_of(-(10**12)) == 0
    assert index_of(HIGHEST_US + 1) == index_of(10**18) == index_of(HIGHEST_US)


def test_a_quantile_is_the_sample_itself_when_samples_are_below_256_us() -> None:
    counts = dict.fromkeys(range(1, 101), 1)
    assert [quantile(counts, share) for share in (0.0, 0.01, 0.5, 0.99, 1.0)] == [1, 1, 50, 99, 100]


def test_a_quantile_is_the_top_of_its_bucket_when_buckets_are_wide() -> None:
    assert quantile({index_of(1_000_000): 1}, 0.5) == highest_of(index_of(1_000_000)) == 1_003_519


def test_there_is_no_quantile_when_there_are_no_samples() -> None:
    assert quantile({}, 0.5) is None
    assert quantile({3: 0}, 0.5) is None
