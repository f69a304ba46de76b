"""Which partitions stand still that are to be read, since when and why; each change is said once, by reason.

Looked at once a second, so that whatever is over by then is nothing to speak of.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import structlog

from proxy.bridge.event_log import Standing
from proxy.model import Partition
from proxy.positions.share import Share, Shares

_say = structlog.get_logger("tidegate.kafka")

LOOK_SECONDS = 1.0
GRACE = 3.0
"""Seconds that a partition may stand still unsaid: a leader that moves takes as long. Larger: later; smaller: noise."""
_NAMED = 10
"""Partitions that one message names; of the others it gives the count."""


@dataclass(slots=True)
class _Stall:
    standing: Standing
    since: float
    is_said: bool = False


class Stalls:
    """Looks at the shares of the current epoch; `hindrance` tells what keeps one from being read.

    `suspects` are those for which it may tell anything; None: it must be asked for each.
    """

    def __init__(
        self,
        hindrance: Callable[[Partition], Standing | None],
        clock: Callable[[], float],
        suspects: Callable[[], Collection[Partition] | None] = lambda: None,
    ) -> None:
        self._hindrance = hindrance
        self._suspects = suspects
        self._clock = clock
        self._next_at = 0.0
        self._stalls: dict[Partition, _Stall] = {}

    @property
    def standing(self) -> Mapping[Partition, Standing]:
        """Those that have stood still for longer than the grace, as of the last look."""
        return {partition: stall.standing for partition, stall in self._stalls.items() if stall.is_said}

    def turn(self, shares: Shares) -> None:
        """Look, if it is time."""
        now = self._clock()
        if now < self._next_at:
            return
        self._next_at = now + LOOK_SECONDS
        suspects = self._suspects()
        found: dict[Partition, Standing] = {}
        for at, share in shares.items():
            if share.is_paused or (share.is_placed and suspects is not None and at not in suspects):
                continue
            if (standing := self._reason(share)) is not None:
                found[at] = standing
        self._say_ends(shares, found, now)
        before, self._stalls = self._stalls, {}
        begun: dict[Standing, list[Partition]] = defaultdict(list)
        for at, standing in found.items():
            stall = before.get(at)
            if stall is None or stall.standing.cause != standing.cause:
                stall = _Stall(standing, now)
            self._stalls[at] = stall
            stall.standing = standing
            if not stall.is_said and now - stall.since >= GRACE:
                stall.is_said = True
                begun[standing].append(at)
        for standing, partitions in begun.items():
            _say.warning("partitions_stand_still", **_named(partitions), cause=standing.cause, why=standing.why)

    def _reason(self, share: Share) -> Standing | None:
        if not share.is_placed:
            return Standing("unplaced", "it is not known yet where to begin, or what comes next can't be read")
        return self._hindrance(share.partition)

    def _say_ends(self, held: Mapping[Partition, Share], found: Mapping[Partition, Standing], now: float) -> None:
        """Say which go on; what was given away is another replica's to speak of, what is paused is left unsaid."""
        said = [at for at, stall in self._stalls.items() if stall.is_said and at not in found]
        ended = [at for at in said if (share := held.get(at)) is not None and not share.is_paused]
        if ended:
            longest = max(now - self._stalls[at].since for at in ended)
            _say.info("partitions_flow", **_named(ended), after_s=round(longest, 1))


def _named(partitions: list[Partition]) -> dict[str, object]:
    return {"partitions": [str(at) for at in sorted(partitions)[:_NAMED]], "count": len(partitions)}
