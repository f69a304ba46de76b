"""How often events are sent again that came back although a queue of theirs is there. Pure: handed `now`.

For a moment in which two nodes have lost sight of each other one returns what is for a queue of the other's, and says a
moment later that it is there. An exchange that leads nowhere looks the same, but goes on.
"""

import structlog

from proxy.bridge.flow import PartitionFlow
from proxy.bridge.returned import Returned

INSISTENCE = 1.0
"""Seconds for which events are sent again before their exchange and key are taken to lead nowhere."""
UNBOUND = 10.0
"""Seconds for which that is believed of an exchange and a key; at most `MOST_UNBOUND` of these."""
MOST_UNBOUND = 1_000
DISPUTED = 2.0
"""Seconds of returns from a queue that is there, without a pause of as much, after which it is said."""

_say = structlog.get_logger("tidegate.returns")


class Insistence:
    """What is sent again and since when; kept as long as flows have it to send."""

    def __init__(self) -> None:
        self._tried: dict[PartitionFlow, dict[int, float]] = {}
        """Sequence numbers that are sent again, and since when."""
        self._unbound: dict[str, float] = {}
        """Since when exchange and key, in the broker's words, are known to lead nowhere."""
        self._disputed: dict[str, tuple[float, float, bool]] = {}
        """Queues that are there and of which events come back: since when, when last, whether it was said."""

    def goes_on(self, one: Returned, now: float) -> bool:
        """Return whether events are sent once more, one of whose queues is there.

        Where no binding is needed there is nothing that it can have been but the node's view.
        """
        if one.is_direct:
            self._dispute(one.places[0].queue, now)  # the key names one
            return True
        since = self._unbound.get(one.detail)
        if since is not None and now - since <= UNBOUND:
            return False
        tried = self._tried.setdefault(one.flow, {})
        numbers = range(one.batch.first + one.start, one.batch.first + one.end)
        # From the first answer on, not from the first return: before slow answers it would be over before it began.
        if now - min([tried.setdefault(number, now) for number in numbers]) < INSISTENCE:
            return True
        self._unbound.pop(one.detail, None)
        if len(self._unbound) >= MOST_UNBOUND:
            del self._unbound[next(iter(self._unbound))]
        self._unbound[one.detail] = now
        return False

    def doubt(self) -> None:
        """Believe of no exchange any more that it leads nowhere: a queue is out of sight, who knows which others."""
        self._unbound.clear()

    def begin_anew(self, flow: PartitionFlow) -> None:
        """Count the times of a flow from its next return on: a queue of its own is out of sight."""
        self._tried.pop(flow, None)

    def forget(self, now: float) -> None:
        """Keep nothing that flows have not to send again."""
        for flow, numbers in list(self._tried.items()):
            resolved = flow.watermark.resolved
            left = {} if flow.closing else {number: at for number, at in numbers.items() if number >= resolved}
            self._tried.pop(flow) if not left else self._tried.update({flow: left})
        for queue in [queue for queue, (_, last, _) in self._disputed.items() if now - last > DISPUTED]:
            del self._disputed[queue]

    def _dispute(self, queue: str, now: float) -> None:
        """Say it when what is for a queue that is there goes on coming back."""
        since, last, is_said = self._disputed.get(queue, (now, now, False))
        if now - last > DISPUTED:
            since, is_said = now, False
        if now - since >= DISPUTED and not is_said:
            is_said = True
            _say.warning(
                "queue_disputed",
                queue=queue,
                effect="it is there, yet what is for it comes back; it is sent again until it is taken",
                remedy="see whether the nodes of RabbitMQ see each other: rabbitmqctl cluster_status on each",
            )
        self._disputed[queue] = since, now, is_said
