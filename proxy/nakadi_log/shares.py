"""Partitions of a stream: each begins with the first line of its own, and anew when others had it for a moment.

Nakadi gives a partition away once all that was sent of it is committed, and gives it back without a word in the stream:
its next line stands further on, as it does when the log has dropped something. The cursor tells which it was.
"""

import asyncio

import structlog

from proxy.bridge.event_log import Beginning
from proxy.model import Partition
from proxy.nakadi_log.around import Around
from proxy.nakadi_log.lines import Batch
from proxy.nakadi_log.offsets import same_timeline
from proxy.nakadi_log.session import Session, Share
from proxy.nakadi_log.subscription import committed

_say = structlog.get_logger("tidegate.nakadi")


async def share_of(session: Session, event_type: str, told: Batch, around: Around) -> Share:
    """Return the partition that a line is of, begun if it is new, or was elsewhere. Raises `LogError`."""
    share = session.shares.get(Partition(event_type, told.number)) or await _begin(session, event_type, told, around)
    if _leaves_out(share, told, around):
        return await _behind_gap(session, share, told, around)
    return share


def _leaves_out(share: Share, told: Batch, around: Around) -> bool:
    """Return whether events lack before a batch that the log must have had; over timelines nobody can tell."""
    is_ahead = told.place + 1 - len(told.events) > share.next and same_timeline(told.place, share.next)
    return is_ahead and share.partition.topic not in around.compacted


async def _behind_gap(session: Session, share: Share, told: Batch, around: Around) -> Share:
    """Return a partition of which something was left out: begun anew, or with its owner told of what was dropped."""
    event_type = share.partition.topic
    done = (await committed(session.subscription, event_type, around)).get(told.number)
    if done is not None and done > share.next and same_timeline(done, share.next):
        await around.endings.end(session, [share])
        share = await _begin(session, event_type, told, around)
    if _leaves_out(share, told, around):
        first = told.place + 1 - len(told.events)
        where = {"partition": str(share.partition), "wanted": share.next, "first": first}
        _say.error("log_truncated", lost_at_most=first - share.next, **where)
        around.owner.on_truncated(share.partition, first - share.next, first)
    return share


async def _begin(session: Session, event_type: str, told: Batch, around: Around) -> Share:
    """Begin an epoch of a partition.

    What is committed is asked for only now: before this, somebody else may have gone on committing.
    """
    partition = Partition(event_type, told.number)
    done = (await committed(session.subscription, event_type, around)).get(told.number)
    first = told.place + 1 - len(told.events)
    begins = first if done is None or not same_timeline(first, done) else min(first, done)
    is_paused = partition in around.owner.on_assigned([partition])
    share = Share(partition, begins, is_paused, asyncio.get_running_loop().time(), begins)
    session.shares[partition] = share
    around.owned[partition] = session, share
    around.owner.on_begun(partition, Beginning("", begins, done, None))
    return share
