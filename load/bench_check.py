"""What became slower or dearer since results that were kept: ratios beside ratios, for absolutes are the machine's."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from load.ratios import WORDS
from load.terminal import say

LEAST_TOLERANCE = 0.03
"""Two runs of the same thing differ by so much, however close their rounds lie."""

Place = tuple[str, int, str, str, str]
"""Queue type, size, what, contender, and the one it is compared with."""


class CheckError(Exception):
    """A file is none of `load.bench throughput`, or the two have nothing in common."""


@dataclass(frozen=True)
class Ratio:
    """A ratio of medians."""

    value: float
    spread: float | None
    """By how much it may be off, as a share of it; None: of one round only."""


@dataclass(frozen=True)
class Change:
    """What a ratio was and is."""

    place: Place
    then: Ratio
    now: Ratio

    @property
    def share(self) -> float:
        """Return by how much it changed, as a share of what it was; above 0: it is more."""
        return self.now.value / self.then.value - 1

    @property
    def tolerance(self) -> float | None:
        """Return what the rounds of both runs already differ by; None where one of them can't say."""
        if self.then.spread is None or self.now.spread is None:
            return None
        return max(LEAST_TOLERANCE, self.then.spread + self.now.spread)

    @property
    def verdict(self) -> str:
        """Return `slower` or `dearer`, `faster` or `cheaper`, `same`, or `unknown`."""
        if self.tolerance is None:
            return "unknown"
        if abs(self.share) <= self.tolerance:
            return "same"
        less, more = ("slower", "faster") if self.place[2] == "rate" else ("cheaper", "dearer")
        return less if self.share < 0 else more

    def __str__(self) -> str:
        """Return it in words."""
        queue_type, size, what, of, over = self.place
        words = WORDS[what]  # type: ignore[index]
        sure = "one round only" if self.tolerance is None else f"{self.tolerance:.0%} would be chance"
        return (
            f"{self.verdict}: {of} / {over}, {words}, {queue_type}, {size} B: "
            f"{self.then.value:.3g} -> {self.now.value:.3g} ({self.share:+.0%}, {sure})"
        )


def check(baseline: Path, new: Path) -> int:
    """Say what changed; return 1 if anything became slower or dearer, else 0. Raises CheckError.

    Each is a file of `load.bench throughput`, or a folder of such.
    """
    then, now = _read(baseline), _read(new)
    found = changes(then, now)
    if not found:
        raise CheckError(f"{new} has no ratio that {baseline} has, too")
    order = ("slower", "dearer", "faster", "cheaper", "same", "unknown")
    for one in sorted(found, key=lambda one: order.index(one.verdict)):
        print(one)
    if absent := len(then.keys() - now.keys()):
        say(f"{absent} of {len(then)} ratios are not measured in {new}")
    worse, unknown = (sum(one.verdict in words for one in found) for words in ({"slower", "dearer"}, {"unknown"}))
    say(f"{worse} of {len(found)} ratios became slower or dearer, of {unknown} nothing can be said")
    return 1 if worse else 0


def changes(then: Mapping[Place, Ratio], now: Mapping[Place, Ratio]) -> list[Change]:
    """Return what both have."""
    return [Change(place, ratio, now[place]) for place, ratio in then.items() if place in now]


def ratios(record: Mapping[str, Any]) -> Iterator[tuple[Place, Ratio]]:
    """Yield what a record of `load.bench throughput` has measured. Raises KeyError for another."""
    rounds = {(one["queue_type"], one["size"], one["contender"]): one["rounds"] for one in record["cells"]}
    for one in record["ratios"]:
        at = one["queue_type"], one["size"]
        if one["ratio"]:
            fewest = min(rounds[*at, one["of"]], rounds[*at, one["over"]])
            yield (*at, one["what"], one["of"], one["over"]), Ratio(one["ratio"], one["spread"] if fewest > 1 else None)


def _read(place: Path) -> dict[Place, Ratio]:
    found: dict[Place, Ratio] = {}
    for file in sorted(place.glob("throughput*.json")) if place.is_dir() else [place]:
        try:
            found |= ratios(json.loads(file.read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CheckError(f"{file} is no result of `load.bench throughput`: {error!r}") from error
    return found
