"""Which of several interventions counts for what, and which of them have an effect at all. Pure."""

from collections.abc import Callable, Sequence
from operator import itemgetter

from proxy.model import Mode
from proxy.operations.intervention import Intervention


class Told:
    """Of some interventions the one pinned last, by type, class and route, with its place in the order."""

    def __init__(self) -> None:
        """Begin with none."""
        self._by_type: dict[str, tuple[int, Intervention]] = {}
        self._by_class: dict[str, tuple[int, Intervention]] = {}
        self.of_routes: dict[str, Intervention] = {}

    def add(self, place: int, one: Intervention) -> None:
        """Add one; places must rise."""
        told = place, one
        self._by_type |= dict.fromkeys(one.types, told)
        self._by_class |= dict.fromkeys(one.classes, told)
        self.of_routes |= dict.fromkeys(one.routes, one)

    def last(self, name: str, priority: str | None) -> Intervention | None:
        """Return what counts for an event type of a class."""
        told = (self._by_type.get(name), None if priority is None else self._by_class.get(priority))
        return max((one for one in told if one is not None), default=(0, None), key=itemgetter(0))[1]

    def counting(self, class_of: Callable[[str], str | None]) -> set[str]:
        """Return the ids of those that count for something that they name."""
        found = {one.id for _, one in self._by_class.values()} | {one.id for one in self.of_routes.values()}
        last = (self.last(name, class_of(name)) for name in self._by_type)
        return found | {one.id for one in last if one is not None}


class Sorted:
    """What says the mode of event types, what their cap, and what the policy of routes; `run` takes back all three."""

    def __init__(self, held: Sequence[Intervention] = ()) -> None:
        """Sort what holds, in the order in which it was pinned."""
        self._held = held
        self.modes, self.caps, self.policies = Told(), Told(), Told()
        for place, one in enumerate(held):
            if kind_of(one) is Mode.RUN:
                self.modes.add(place, one)
            if one.mode in {Mode.CAP, Mode.RUN}:
                self.caps.add(place, one)
            if one.mode in {Mode.POLICY, Mode.RUN}:
                self.policies.add(place, one)

    def effective(self, class_of: Callable[[str], str | None]) -> list[Intervention]:
        """Return those that have an effect, in their order; a `run` has one where it takes a part of another back.

        `class_of` tells the class of an event type; None: it is not known.
        """
        counting = {
            kind: told.counting(class_of)
            for kind, told in ((Mode.CAP, self.caps), (Mode.POLICY, self.policies), (Mode.RUN, self.modes))
        }
        found: list[Intervention] = []
        for one in self._held:
            if one.mode is Mode.RUN:
                has_effect = any(overlap(one, other, class_of) for other in found)
            else:
                has_effect = one.id in counting[kind_of(one)]
            if has_effect:
                found.append(one)
        return found


def kind_of(one: Intervention) -> Mode:
    """Return of what an intervention is: a cap, a policy, or what becomes of events; none of them ends another."""
    return one.mode if one.mode in {Mode.CAP, Mode.POLICY} else Mode.RUN


def hides(later: Intervention, one: Intervention, class_of: Callable[[str], str | None]) -> bool:
    """Return whether a later one counts before another for something that both name."""
    return (later.mode is Mode.RUN or kind_of(later) is kind_of(one)) and overlap(one, later, class_of)


def overlap(one: Intervention, other: Intervention, class_of: Callable[[str], str | None]) -> bool:
    """Return whether some event type or route may be named by both."""

    def is_named(name: str, by: Intervention) -> bool:
        return name in by.types or class_of(name) in by.classes

    return (
        not set(one.classes).isdisjoint(other.classes)
        or not set(one.routes).isdisjoint(other.routes)
        or any(is_named(name, one) for name in other.types)
        or any(is_named(name, other) for name in one.types)
    )
