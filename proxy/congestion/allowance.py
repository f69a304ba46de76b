"""How much the top class may admit between two looks at the queues: no rate holds it, a look ahead does.

A rate must be found, and the top class would wait for the finding. A bound on what may be on its way unseen needs no
finding: the next answer shows what became of it (docs/design/0019).
"""

from dataclasses import dataclass
from math import inf

AHEAD = 0.3
"""Seconds of what the consumers take that may be on their way before a depth tells of them."""
AIM = 0.5
"""Share of the top class's threshold up to which it may fill a queue that is seen, so that it never cuts itself."""
STEADY = 0.9
"""Share of what the consumers take between two answers that may follow it into a queue that has reached its aim."""
FIRST, LONGEST = 0.05, 1.0
"""Seconds that the first answer counts for, and that any other does at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one answer about the depth means for the top class."""

    at: float
    has_queue: bool
    """Enough waits to be a sign of a queue."""
    waiting: float
    """What the messages cost that wait."""
    threshold: float
    """The top class's, in seconds."""
    drain: float
    """The best estimate of what the consumers take, in events of cost 1 a second; 0: none yet."""
    is_used: bool
    """Events of the class had to wait since the last answer."""
    sees: bool
    """Everything needed to grow is known."""
    bound: float = inf
    """Cost a second, as long as nothing would tell of a backlog."""


class Allowance:
    """Doubles from one empty look to the next while it is used up; all of it in cost, `start_rate` a second.

    `least` is what the dearest event of the class costs: one may always go.
    """

    def __init__(self, start_rate: float, least: float = 1.0) -> None:
        self._start_rate = start_rate
        self._least = least
        self._last: float | None = None
        self._cost = 0.0

    def go_by(self, start_rate: float, least: float) -> None:
        """Begin otherwise the next time, and grant another least."""
        self._start_rate, self._least = start_rate, least

    def reset(self) -> None:
        """Begin anew: the route had to stop, or the class's own threshold was passed."""
        self._cost = 0.0

    def on_answer(self, answer: Answer) -> float:
        """Return how much may be admitted until the next answer: an event at least."""
        poll = FIRST if self._last is None else min(LONGEST, answer.at - self._last)
        self._last = answer.at
        least = self._start_rate * poll
        cost = max(least, AHEAD * answer.drain)
        if answer.has_queue:
            # What waits tells what the consumers can take: a little less than that, or what its aim leaves room for.
            room = max(STEADY * poll * answer.drain, AIM * answer.threshold * answer.drain - answer.waiting)
            cost = min(cost, room if answer.drain else least)
        elif answer.is_used and answer.sees:
            cost = max(cost, 2 * self._cost)
        self._cost = max(self._least, min(cost, answer.bound * poll))
        return self._cost
