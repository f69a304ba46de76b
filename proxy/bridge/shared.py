"""What all listeners of a process share."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from proxy.bridge.account import Account
from proxy.bridge.broker import Lane
from proxy.bridge.event_log import EventLog
from proxy.bridge.inbox import Budget
from proxy.bridge.lease import Lease
from proxy.bridge.letter_slots import HELD, HELD_BYTES, LetterSlots
from proxy.bridge.observer import Observer
from proxy.bridge.stake import Stake
from proxy.settings import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What every listener of the process shares."""

    log: EventLog
    lease: Lease
    stake: Stake
    budget: Budget
    limits: Limits
    classes: int
    """How many there are."""
    dead_letter_lane: Lane
    settled: asyncio.Event
    """Set whenever a flow has nothing out any more."""
    wall: Callable[[], float]
    """Seconds since 1970; for the age of events only."""
    account: Account
    observer: Observer
    letter_slots: LetterSlots = field(default_factory=LetterSlots)
    letters_held: LetterSlots = field(default_factory=lambda: LetterSlots(HELD, HELD_BYTES))
