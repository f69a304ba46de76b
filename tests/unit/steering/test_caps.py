"""Caps asked for at run time, for ten minutes of simulated time: what is held, what is not, and what becomes of it."""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest

from proxy.bridge.event_log import EventLog, Extent
from proxy.bridge.listener import Listener
from proxy.bridge.throttle import OpenThrottle, PacedThrottle, Throttle
from proxy.congestion.detector import Cause, Verdict
from proxy.congestion.per_type import AimdBatchSize
from proxy.errors import LogError
from proxy.model import Cap, Partition, Stance
from proxy.settings import EventType, PriorityClass
from proxy.simulation import virtual_time
from proxy.steering.budgeted import HeldThrottle
from proxy.steering.caps import Caps
from tests.support.process import TRAITS, settings

MINUTES = 60.0
BATCH = 50


class Group:
    """Partitions of `campaign` and of `alerts`: what comes into each, how much of it is done with, who owns it."""

    def __init__(self, arrivals: Mapping[Partition, float]) -> None:
        self.arrivals = arrivals
        self.done = dict.fromkeys(arrivals, 0)
        self.failure: LogError | None = None

    def end(self, at: Partition) -> int:
        return int(self.arrivals[at] * asyncio.get_running_loop().time())

    async def extents(self, topics: Collection[str]) -> Mapping[Partition, Extent]:
        if self.failure is not None:
            raise self.failure
        return {at: Extent(self.done[at], self.end(at)) for at in self.done if at.topic in topics}


class Replica:
    """Types that send as fast as they may, from the partitions that are this replica's."""

    def __init__(self, group: Group, own: Iterable[Partition], inner: Mapping[str, Throttle] | None = None) -> None:
        self.group, self.own = group, list(own)
        self.sent = {at.topic: 0 for at in group.arrivals}
        self.listeners = {
            topic: SimpleNamespace(event_type=EventType(name=topic, topic=topic, **TRAITS), stance=Stance())
            for topic in self.sent
        }
        self.caps = Caps(
            settings(),
            cast("EventLog", group),
            lambda: cast("Iterable[Listener]", self.listeners.values()),
            lambda: self.own,
        )
        self.throttles: dict[str, HeldThrottle] = {
            topic: self.caps.around(one.event_type, (inner or {}).get(topic, OpenThrottle()))
            for topic, one in self.listeners.items()
        }

    async def look(self, *, cap: Mapping[str, Cap]) -> None:
        for topic, one in self.listeners.items():
            one.stance = Stance(cap=cap.get(topic))
        self.caps.release()
        await self.caps.follow()

    async def send(self, topic: str) -> None:
        while True:
            waiting = [at for at in self.own if at.topic == topic and self.group.end(at) > self.group.done[at]]
            if not waiting:
                await asyncio.sleep(0.1)
                continue
            granted = await self.throttles[topic].admit(BATCH, size=100.0, again=False)
            left = granted
            for at in waiting:
                more = min(left, self.group.end(at) - self.group.done[at])
                self.group.done[at] += more
                left -= more
            self.throttles[topic].settle(granted - left, 0)
            self.sent[topic] += granted - left
            await asyncio.sleep(0.02)


def verdict(*, congested: bool) -> Verdict:
    return Verdict("r", congested, Cause.NONE, cast("Any", None))


def lived(story: Any) -> None:
    async def live() -> None:
        await story()

    virtual_time.run(live())


async def lives(replicas: list[Replica], seconds: float, cap: Mapping[str, Cap]) -> list[dict[str, int]]:
    """Let them live; return what each has sent meanwhile, by topic."""
    before = [dict(one.sent) for one in replicas]
    sending = [asyncio.create_task(one.send(topic)) for one in replicas for topic in one.sent]
    end = asyncio.get_running_loop().time() + seconds
    while asyncio.get_running_loop().time() < end:
        for one in replicas:
            await one.look(cap=cap)
        await asyncio.sleep(1.0)
    for task in sending:
        task.cancel()
    await asyncio.gather(*sending, return_exceptions=True)
    return [{topic: one.sent[topic] - was[topic] for topic in was} for one, was in zip(replicas, before, strict=True)]


CAMPAIGN = [Partition("campaign", number) for number in range(6)]
ALERTS = [Partition("alerts", number) for number in range(3)]


@pytest.mark.parametrize(("rate", "hot", "minutes"), [(100.0, 1, 10), (3.0, 3, 2), (700.0, 6, 2), (100.0, 6, 2)])
def test_the_group_sends_what_the_cap_says_and_its_neighbour_all_it_gets_wherever_the_events_come(
    rate: float, hot: int, minutes: int
) -> None:
    async def story() -> None:
        arrivals = {at: (800.0 if at.number < hot else 0.1 * rate / 6) for at in CAMPAIGN} | dict.fromkeys(ALERTS, 40.0)
        group = Group(arrivals)
        replicas = [Replica(group, [*CAMPAIGN[at::3], ALERTS[at]]) for at in range(3)]
        await lives(replicas, 5.0, {"campaign": Cap("a", rate)})
        sent = await lives(replicas, minutes * MINUTES, {"campaign": Cap("a", rate)})
        assert sum(one["campaign"] for one in sent) == pytest.approx(rate * minutes * MINUTES, rel=0.05)
        assert sum(one["alerts"] for one in sent) == pytest.approx(120 * minutes * MINUTES, rel=0.01)

    lived(story)


def test_all_that_a_cap_names_shares_its_rate() -> None:
    async def story() -> None:
        group = Group(dict.fromkeys([*CAMPAIGN, *ALERTS], 500.0))
        replicas = [Replica(group, [*CAMPAIGN[at::3], ALERTS[at]]) for at in range(3)]
        cap = dict.fromkeys(("campaign", "alerts"), Cap("a", 90.0))
        sent = await lives(replicas, 2 * MINUTES, cap)
        assert sum(sum(one.values()) for one in sent) == pytest.approx(90.0 * 120, rel=0.05)

    lived(story)


def test_the_cap_holds_when_partitions_move_to_another_replica() -> None:
    async def story() -> None:
        group = Group(dict.fromkeys(CAMPAIGN, 500.0))
        first, second = Replica(group, CAMPAIGN[:3]), Replica(group, CAMPAIGN[3:])
        cap = {"campaign": Cap("a", 100.0)}
        sent = await lives([first, second], MINUTES, cap)
        first.own, second.own = [], CAMPAIGN
        sent += await lives([first, second], MINUTES, cap)
        assert sum(one["campaign"] for one in sent) == pytest.approx(100.0 * 120, rel=0.05)
        assert sent[-1]["campaign"] == pytest.approx(100.0 * 60, rel=0.05)

    lived(story)


def test_the_throttle_underneath_is_where_it_would_have_been_and_whoever_waits_goes_on_when_the_cap_ends() -> None:
    async def story() -> None:
        sizes = [AimdBatchSize(PriorityClass(increase=5, decrease=0.4)) for _ in range(2)]
        paced = [PacedThrottle(1.0, size) for size in sizes]
        groups = [Group({CAMPAIGN[0]: 2_000.0}) for _ in paced]
        capped, free = (
            Replica(group, [CAMPAIGN[0]], {"campaign": throttle}) for group, throttle in zip(groups, paced, strict=True)
        )
        for minute in range(10):
            for throttle in paced:
                throttle.on_verdict(verdict(congested=minute % 3 == 2))
            await lives([capped], MINUTES, {"campaign": Cap("a", 0.1)})
        assert sizes[0].value == sizes[1].value > 0
        waiting = asyncio.create_task(capped.send("campaign"))
        await asyncio.sleep(0.5)
        (of_capped,), (of_free,) = await lives([capped], 10.0, {}), await lives([free], 10.0, {})
        waiting.cancel()
        assert of_capped["campaign"] >= of_free["campaign"] * 0.8

    lived(story)


def test_what_waits_behind_a_cap_goes_at_once_when_the_cap_ends() -> None:
    async def story() -> None:
        one = Replica(Group({CAMPAIGN[0]: 2_000.0}), [CAMPAIGN[0]])
        await one.look(cap={"campaign": Cap("a", 0.1)})
        admit = partial(one.throttles["campaign"].admit, BATCH, size=100.0, again=False)
        assert await admit() == 1
        waiting = asyncio.create_task(admit())
        await asyncio.sleep(1.0)
        assert not waiting.done()
        await one.look(cap={})
        async with asyncio.timeout(0.1):
            assert await waiting > 0

    lived(story)


def test_a_type_that_begins_anew_is_capped_from_its_first_event() -> None:
    async def story() -> None:
        one = Replica(Group({CAMPAIGN[0]: 2_000.0}), [CAMPAIGN[0]])
        await one.look(cap={"campaign": Cap("a", 0.1)})
        anew = one.caps.around(one.listeners["campaign"].event_type, OpenThrottle())
        assert await anew.admit(BATCH, size=100.0, again=False) == 1

    lived(story)


def test_a_new_cap_is_not_obeyed_while_the_log_does_not_tell_and_one_that_holds_stays_as_it_is() -> None:
    async def story() -> None:
        group = Group(dict.fromkeys(CAMPAIGN, 500.0))
        one = Replica(group, CAMPAIGN)
        group.failure = LogError("away")
        with pytest.raises(LogError):
            await one.look(cap={"campaign": Cap("a", 50.0)})
        assert not one.caps.holds("a")
        assert one.caps.holds("of nothing here")
        group.failure = None
        await one.look(cap={"campaign": Cap("a", 50.0)})
        assert one.caps.holds("a")
        group.failure = LogError("away")
        sending = asyncio.create_task(one.send("campaign"))
        await asyncio.sleep(60.0)
        sending.cancel()
        assert one.sent["campaign"] == pytest.approx(50.0 * 60, rel=0.05)

    lived(story)
