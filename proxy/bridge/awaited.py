"""What the events of a type wait for, in a word, for whoever asks why it stands still."""

from proxy.bridge.listener import Listener
from proxy.model import Mode


def awaited(listener: Listener, now: float) -> str:
    """Return what the type's events wait for at `now`, on the loop's clock; "" if none waits here.

    `rate` (throttle or cap), `lease` (the group's word), `lane` (connection or window), `outcomes` of what was sent,
    `retry` (the pause after a nack, or a queue whose node is down), `commit` (`limits.uncommitted_events`),
    `dead_letters`, `restart`, `resume` (by a person who has paused the type).
    """
    if listener.is_stopped:
        return "restart"
    if listener.stance.mode is Mode.PAUSE and listener.inbox.events:
        return "resume"
    if listener.stage:
        return listener.stage
    letters = listener.dead_letters
    flows = listener.inbox.flows.values()
    hindrance = next((why for flow in flows if (why := flow.hindrance(now))), "")
    if not hindrance and not letters.is_full and any(flow.out for flow in flows):
        return "outcomes"
    if letters.is_full or hindrance == "dead_letters" or (letters.open and not hindrance):
        return "dead_letters" if listener.may_send() else "lease"
    return hindrance
