"""One partition within one stream: how far it was sent, and what of that may be committed."""

from dataclasses import dataclass, field
from math import inf

from tests.nakadi.event_types import PartitionLog

Key = tuple[str, str]
"""An event type's name and a partition's."""


@dataclass(slots=True)
class Reading:
    """What a stream sends of a partition; `sent` is the index of the next event to send."""

    log: PartitionLog
    sent: int
    last_sent_at: float
    """When the last batch or keep-alive of this partition left; a stream's start counts as one."""
    borders: dict[int, int] = field(default_factory=dict)
    """By the index after a batch's last event: events in it. Only batches that are not committed, oldest first."""
    uncommitted: int = 0
    """Events in `borders`."""
    keep_alives: int = 0
    """Sent in a row."""
    release_by: float = inf
    """It must go to another stream: when it is committed, at the latest then."""

    @property
    def is_releasing(self) -> bool:
        """Whether nothing more of it is sent here."""
        return self.release_by < inf

    def take(self, most: int, flush_at: float, now: float) -> list[bytes] | None:
        """Return the events of the next batch, none of them for a keep-alive, or nothing if neither is due."""
        log = self.log
        self.sent = max(self.sent, log.first)  # what retention took is passed over in silence, as the server does
        waiting = 0 if self.is_releasing else log.end - self.sent
        if not (0 < most <= waiting) and now < flush_at:
            return None
        self.last_sent_at = now
        count = min(most, waiting)
        if count <= 0:
            self.keep_alives += 1
            return []
        events = log.events(self.sent, self.sent + count)
        self.sent += count
        self.borders[self.sent] = count
        self.uncommitted += count
        self.keep_alives = 0
        return events

    def commit(self, end: int) -> None:
        """Be done with all batches up to and with one."""
        while self.borders:
            border = next(iter(self.borders))
            if border > end:
                break
            self.uncommitted -= self.borders.pop(border)
