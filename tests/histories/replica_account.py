"""What one replica did and was told."""

from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field

from proxy.model import Outcome


@dataclass(slots=True)
class Lately:
    """First sends of classes that a hard cap binds, within a second."""

    sends: deque[tuple[float, float]] = field(default_factory=deque)
    """When, and how many tokens."""
    tokens: float = 0.0
    """Of all of them."""


@dataclass(slots=True)
class ReplicaAccount:
    """What one replica has been told by its lanes; its metric log must say the same."""

    outcomes: Counter[Outcome] = field(default_factory=Counter)
    letters: Counter[str] = field(default_factory=Counter)
    """Confirmed dead letters by reason."""
    confirmed_bytes: int = 0
    fetched: int = 0
    written: Counter[str] = field(default_factory=Counter)
    """By lane."""
    out: Counter[str] = field(default_factory=Counter)
    """Written without an outcome, by lane."""
    out_bytes: Counter[str] = field(default_factory=Counter)
    truncated: int = 0
    """Records that the log said it had dropped."""
    lately: defaultdict[str, Lately] = field(default_factory=lambda: defaultdict(Lately))
    """By route."""
    is_dead: bool = False
    """It was killed: what its callbacks still do while they are cleared away is not done."""
    is_recorded: bool = False
    """Its last record is written: what it is told from now on, of what was out when it gave up waiting, is in none."""
