"""What people see of it: the replay beside the recording, the ranks, and what to put into the settings."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import isinf
from statistics import median_low
from typing import Any

from proxy.tuning.goals import Difference, Ranked
from proxy.tuning.grid import Candidate
from proxy.tuning.measured import Compared, is_believed
from proxy.tuning.rebuilt import Rebuilt
from proxy.tuning.runs import Outcome


@dataclass(frozen=True, slots=True)
class Findings:
    """Everything that was found."""

    rebuilt: Rebuilt
    goal: float
    """Seconds."""
    seeds: int
    replay: Sequence[Compared]
    candidates: Sequence[Candidate]
    outcomes: Sequence[Sequence[Outcome]]
    """Of each candidate, by seed."""
    ranks: Sequence[Ranked]

    def figure(self, place: int, name: str) -> tuple[float, float, float] | None:
        """Return the median, the least and the most of a candidate's figure; None if a run had nothing to measure."""
        values = [value for one in self.outcomes[place] if (value := one.figures[name]) is not None]
        return (median_low(values), min(values), max(values)) if len(values) == self.seeds else None

    def as_document(self) -> dict[str, Any]:
        """Return all of it as JSON knows it; times in seconds."""
        return {
            "goal_s": self.goal,
            "seeds": self.seeds,
            "seconds": self.rebuilt.scenario.seconds,
            "assumed": list(self.rebuilt.assumed),
            "replay": [asdict(one) | {"allowed": one.allowed, "is_near": one.is_near} for one in self.replay],
            "is_believed": is_believed(self.replay),
            "ranks": [
                {
                    "candidate": self.candidates[one.place].words,
                    "settings": self.candidates[one.place].for_file(tuple(self.rebuilt.scenario.routes)),
                    "goal_met": one.is_met,
                    "against_recorded": _difference(one.difference),
                    "figures": {name: self._spread(one.place, name) for name in self.outcomes[one.place][0].figures},
                }
                for one in self.ranks
            ],
        }

    def _spread(self, place: int, name: str) -> dict[str, float] | None:
        told = self.figure(place, name)
        return None if told is None else dict(zip(("median", "least", "most"), told, strict=True))


def replay_lines(found: Sequence[Compared]) -> list[str]:
    """Return the replay beside the recording."""
    rows = [["", "recorded", "replayed", "from - to", "off by", "allowed"]]
    rows += [
        [
            one.name,
            _seconds(one.recorded),
            _seconds(one.replayed),
            f"{_seconds(one.least)} - {_seconds(one.most)}",
            _seconds(abs(one.replayed - one.recorded)) + ("" if one.is_near else " TOO FAR"),
            _seconds(one.allowed),
        ]
        for one in found
    ]
    return _aligned(rows)


def rank_lines(found: Findings) -> list[str]:
    """Return the ranks as a table, the best first, and what the best one needs in the settings file."""
    top, *others = found.rebuilt.classes
    names = [f"{top}.consumed_p99", "use", *(f"{name}.through" for name in others)]
    head = ["", "steered", f"{top} P99 (goal {_seconds(found.goal)})", "use", *(f"{name} through" for name in others)]
    rows = [[*head, "against recorded"]]
    for rank, one in enumerate(found.ranks, start=1):
        cells = [_cell(found.figure(one.place, name), in_seconds=name.endswith("p99")) for name in names]
        cells[0] += "" if one.is_met else " MISSED"
        against = "-" if one.place == 0 else _words(one.difference)
        rows.append([f"{rank}.", found.candidates[one.place].words, *cells, against])
    best = found.ranks[0]
    lines = [*_aligned(rows), ""]
    text = found.candidates[best.place].for_file(tuple(found.rebuilt.scenario.routes))
    if not text:
        lines.append("Nothing that was tried is better than what was recorded.")
    elif best.difference is None:
        lines.append(f"No sure difference over {found.seeds} seeds: leave the settings as they are.")
    else:
        lines += ["To be put into the settings file:", *(f"  {line}" for line in text.splitlines())]
    return lines


def _words(difference: Difference | None) -> str:
    if difference is None:
        return "no difference"
    word, size = ("better" if difference.by > 0 else "worse"), abs(difference.by)
    if isinf(size):
        return f"{word}: {difference.goal}, without end"
    in_seconds = difference.goal.endswith(("goal", "P99"))
    return f"{word}: {difference.goal} by {_seconds(size) if in_seconds else f'{100 * size:.1f} points'}"


def _difference(difference: Difference | None) -> dict[str, Any] | None:
    if difference is None:
        return None
    return {"goal": difference.goal, "better_by": None if isinf(difference.by) else difference.by}


def _cell(told: tuple[float, float, float] | None, *, in_seconds: bool) -> str:
    if told is None:
        return "none"
    median, least, most = told
    if in_seconds:
        return f"{_seconds(median)} ({_seconds(least)} - {_seconds(most)})"
    return f"{100 * median:.1f} % ({100 * least:.1f} - {100 * most:.1f})"


def _seconds(value: float) -> str:
    if isinf(value):
        return "for ever"
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.2f} s"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
