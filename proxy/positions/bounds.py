"""Between which offsets the log has events of a share."""

import asyncio
from collections.abc import Collection, Mapping

from proxy.model import Partition
from proxy.positions.port import EARLIEST, LATEST, Offsets
from proxy.positions.share import Share


async def ends_of(shares: Collection[Share], offsets: Offsets) -> Mapping[Partition, int]:
    """Return up to where each may be read now; those that the log can't tell of now are left out.

    Raises `LogError` if it isn't answered.
    """
    return await offsets.offsets({share.partition: LATEST for share in shares}) if shares else {}


async def bounds_of(shares: Collection[Share], offsets: Offsets) -> Mapping[Partition, tuple[int, int]]:
    """Return the first offset and the end of each share that the log can tell of now. Raises as `ends_of`.

    It is the true end: an offset behind a transaction that is open has not gone astray.
    """
    wanted = [share.partition for share in shares]
    if not wanted:
        return {}
    first, end = await asyncio.gather(offsets.offsets(dict.fromkeys(wanted, EARLIEST)), offsets.ends(wanted))
    return {at: (first[at], end[at]) for at in wanted if at in first and at in end}
