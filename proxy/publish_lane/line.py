"""Who waits for in-flight slots, in which order, and how many slots there are.

Pure: the lane asks, nothing here waits. The smallest rank goes first, of it what is live before what is old, within
that who came first; but what goes ahead of others owes them a share of the slots, so that no class waits for ever. See
docs/design/0013-window-by-class.md.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from proxy.bridge.broker import Batch

_SERVED_SHARE = 4
"""A waiter is served when a quarter of the window is free: many slots at once make few, large writes."""
SURE_SHARE = 0.025
"""Slots owed to each class that waits for each one that a class above it takes; as the class budget's trickle.

Also to what is old of a rank for each one that what is live of it takes.
"""
GRACE = 3
"""Turns of the lane for which slots are kept from the classes below one that was just served to the end.

Its event type hands on the next events one or two turns later; without, whoever waits below would take the whole window
meanwhile, and again and again.
"""


class Place(NamedTuple):
    """Where a request stands."""

    rank: int
    """Place of its class, 0 the most important."""
    is_old: bool = False

    @staticmethod
    def of(batch: Batch) -> "Place":
        """Return where a batch's request stands."""
        return _place(batch.rank, batch.is_old)


_place = cache(Place)


@dataclass(slots=True)
class Window:
    """How much may be sent and unconfirmed. An event larger than all the bytes goes alone.

    Of one that adapts `max_events` changes (see `window_law`), to what it was at first at most.
    """

    max_events: int
    max_bytes: int
    events: int = 0
    bytes: int = 0
    adapts: bool = False
    most: int = field(init=False)
    was_full: bool = False
    """Whether all slots were taken since this was last set back."""

    def __post_init__(self) -> None:
        """Begin as wide as it may ever be."""
        self.most = self.max_events

    def resize(self, events: int, size: int, *, adapts: bool) -> None:
        """Be as wide as that from now on; what is in flight beyond it gets its outcome, none is admitted."""
        self.most, self.max_bytes, self.adapts = events, size, adapts
        self.max_events = min(self.max_events, events) if adapts else events

    @property
    def free(self) -> int:
        """Slots for events."""
        return self.max_events - self.events

    def serves(self, want: int) -> bool:
        """Return whether enough slots are free to begin serving someone who wants `want`."""
        return self.events == 0 or self.free >= max(1, min(want, self.max_events // _SERVED_SHARE))

    def admits(self, size: int) -> bool:
        """Return whether one more event, of `size` bytes, may be written now."""
        return self.events == 0 or (self.free > 0 and self.bytes + size <= self.max_bytes)

    def take(self, events: int, size: int) -> None:
        """Count events as written."""
        self.events += events
        self.bytes += size
        self.was_full |= self.events >= self.max_events

    def give(self, events: int, size: int) -> None:
        """Count events as resolved."""
        self.events -= events
        self.bytes -= size


@dataclass(slots=True, eq=False)
class Request:
    """One call that waits until its batches, all of one topic, are written or withdrawn."""

    batches: Sequence[Batch]
    end: Callable[[], None]
    """Called when nothing of it is left to write."""
    place: Place = field(init=False)
    """Where it stands."""
    topic: str = field(init=False)
    """Where its events come from; a topic is an event type."""
    _at: int = 0

    def __post_init__(self) -> None:
        """Look at the first batch, which the others are like."""
        first = self.batches[0]
        self.place = Place.of(first)
        self.topic = first.partition.topic

    @property
    def batch(self) -> Batch | None:
        """The batch to write from next, asked in the step in which it is written; None when nothing is left."""
        while self._at < len(self.batches):
            batch = self.batches[self._at]
            if batch.done < len(batch.events) and not batch.withdrawn:
                return batch
            self._at += 1
        return None

    @property
    def want(self) -> int:
        """Events left to write, some of them perhaps withdrawn."""
        return sum([len(batch.events) - batch.done for batch in self.batches[self._at :]])


@dataclass(slots=True)
class Line:
    """The requests that wait for slots of the window."""

    window: Window
    _places: dict[Place, dict[Request, None]] = field(default_factory=dict)
    _owed: dict[Place, float] = field(default_factory=dict)
    """Slots that each place where anyone ever was may take ahead of those above it."""

    _left: Place | None = None
    """The place whose requests may come back first."""
    _kept: int = 0
    """Turns for which others were kept waiting since slots were last short."""
    _is_short: bool = False
    """Whether slots were missing when someone was last to be served."""

    @property
    def waits(self) -> bool:
        """Whether anyone is in it."""
        return bool(self._places)

    @property
    def first(self) -> Request | None:
        """Who is next: the first of the smallest place that is owed a slot, else of the smallest; None: nobody now."""
        places = self._places
        if not places:
            return None
        top, left = min(places), self._left
        keeps = left is not None and top > left
        if len(places) > 1 or keeps:
            owed = min((one for one in places if self._owed[one] >= 1 and (one != top or keeps)), default=None)
            if owed is not None:
                return next(iter(places[owed]))
        return None if keeps else next(iter(places[top]))

    @property
    def keeps(self) -> bool:
        """Whether all who wait let one above them come back first: but for what they are owed."""
        left = self._left
        return left is not None and bool(self._places) and min(self._places) > left

    @property
    def wants_turn(self) -> bool:
        """Whether those who are kept waiting need another turn; where slots are short, what gives some asks for it."""
        return bool(self._places) and not self._is_short and self.keeps

    def most(self, request: Request) -> int | None:
        """Return how many events of the first request may be written before `first` is asked again; None: all."""
        top, left = min(self._places), self._left
        is_free = request.place == top and (left is None or top <= left)
        return None if is_free else int(self._owed[request.place])

    def turn(self) -> None:
        """Begin a turn of the lane."""
        keeps = self.keeps
        self._kept += keeps
        if not keeps or self._kept > GRACE:
            self._left = None
            self._kept = self._kept if self._kept <= GRACE else 0

    def keep_nothing(self) -> None:
        """Let who waits go without a thought of who may come back: there is room for both."""
        self._left = None

    def serve(self) -> None:
        """Begin to serve who waits."""
        self._is_short = False

    def end(self, request: Request) -> None:
        """Take out a request of which nothing is left to write, and end its wait."""
        self.remove(request)
        self._left = request.place if self._left is None else min(self._left, request.place)
        request.end()

    def fall_short(self) -> None:
        """Note that slots were missing: those who were served to the end were not all that wanted some."""
        self._kept = 0
        self._is_short = True

    def wrote(self, place: Place, events: int) -> None:
        """Count written events of a place: it is owed as much less, and whoever waits below it is owed more."""
        owed = self._owed
        owed[place] = max(0.0, owed.get(place, 0.0) - events)
        if len(owed) == 1:
            return
        share, heads = SURE_SHARE * events, self._heads(place)
        for one in heads.values():
            owed[one] = min(1.0 + SURE_SHARE * self.window.max_events, owed[one] + share)
        # Who leaves between two requests, as a class of few event types does, finds one slot on coming back.
        for one in owed:
            if one > place and one.rank not in heads and owed[one] < 1:
                owed[one] = min(1.0, owed[one] + share)

    def _heads(self, place: Place) -> dict[int, Place]:
        """Return by rank where each class below waits first, what is old of the place's own among them.

        What is old of a class waits for what is live of it, and gets its share of that.
        """
        heads: dict[int, Place] = {}
        for one in self._places:
            if one > place:
                heads[one.rank] = min(one, heads.get(one.rank, one))
        return heads

    def add(self, request: Request) -> None:
        """Put a request at the end of its place."""
        self._places.setdefault(request.place, {})[request] = None
        self._owed.setdefault(request.place, 0.0)

    def remove(self, request: Request) -> None:
        """Take a request out; one that is not in is passed over."""
        place = self._places.get(request.place)
        if place is not None:
            place.pop(request, None)
            if not place:
                del self._places[request.place]

    def of(self, topic: str) -> list[Request]:
        """Return the requests of one topic, in their order."""
        return [request for place in self._places.values() for request in place if request.topic == topic]
