"""Judges what stands still: a type that has something to do and does nothing must be said to wait, and for what.

What is said is what an operator sees: `/ready`, `/metrics`, the lines of the log. What is said must also be so: a type
that is said to wait for outcomes while nothing is in flight waits for nothing.
"""

from collections.abc import Iterator, Sequence

from prometheus_client.metrics_core import Metric

from proxy.bridge.broker import LaneState
from proxy.model import Partition
from tests.histories.heard import Heard
from tests.histories.plan import LETTERS
from tests.histories.replica import Replica
from tests.histories.world import World

PATIENCE = 2.0
"""Seconds for which a type may stand still unsaid in the bridge ..."""
LOG_PATIENCE = 5.0
"""... and where it waits for the log: that says so of a partition after some four seconds."""
_ENDS = {
    "log_unavailable": "log_available",
    "node_unavailable": "node_available",
    "node_throttles": "node_throttles_no_more",
    "partitions_stand_still": "partitions_flow",
    "partition_unreadable": "",
    "topic_dropped": "",
    "topic_missing": "",
    "topic_refused": "",
}
"""What the log complains of, and what it says when that is over."""
_CONFIRMED_WITHIN = 1.0
"""Seconds: what is written has its outcome by then, for after the confirm deadline the connection is given up."""
_COMMITS = ("commit_failed", "commit_left_out", "final_commit_failed")
_MOMENT = 0.5
"""Seconds before a standstill within which a complaint is about it."""


class Stillness:
    """Of one wire history."""

    def __init__(self, world: World, heard: Heard) -> None:
        self._world = world
        self._heard = heard
        self._said: set[tuple[str, float]] = set()
        self._outcomes: dict[tuple[str, str], float] = {}
        """By replica and topic, since when it is said to await outcomes; it may have waited for the log before."""

    def judge(self, now: float) -> None:
        """Look at every type."""
        witness, left = self._world.witness, dict[str, list[Partition]]()
        for at, track in self._world.cluster.tracks.items():
            if witness.facts.unsettled(at, track.first) is not None:
                left.setdefault(at.topic, []).append(at)
                witness.moved.setdefault(at.topic, now)
        for topic, partitions in left.items():
            since = witness.moved[topic]
            if now - since < PATIENCE or (topic, since) in self._said:
                continue
            for wrong in self._unsaid(topic, partitions, since, now):
                self._said.add((topic, since))
                witness.accuse(f"{topic} has stood still since {since:.1f}: {wrong}")
        for topic in witness.moved.keys() - left.keys():
            del witness.moved[topic]
        for held in [one for one in self._outcomes if now - witness.moved.get(one[1], now) < PATIENCE]:
            del self._outcomes[held]

    def _unsaid(self, topic: str, partitions: list[Partition], since: float, now: float) -> Iterator[str]:
        world = self._world
        living = {one.name: one for one in world.replicas if world.is_awake(one)}
        for name in dict.fromkeys(world.witness.holders.get(at, (0, ""))[1] for at in partitions):
            replica = living.get(name)
            if replica is not None and replica.app is not None:
                held = [at for at in partitions if world.witness.holders.get(at, (0, ""))[1] == name]
                if wrong := self._wrong(replica, topic, held, since, now):
                    yield f"{name} says {wrong}"

    def _wrong(self, replica: Replica, topic: str, held: list[Partition], since: float, now: float) -> str:
        """Return what a replica says of a type that is not so, or not enough; "" if it says what it waits for."""
        app, plan = replica.app, self._world.plan
        assert app is not None
        if faults := app.liveness.faults():
            return f"it is stuck by a fault of its own: {faults}"
        ready = app.status.ready()
        outcomes = self._outcomes.pop((replica.name, topic), now)
        kind, routes = app.in_force.event_type(topic), app.in_force.settings.routes
        route = plan.settings.by_topic[topic].route if kind is None else kind.route
        is_closed = topic in ready["stopped_types"] or ready["routes"][route] != LaneState.OPEN.value
        has_just_opened = self._has_said(replica, ("lane_state",), now - PATIENCE)
        if is_closed or has_just_opened or all(str(at) in ready["standing"] for at in held):
            return ""
        metrics = [family for family in app.status.families() if family is not None]
        word = next(
            (labels["for"] for labels, _ in _samples(metrics, "tidegate_awaits") if labels["type"] == topic), ""
        )
        flight = sum(
            value for labels, value in _samples(metrics, "tidegate_in_flight_events") if labels["route"] == route
        )
        settings = routes[route]
        match word:
            case "":
                is_so = now - since < LOG_PATIENCE or self._complains(replica, since)
            case "rate":
                is_so = settings.policy != "static" or settings.cap is not None
            case "lane":
                is_so = flight > 0 or self._others_pass(topic, now)
            case "outcomes":
                self._outcomes[replica.name, topic] = outcomes
                is_so = now - outcomes < _CONFIRMED_WITHIN
            case "lease":
                is_so = app.lease.left(now) <= 0
            case "commit":
                is_so = self._complains(replica, since) or self._has_said(replica, _COMMITS, since)
            case "dead_letters":
                is_so = self._has_trouble_with_letters(replica)
            case _:
                is_so = True
        return "" if is_so else f"that it awaits {word or 'nothing'}, with {flight:g} in flight: {ready}"

    def _others_pass(self, topic: str, now: float) -> bool:
        """Return whether other types are served at the topic's lane; whether fairly so is judged elsewhere."""
        plan, moved = self._world.plan, self._world.witness.moved
        lane = plan.lanes[plan.settings.by_topic[topic].route]
        others = [
            one for one, kind in plan.settings.by_topic.items() if one != topic and plan.lanes[kind.route] == lane
        ]
        return any(now - moved.get(one, 0.0) < PATIENCE for one in others)

    def _complains(self, replica: Replica, since: float) -> bool:
        """Return whether the log has complained since a moment before, or still does."""
        lines = self._heard.lines[replica.name]
        for event, end in _ENDS.items():
            last = max((at for at, _, said, _ in lines if said == event), default=None)
            over = max((at for at, _, said, _ in lines if said == end), default=0.0)
            if last is not None and (last >= over or over >= since - _MOMENT):
                return True
        return False

    def _has_said(self, replica: Replica, events: tuple[str, ...], since: float) -> bool:
        return any(said in events and at >= since - _MOMENT for at, _, said, _ in self._heard.lines[replica.name])

    def _has_trouble_with_letters(self, replica: Replica) -> bool:
        lines = self._heard.lines[replica.name]
        states = [more["state"] for _, _, said, more in lines if said == "lane_state" and more["route"] == LETTERS]
        return bool(states and states[-1] != "open") or any(said == "dead_letter_refused" for _, _, said, _ in lines)


def _samples(metrics: Sequence[Metric], name: str) -> Iterator[tuple[dict[str, str], float]]:
    return ((one.labels, one.value) for metric in metrics if metric.name == name for one in metric.samples)
