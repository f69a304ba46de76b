"""Where a lane's connection stands, and what is said of it."""

import structlog

from proxy.bridge.broker import LaneState

_CAUSES = 8
"""Different causes told in one outage."""

_say = structlog.get_logger("tidegate.lane")


class Condition:
    """Says each change once, and in an outage each cause."""

    def __init__(self, route: str) -> None:
        self._route = route
        self._causes: set[str] = set()
        self.state = LaneState.CONNECTING

    def enter(self, state: LaneState, **facts: str) -> None:
        """Be in a state from now on."""
        if state is not self.state:
            self.state = state
            say = _say.info if state is LaneState.OPEN else _say.warning
            say("lane_state", route=self._route, state=state.value, **facts)

    def reach(self, host: str) -> None:
        """Be open; the outage is over, if there was one."""
        self._causes.clear()
        if self.state is LaneState.OPEN:
            _say.info("lane_moved", route=self._route, host=host)
        self.enter(LaneState.OPEN, host=host)

    def on_unreachable(self, why: str) -> None:
        """Say why the broker can't be reached: with the change of state, later once per cause and outage."""
        if self.state is not LaneState.LOST:
            self.enter(LaneState.LOST, why=why)
        elif why not in self._causes and len(self._causes) < _CAUSES:
            _say.warning("lane_unreachable", route=self._route, why=why)
        self._causes.add(why)
