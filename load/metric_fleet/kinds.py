"""The event types of a fleet with class, route and speed, and the routes with their queues."""

from dataclasses import dataclass

from load.metric_fleet.plan import Fault, Plan

CLASSES = ("P1", "P2", "P3")
STUCK = 3
"""Number of the event type that gets stuck; it has one partition."""
FAST = {Fault.LETTERS: (15, 24.0), Fault.REDRIVE: (6, 12.0), Fault.REWIND: (12, 12.0), Fault.STUCK: (STUCK, 12.0)}
"""What happens to which type (by number) that must be so fast for it, in events a second of a partition."""


@dataclass(frozen=True)
class Route:
    """A route as it is set."""

    name: str
    policy: str
    queues: tuple[str, ...]


ROUTES = (
    Route("main", "class_budget", ("mail", "push")),
    Route("bulk", "class_budget", ("bulk",)),
    Route("seed", "per_type", ("seed",)),
)


@dataclass(frozen=True)
class Kind:
    """An event type."""

    number: int
    name: str
    priority: str
    route: str
    partitions: int
    rate: float
    """Events a second of each partition, on average; 0: silent."""
    size: int
    """Bytes of one event."""
    has_stamps: bool = True
    is_ahead: bool = False
    """Its producer's clock is: now and then an event is confirmed before its own timestamp."""
    is_old: bool = False
    """Only the replica of version 1 has it."""

    @property
    def topic(self) -> str:
        """Return the topic that it is read from."""
        return self.name


def kinds(plan: Plan) -> list[Kind]:
    """Return all event types, the active ones first."""
    found = [_kind(plan, number) for number in range(plan.types)]
    if plan.has(Fault.OLD):
        found += [
            Kind(plan.types + at, f"old.t{at}", CLASSES[1 + at], "main", 1, plan.rate, 300, is_old=True)
            for at in range(2)
        ]
    return found


def _kind(plan: Plan, number: int) -> Kind:
    chance = plan.chance("kind", number)
    # Every class, route and number of partitions in every combination, whatever the number of types.
    priority = CLASSES[min(2, number % 5 // 2)] if number % 10 else "P1"
    route = ROUTES[(0, 1, 0, 2, 0, 1, 0)[number % 7]].name
    has_clock_fault = plan.has(Fault.CLOCK)
    usual = plan.rate * chance.choice((0.4, 0.6, 1.0, 2.0))
    return Kind(
        number,
        f"shop.t{number:04d}",
        priority,
        route,
        1 + number % 3,
        next((rate for fault, (one, rate) in FAST.items() if one == number and plan.has(fault)), usual)
        if number < plan.active
        else 0.0,
        chance.randrange(200, 2_000),
        has_stamps=not (has_clock_fault and number == 4),
        is_ahead=has_clock_fault and number in {2, 3},
    )
