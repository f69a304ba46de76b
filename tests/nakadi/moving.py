"""Moving cursors on the scripted Nakadi as the command does, and losing the answer to it."""

from collections.abc import Callable
from typing import Any

from proxy.bridge.move import Moved
from proxy.cursor.carrying import make
from proxy.nakadi_log.cursors import NakadiCursors
from proxy.operations.plan import Plan
from proxy.settings import LogSettings


async def made(settings: LogSettings, is_meant: Callable[[str], bool], plan: Plan) -> list[Moved]:
    """Make a plan with cursors of its own; return what was moved."""
    cursors = NakadiCursors(settings, is_meant)
    try:
        await cursors.open()
        await cursors.topics()
        return (await make(plan, cursors, cursors.held)).moved
    finally:
        await cursors.close()


def lose_the_answer(found: Any, peer: Any) -> None:
    """Have the subscription's next moves be done, and the connection lost before anybody is told."""
    move = found.move

    def cut(ends: Any, now: float) -> Any:
        done = move(ends, now)
        peer.loop.network.reset("10.0.0.1:80")
        return done

    found.move = cut
