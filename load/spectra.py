"""Spectra of response times: as `.hgrm`, which HdrHistogram's plotters read, and as a picture for each load."""

from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path

import matplotlib as mpl
from hdrh.histogram import HdrHistogram

from load.open_run import TELLING

MOST_US = 3_600_000_000
DIGITS = 3
TICKS = 5
"""Lines for each halving of what lies beyond."""


def histogram(times_ms: Sequence[float]) -> HdrHistogram:
    """Return the histogram of times, in microseconds."""
    found = HdrHistogram(1, MOST_US, DIGITS)
    for one in times_ms:
        found.record_value(max(1, round(1000 * one)))
    return found


def hgrm(found: HdrHistogram) -> str:
    """Return the spectrum in milliseconds, to the highest percentile that has ten samples beyond it."""
    out = BytesIO()
    found.output_percentile_distribution(out, 1000.0, TICKS)
    head, *lines = out.getvalue().decode().splitlines()
    return "\n".join([head, *(line for line in lines if _is_told(line, found.get_total_count()))]) + "\n"


def points(found: HdrHistogram) -> list[tuple[float, float]]:
    """Return 1 / (1 - percentile) and milliseconds, as far as they are told."""
    lines = [line.split() for line in hgrm(found).splitlines()[2:] if not line.startswith("#")]
    return [(float(words[3]), float(words[0])) for words in lines]


def draw(file: Path, title: str, found: Mapping[str, HdrHistogram]) -> None:
    """Write the picture of one load: a line for each contender, the rarer the further to the right."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
    for name, one in found.items():
        axes.plot(*zip(*points(one), strict=True), label=name)
    axes.set(xscale="log", yscale="log", title=title, xlabel="percentile", ylabel="ms from due instant to consumer")
    shares = [at for at in (1, 2, 10, 100, 1_000, 10_000, 100_000) if at <= axes.get_xlim()[1]]
    axes.set_xticks(shares, [f"{100 * (1 - 1 / at):g}" for at in shares])
    axes.set_xlim(left=1)
    axes.grid(visible=True, alpha=0.3)
    axes.legend()
    figure.savefig(file, dpi=110)
    plt.close(figure)


def _is_told(line: str, samples: int) -> bool:
    words = line.split()
    if not words or line.startswith("#"):
        return True
    return len(words) == 4 and samples * (1 - float(words[1])) >= TELLING
