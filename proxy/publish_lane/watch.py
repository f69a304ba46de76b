"""When a lane gives up the connection in use: silent, or keeping it waiting although not blocked."""

import asyncio

import structlog

from proxy.bridge.broker import LaneState
from proxy.publish_lane.condition import Condition
from proxy.publish_lane.patience import LONGEST_LOOK, SILENCE, Patience, Silence
from proxy.publish_lane.session import Session
from proxy.publish_lane.wire import Connector, Wire

_say = structlog.get_logger("tidegate.lane")

_BLOCKED = {
    "why": "RabbitMQ has an alarm, of memory or disk",
    "effect": "it takes nothing from connections that publish; events wait in the log",
    "remedy": "`rabbitmqctl status` tells which, and on which node",
}

LONG_REFUSED = 5.0
"""Seconds for which the broker refuses what is sent before that is a warning."""


class Watch:
    """Looks, whenever it is told to, at the connection of one lane."""

    def __init__(self, name: str, connector: Connector, patience: Patience, condition: Condition) -> None:
        self._name = name
        self._connector = connector
        self._patience = patience
        self._condition = condition
        self._unblocked = 0.0
        self._silence = Silence(0.0)

    def begin(self, wire: Wire) -> None:
        """Look at another connection from now on, one that has just opened."""
        self._unblocked = asyncio.get_running_loop().time()
        self._silence = Silence(self._unblocked)
        self._patience.open(self._unblocked)
        self._condition.reach(wire.host)

    def look(self, session: Session, wire: Wire) -> None:
        """Give up a silent connection; if not blocked, one that keeps us waiting; renew channels that only refuse."""
        now = asyncio.get_running_loop().time()
        is_late = now - self._silence.looked > LONGEST_LOOK
        silent = self._silence.look(wire.heard, now)
        if wire.heartbeat and silent > SILENCE * wire.heartbeat:
            self._give_up(session, wire, f"silent for {silent:.1f} s")
            return
        self.follow_block(wire)
        if self._condition.state is not LaneState.OPEN or is_late:
            return  # what came while this process stood still is read by the next look
        if (refused := session.renew_channels(now)) is not None:
            say = _say.warning if refused >= LONG_REFUSED else _say.info
            effect = "what is sent is refused again and again, as by a full queue, and sent anew until taken"
            say("lane_channels_renewed", route=self._name, host=wire.host, refused_for=round(refused, 1), effect=effect)
        overdue = session.overdue(now, self._unblocked)
        if overdue is not None:
            self._patience.lose(now)
            self._give_up(session, wire, overdue)
        elif self._patience.take_proof():
            self._connector.trust(wire.host)

    def _give_up(self, session: Session, wire: Wire, why: str) -> None:
        self._connector.doubt(wire.host)
        session.on_lost(f"{wire.host}: {why}", refused=False)

    def follow_block(self, wire: Wire) -> None:
        """Know whether the broker blocks the connection."""
        if wire.is_blocked():
            self._condition.enter(LaneState.BLOCKED, host=wire.host, **_BLOCKED)
        elif self._condition.state is LaneState.BLOCKED:
            self._unblocked = asyncio.get_running_loop().time()
            self._condition.enter(LaneState.OPEN, host=wire.host)
