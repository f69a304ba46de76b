"""How long a confirm may be awaited on a channel that has just opened, and how long a host that is asked: pure.

A broker that has just started, or a queue that is just coming back, may take a message and never confirm it, while all
that is written later is confirmed. The deadline for confirms would let such an event, and with it a partition of strict
order, wait for 30 s. So on a young channel patience is shorter: some times the slowest confirm that the lane has seen.
A connection given up costs what is in flight a second delivery at worst; therefore this happens once within a deadline
for confirms, as often as that deadline itself may do it.

A channel that confirms nothing at all may wait in vain for a node that is silent (see `refusals`), while a fresh one
would not: it is given up as early, and from the fourth in a row on the next with twice the patience. Before its first
ack only a few events are open on it (`pieces.UNPROVEN_EVENTS`): no more are in doubt then.

On an older channel the deadline holds, unless nothing at all is confirmed any more: a node that is cut off from the
others goes on talking to its clients, and takes what it can never confirm. It is left after `STALLED` seconds, once
within a deadline for confirms; if all nodes are only slow, that was the price.

Likewise a host that does not answer may be silent while the next one would answer at once; but if none does, all may
only be slow, and then each gets its time. Before any has let the lane in nobody knows how slow they are: each attempt
gets twice as long as the one before. A node that says nothing at all is given up after one heartbeat interval; the
client below waits for more than three.
"""

from dataclasses import dataclass
from math import inf

YOUNG = 10.0
"""Seconds after the opening of a channel in which what is written has the shorter patience."""
SHORTEST = 2.0
"""Seconds it lasts at least."""
TIMES = 5.0
"""... and so many times the slowest confirm of late. Larger: fewer second deliveries if slow, later recovery."""
LONGEST = 5.0
"""... but no more seconds: a queue that changed its leader has let confirms wait for longer once, and means nothing."""

STALLED = 5.0
"""Seconds without any confirm after which an older channel is given up, or some times the slowest of late ..."""
LONGEST_STALL = 10.0
"""... up to so many: confirms that are slow, and come, are no stall."""

HALF_FORGOTTEN = 10.0
"""Seconds in which half of the slowest confirm is forgotten, as others come."""
QUICK_CHANNELS = 3
"""So many channels in a row that confirm nothing are given up as early: a queue finds its next leader meanwhile."""
QUICK_ATTEMPTS = 6
"""So many attempts to connect with hosts that have let in before are given up as early: two rounds of three hosts."""
DOUBLINGS = 10
"""Patience doubles so often at most: whatever the deadline, 1,000 times the shortest is beyond it."""


def doubled(seconds: float, times: int) -> float:
    """Return the seconds doubled so many times, `DOUBLINGS` at most: an outage may last for days."""
    return float(seconds * 2.0 ** min(times, DOUBLINGS))


@dataclass(slots=True)
class HostPatience:
    """How long the next host may take to let the lane in; `deadline` in seconds at most."""

    deadline: float
    _slowest: float = 0.0
    """Seconds that the slowest host took; 0 as long as none has let in."""
    _in_vain: int = 0
    """Attempts given up, one after another."""

    @property
    def limit(self) -> float:
        """Seconds it has."""
        if not self._slowest:
            return min(self.deadline, doubled(SHORTEST, self._in_vain))
        quick = self._in_vain < QUICK_ATTEMPTS
        return min(self.deadline, max(SHORTEST, TIMES * self._slowest)) if quick else self.deadline

    def saw(self, seconds: float) -> None:
        """Take note of how long a host took; half of what was slowest before is forgotten by that."""
        self._slowest = max(seconds, self._slowest / 2)
        self._in_vain = 0

    def lose(self) -> None:
        """Take note that a host was given up."""
        self._in_vain += 1


SILENCE = 1.2
"""Heartbeat intervals without a byte after which a node is silent: it must say something within one."""
LONGEST_LOOK = 0.5
"""Seconds between two looks that count: a process that was stopped itself has not read what came meanwhile."""


@dataclass(slots=True)
class Silence:
    """For how long nothing has come over a connection, of whatever is open there."""

    looked: float
    """When it was looked at last."""
    seconds: float = 0.0
    _heard: float = -inf

    def look(self, heard: float, now: float) -> float:
        """Return for how many seconds nothing has come, when something last came at `heard`."""
        self.seconds = 0.0 if heard != self._heard else self.seconds + min(LONGEST_LOOK, now - self.looked)
        self._heard, self.looked = heard, now
        return self.seconds


@dataclass(slots=True)
class Patience:
    """What one lane remembers, over all its connections; `deadline` is that for confirms, in seconds."""

    deadline: float
    _slowest: float = 0.0
    """Seconds of the slowest confirm, as far as it is not forgotten."""
    _seen: float = -inf
    """When the last one came."""
    _opened: float = 0.0
    """When the channel was opened."""
    _is_mute: bool = True
    """Whether it has confirmed nothing yet."""
    _is_proof_due: bool = False
    """Whether the first confirm has not come yet, or has not been told of."""
    _in_vain: int = 0
    """Mute channels given up, one after another."""
    _lost_at: float = -inf
    """When patience was lost last."""

    @property
    def short(self) -> float:
        """Seconds that a confirm may take while nothing is out of the ordinary."""
        return min(self.deadline, max(SHORTEST, min(LONGEST, TIMES * self._slowest)))

    def open(self, now: float) -> None:
        """Take note that another channel is in use."""
        self._opened = now
        self._is_mute = self._is_proof_due = True

    def saw(self, seconds: float, now: float) -> None:
        """Take note of a confirm; what was slow in an outage is no measure long after it."""
        self._slowest = max(seconds, self._slowest * 0.5 ** ((now - self._seen) / HALF_FORGOTTEN))
        self._seen = now
        self._is_mute = False
        self._in_vain = 0

    def take_proof(self) -> bool:
        """Return whether the channel in use confirms, once."""
        is_new = self._is_proof_due and not self._is_mute
        self._is_proof_due = self._is_proof_due and not is_new
        return is_new

    def limit(self, written: float, now: float) -> float:
        """Return for how many seconds the confirm of what was `written` then is awaited."""
        is_spent = now - self._lost_at < self.deadline
        if written - self._opened > YOUNG:
            stalled = min(self.deadline, max(STALLED, min(LONGEST_STALL, TIMES * self._slowest)))
            return stalled if now - max(self._seen, written) > stalled and not is_spent else self.deadline
        if self._is_mute:
            return min(self.deadline, doubled(self.short, max(0, self._in_vain + 1 - QUICK_CHANNELS)))
        return self.deadline if is_spent else self.short

    def lose(self, now: float) -> None:
        """Take note that a connection was given up."""
        self._lost_at = now
        if self._is_mute:
            self._in_vain += 1
