"""Whose events go one at a time, because one of them may make the broker close the channel.

Pure. When a channel closes over one of several open events, every topic (so every event type) that had events open is
suspected, until as many of its events have been resolved without harm. The one whose event is found to be the culprit
stays longer. All others pass the quarantine by: that is how one event type's trouble never stalls another.
"""

import re
from dataclasses import dataclass, field

from proxy.model import Partition, Position
from proxy.publish_lane.line import Line, Request

PROBATION_EVENTS = 1_000
"""Events in a row that must be resolved without harm after a culprit."""
STRIKES = 3
"""So often an event must be the only open one when the broker fails, to be what it fails at."""
_STRUCK = 1_000
"""Events whose strikes are remembered at most; the first is forgotten."""
# The text is all there is. RabbitMQ 3.10 and 4.0 close the channel with class 60 and method 40 (basic.publish) whatever
# was wrong, and with code 403 over an exchange as over a routing key. Only its begin counts: a key stands further on.
_EXCHANGE_FAULTS = (
    "NOT_FOUND - no exchange",
    "ACCESS_REFUSED - access to exchange",
    "ACCESS_REFUSED - write access to exchange",
    "ACCESS_REFUSED - cannot publish to internal exchange",
)
_BOUND = re.compile(r"PRECONDITION_FAILED - message size \d+ (?:is )?larger than (?:configured )?max size (\d+)")


@dataclass(slots=True)
class _Suspect:
    left: int = 0
    """Events to be resolved without harm before it is released."""
    requests: dict[Request, None] = field(default_factory=dict)


@dataclass(slots=True)
class Quarantine:
    """The suspected topics and their requests, which stand here instead of in the line; served in turn."""

    line: Line
    _suspects: dict[str, _Suspect] = field(default_factory=dict)
    _strikes: dict[tuple[Partition, Position], int] = field(default_factory=dict)

    @property
    def waits(self) -> bool:
        """Whether any request may be served, of a suspected topic or not."""
        return bool(self._suspects) or self.line.waits

    @property
    def first(self) -> Request | None:
        """Who is next: a request of the topic that was served longest ago."""
        if not self._suspects:
            return None
        return next((next(iter(suspect.requests)) for suspect in self._suspects.values() if suspect.requests), None)

    def __contains__(self, topic: str) -> bool:
        """Return whether the topic's events go one at a time."""
        return topic in self._suspects

    def suspect(self, topic: str, events: int) -> None:
        """Quarantine a topic for its next `events` events at least; its requests come along."""
        suspect = self._suspects.get(topic)
        if suspect is None:
            suspect = self._suspects[topic] = _Suspect()
            for request in self.line.of(topic):
                self.line.remove(request)
                suspect.requests[request] = None
        suspect.left = max(suspect.left, events)

    def accuse(self, topic: str, events: int, why: str, *, is_culprit: bool) -> None:
        """Quarantine a topic that had so many events open when the broker refused one of all that were.

        One whose event was the culprit stays longer, unless not the event was to blame but where it went.
        """
        is_excused = is_culprit and blames_exchange(why)
        self.suspect(topic, PROBATION_EVENTS if is_culprit and not is_excused else events)
        if is_excused:
            self._suspects[topic].left = 1

    def strike(self, partition: Partition, position: Position) -> bool:
        """Count that the broker failed while nothing but this event was open; return whether it is the culprit."""
        event = (partition, position)
        strikes = self._strikes.pop(event, 0) + 1
        if strikes >= STRIKES:
            return True
        self._strikes[event] = strikes
        if len(self._strikes) > _STRUCK:
            del self._strikes[next(iter(self._strikes))]
        return False

    def clear(self, topic: str, events: int) -> None:
        """Count events resolved without harm; the last one releases the topic, whose requests return to the line."""
        suspect = self._suspects.get(topic)
        if suspect is None:
            return
        suspect.left -= events
        if suspect.left <= 0:
            del self._suspects[topic]
            for request in suspect.requests:
                self.line.add(request)

    def add(self, request: Request) -> None:
        """Put a request where it belongs: with its suspected topic, or in the line."""
        suspect = self._suspects.get(request.topic)
        if suspect is None:
            self.line.add(request)
        else:
            suspect.requests[request] = None

    def remove(self, request: Request) -> None:
        """Take a request out of quarantine and line; one that is not in is passed over."""
        suspect = self._suspects.get(request.topic)
        if suspect is not None:
            suspect.requests.pop(request, None)
        self.line.remove(request)

    def served(self, request: Request) -> None:
        """Put the request's topic behind the other suspects."""
        suspect = self._suspects.pop(request.topic, None)
        if suspect is not None:
            self._suspects[request.topic] = suspect


def blames_exchange(why: str) -> bool:
    """Tell whether the broker closed a channel because the exchange is missing or closed to us, whatever the event."""
    return why.startswith(_EXCHANGE_FAULTS)


def longest_body(why: str) -> int | None:
    """Return how many bytes a message may have, if the broker closed a channel because one has more."""
    found = _BOUND.match(why)
    return None if found is None else int(found[1])
