"""What all listeners of a process share."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Self

from proxy.bridge.account import Account
from proxy.bridge.broker import Lane
from proxy.bridge.budget import Budget
from proxy.bridge.event_log import EventLog
from proxy.bridge.lease import Lease
from proxy.bridge.letter_slots import HELD, HELD_BYTES, LetterSlots
from proxy.bridge.observer import Observer
from proxy.bridge.returns import Returns
from proxy.bridge.stake import Stake
from proxy.settings import Limits, Settings


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
    has_one_class: bool
    """Whether all event types are of the same one."""
    dead_letter_lane: Lane
    settled: asyncio.Event
    """Set whenever a flow has nothing out any more."""
    wall: Callable[[], float]
    """Seconds since 1970; for the age of events only."""
    account: Account
    observer: Observer
    returns: Returns = field(default_factory=Returns)
    letter_slots: LetterSlots = field(default_factory=LetterSlots)
    letters_held: LetterSlots = field(default_factory=lambda: LetterSlots(HELD, HELD_BYTES))

    def going_by(self, settings: Settings) -> Self:
        """Return the same, by the limits that other settings say; the budget and the stake go by them at once."""
        limits = settings.limits
        if limits != self.limits:
            self.budget.go_by(limits.inboxes_bytes)
            self.stake.go_by(limits.uncommitted_events)
        return replace(self, limits=limits, has_one_class=settings.has_one_class)

    @classmethod
    def made(
        cls,
        settings: Settings,
        log: EventLog,
        dead_letter_lane: Lane,
        account: Account,
        returns: Returns,
        *,
        wall: Callable[[], float],
        observer: Observer,
    ) -> Self:
        """Make what a process of these settings shares."""
        lease = Lease(settings.log.session_timeout / 2)
        limits, classes = settings.limits, len(settings.classes)
        return cls(
            log=log,
            lease=lease,
            stake=Stake(lease.asked, limits.uncommitted_events),
            budget=Budget(limits.inboxes_bytes, classes),
            limits=limits,
            classes=classes,
            has_one_class=settings.has_one_class,
            dead_letter_lane=dead_letter_lane,
            settled=asyncio.Event(),
            wall=wall,
            account=account,
            observer=observer,
            returns=returns,
        )
