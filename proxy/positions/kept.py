"""Up to where a partition still holds what was read of it."""

import asyncio
from collections.abc import Collection, Mapping

import structlog

from proxy.model import Partition
from proxy.positions.port import Fetches, Offsets
from proxy.positions.share import Share

CONTRADICTED_SECONDS = 5.0
"""For so long the node that was fetched from may be the former leader, which knows of no other yet."""

_say = structlog.get_logger("tidegate.positions")


async def kept_by_leaders(
    shares: Collection[Share], fetches: Fetches, offsets: Offsets
) -> Mapping[Partition, int | None]:
    """Return where the log ended of the leader by which each was read last; None: nobody knows.

    What lies behind it is gone, or was written later. Where reading has begun anew there, and the log holds there what
    it says is of the same leader, for `CONTRADICTED_SECONDS`, it contradicts itself: nobody knows, or that would be
    read again without end. Those that the log can't tell of now are left out. Raises `LogError` if it isn't answered.
    """
    known = {share.partition: fetches.leader_epoch(share.partition) for share in shares}
    epochs = {at: epoch for at, epoch in known.items() if epoch is not None}
    told = await offsets.leader_ends(epochs) if epochs else {}
    kept = {at: None for at in known if at not in epochs} | dict(told)
    now = asyncio.get_running_loop().time()
    for share in shares:
        at, wanted = share.partition, share.unavailable
        end = kept.get(at)
        if end is None or wanted is None or end >= wanted:
            continue
        if share.cut_back != (epochs[at], end):
            share.cut_back, share.cut_back_at = (epochs[at], end), now
        elif now - share.cut_back_at >= CONTRADICTED_SECONDS:
            where = {"partition": str(at), "leader_epoch": epochs[at], "end": end, "read_up_to": wanted}
            _say.warning("leader_end_contradicted", effect="read on: what was read there is of that leader", **where)
            kept[at] = None
    return kept
