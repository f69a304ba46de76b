"""The bus: event types by name, subscriptions by what identifies them, and who may ask."""

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, get_args
from uuid import UUID

from tests.nakadi.event_types import EventType, PartitionLog, Problem
from tests.nakadi.reading import Key
from tests.nakadi.subscription import ReadFrom, Subscription

Cursor = Mapping[str, str]


class Bus:
    """Everything that is kept; `chance` makes ids."""

    def __init__(self, chance: Random) -> None:
        self.event_types: dict[str, EventType] = {}
        self.subscriptions: dict[str, Subscription] = {}
        self.chance = chance
        self.tokens: dict[str, float] | None = None
        """By bearer token that is good: until when. None: nobody is asked for one."""
        self._known: dict[tuple[str, str, frozenset[str]], Subscription] = {}
        self._readers: dict[str, list[Subscription]] = {}
        self.on_append: Callable[[EventType, int, Sequence[bytes]], None] = lambda *_: None
        """Called with what a partition was given."""
        self.on_subscribed: Callable[[Subscription], None] = lambda _: None
        """Called with each subscription that is made."""

    def allow(self, token: str | None, now: float) -> None:
        """Raise a Problem unless the token is good."""
        if self.tokens is not None and (token is None or self.tokens.get(token, -1.0) <= now):
            raise Problem(401, "The access token is missing, unknown or expired")

    # -- event types --------------------------------------------------------------------------------------------------

    def create(self, name: str, partitions: int = 1, **more: Any) -> EventType:
        """Make an event type; `more` are its fields."""
        if name in self.event_types:
            raise Problem(409, f"event type {name!r} already exists")
        made = self.event_types[name] = EventType(name, [PartitionLog() for _ in range(partitions)], **more)
        return made

    def event_type(self, name: str) -> EventType:
        """Return an event type, or raise a Problem."""
        found = self.event_types.get(name)
        if found is None:
            raise Problem(404, f"EventType does not exist: {name!r}")
        return found

    def delete(self, name: str) -> None:
        """Let an event type go that no subscription reads."""
        self.event_type(name)
        if self._readers.get(name):
            raise Problem(409, f"Can't remove event type {name!r}, as it has subscriptions")
        del self.event_types[name]

    def repartition(self, name: str, partitions: int) -> None:
        """Give an event type more partitions; whoever balances gets them at the next balancing."""
        found = self.event_type(name)
        found.partitions += [PartitionLog() for _ in range(partitions - len(found.partitions))]
        for each in self._readers.get(name, ()):
            each.repartition()

    def append(self, name: str, number: int, events: Sequence[bytes], now: float) -> None:
        """Publish events, each one JSON object, to a partition and wake who reads it."""
        event_type = self.event_type(name)
        event_type.partitions[number].append(events, now)
        self.on_append(event_type, number, events)
        for subscription in self._readers.get(name, ()):
            part = subscription.parts.get((name, str(number)))
            if part is not None and part.stream is not None:
                part.stream.on_change()

    def expire(self, now: float) -> None:
        """Let go what is older than its event type keeps."""
        for event_type in self.event_types.values():
            if event_type.cleanup_policy == "delete":
                for log in event_type.partitions:
                    log.expire(now - event_type.retention_ms / 1000)

    # -- subscriptions ------------------------------------------------------------------------------------------------

    def subscribe(self, asked: Mapping[str, Any], now: float) -> tuple[Subscription, bool]:
        """Return the subscription that is identified so, and whether it was made now."""
        owner, group = asked.get("owning_application"), asked.get("consumer_group", "default")
        names, read_from = asked.get("event_types"), asked.get("read_from", "end")
        if not isinstance(owner, str) or not owner or not isinstance(names, list) or not names:
            raise Problem(422, "owning_application and event_types must not be empty")
        if not isinstance(group, str) or not group or read_from not in get_args(ReadFrom):
            raise Problem(422, "consumer_group is empty, or read_from is none of begin, end, cursors")
        identity = owner, group, frozenset(names)
        if identity in self._known:
            return self._known[identity], False
        missing = sorted(name for name in names if name not in self.event_types)
        if missing:
            raise Problem(422, f"Failed to create subscription, event type(s) not found: {missing}")
        event_types = {name: self.event_types[name] for name in names}
        initial = self.ends(asked.get("initial_cursors") or []) if read_from == "cursors" else {}
        keys = {(name, str(place)) for name, each in event_types.items() for place in range(len(each.partitions))}
        if read_from == "cursors" and set(initial) != keys:
            raise Problem(422, "initial_cursors should contain cursors for all partitions of subscription")
        name = str(UUID(int=self.chance.getrandbits(128), version=4))
        made = Subscription(name, owner, group, event_types, read_from, initial, now)
        self.subscriptions[name] = self._known[identity] = made
        for each in event_types:
            self._readers.setdefault(each, []).append(made)
        self.on_subscribed(made)
        return made, True

    def subscription(self, name: str) -> Subscription:
        """Return a subscription, or raise a Problem."""
        found = self.subscriptions.get(name)
        if found is None:
            raise Problem(404, f"Subscription with id {name!r} does not exist")
        return found

    def unsubscribe(self, name: str, now: float) -> None:
        """Let a subscription go; its streams end."""
        found = self.subscription(name)
        for stream in list(found.streams.values()):
            found.close(stream, "Subscription deleted", now)
        del self.subscriptions[name]
        del self._known[found.owning_application, found.consumer_group, frozenset(found.event_types)]
        for each in found.event_types:
            self._readers[each].remove(found)

    def ends(self, cursors: Sequence[Cursor]) -> dict[Key, int]:
        """Return by partition the index after each cursor, or raise a Problem for one that is not available."""
        ends: dict[Key, int] = {}
        for cursor in cursors:
            name, number = cursor["event_type"], cursor["partition"]
            log = self.event_type(name).partition(number)
            end = log.index(cursor["offset"]) + 1
            if end < log.first and cursor["offset"] != "BEGIN":
                raise Problem(422, f"offset {cursor['offset']} of {name}/{number} is not available any more")
            ends[name, number] = max(end, log.first)
        return ends
