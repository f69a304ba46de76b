"""What the board says: every intervention in the order in which it was pinned, and who has answered it. Pure."""

from collections.abc import Callable, Iterable

from proxy.model import Mode, Note
from proxy.operations.intervention import Answer, Intervention, read


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

    def answers(self, id_: str) -> dict[str, Answer]:
        """Return the answers to an intervention by member id; of one member's the latest."""
        given = [answer for answer in self._answers.values() if answer.id == id_]
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
        """Return whether some event type may be named by both."""
        return (
            not set(one.classes).isdisjoint(other.classes)
            or any(self._names(one, name) for name in other.types)
            or any(self._names(other, name) for name in one.types)
        )

    def _replaces(self, later: Intervention, one: Intervention) -> bool:
        """Return whether the later one names all that the other names, for as long at least."""
        return (
            set(one.classes) <= set(later.classes)
            and all(self._names(later, name) for name in one.types)
            and one.until_ms <= later.until_ms
        )

    def _names(self, one: Intervention, event_type: str) -> bool:
        return event_type in one.types or self._class_of(event_type) in one.classes
