"""What a history with Nakadi is to be, by its seed: settings and brokers as the wire histories have them."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random

from proxy.settings import LogSettings, RoutingKey, Settings
from tests.histories import wire_plan
from tests.histories.plan import Fault, Plan, draw_fault
from tests.nakadi import mischief
from tests.nakadi.streaming import Manners
from tests.wire.nakadi import URL

MISCHIEF: tuple[str, ...] = mischief.KINDS
"""What Nakadi does wrong by chance, for a while."""
NETWORK = ("nakadi_silent", "nakadi_deaf", "nakadi_reset", "nakadi_slow", "nakadi_cut", "nakadi_down")
LOG = ("timeline", "leave_gap", "more_partitions", "end_streams", "move_to_committed")
"""What befalls partitions and subscriptions by the rules."""
PROCESSES = ("crash", "leave", "join", "stop_process")
BROKER = ("nack", "reset", "block", "silence", "lose_confirms", "stall_queue", "broker_down", "hold_back")
PEOPLE = ("skip", "rewind")
"""What people do to cursors in half of the histories, with replicas running; not in turn with what breaks."""
GROUPS = (MISCHIEF, MISCHIEF, NETWORK, LOG, PROCESSES, BROKER)
GUESTS = ("visit", "unsubscribe")
"""What others do: a replica that comes and goes; a subscription that is deleted. In half of the histories."""
KINDS = tuple(dict.fromkeys(kind for group in GROUPS for kind in group)) + PEOPLE + GUESTS
_LONG = (1.0, 1.0, 6.0)
"""A fault lasts so many times longer than one of Kafka's: Nakadi's clocks are slower."""
COMMIT_SECONDS = (10, 12, 30)


@dataclass(frozen=True, slots=True)
class NakadiPlan(Plan):
    """See `Plan`; a fault of the broker's may reorder, so half of the histories have none."""

    manners: Manners = field(default_factory=Manners)
    has_calm_broker: bool = False

    @property
    def batch_events(self) -> int:
        """Return how many events a batch may have, which is the least that can be committed."""
        nakadi = self.settings.log.nakadi
        assert nakadi is not None
        return nakadi.batch_events


def draw(seed: int) -> NakadiPlan:
    """Return the plan of a seed."""
    base, chance = wire_plan.draw(seed), Random(f"nakadi {seed}")
    is_calm = chance.random() < 0.5
    groups = [group for group in GROUPS if not (is_calm and group is BROKER)]
    people = Random(f"people at nakadi {seed}")
    faults = [_fault(chance, chance.choice(groups)) for _ in range(chance.randint(2, 7))]
    faults += [_fault(people, PEOPLE) for _ in range(people.choice((0, 0, 1, 2)))]
    faults.sort(key=lambda one: one.at)
    guests = Random(f"guests at nakadi {seed}")
    faults += [_fault(guests, GUESTS) for _ in range(guests.choice((0, 0, 1, 2)))]
    return NakadiPlan(
        seed=seed,
        settings=_settings(base.settings, chance),
        partitions=base.partitions,
        events=min(base.events, 60),
        odd=0.0,
        replicas=chance.choice((1, 1, 2, 2, 3)),
        fetch_events=base.fetch_events,
        queue_bound=None if is_calm else base.queue_bound,
        pace=base.pace,
        latency=base.latency,
        faults=tuple(faults),
        wire=base.wire,
        manners=Manners(holds_closing=chance.random() < 0.5, notices_after=chance.choice((0.0, 0.0, 1.0, 8.0))),
        has_calm_broker=is_calm,
    )


def _fault(chance: Random, kinds: Sequence[str]) -> Fault:
    drawn = replace(
        draw_fault(chance, ("any",)), kind=chance.choice(kinds), seam="", at=round(chance.uniform(0.1, 8), 3)
    )
    return replace(drawn, seconds=round(drawn.seconds * chance.choice(_LONG), 3))


def _settings(settings: Settings, chance: Random) -> Settings:
    log = LogSettings.model_validate(
        {
            "nakadi": {
                "url": URL,
                "owning_application": "histories",
                "consumer_group": "g",
                "batch_events": chance.choice((1, 3, 10, 50)),
                "commit_timeout": chance.choice(COMMIT_SECONDS),
            },
            "session_timeout": 1.2,
            "answer_deadline": 1.0,
            "topic_check_interval": 1,
        }
    )
    types = {}
    for name, kind in settings.event_types.items():
        key = RoutingKey(constant=settings.routes[kind.route].queue_names[0])
        types[name] = kind.model_copy(update={"routing_key": key})
    return settings.model_copy(update={"log": log, "event_types": types})
