"""How a partition's cursor is moved by a person's wish while it is owned (docs/design/0045-moving-the-cursor.md).

The commit that first carries a move's id is the move. Before it, nothing more is read or written of the partition and
what is out has its outcome, or none within the drain's deadline. From the step in which the move is settled on
everything that is committed of the share is the move, so that it may be asked for as often as it takes, also by the
epoch's final commit. Once it is taken, reading begins there as a new epoch of the bridge; what comes late is of the
old one, and moves nothing. An epoch that ends before leaves the move to whoever owns the partition next.
"""

from collections.abc import Collection, Mapping

from proxy.bridge.event_log import PartitionOwner
from proxy.bridge.move import Move, serial
from proxy.model import Partition
from proxy.positions.epoch import Epoch
from proxy.positions.placing import Placing
from proxy.positions.share import Moving, Share


class Moves:
    """Makes the moves that are wanted of what is owned, each once."""

    def __init__(self, placing: Placing, epoch: Epoch, owner: PartitionOwner) -> None:
        self._placing = placing
        self._epoch = epoch
        self._owner = owner
        self._wanted: Mapping[Partition, Move] = {}

    def want(self, wanted: Mapping[Partition, Move]) -> Collection[Partition]:
        """Replace what is wanted; return the owned partitions of which it is not made yet."""
        self._wanted = wanted
        shares = self._epoch.shares
        return [at for at in wanted if (share := shares.get(at)) is not None and self._is_open(share)]

    def _is_open(self, share: Share) -> bool:
        if share.moving is not None:
            return True
        move = self._wanted.get(share.partition)
        if move is None or share.began is None:
            return move is not None
        return move.topic_id == share.topic_id and serial(move.id) > serial(share.move)

    async def attend(self) -> None:
        """Make what is wanted and due. Raises `LogError` if the log does not take it; what is begun goes on later."""
        shares = self._epoch.shares
        due = [(one, move) for at, move in self._wanted.items() if (one := shares.get(at)) and self._is_due(one)]
        away = [(share, move) for share, move in due if move.end(share.done) != share.done]
        for share, _ in away:
            self._placing.halt(share)
        if away:
            positions = await self._owner.on_moving([share.partition for share, _ in away])
            if self._epoch.shares is not shares:
                return  # whoever owns them next finds the moves
            self._epoch.note([share for share, _ in away if share.partition in positions], positions)
        halted = {share.partition for share, _ in away}
        for share, move in due:
            to, is_halted = move.end(share.done), share.partition in halted
            if to != share.done and not is_halted:
                continue  # it has come this far only while others were halted; it is next
            share.moving = Moving(move, share.done, to, begins_anew=is_halted)
            share.move, share.done = move.id, to
        begun = [share for share in shares.values() if share.moving is not None]
        if left := [share for share in begun if share.moving is not None and not share.moving.is_taken]:
            await self._epoch.pin(left)
        for share in begun:
            if shares is self._epoch.shares and share.moving is not None and share.moving.is_taken:
                self._go_on(share)

    def _is_due(self, share: Share) -> bool:
        """Return whether it is placed in its log and has a move to make."""
        return share.is_placed and not share.successor and share.moving is None and self._is_open(share)

    def _go_on(self, share: Share) -> None:
        assert share.moving is not None
        if not share.moving.begins_anew:
            share.moving = None
        elif not share.successor:  # else the log that has taken the name is begun
            self._placing.go_on(share)
