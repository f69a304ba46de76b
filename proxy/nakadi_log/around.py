"""What all readers of a log share."""

import asyncio
from dataclasses import dataclass, field
from math import inf

from proxy.bridge.event_log import PartitionOwner
from proxy.model import Partition
from proxy.nakadi_log.bus import Bus
from proxy.nakadi_log.endings import Endings
from proxy.nakadi_log.heard import Heard
from proxy.nakadi_log.reach import Reach
from proxy.nakadi_log.session import Session, Share
from proxy.settings import LogSettings, NakadiSettings

OPENINGS = 16
"""Streams that are being opened at a time."""


@dataclass(slots=True, kw_only=True)
class Around:
    """What all readers share."""

    bus: Bus
    settings: LogSettings
    nakadi: NakadiSettings
    window: int
    """A full one."""
    first_window: int
    line_bytes: int
    """The longest line of several events ..."""
    event_bytes: int
    """... and of one."""
    owner: PartitionOwner
    owned: dict[Partition, tuple[Session, Share]]
    endings: Endings
    reach: Reach
    fresh: dict[Share, None]
    """Partitions that have something to hand out."""
    stirred: asyncio.Event
    """Set when there may be something to hand out."""
    new_topics: set[str]
    """Those that did not exist when they were first looked for: nothing of them is passed over."""
    compacted: set[str]
    """Event types that leave offsets out."""
    created: dict[str, str]
    """When event types were made, as Nakadi says it: one of the same name may be another."""
    heard: Heard
    openings: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(OPENINGS))
    proven_at: float = -inf
    """When Nakadi last said anything that proves that a stream is ours, by the loop's clock in seconds."""
