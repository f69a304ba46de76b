"""Which of a route's queues counts, and which rules: Aeron's flow control for several receivers.

`min`: the slowest rules; `max`: the quickest; `tagged`: the slowest of those with a tag. A receiver is a queue with at
least one consumer; one without any for 5 s has left the group. Untethering lets one that is stuck at the end of its
range, while another is at the beginning of its own, rest for a while instead of ruling for ever.
Source: Aeron's MinMulticastFlowControl, TaggedMulticastFlowControl and UntetheredSubscription, with their times.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf

from proxy.congestion.receiver import View

LEAVES_AFTER = 5.0
"""Seconds for which a queue must have been seen without a consumer until it is no receiver any more."""
LONGEST_LOOK = 0.5
"""Seconds that one look counts for at most: a process that stood still has not seen who came meanwhile."""
STUCK_FOR = 5.0
"""Seconds for which a queue must be stuck until that is announced, and then again until it rests."""
RESTS_FOR = 10.0
"""Seconds for which it does not count."""
END = 7 / 8
BEGINNING = 1 / 8
"""Parts of the range, from no delay to the highest threshold, that are its end and its beginning."""


class Tether(StrEnum):
    """How a queue stands to its group."""

    ACTIVE = "active"
    LINGER = "linger"
    """Announced; it counts for another 5 s."""
    RESTING = "resting"
    """It does not count for 10 s."""
    ABSENT = "absent"
    """It has no consumers."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What a route says of its queues."""

    strategy: str = "sum"
    """`min`, `max`, `tagged`, or `sum`: all taken together."""
    group_min: int = 0
    untether: bool = False
    tags: frozenset[str] = frozenset()


@dataclass(slots=True)
class _Member:
    alone: float = inf
    """Seconds for which it has been seen without a consumer; infinite: it has never been seen with one."""
    state: Tether = Tether.ACTIVE
    since: float = 0.0
    stuck_since: float | None = None


@dataclass(frozen=True, slots=True)
class Counted:
    """Who counts now."""

    views: tuple[View, ...]
    is_connected: bool
    """As many are there as must be."""
    states: dict[str, Tether] = field(default_factory=dict)


class Group:
    """The queues of one route. `highest` is the end of their range: the highest threshold, in seconds."""

    def __init__(self, rules: Rules, highest: float) -> None:
        self._rules = rules
        self._highest = highest
        self._members: dict[str, _Member] = {}
        self._looked = 0.0

    def go_by(self, rules: Rules, highest: float) -> None:
        """Count by other rules from now on; who is there is known."""
        self._rules, self._highest = rules, highest

    def count(self, now: float, views: Sequence[View]) -> Counted:
        """Take a look at all queues; return who counts."""
        passed, self._looked = min(LONGEST_LOOK, now - self._looked), now
        for view in views:
            member = self._members.setdefault(view.name, _Member())
            if view.consumers:
                member.alone = 0.0
            elif view.is_known:
                member.alone += passed
        present = [view for view in views if self._members[view.name].alone <= LEAVES_AFTER]
        if self._rules.untether:
            for view in views:
                if view in present:
                    self._step(now, view, present)
                else:  # it has left; if it comes back it begins anew
                    member = self._members[view.name]
                    member.state, member.stuck_since = Tether.ACTIVE, None
        eligible = [view for view in views if self._is_eligible(view)]
        there = [view for view in present if self._is_eligible(view)]
        counted = [view for view in there if self._members[view.name].state is not Tether.RESTING]
        states = {view.name: self._members[view.name].state if view in present else Tether.ABSENT for view in views}
        # With nobody there all are looked at: a backlog without consumers still stops the route.
        return Counted(tuple(counted or there or eligible), len(there) >= self._rules.group_min, states)

    def ruling(self, views: Sequence[View], rank: int) -> View:
        """Return who rules a class among those who count: of the queues that it goes to, if there are any."""
        fed = [view for view in views if view.feeds[rank]] or list(views)
        pick = min if self._rules.strategy == "max" else max
        return pick(fed, key=lambda view: (view.is_left, -1.0 if view.delay is None else view.delay))

    def _is_eligible(self, view: View) -> bool:
        return self._rules.strategy != "tagged" or view.name in self._rules.tags

    def _step(self, now: float, view: View, present: Sequence[View]) -> None:
        member = self._members[view.name]
        if member.state is Tether.ACTIVE:
            is_stuck = self._is_at_end(view) and any(
                other is not view and self._is_at_beginning(other) for other in present
            )
            if not is_stuck:
                member.stuck_since = None
                return
            if member.stuck_since is None:
                member.stuck_since = now
            if now - member.stuck_since >= STUCK_FOR:
                member.state, member.since = Tether.LINGER, now
        elif member.state is Tether.LINGER and now - member.since >= STUCK_FOR:
            member.state, member.since = Tether.RESTING, now
        elif member.state is Tether.RESTING and now - member.since >= RESTS_FOR:
            member.state, member.since, member.stuck_since = Tether.ACTIVE, now, None

    def _is_at_end(self, view: View) -> bool:
        return view.delay is not None and view.delay >= END * self._highest

    def _is_at_beginning(self, view: View) -> bool:
        return view.delay is not None and view.delay <= BEGINNING * self._highest
