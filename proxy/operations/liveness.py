"""Whether the process is alive: red only for faults of its own, for then a restart helps and nothing else does.

A broker that is down, consumers that are slow, a destination that refuses: none of them is mended by killing whoever
waits for it. So a type is stuck only where nothing it waits for is anybody else's, and nothing of it moves.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import structlog
from prometheus_client.core import GaugeMetricFamily

from proxy.bridge.assignment import Assignment
from proxy.bridge.awaited import awaited
from proxy.bridge.broker import LaneState
from proxy.bridge.listener import Listener
from proxy.model import Mode

LOOK_SECONDS = 5.0
"""Between two looks at every event type."""
LONGEST_LOOK = 2 * LOOK_SECONDS
"""Seconds that one look counts for at most: a process that stood still saw nothing of what moved meanwhile."""
STOOD_STILL = 3.0
"""Seconds beyond a look's time after which it is said that nothing ran; brokers notice little less."""
BEYOND_DEADLINE = 30.0
"""Seconds beyond the confirm deadline, by which the bridge itself gives up whatever does not answer."""
_AT_ONCE = 64
"""Event types in one step of the event loop."""
_NAMED = 20
"""Faults that are told; of more than that the first."""
_say = structlog.get_logger("tidegate.liveness")


@dataclass(slots=True)
class _Suspicion:
    why: str
    progress: tuple[int, ...]
    """What would be another one if anything of the type had moved."""
    seconds: float = 0.0


class Liveness:
    """Looks at every event type; `run` it as a task. `ended` gives the names of tasks that ended and must not have."""

    def __init__(
        self,
        assignment: Assignment,
        confirm_deadline: float,
        ended: Callable[[], Iterable[str]],
    ) -> None:
        self._assignment = assignment
        self._deadline = confirm_deadline
        self._patience = confirm_deadline + BEYOND_DEADLINE
        self._ended = ended
        self._suspicions: dict[str, _Suspicion] = {}
        self._looked_at: float | None = None
        self._said: set[str] = set()

    def faults(self) -> dict[str, str]:
        """Return what is stuck and why, in words; nothing while all is alive."""
        found = {f"task {name}": "has ended" for name in self._ended()}
        for name, one in self._suspicions.items():
            if one.seconds >= self._patience:
                found[f"type {name}"] = f"{one.why}, for {one.seconds:.0f} s"
        return dict(list(found.items())[:_NAMED])

    def families(self) -> Iterable[GaugeMetricFamily]:
        """Yield what /metrics tells of it."""
        yield GaugeMetricFamily("tidegate_stuck", "Types and tasks stuck by a fault of ours.", value=len(self.faults()))

    async def run(self) -> None:
        """Look until cancelled."""
        clock = asyncio.get_running_loop().time
        while True:
            due = clock() + LOOK_SECONDS
            await asyncio.sleep(LOOK_SECONDS)
            if (late := clock() - due) > STOOD_STILL:
                _say_stood_still(late)
            for _ in self._look():
                await asyncio.sleep(0)
            self._tell()

    def _look(self) -> Iterator[None]:
        """Look at every type; yield now and then."""
        now = asyncio.get_running_loop().time()
        passed = 0.0 if self._looked_at is None else min(LONGEST_LOOK, now - self._looked_at)
        self._looked_at = now
        before, self._suspicions = self._suspicions, {}
        for count, one in enumerate(list(self._assignment.listeners.values()), 1):
            name = one.event_type.name
            why = self._suspected(one, asyncio.get_running_loop().time())
            if why:
                new, old = _Suspicion(why, _progress(one)), before.get(name)
                if old is not None and (old.why, old.progress) == (new.why, new.progress):
                    new.seconds = old.seconds + passed
                self._suspicions[name] = new
            if not count % _AT_ONCE:
                yield

    def _suspected(self, one: Listener, now: float) -> str:
        """Return what would be a fault of ours if it lasted; "" if the type moves or waits for somebody else."""
        lane = one.lane
        if lane.state is not LaneState.OPEN:
            return ""
        match awaited(one, now):
            case "":
                may_go = any(flow.ready(now) for flow in one.inbox.flows.values() if flow.waiting)
                is_idle = may_go and one.stance.mode is Mode.RUN and not one.dead_letters.is_full
                return "events wait, nothing holds them back, and none is sent" if is_idle else ""
            case "lane" if not lane.in_flight:
                return "its lane is open, has nothing in flight, and writes nothing"
            case "outcomes" if not lane.in_flight:
                return "it waits for outcomes of what its lane does not have in flight"
            case "lane" | "outcomes" if lane.unanswered(now) > self._deadline:
                return "its lane holds events beyond the confirm deadline, and gives nothing up"
            case _:
                return ""

    def _tell(self) -> None:
        """Say each fault once, and when there are none any more."""
        faults = self.faults()
        for what in faults.keys() - self._said:
            _say.error("stuck", what=what, why=faults[what], effect="/health answers 503: a restart is needed")
        if self._said and not faults:
            _say.info("moves_again")
        self._said = set(faults)


def _say_stood_still(seconds: float) -> None:
    _say.warning(
        "stood_still",
        seconds=round(seconds, 1),
        why="this process did not run: it or its machine was stopped or paused, or others took its processor",
        effect="nothing moved meanwhile; brokers that heard nothing have perhaps cut its lines or given its work away",
    )


def _progress(one: Listener) -> tuple[int, ...]:
    flows = one.inbox.flows.values()
    return (
        sum(flow.sent for flow in flows),
        sum(flow.watermark.resolved for flow in flows),
        sum(flow.out for flow in flows),
    )
