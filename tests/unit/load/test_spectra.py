"""A spectrum ends at the highest percentile that has ten samples beyond it; a load not carried has none."""

from pathlib import Path

import pytest

from load.open_run import Seen
from load.spectra import draw, hgrm, histogram, points


def seen(*, came: int, due: int) -> Seen:
    times = [float(number) for number in range(came)]
    return Seen(0.1, 0.1, 0.1, 1.0, times, came / due, lost=0, repeated=0)


@pytest.mark.parametrize("samples", [100, 10_000])
def test_a_spectrum_ends_where_fewer_than_ten_samples_lie_beyond(samples: int) -> None:
    rarest = points(histogram([float(number) for number in range(samples)]))[-1][0]

    assert samples / 20 < rarest <= samples / 10


def test_a_spectrum_is_in_milliseconds_and_says_how_many_there_were() -> None:
    text = hgrm(histogram([2.5] * 100))

    assert text.split()[:4] == ["Value", "Percentile", "TotalCount", "1/(1-Percentile)"]
    assert text.splitlines()[2].split()[0].startswith("2.5")
    assert "TotalCount     =      100.000" in text


@pytest.mark.parametrize(("samples", "told"), [(999, ["p50"]), (1_000, ["p50", "p99"])])
def test_a_percentile_is_told_when_ten_samples_lie_beyond_it(samples: int, told: list[str]) -> None:
    assert list(seen(came=samples, due=samples).percentiles((50.0, 99.0))) == told


@pytest.mark.parametrize(("came", "is_saturated"), [(99, False), (98, True)])
def test_a_load_is_saturated_when_too_little_came_in_time(came: int, *, is_saturated: bool) -> None:
    assert seen(came=came, due=100).is_saturated is is_saturated


def test_a_picture_is_written_when_contenders_have_different_spectra(tmp_path: Path) -> None:
    file = tmp_path / "spectra.png"
    draw(file, "256 B", {"tidegate": histogram([1.0] * 1_000), "other": histogram([2.0] * 100)})

    assert file.read_bytes().startswith(b"\x89PNG")
