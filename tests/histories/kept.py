"""Seeds that are kept because they are the first to show a fault that strikes in a state in which none had struck.

A pair says what a replica was doing when a fault began, and which: `committing/cut_bytes`. The first histories are
lived anyway; what they reach stands under `first`, and a seed beyond them is kept for what it reaches besides.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

FIRST = 200
"""Seeds below this are lived by every check."""
MOST = 40
"""Seeds kept; those that reach most come first."""
FILE = Path(__file__).with_name("kept.txt")
_FIRST = "first"


def read(file: Path = FILE) -> dict[str, list[str]]:
    """Return the pairs by seed, and those of the first ones."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return {seed: pairs.split() for seed, _, pairs in (line.partition(":") for line in lines)}


def seeds(file: Path = FILE) -> list[int]:
    """Return those that are kept."""
    return [int(seed) for seed in read(file) if seed != _FIRST]


def extended(kept: Mapping[str, list[str]], reached: Mapping[int, Iterable[str]]) -> dict[str, list[str]]:
    """Return what is kept when these seeds have reached these pairs besides."""
    first = {*kept.get(_FIRST, ()), *(pair for seed, pairs in reached.items() if seed < FIRST for pair in pairs)}
    after = {_FIRST: sorted(first)}
    left = {int(seed): set(pairs) for seed, pairs in kept.items() if seed != _FIRST}
    left |= {seed: set(pairs) for seed, pairs in reached.items() if seed >= FIRST}
    known = set(first)
    while left and len(after) <= MOST:
        seed = max(left, key=lambda one: (len(left[one] - known), -one))
        new = left.pop(seed) - known
        if not new:
            break
        after[str(seed)] = sorted(new)
        known |= new
    return after


def write(kept: Mapping[str, Iterable[str]], file: Path = FILE) -> None:
    """Write it, a line for each seed."""
    file.write_text("".join(f"{seed}: {' '.join(pairs)}\n" for seed, pairs in kept.items()), encoding="utf-8")
