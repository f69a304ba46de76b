"""How many dead letters each event type may have under way: pure.

Of what the others leave free each type may take half, and one letter in any case. So a destination that stands still
holds up its own type's letters only, however many such types there are.
"""

from dataclasses import dataclass

LETTERS = 200
LETTER_BYTES = 8 * 1024**2
"""Dead letters under way in all, and their bytes; beyond them every type may still have one."""
HELD = 100_000
HELD_BYTES = 64 * 1024**2
"""Dead letters in memory, those that wait included, and their bytes: a type that has its half of what the others leave
sends nothing before its letters go."""


@dataclass(slots=True)
class LetterSlots:
    """What all types share."""

    max_events: int = LETTERS
    max_bytes: int = LETTER_BYTES
    events: int = 0
    bytes: int = 0

    def room(self, events: int, size: int) -> tuple[int, int]:
        """Return how many letters more a type may send that has `events` of `size` bytes under way, and how large.

        The first may be of any size.
        """
        others, their_bytes = self.events - events, self.bytes - size
        most = max(1, (self.max_events - others) // 2)
        return max(0, most - events), max(0, (self.max_bytes - their_bytes) // 2 - size)

    def take(self, events: int, size: int) -> None:
        """Count letters handed to the lane."""
        self.events += events
        self.bytes += size

    def give(self, events: int, size: int) -> None:
        """Count letters that ended, or were not written."""
        self.events -= events
        self.bytes -= size
