"""What the board says: every intervention in the order in which it was pinned, and who has answered it. Pure."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from proxy.config.items import listing, printable
from proxy.errors import SettingsError
from proxy.model import Mode, Note
from proxy.operations.effect import kind_of, overlap
from proxy.operations.intervention import MOST_NAMES, Answer, Intervention, read


class Pinned:
    """Notes as far as they are read; `class_of` tells the class of an event type, None of one that is not known."""

    def __init__(self, class_of: Callable[[str], str | None]) -> None:
        self._class_of = class_of
        self._interventions: dict[str, Intervention] = {}
        """By key, the one pinned last at the end."""
        self._answers: dict[str, Answer] = {}
        """By key."""
        self.not_understood: dict[str, str] = {}
        """Why, by key."""

    def take(self, notes: Iterable[Note]) -> None:
        """Take what is new on the board."""
        for note in notes:
            self._interventions.pop(note.key, None)
            self._answers.pop(note.key, None)
            self.not_understood.pop(note.key, None)
            try:
                said = read(note)
            except ValueError as error:
                self.not_understood[note.key] = str(error)
                continue
            if isinstance(said, Intervention):
                self._interventions[note.key] = said
            elif said is not None:
                self._answers[note.key] = said

    def forget(self, now_ms: int) -> None:
        """Forget what nobody need know of any more, so that whoever reads on for weeks keeps no more than holds."""
        self._interventions = {key: one for key, one in self._interventions.items() if not one.is_past(now_ms)}
        ids = {one.id for one in self._interventions.values()}
        self._answers = {key: answer for key, answer in self._answers.items() if answer.id in ids}
        self.not_understood.clear()

    def found(self, id_: str, now_ms: int) -> Intervention | None:
        """Return an intervention whose time is not over; it may have been ended before."""
        one = next((one for one in self._interventions.values() if one.id == id_), None)
        return None if one is None or one.is_past(now_ms) else one

    def standing(self, now_ms: int) -> int:
        """Return how many hold now, whether or not they have an effect."""
        return sum(one.holds(now_ms) for one in self._interventions.values())

    def resuming(self, wanted: Intervention, now_ms: int) -> Intervention | None:
        """Return a `run` that lasts as long as what it takes back, None if it would take nothing back.

        What is held by name and is now of a class that is resumed is named by it, too: in another class it stays
        resumed. Raises `SettingsError` if these are too many for one note.
        """
        others = [one for one in self.holding(now_ms) if one.mode is not Mode.RUN and self.overlap(one, wanted)]
        if not others:
            return None
        until_ms = max(one.until_ms for one in others)
        # also of those that have no effect now: one that a later one of the class hides would come to light
        standing = [one for one in self._interventions.values() if one.holds(now_ms) and one.mode is not Mode.RUN]
        held = [name for one in standing for name in one.types if self._class_of(name) in wanted.classes]
        types = tuple(dict.fromkeys((*wanted.types, *held)))
        if len(types) + len(wanted.classes) + len(wanted.routes) > MOST_NAMES:
            said = f"{len(types)} event types are held by name, and one resume names {MOST_NAMES} at most"
            raise SettingsError([printable(f"{said}: resume some of them first, by name: {listing(types[:3])}, ...")])
        # the clock of who asked may be ahead
        return replace(wanted, types=types, until_ms=min(until_ms, wanted.until_ms))

    def answers(self, to: Intervention) -> dict[str, Answer]:
        """Return the answers to an intervention as it stands by member id; of one member's the latest."""
        has_ended = to.ended_by is not None
        given = [answer for answer in self._answers.values() if (answer.id, answer.has_ended) == (to.id, has_ended)]
        return {answer.member: answer for answer in sorted(given, key=lambda answer: answer.at_ms)}

    def holding(self, now_ms: int) -> list[Intervention]:
        """Return what holds now, the one pinned last at the end, without what has no effect.

        That is what a later one replaces altogether, and a `run` that takes nothing back.
        """
        standing = [one for one in self._interventions.values() if one.holds(now_ms)]
        visible = [
            one
            for at, one in enumerate(standing)
            if not any(self._replaces(later, one) for later in standing[at + 1 :])
        ]
        found: list[Intervention] = []
        for one in visible:
            if one.mode is not Mode.RUN or any(self.overlap(one, earlier) for earlier in found):
                found.append(one)
        return found

    def overlap(self, one: Intervention, other: Intervention) -> bool:
        """Return whether some event type or route may be named by both."""
        return overlap(one, other, self._class_of)

    def _replaces(self, later: Intervention, one: Intervention) -> bool:
        """Return whether the later one names all that the other names, for as long at least."""
        return (
            (later.mode is Mode.RUN or kind_of(later) == kind_of(one))
            and set(one.routes) <= set(later.routes)
            and set(one.classes) <= set(later.classes)
            and all(self._names(later, name) for name in one.types)
            and one.until_ms <= later.until_ms
        )

    def _names(self, one: Intervention, event_type: str) -> bool:
        return event_type in one.types or self._class_of(event_type) in one.classes
