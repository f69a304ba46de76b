"""How reading a partition begins anew where it is, because its owner wants it so: other settings came into force.

It is what a rebalance does to it, without the group and for it alone: nothing more is read, what is out has its
outcome, or none within the drain's deadline; what is done is committed, and a new epoch of the bridge begins there.
"""

from collections.abc import Collection

from proxy.bridge.event_log import PartitionOwner
from proxy.model import Partition
from proxy.positions.epoch import Epoch
from proxy.positions.placing import Placing
from proxy.positions.share import Share


class Renewals:
    """Of what is owned, all partitions of a topic together; what a rebalance takes away first begins anew anyway."""

    def __init__(self, placing: Placing, epoch: Epoch, owner: PartitionOwner) -> None:
        self._placing = placing
        self._epoch = epoch
        self._owner = owner
        self._wanted = dict[Partition, Share]()
        self._let_go = dict[Partition, Share]()
        """Of these the owner has let go; what is done of them is to be committed."""

    def want(self, topics: Collection[str]) -> bool:
        """Have all that is owned of some topics begin anew; return whether that is anything."""
        shares = [share for share in self._epoch.shares.values() if share.partition.topic in topics]
        kept = {share.partition.topic for share in shares if not share.is_let_go}
        self._wanted.update((share.partition, share) for share in shares if share.partition.topic in kept)
        return bool(kept)

    async def attend(self) -> bool:
        """Begin anew what is wanted and can be read now; return whether nothing is left that was let go.

        Raises `LogError` if the log doesn't take what is done.
        """
        shares = self._epoch.shares
        self._wanted = {at: share for at, share in self._wanted.items() if shares.get(at) is share}
        self._let_go = {at: one for at, one in self._let_go.items() if shares.get(at) is one and one.is_let_go}
        held_up = {at.topic for at, share in self._wanted.items() if not _can_be_let_go(share)}
        due = [share for at, share in self._wanted.items() if at.topic not in held_up]
        if due:
            for share in due:
                self._placing.halt(share)
            positions = await self._owner.on_moving([share.partition for share in due])
            if self._epoch.shares is not shares:
                return True  # whoever has them next begins them anew anyway
            self._epoch.note([share for share in due if share.partition in positions], positions)
            for share in due:
                share.is_let_go = True
                self._wanted.pop(share.partition, None)
                self._let_go[share.partition] = share
        taken = await self._epoch.secure(self._let_go.values()) if self._let_go else {}
        if self._epoch.shares is not shares:
            return True
        for share in [share for at, share in self._let_go.items() if at in taken]:
            self._owner.on_renewed(share.partition, taken[share.partition])
            if not share.successor:  # else the log that has taken the name is begun, if that is confirmed
                self._let_go.pop(share.partition, None)
                self._placing.begin_anew(share)
        return not self._let_go


def _can_be_let_go(share: Share) -> bool:
    return share.is_placed and not share.successor and share.moving is None
