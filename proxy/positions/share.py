"""One partition in one epoch: what is owned of it, what is done, what is next."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from proxy.bridge.move import NEVER_MOVED, Move
from proxy.model import Partition


@dataclass(slots=True)
class Moving:
    """A move that this share is at: from now on whatever is committed of it is the move."""

    move: Move
    done: int
    """Everything before it was done with."""
    to: int
    """Where the cursor stands now."""
    begins_anew: bool
    """Nothing is read until a new epoch begins there; else all stays as it was."""
    is_taken: bool = False
    """The log has it for good."""


@dataclass(slots=True, eq=False)
class Share:
    """One partition in one epoch; until it is placed nothing is fetched of it, whatever the owner asks."""

    partition: Partition
    is_paused: bool
    """The owner's wish."""
    is_placed: bool = False
    is_pinned: bool = False
    """The group has an offset for it, this epoch's or an earlier one's, and what was skipped since is in it."""
    began: int | None = None
    """Offset at which the epoch began; None until it is known."""
    done: int = 0
    """The next offset to be committed: everything before it is done with."""
    next: int = 0
    """The next offset to be handed out."""
    gap: range = range(0)
    """Offsets at which there is no event, or none any more: done with as soon as everything before them is."""
    unavailable: int | None = None
    """An offset that was asked for and that the log does not have."""
    cut_back: tuple[int, int] | None = None
    """An epoch, and where its log ended before what was read of it: reading has begun there anew."""
    cut_back_at: float = 0.0
    """When that was first so, by the loop's clock in seconds."""
    topic_id: str = ""
    """Of the log that `began`, `done` and `next` speak of; empty if the broker tells none."""
    successor: str = ""
    """The id that the topic has by now, if it is another: the log of ours is gone."""
    noticed_at: float = 0.0
    """When that was noticed, by the loop's clock in seconds."""
    move: str = NEVER_MOVED
    """The id of the last move that was made; goes with every commit."""
    moving: Moving | None = None
    """What is being made; nothing is read meanwhile."""

    @property
    def is_away(self) -> bool:
        """Whether its cursor stands where a move has taken it, and reading has not begun there yet."""
        return self.moving is not None and self.moving.begins_anew

    @property
    def is_adrift(self) -> bool:
        """Whether the log is to be asked where to go on: it has not what was asked for, and nobody moves the cursor."""
        return self.unavailable is not None and self.moving is None

    is_let_go: bool = False
    """The owner has let go of it, to begin it anew; nothing is read meanwhile."""

    def finish(self, offset: int) -> None:
        """Note that everything up to the offset is done with; one from before this epoch is passed over."""
        if self.began is not None and offset >= self.began:
            self.done = max(self.done, offset + 1)  # what is handed out again was done with before
            self._pass_gap()

    def skip(self, first: int) -> bool:
        """Note that nothing is left before `first`; return whether that is to be committed, as nothing else will do it.

        Uncommitted, what was dropped would be told of once more by whoever takes the partition over, and what never was
        an event would count as waiting, and as lost once the log drops it.
        """
        self.gap = range(self.gap.start if self.gap and self.gap.stop == self.next else self.next, first)
        return self._pass_gap()

    def _pass_gap(self) -> bool:
        if not self.gap.start <= self.done < self.gap.stop:
            return False
        self.done = self.gap.stop
        return True


Shares: TypeAlias = Mapping[Partition, Share]
