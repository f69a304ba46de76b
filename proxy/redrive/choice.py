"""Which letters go, and as what: pure."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from proxy import config
from proxy.bridge.broker import Address
from proxy.bridge.letter_queue import ReadLetter, TakenLetter
from proxy.model import Event
from proxy.settings import EventType, Settings, Traits

_MOST_ADDRESSES = 4_096


class Stay(StrEnum):
    """Why a letter stays where it is."""

    NOT_OURS = "not_ours"
    INCOMPLETE = "incomplete"
    UNREADABLE = "unreadable"
    UNKNOWN_TYPE = "unknown_type"
    """The settings make no event type of its name any more."""
    NO_EXCHANGE = "no_exchange"
    """The exchange of its type's route does not exist."""
    NOT_CHOSEN = "not_chosen"
    """Another reason, type or time was asked for."""
    TOO_OFTEN = "too_often"
    """It has been sent again as often as is allowed."""
    LATER = "later"
    """It came after the beginning of the pass."""
    REFUSED = "refused"
    """It was sent and is as undeliverable as before."""
    NACKED = "nacked"
    """It was sent, and the broker had no room."""
    UNKNOWN = "unknown"
    """It was sent, and nothing was heard of it: it may have arrived, and comes again when it is sent again."""
    BEHIND = "behind"
    """One before it in its partition was nacked or is unknown: it would overtake that one."""
    BLIND = "blind"
    """It is not known how full the queues are that it would go to."""
    UNFINISHED = "unfinished"
    """The pass ended before its turn."""


FAILED = frozenset(
    {Stay.NO_EXCHANGE, Stay.REFUSED, Stay.NACKED, Stay.UNKNOWN, Stay.BEHIND, Stay.BLIND, Stay.UNFINISHED}
)
"""Of these letters it was meant that they go, and they did not."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a person asks for; empty means all."""

    reasons: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()
    classes: frozenset[str] = frozenset()
    since_ms: int | None = None
    """Events of that instant and later, by their own timestamps."""
    until_ms: int | None = None
    """Events of before that instant."""
    times: int = 3
    """A letter that has been sent again so often stays."""

    def means(self, letter: ReadLetter, event_type: EventType) -> bool:
        """Return whether the letter is meant; one without a timestamp is not if times were named."""
        at_ms = letter.event.timestamp_ms
        return (
            (not self.reasons or letter.reason in self.reasons)
            and (not (self.types or self.classes) or event_type.name in self.types or self._is_of_class(event_type))
            and (self.since_ms is None or (at_ms is not None and at_ms >= self.since_ms))
            and (self.until_ms is None or (at_ms is not None and at_ms < self.until_ms))
        )

    def _is_of_class(self, event_type: EventType) -> bool:
        return event_type.priority in self.classes


@dataclass(frozen=True, slots=True, eq=False)
class Going:
    """A letter that is to be sent."""

    taken: TakenLetter
    letter: ReadLetter
    event: Event
    event_type: EventType
    address: Address

    @property
    def attempt(self) -> int:
        """How often it will have been sent again, this time included."""
        return self.letter.redriven + 1

    @property
    def name(self) -> tuple[str, int, object, int | None]:
        """What tells one event from any other: copies of a letter have the same."""
        return (*self.letter.partition, self.letter.event.position, self.letter.event.timestamp_ms)


@dataclass(slots=True)
class Choice:
    """Judges letters by settings and wishes; `missing` are exchanges that do not exist."""

    settings: Settings
    wanted: Wanted
    missing: Collection[str] = ()
    _types: dict[str, EventType | None] = field(default_factory=dict)
    _addresses: dict[tuple[str, int], Address] = field(default_factory=dict)

    def judge(self, taken: TakenLetter) -> Going | Stay:
        """Return what is to be sent, or why the letter stays."""
        letter = taken.letter
        if letter is None:
            return Stay(str(taken.illegible))
        event_type = self._event_type(letter)
        if event_type is None:
            return Stay.UNKNOWN_TYPE
        if not self.wanted.means(letter, event_type):
            return Stay.NOT_CHOSEN
        if letter.redriven >= self.wanted.times:
            return Stay.TOO_OFTEN
        if self.settings.routes[event_type.route].exchange in self.missing:
            return Stay.NO_EXCHANGE
        event, kind = letter.event, letter.content_type
        if kind is not None and kind != event_type.content_type:
            event = event._replace(headers=(*event.headers, ("content-type", kind.encode())))
        return Going(taken, letter, event, event_type, self._address(event_type, letter.redriven + 1))

    def _event_type(self, letter: ReadLetter) -> EventType | None:
        """Return the type by its name; a copy that died in a queue tells its topic alone."""
        name = letter.event_type if letter.event_type is not None else f" {letter.partition.topic}"
        if name not in self._types:
            if len(self._types) >= _MOST_ADDRESSES:
                self._types.clear()
            if letter.event_type is None:
                self._types[name] = config.event_type_for(self.settings, letter.partition.topic)
            else:
                named = self.settings.event_types.get(name)
                matching = None if name in self.settings.by_topic else config.event_type_for(self.settings, name)
                self._types[name] = named or matching
        return self._types[name]

    def _address(self, event_type: EventType, attempt: int) -> Address:
        """Return where its events go: what its listener would say, and how often they were sent again."""
        key = (event_type.name, attempt)
        if key not in self._addresses:
            if len(self._addresses) >= _MOST_ADDRESSES:
                self._addresses.clear()
            self._addresses[key] = address_of(self.settings, event_type, attempt)
        return self._addresses[key]


def address_of(settings: Settings, event_type: EventType, attempt: int) -> Address:
    """Return the address of the events of a type that are sent again for the so-manieth time."""
    route = settings.routes[event_type.route]
    below = len(settings.classes) - 1 - settings.rank(event_type.priority)
    return Address(
        route.exchange,
        event_type.routing_key,
        event_type.content_type,
        priority=route.priority_of(event_type.priority, below=below, alone=settings.has_one_class),
        origin=route.origin,
        carries_key=route.key == "header",
        redriven=attempt,
    )


def letter_queues(settings: Settings, wanted: Wanted) -> Mapping[str, Collection[str]]:
    """Return the queues that letters of the types asked for go to by name, and which types; "" where no name is told.

    Types that a pattern makes count by the pattern.
    """
    found: dict[str, set[str]] = {}

    def note(name: str, traits: Traits, *, is_named: bool) -> None:
        is_asked = not (wanted.types or wanted.classes) or is_named or traits.priority in wanted.classes
        if traits.dead_letter is not None and is_asked:
            target = traits.dead_letter
            found.setdefault("" if target.exchange else target.routing_key, set()).add(name)

    for name, kind in settings.event_types.items():
        note(name, kind, is_named=name in wanted.types)
    for pattern in settings.patterns:
        note(pattern.pattern, pattern, is_named=any(map(pattern.matches, wanted.types)))
    return found
