"""What is said of one event type's dead letters: that events can't be delivered, that their destination takes none.

Each outage is said once, and how it ended; `/ready` names the type as long as it lasts.
"""

import asyncio

import structlog

from proxy.bridge.flow import PartitionFlow
from proxy.model import Event, Reason
from proxy.settings import EventType

SAY_INTERVAL = 60.0
"""Seconds between two lines in the process log about dead letters of one type for one reason; all are counted."""

_say = structlog.get_logger("tidegate.listener")


class LetterOutage:
    """The time from the first dead letter that its destination doesn't take until none waits any more."""

    def __init__(self, event_type: EventType) -> None:
        self._type = event_type
        self._silent_until: dict[Reason, float] = {}
        self._since: float | None = None
        self._flows: set[PartitionFlow] = set()
        """They try their events anew."""
        self.why = ""
        """What the broker said last."""

    @property
    def is_on(self) -> bool:
        """Whether the destination took none when it was last tried."""
        return self._since is not None

    @property
    def lasts(self) -> bool:
        """Whether a partition still tries anew what could not be dead-lettered."""
        return bool(self._flows)

    def tell_of(self, flow: PartitionFlow, event: Event, reason: Reason, detail: str) -> None:
        """Say it now and then: a mistyped exchange turns every event into a dead letter, and nothing else would."""
        now = asyncio.get_running_loop().time()
        if reason is Reason.EXPIRED or now < self._silent_until.get(reason, now):
            return  # to expire is what the settings ask for
        self._silent_until[reason] = now + SAY_INTERVAL
        _say.warning(
            "event_undeliverable",
            type=self._type.name,
            partition=str(flow.partition),
            position=event.position,
            reason=reason.value,
            detail=detail,
            effect=f"a dead letter; more for this reason are counted, and said every {SAY_INTERVAL:g} s",
        )

    def begin(self, flow: PartitionFlow, event: Event, why: str) -> bool:
        """Note that a dead letter was not taken; return whether the outage is a new one."""
        self.why = why
        if self._since is not None:
            return False
        self._since = asyncio.get_running_loop().time()
        _say.error(
            "dead_letter_refused",
            type=self._type.name,
            partition=str(flow.partition),
            position=event.position,
            destination=self.destination,
            why=why,
            effect="events without a way out wait, and are tried again every 2 s by both ways; nothing of their "
            "partitions is committed beyond them, and these go on up to limits.uncommitted_events",
            remedy="let the destination exist and take messages: create its queue, or make room in it",
        )
        return True

    def on_trying(self, flow: PartitionFlow) -> None:
        """Note that the flow tries its events anew."""
        self._flows.add(flow)

    def on_left(self, flow: PartitionFlow) -> None:
        """Note that the flow tries nothing anew any more."""
        self._flows.discard(flow)

    def end(self, how: str) -> None:
        """Note that letters are taken again, or that there is another way out."""
        self._end("dead_letters_flow", how=how)

    def leave(self) -> None:
        """Note that nothing waits here any more."""
        self._end("dead_letters_left", effect="their events are read again by whoever has their partitions next")

    def _end(self, what: str, **words: str) -> None:
        if self._since is None:
            return
        lasted = round(asyncio.get_running_loop().time() - self._since, 1)
        self._since = None
        _say.info(what, type=self._type.name, destination=self.destination, after_s=lasted, **words)

    @property
    def destination(self) -> str:
        """Where the letters go, in words."""
        to = self._type.dead_letter
        assert to is not None
        return (
            f"exchange {to.exchange!r}, routing key {to.routing_key!r}" if to.exchange else f"queue {to.routing_key!r}"
        )
