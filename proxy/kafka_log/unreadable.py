"""Partitions of which something can't be read: tried again and again, ever more seldom.

What was damaged on its way, or on one node's disk, is whole the next time, or once another node leads. So a partition
is read again from the same place, twice at once, and said to be unreadable only then; it goes on by itself whenever
what stands there can be read.
"""

import asyncio
from dataclasses import dataclass
from typing import Any

import structlog
from aiokafka import TopicPartition

from proxy.positions.share import Share, Shares

_say = structlog.get_logger("tidegate.kafka")

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 30.0
"""Seconds until it is read again: four times as many each time, up to the longest. What can't be read may be large."""
_GROWTH = 4.0
TRIES = 3
"""After so many it is said."""


@dataclass(slots=True)
class _Stuck:
    share: Share
    position: int
    tries: int = 0
    pause: float = FIRST_PAUSE
    """Before the next."""
    due: float = 0.0


class Unreadable:
    """Those of one consumer's current assignment."""

    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer
        self._stuck: dict[TopicPartition, _Stuck] = {}

    def found(self, at: TopicPartition, share: Share, why: Exception) -> None:
        """Read it no more for a while: what comes next can't be read."""
        stuck = self._stuck.get(at)
        if stuck is None or stuck.share is not share or stuck.position != share.next:
            stuck = self._stuck[at] = _Stuck(share, share.next)
        stuck.due = asyncio.get_running_loop().time() + stuck.pause
        stuck.pause = min(_GROWTH * stuck.pause, LONGEST_PAUSE)
        stuck.tries += 1
        share.is_placed = False
        self._consumer.pause(at)
        if stuck.tries == TRIES:
            _say.error(
                "partition_unreadable",
                partition=str(share.partition),
                position=share.next,
                why=str(why),
                effect=f"it stands still and is tried again every {LONGEST_PAUSE:g} s; all others go on",
                remedy="make the setting larger if one is named, and restart; to pass over what can't be read, stop "
                "the group and set the partition's offset behind it",
            )

    def turn(self, shares: Shares) -> None:
        """Read those again that are due; forget what was given away, moved or has come to read on by itself."""
        if not self._stuck:
            return
        now = asyncio.get_running_loop().time()
        for at, stuck in list(self._stuck.items()):
            share = stuck.share
            if shares.get(share.partition) is not share or share.next != stuck.position:
                self._end(at, is_read=shares.get(share.partition) is share and share.is_placed)
            elif stuck.due <= now and not share.is_placed and _is_to_be_read(share):
                share.is_placed = True
                self._consumer.seek(at, share.next)
                if not share.is_paused:
                    self._consumer.resume(at)

    def _end(self, at: TopicPartition, *, is_read: bool) -> None:
        stuck = self._stuck.pop(at)
        if is_read and stuck.tries >= TRIES:
            _say.info("partition_readable", partition=str(stuck.share.partition), position=stuck.position)


def _is_to_be_read(share: Share) -> bool:
    """Return whether nothing else keeps it from being read."""
    return share.moving is None and not share.successor and not share.is_let_go and share.unavailable is None
