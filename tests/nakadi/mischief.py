"""What goes wrong by chance, beside the rules: each kind has a rate, a chance per request or per line of a stream.

| kind | strikes | what happens |
|---|---|---|
| slow | requests | it is done `SLOW_SECONDS` later, at most |
| refused | requests | 500, 502, 503 or 429, and nothing is done |
| unheard | requests | the connection is cut, and nothing is done |
| unanswered | requests | it is done, and the connection is cut before the answer: a commit of which nobody knows |
| conflict | opening | 409 for a while, `WHILE_SECONDS` at most |
| cut | lines | the connection is cut within the line |
| short | lines | the answer ends within the line, as if that were all |
| silent | lines | nothing at all is sent for a while, no keep-alive either |
| mute | lines | keep-alives only, for a while |
| ended | lines | the stream ends instead |
"""

from collections.abc import Mapping
from random import Random
from typing import Literal, get_args

Kind = Literal["slow", "refused", "unheard", "unanswered", "conflict", "cut", "short", "silent", "mute", "ended"]
KINDS: tuple[Kind, ...] = get_args(Kind)
SLOW_SECONDS = 5.0
WHILE_SECONDS = 10.0
REFUSALS = (500, 502, 503, 429)


class Mischief:
    """Chance, and how often it strikes; `rates` may be changed at any time, and {} ends it all."""

    def __init__(self, chance: Random, rates: Mapping[Kind, float] | None = None) -> None:
        self.chance = chance
        self.rates: dict[Kind, float] = dict(rates or {})
        self.struck: dict[Kind, int] = dict.fromkeys(KINDS, 0)
        self.conflict_until = 0.0

    def strikes(self, kind: Kind) -> bool:
        """Draw whether it goes wrong this time."""
        rate = self.rates.get(kind, 0.0)
        if rate <= 0.0 or self.chance.random() >= rate:
            return False
        self.struck[kind] += 1
        return True

    def is_conflict(self, now: float) -> bool:
        """Draw whether streams are refused for a while, unless they are already."""
        if "conflict" in self.rates and now >= self.conflict_until and self.strikes("conflict"):
            self.conflict_until = now + self.moment()
        return "conflict" in self.rates and now < self.conflict_until

    def moment(self) -> float:
        """Draw how many seconds a while lasts."""
        return self.chance.uniform(0.0, WHILE_SECONDS)

    def part(self, line: bytes) -> bytes:
        """Draw how much of a line comes, never all of it."""
        return line[: self.chance.randrange(len(line))]
