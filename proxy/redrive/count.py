"""What became of the letters of one pass: each is counted once."""

from collections import Counter
from dataclasses import dataclass, field

from proxy.bridge.letter_queue import TakenLetter
from proxy.redrive.choice import FAILED, Going, Stay

_EXAMPLES = 3


@dataclass(slots=True)
class Count:
    """All of one queue: `waiting` when the pass began."""

    waiting: int = 0
    taken: int = 0
    """Of these."""
    redriven: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Confirmed and taken off the queue; in a dry run: would go. By type, partition and reason."""
    copies: int = 0
    """Taken off the queue unsent: another letter of the same event was confirmed in this pass."""
    confirmed: int = 0
    """Confirmed where they were meant to go; more than `redriven` if the pass ended before all were taken off."""
    stayed: Counter[tuple[Stay, str, str]] = field(default_factory=Counter)
    """By why, and type and reason where these are known."""
    examples: dict[Stay, list[str]] = field(default_factory=dict)
    anew: int = 0
    """Of those that stayed, laid at the queue's end."""

    def on_redriven(self, going: Going) -> None:
        """Count one that is done with."""
        self.redriven[going.event_type.name, str(going.letter.partition), going.letter.reason] += 1

    def on_stay(self, taken: TakenLetter, why: Stay, detail: str = "") -> None:
        """Count one that stays, and keep its place and what was said of it, of the first few."""
        letter = taken.letter
        name = "" if letter is None else letter.event_type or letter.partition.topic
        self.stayed[why, name, "" if letter is None else letter.reason] += 1
        told = self.examples.setdefault(why, [])
        if len(told) < _EXAMPLES and why not in {Stay.NOT_CHOSEN, Stay.LATER}:
            place = "" if letter is None else f"{letter.partition}-{letter.event.position}"
            told.append(": ".join(part for part in (place, detail or taken.why) if part))

    @property
    def done(self) -> int:
        """Letters that were taken off the queue because their event was confirmed."""
        return sum(self.redriven.values())

    def stays(self, why: Stay) -> int:
        """Return how many stayed for one reason."""
        return sum(count for (one, _, _), count in self.stayed.items() if one is why)

    @property
    def absent(self) -> int:
        """Letters that waited at the beginning and did not come: expired, purged, or held by somebody else."""
        return self.waiting - self.taken

    @property
    def failed(self) -> int:
        """Letters that were meant to go and did not, or nobody knows."""
        return self.absent + sum(count for (why, _, _), count in self.stayed.items() if why in FAILED)
