"""Whether the queues exist that dead letters go to by name: said before the first letter needs one.

Only those of the default exchange can be asked for: AMQP does not tell what an exchange is bound to.
"""

from collections.abc import Collection

import structlog

from proxy.settings import Settings

_say = structlog.get_logger("tidegate.depths")

INTERVAL = 60.0
"""Seconds between two looks at a queue that exists. Larger: it is missed later."""
MISSING_INTERVAL = 5.0
"""... and at one that does not: every look at it costs a channel."""


def letter_queues(settings: Settings) -> frozenset[str]:
    """Return the queues that dead letters of any event type are sent to by their names."""
    targets = [kind.dead_letter for kind in (*settings.event_types.values(), *settings.patterns)]
    return frozenset(to.routing_key for to in targets if to is not None and not to.exchange)


class LetterQueues:
    """Remembers which are missing. Asks nobody: `due` tells what to ask for, `see` takes the answers."""

    def __init__(self, queues: Collection[str]) -> None:
        self._due = dict.fromkeys(sorted(queues), 0.0)
        self._missing: set[str] = set()

    @property
    def are_any(self) -> bool:
        """Whether there are any to look at."""
        return bool(self._due)

    def replace(self, queues: Collection[str]) -> None:
        """Look for others from now on; what is known of those that stay is kept."""
        self._due = {queue: self._due.get(queue, 0.0) for queue in sorted(queues)}
        self._missing &= self._due.keys()

    def due(self, now: float) -> list[str]:
        """Return those to be asked for now."""
        return [queue for queue, at in self._due.items() if at <= now]

    def see(self, queue: str, now: float, *, is_there: bool) -> None:
        """Take an answer."""
        if queue not in self._due:
            return  # it was replaced while it was asked for
        self._due[queue] = now + (INTERVAL if is_there else MISSING_INTERVAL)
        if not is_there and queue not in self._missing:
            self._missing.add(queue)
            _say.warning(
                "dead_letter_queue_missing",
                queue=queue,
                effect="what can't be delivered has nowhere to go: it waits, and nothing of its partition is committed "
                "beyond it",
                remedy="create the queue, or name another in dead_letter",
            )
        elif is_there and queue in self._missing:
            self._missing.discard(queue)
            _say.info("dead_letter_queue_found", queue=queue)
