"""Up to where a partition still holds what was read of it."""

from collections.abc import Collection, Mapping

from proxy.model import Partition
from proxy.positions.port import Fetches, Offsets
from proxy.positions.share import Share


async def kept_by_leaders(
    shares: Collection[Share], fetches: Fetches, offsets: Offsets
) -> Mapping[Partition, int | None]:
    """Return where the log ended of the leader by which each was read last; None: nobody knows.

    What lies behind it is gone, or was written later. Those that the log can't tell of now are left out. Raises
    `LogError` if it isn't answered.
    """
    known = {share.partition: fetches.leader_epoch(share.partition) for share in shares}
    epochs = {at: epoch for at, epoch in known.items() if epoch is not None}
    told = await offsets.leader_ends(epochs) if epochs else {}
    return {at: None for at in known if at not in epochs} | dict(told)
