"""A backlog in Nakadi before slow consumers, under virtual time: it goes on without a pause, and its lag is told."""

import asyncio
import gc
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from proxy.app import App
from proxy.bridge.move import Direction, Move, Moved
from proxy.nakadi_log import NakadiLog
from proxy.operations.plan import Plan, PlannedTopic
from proxy.rabbitmq import RabbitBroker
from proxy.settings import Settings
from proxy.simulation import virtual_time
from tests.nakadi.moving import made
from tests.nakadi.views import moment
from tests.wire.chance import seeded
from tests.wire.loop import WireLoop
from tests.wire.nakadi import URL, NakadiPeer
from tests.wire.rabbit.cluster import RabbitCluster, Verdict
from tests.wire.rabbit.frames import Message

pytestmark = pytest.mark.filterwarnings("ignore:loop is closed:ResourceWarning", "ignore:Unclosed:ResourceWarning")
BACKLOG = 20_000
CAPACITY = 180
"""What the consumers take in a second, of all types; their queue holds one second of it and refuses the rest."""
LIVE = 30
"""Events a second of each of the types that are live."""
TYPES = {"order": "P1", "alert": "P2", "campaign": "P3"}
LONGEST_REFUSAL = 10.0
"""With control off a full queue refuses by chance, and who is refused waits for 8 s at most."""
STEP = 0.1
SECONDS = 60


def settings(policy: str) -> Settings:
    return Settings.model_validate(
        {
            "log": {"nakadi": {"url": URL, "owning_application": "tests", "consumer_group": "g"}},
            "broker": {"hosts": ["rabbit:5672"]},
            "routes": {"work": {"exchange": "work", "queues": ["work"], "policy": policy}},
            "classes": {
                "P1": {"increase": 15, "decrease": 0.8},
                "P2": {"increase": 10, "decrease": 0.6},
                "P3": {"increase": 5, "decrease": 0.4},
            },
            "event_types": {
                name: {
                    "name": name,
                    "topic": name,
                    "priority": priority,
                    "route": "work",
                    "routing_key": {"constant": "work"},
                }
                for name, priority in TYPES.items()
            },
        }
    )


@dataclass
class Seen:
    """What became of the backlog."""

    arrived: list[float] = field(default_factory=list)
    """When its events came to the queue, in seconds."""
    lags: list[int | None] = field(default_factory=list)
    """As recorded, each second."""
    recorded: dict[str, Counter[int]] = field(default_factory=dict)
    """By event type how many ranges that were recorded as committed each place is in."""
    moved: list[Moved] = field(default_factory=list)
    """What a command tells that it has moved."""
    committed: dict[str, int] = field(default_factory=dict)
    """At Nakadi, in the end."""

    def take(self, record: Mapping[str, Any]) -> None:
        """Take a record of the metric log."""
        if record["kind"] == "class" and record["class"] == "P3":
            self.lags.append(record["lag"])
        if record["kind"] == "committed":
            places = self.recorded.setdefault(record["topic"], Counter())
            places.update(place for one in record["ranges"] for place in range(one["first"], one["end"]))

    @property
    def longest_pause(self) -> float:
        times = [0.0, *self.arrived, float(SECONDS)]
        return max(after - before for before, after in pairwise(times))


@pytest.fixture(autouse=True)
def nothing_is_left_to_other_tests() -> Iterator[None]:
    yield
    gc.collect()


@cache
def lived(policy: str, move: Move | None = None) -> Seen:
    """Live a minute; `move` is what a command is to do with the campaign's cursor after a third of it."""
    with seeded(Random(1)):
        return virtual_time.run(_live(policy, move), partial(WireLoop, Random(1)))


async def _moved(chosen: Settings, move: Move) -> list[Moved]:
    await asyncio.sleep(SECONDS / 3)
    plan = Plan(move.id, move.direction, "somebody", None, 0, 1, (PlannedTopic("campaign", "", ((0, 0, move.to),)),))
    return await made(chosen.log, lambda name: name == "campaign", plan)


async def _live(policy: str, move: Move | None) -> Seen:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, WireLoop)
    seen, chosen, nakadi = Seen(), settings(policy), NakadiPeer(Random(1))
    broker = RabbitCluster(loop.network, Random(1), ["rabbit:5672"])
    queue = broker.declare_queue("work", bound=CAPACITY)
    queue.consumers = 1
    broker.declare_exchange("work")
    broker.bind("work", "work")

    def on_published(message: Message, verdict: Verdict | None) -> None:
        if verdict is Verdict.ACKED and json.loads(message.body)["type"] == "campaign":
            seen.arrived.append(loop.time())

    broker.on_published = on_published
    for name in TYPES:
        nakadi.bus.create(name, 1, created_at=nakadi.wall())
    nakadi.bus.append("campaign", 0, [_event(nakadi, "campaign", number) for number in range(BACKLOG)], nakadi.wall())
    await nakadi.start()
    rabbit = RabbitBroker(chosen.broker, chosen.routes, chosen.limits, chance=Random(1))
    app = App(
        chosen,
        NakadiLog(chosen.log, chosen.limits),
        {name: rabbit.lane(name) for name in chosen.routes},
        rabbit.dead_letter_lane(),
        rabbit.monitor(),
        write=seen.take,
        wall=nakadi.wall,
        instance="one",
    )
    running = asyncio.create_task(app.run())
    moving = asyncio.create_task(_moved(chosen, move)) if move is not None else None
    for step in range(round(SECONDS / STEP)):
        await asyncio.sleep(STEP)
        queue.take(round(CAPACITY * STEP))
        for name in ("order", "alert"):
            nakadi.bus.append(name, 0, [_event(nakadi, name, step)] * round(LIVE * STEP), nakadi.wall())
    app.stop()
    while not running.done():
        await asyncio.sleep(STEP)
        queue.take(round(CAPACITY * STEP))
    running.result()
    if moving is not None:
        seen.moved = moving.result()
    for found in nakadi.bus.subscriptions.values():
        seen.committed |= {name: part.committed for (name, _), part in found.parts.items()}
    await nakadi.close()
    broker.stop()
    loop.network.calm()
    return seen


def _event(nakadi: NakadiPeer, name: str, number: int) -> bytes:
    metadata = {"eid": f"{name}-{number}", "occurred_at": moment(nakadi.wall())}
    return json.dumps({"metadata": metadata, "type": name}, separators=(",", ":")).encode()


@pytest.mark.series
@pytest.mark.timeout(300)
@pytest.mark.parametrize("policy", ["static", "per_type", "class_budget"])
def test_a_backlog_goes_on_and_its_lag_is_told_when_consumers_are_slow(policy: str) -> None:
    seen = lived(policy)
    assert seen.longest_pause <= (LONGEST_REFUSAL if policy == "static" else 3.0)
    assert len(seen.arrived) >= 0.8 * (CAPACITY - 2 * LIVE) * SECONDS
    assert all(lag is not None and lag >= BACKLOG - len(seen.arrived) - CAPACITY for lag in seen.lags[2:])


@pytest.mark.timeout(300)
@pytest.mark.parametrize("policy", ["static", "per_type", "class_budget"])
@pytest.mark.series
def test_all_that_nakadi_has_taken_is_recorded_when_streams_come_and_go(policy: str) -> None:
    seen = lived(policy)
    for name, committed in seen.committed.items():
        left = set(range(committed)) - set(seen.recorded[name])
        assert not left, f"{name}: {len(left)} of {committed} are unrecorded"


@pytest.mark.timeout(300)
def test_what_is_recorded_is_what_was_not_passed_over_when_a_backlog_is_skipped_under_its_reader() -> None:
    seen = lived("class_budget", Move("1-a", Direction.SKIP, "", 0, BACKLOG, "", None))
    [moved] = seen.moved
    assert 0 < moved.done < moved.to == BACKLOG
    assert seen.recorded["campaign"] == Counter(range(moved.done)), "each place is in one record, and in one only"
    assert seen.committed["campaign"] == BACKLOG
    assert max(seen.arrived) < SECONDS / 2, "nothing is sent of what was passed over"


@pytest.mark.timeout(300)
def test_what_is_sent_again_begins_where_it_is_told_when_a_backlog_is_rewound_under_its_reader() -> None:
    seen = lived("class_budget", Move("1-a", Direction.REWIND, "", 0, 0, "", None))
    [moved] = seen.moved
    assert 0 == moved.to < moved.done < BACKLOG
    assert len(seen.arrived) > moved.done, "some of it has come again"
    again = seen.committed["campaign"]
    assert seen.recorded["campaign"] == Counter(range(moved.done)) + Counter(range(again)), "both times"
