"""What becomes of events that came back, by what the broker says of their queue."""

import asyncio
from collections import Counter
from typing import Any

import pytest
from structlog.testing import capture_logs

from proxy.bridge.flow import PartitionFlow
from proxy.bridge.inquiries import PATIENCE, SAID_AFTER
from proxy.bridge.insistence import DISPUTED, INSISTENCE, UNBOUND
from proxy.bridge.returned import Place, Returned
from proxy.bridge.returns import AWAY_AT_ONCE, INTERVAL, LEASE, QUIET, ROTATION
from proxy.errors import BrokerError
from proxy.model import Event, Order, Outcome, Partition, Reason
from proxy.settings import Limits, Route, RoutingKey
from tests.support.bridge_fakes import CountingHost, ScriptedLane
from tests.support.events import ADDRESS, PARTITION, events
from tests.support.world import World, lived

OTHER = ScriptedLane()
"""Another's."""
DIRECT: dict[str, Any] = {"route": Route(exchange="")}
"""To the queue that the routing key names, `queue`."""


def come_back(world: World) -> None:
    """Let RabbitMQ return all that was written."""
    world.lane.finish(Outcome.UNDELIVERABLE, reason=Reason.UNROUTABLE)


@pytest.mark.parametrize("order", list(Order))
@pytest.mark.parametrize("letters", [True, False])
def test_events_go_again_in_order_and_none_is_a_letter_when_their_queue_is_away_for_a_while(
    order: Order, *, letters: bool
) -> None:
    async def story(world: World) -> None:
        world.finder.away = {"queue": ""}
        await world.feed(*events(0, 3))
        come_back(world)
        await asyncio.sleep(20)
        sent = len(world.lane.written)
        assert sent == (1 if order is Order.STRICT else 3)
        world.finder.away, world.finder.there = {}, {"queue"}
        for _ in range(3):
            await asyncio.sleep(1)
            world.lane.finish()
        await asyncio.sleep(1)
        assert world.written[sent:] == ["p0", "p1", "p2"]
        assert world.log.committed == {PARTITION: "p2"}
        assert not world.listener.is_stopped
        assert not world.dead_lane.written
        assert world.tally.undeliverable == 0

    lived(story, order=order, **DIRECT, **({} if letters else {"dead_letter": None}))


@pytest.mark.parametrize("order", [Order.PARTITION, Order.NONE])
def test_nothing_more_is_sent_and_memory_does_not_fill_when_a_queue_is_away_for_long(order: Order) -> None:
    async def story(world: World) -> None:
        world.finder.away = {"queue": ""}
        for start in range(0, 60, 3):
            await world.feed(*events(start, start + 3))
            come_back(world)
        await asyncio.sleep(100)
        assert len(world.lane.written) <= 6
        assert world.listener.inbox.is_paused

    lived(story, order=order, limits=Limits(inbox_events=5), **DIRECT)


def test_an_event_is_dead_lettered_at_once_when_there_is_no_such_queue() -> None:
    async def story(world: World) -> None:
        await world.feed(*events(0, 1))
        come_back(world)
        await asyncio.sleep(0.1)
        assert [event.position for event in world.dead_lane.written] == ["p0"]
        assert len(world.lane.written) == 1

    lived(story, **DIRECT)


def test_nothing_is_sent_behind_an_event_before_it_is_known_what_became_of_its_queue() -> None:
    async def story(world: World) -> None:
        world.finder.delay = 0.9
        world.finder.away = {"queue": ""}
        await world.feed(*events(0, 1))
        come_back(world)
        await world.feed(*events(1, 2))
        assert world.written == ["p0"]

    lived(story, **DIRECT)


async def come_back_for(world: World, seconds: float) -> None:
    """Let RabbitMQ return all that is written for a while."""
    for _ in range(round(10 * seconds)):
        come_back(world)
        await asyncio.sleep(0.1)


NAMED: dict[str, Any] = {"route": Route(exchange="x", queues=("queue",))}
"""By an exchange, to a queue that must be bound to it."""


def test_an_event_is_sent_again_for_a_second_and_then_is_a_letter_when_its_queue_is_there_but_not_bound() -> None:
    async def story(world: World) -> None:
        world.finder.there = {"queue"}
        await world.feed(*events(0, 2))
        await come_back_for(world, INSISTENCE - 0.2)
        assert not world.dead_lane.written
        await come_back_for(world, 1)
        assert [event.position for event in world.dead_lane.written] == ["p0", "p1"]
        assert world.written.count("p0") <= 8
        assert world.tally.undeliverable == 2

    lived(story, **NAMED)


def test_what_leads_nowhere_is_known_for_a_while_and_no_longer() -> None:
    async def story(world: World) -> None:
        world.finder.there = {"queue"}
        await world.feed(*events(0, 1))
        await come_back_for(world, INSISTENCE + 1)
        await world.feed(*events(1, 2))
        come_back(world)
        await asyncio.sleep(0.1)
        assert [event.position for event in world.dead_lane.written] == ["p0", "p1"]
        assert world.written.count("p1") == 1
        await asyncio.sleep(UNBOUND)
        await world.feed(*events(2, 3))
        come_back(world)
        await asyncio.sleep(0.6)
        assert world.written.count("p2") == 2

    lived(story, **NAMED)


def test_what_leads_nowhere_is_not_believed_any_more_when_a_queue_was_away() -> None:
    async def story(world: World) -> None:
        world.finder.there = {"queue"}
        await world.feed(*events(0, 1))
        await come_back_for(world, INSISTENCE + 1)
        assert [event.position for event in world.dead_lane.written] == ["p0"]
        world.finder.there, world.finder.away = set(), {"queue": ""}
        await world.feed(*events(1, 2))
        come_back(world)
        await asyncio.sleep(1)
        world.finder.there, world.finder.away = {"queue"}, {}
        await come_back_for(world, INSISTENCE - 0.3)
        world.lane.finish()
        await asyncio.sleep(1)
        assert len(world.dead_lane.written) == 1

    lived(story, **NAMED)


def test_no_event_is_a_letter_however_often_it_comes_back_when_it_is_for_a_queue_that_is_there() -> None:
    async def story(world: World) -> None:
        world.finder.there = {"queue"}  # as a node says that is not the one that returns
        await world.feed(*events(0, 3))
        await come_back_for(world, 30)
        await asyncio.sleep(1)
        sent = len(world.written)
        assert sent < 300
        world.lane.finish()
        await asyncio.sleep(1)
        assert world.log.committed == {PARTITION: "p2"}
        assert not world.dead_lane.written

    with capture_logs() as said:
        lived(story, **DIRECT)
    assert [one["queue"] for one in said if one["event"] == "queue_disputed"] == ["queue"]


def test_nothing_is_said_when_what_is_for_a_queue_that_is_there_comes_back_for_a_moment() -> None:
    async def story(world: World) -> None:
        world.finder.there = {"queue"}
        for start in range(3):
            await world.feed(*events(start, start + 1))
            await come_back_for(world, DISPUTED - 1)
            await asyncio.sleep(1)
            world.lane.finish()
            await asyncio.sleep(2 * DISPUTED)
        assert world.log.committed == {PARTITION: "p2"}

    with capture_logs() as said:
        lived(story, **DIRECT)
    assert not [one for one in said if one["event"] == "queue_disputed"]


def test_an_event_is_a_letter_when_it_comes_back_from_a_broker_that_answers_slowly() -> None:
    async def story(world: World) -> None:
        world.finder.there, world.finder.delay = {"queue"}, 2 * INSISTENCE
        await world.feed(*events(0, 1))
        for sent in (1, 2):
            assert not world.dead_lane.written
            assert len(world.written) == sent
            come_back(world)
            await asyncio.sleep(3 * INSISTENCE)
        assert [event.position for event in world.dead_lane.written] == ["p0"]

    lived(story, **NAMED)


def test_an_event_is_none_without_a_queue_when_that_came_back_before_anybody_asked() -> None:
    async def story(world: World) -> None:
        world.finder.there = {"queue"}
        await world.feed(*events(0, 1))
        come_back(world)  # while it was away
        await asyncio.sleep(0.2)
        world.lane.finish()
        await asyncio.sleep(1)
        assert world.log.committed == {PARTITION: "p0"}
        assert not world.dead_lane.written

    lived(story, **DIRECT)


def test_events_wait_when_any_queue_that_their_keys_may_lead_to_is_away() -> None:
    async def story(world: World) -> None:
        world.finder.there, world.finder.away = {"a"}, {"b": ""}
        await world.feed(*events(0, 1))
        come_back(world)
        await asyncio.sleep(10)
        assert world.written == ["p0"]
        assert not world.dead_lane.written

    lived(story, route=Route(exchange="x", queues=("a", "b")))


def test_nobody_is_asked_when_the_settings_name_no_queue() -> None:
    async def story(world: World) -> None:
        await world.feed(*events(0, 1))
        come_back(world)
        await asyncio.sleep(0.1)
        assert [event.position for event in world.dead_lane.written] == ["p0"]
        assert world.finder.asked == []

    lived(story, route=Route(exchange="x"))


def test_an_event_waits_for_an_answer_and_then_is_what_the_broker_said_when_nobody_answers() -> None:
    async def story(world: World) -> None:
        world.finder.failure = BrokerError("no answer")
        await world.feed(*events(0, 1))
        come_back(world)
        await asyncio.sleep(PATIENCE - 1)
        assert not world.dead_lane.written
        await asyncio.sleep(2)
        assert [event.position for event in world.dead_lane.written] == ["p0"]

    lived(story, **DIRECT)


def test_a_partition_tries_by_itself_when_nobody_answers_any_more() -> None:
    async def story(world: World) -> None:
        world.finder.away = {"queue": ""}
        await world.feed(*events(0, 1))
        come_back(world)
        await asyncio.sleep(5)
        world.finder.failure = BrokerError("no answer")
        await asyncio.sleep(LEASE + 1)
        assert world.written == ["p0", "p0"]

    lived(story, **DIRECT)


def test_a_partition_is_let_go_at_once_and_its_events_stay_in_the_log_when_they_are_in_question() -> None:
    async def story(world: World) -> None:
        world.finder.failure = BrokerError("no answer")
        await world.feed(*events(0, 2))
        come_back(world)
        await asyncio.sleep(1)
        began = asyncio.get_running_loop().time()
        await world.assignment.on_revoked([PARTITION])
        assert asyncio.get_running_loop().time() - began < 1
        await asyncio.sleep(40)
        assert world.log.committed == {}
        assert not world.dead_lane.written

    lived(story, **DIRECT)


def test_it_is_said_once_that_a_queue_is_away_and_that_it_is_back() -> None:
    async def story(world: World) -> None:
        world.finder.away = {"queue": "its node is down"}
        await world.feed(*events(0, 1))
        come_back(world)
        await asyncio.sleep(10)
        world.finder.away, world.finder.there = {}, {"queue"}
        await asyncio.sleep(1)

    with capture_logs() as said:
        lived(story, **DIRECT)
    told = [one for one in said if one["event"].startswith("queue_")]
    assert [(one["event"], one["queue"]) for one in told] == [("queue_away", "queue"), ("queue_back", "queue")]
    assert told[0]["why"] == "its node is down"
    assert told[1]["after_s"] == pytest.approx(10, abs=1)


def test_it_is_said_that_nobody_waits_for_a_queue_when_its_partitions_went_to_another_replica() -> None:
    async def story(world: World) -> None:
        world.finder.away = {"queue": ""}
        await world.feed(*events(0, 1))
        come_back(world)
        await asyncio.sleep(2)
        await world.assignment.on_revoked([PARTITION])
        await asyncio.sleep(2)

    with capture_logs() as said:
        lived(story, **DIRECT)
    assert [one["event"] for one in said if one["event"].startswith("queue_")] == ["queue_away", "queue_let_go"]


def test_the_connection_is_closed_when_nothing_was_asked_for_a_while() -> None:
    async def story(world: World) -> None:
        await world.feed(*events(0, 1))
        come_back(world)
        await asyncio.sleep(QUIET / 2)
        assert not world.finder.is_closed
        await asyncio.sleep(QUIET)
        assert world.finder.is_closed

    lived(story, **DIRECT)


def test_an_event_waits_however_many_others_are_asked_for_before_it() -> None:
    async def story(world: World) -> None:
        world.finder.most, world.finder.delay = 1, 0.4
        every = [_of_another(f"queue {number}") for number in range(100)]
        world.returns.ask(every)
        await asyncio.sleep(PATIENCE + 10)
        assert 10 < len(world.finder.asked) < 90
        assert sum(one.flow.out for one in every) == 100 - len(world.finder.asked)
        await asyncio.sleep(2 * PATIENCE)
        assert not any(one.flow.out for one in every)

    lived(story)


def test_an_event_is_a_letter_when_its_keys_may_lead_to_more_queues_than_can_be_asked_for_at_once() -> None:
    names = tuple(f"q{number}" for number in range(40))

    async def story(world: World) -> None:
        world.finder.there, world.finder.most = set(names), 3
        await world.feed(*events(0, 1))
        for _ in range(2):
            come_back(world)
            await asyncio.sleep(10)
        assert [event.position for event in world.dead_lane.written] == ["p0"]

    lived(story, route=Route(exchange="x", queues=names))


def test_a_queue_that_is_back_is_seen_however_much_is_asked_for_beside_it() -> None:
    async def story(world: World) -> None:
        world.finder.away, world.finder.most = {"queue": ""}, AWAY_AT_ONCE
        await world.feed(*events(0, 1))
        come_back(world)
        await asyncio.sleep(1)
        world.finder.away, world.finder.there = {}, {"queue"}
        world.returns.ask([_of_another(f"queue {number}") for number in range(100)])
        await asyncio.sleep(2)
        assert world.written == ["p0", "p0"]

    lived(story, **DIRECT)


def test_every_queue_that_is_away_is_asked_for_in_turn_and_all_when_one_is_back() -> None:
    async def story(world: World) -> None:
        names = [f"q{number}" for number in range(40)]
        world.finder.away = dict.fromkeys(names, "")
        for name in names:
            world.returns.ask([_of_another(name)])
        await asyncio.sleep(30)
        world.finder.asked.clear()
        await asyncio.sleep(ROTATION)
        asked = Counter(world.finder.asked)
        assert set(asked) == set(names)
        assert asked.total() <= AWAY_AT_ONCE * (ROTATION / INTERVAL + 1)
        del world.finder.away[names[7]]
        world.finder.there = {names[7]}
        await asyncio.sleep(ROTATION)
        later = world.finder.asked[world.finder.asked.index(names[7], asked.total()) :]
        assert set(names) <= set(later[: AWAY_AT_ONCE + len(names)])

    lived(story)


@pytest.mark.parametrize("letters", [True, False])
def test_a_queue_that_is_gone_for_good_is_said_to_be_gone_and_its_events_end(*, letters: bool) -> None:
    async def story(world: World) -> None:
        world.finder.away = {"queue": ""}
        await world.feed(*events(0, 1))
        come_back(world)
        await asyncio.sleep(10)
        world.finder.away = {}
        await asyncio.sleep(1)
        come_back(world)
        await asyncio.sleep(1)
        assert [event.position for event in world.dead_lane.written] == (["p0"] if letters else [])
        assert world.listener.is_stopped is not letters

    with capture_logs() as said:
        lived(story, **DIRECT, **({} if letters else {"dead_letter": None}))
    assert [one["event"] for one in said if one["event"].startswith("queue_")] == ["queue_away", "queue_gone"]


def test_it_is_said_when_nobody_answers_for_long_and_queues_that_are_away_stay_so_meanwhile() -> None:
    async def story(world: World) -> None:
        world.finder.away = {"queue": ""}
        await world.feed(*events(0, 1))
        come_back(world)
        for silence in (1, SAID_AFTER + 2):
            await asyncio.sleep(5)
            world.finder.failure = BrokerError("no answer")
            await asyncio.sleep(silence)
            world.finder.failure = None
        await asyncio.sleep(5)
        world.finder.away, world.finder.there = {}, {"queue"}
        await asyncio.sleep(1)
        assert "p0" in world.written[1:]

    with capture_logs() as said:
        lived(story, **DIRECT)
    told = [one["event"] for one in said if one["event"].startswith(("queue_", "finder_"))]
    assert told == ["queue_away", "finder_blind", "finder_sees_again", "queue_back"]


def test_each_event_is_asked_for_by_its_own_key_when_that_names_its_queue() -> None:
    async def story(world: World) -> None:
        world.finder.away, world.finder.there = {"a": ""}, {"b"}
        world.log.fetched = {PARTITION: [keyed(0, b"gone"), keyed(1, b"a"), keyed(2, b""), keyed(3, b"a")]}
        await asyncio.sleep(0.3)
        come_back(world)
        await asyncio.sleep(5)
        assert [event.position for event in world.dead_lane.written] == ["p0", "p2"]
        assert len(world.written) == 4
        world.finder.away = {}
        world.finder.there = {"a"}
        await asyncio.sleep(2)
        assert world.written[4:] == ["p1", "p3"]

    lived(story, route=Route(exchange=""), routing_key=RoutingKey(key=True))


def test_the_node_is_asked_that_the_lane_is_connected_with() -> None:
    async def story(world: World) -> None:
        world.lane.host = "a:5672"
        await world.feed(*events(0, 1))
        come_back(world)
        await asyncio.sleep(0.1)
        assert world.finder.hosts == {"a:5672"}

    lived(story, **DIRECT)


def test_an_event_is_sent_again_and_nobody_asked_when_the_connection_is_lost_meanwhile() -> None:
    async def story(world: World) -> None:
        await world.feed(*events(0, 1))
        come_back(world)
        world.lane.host = ""
        await asyncio.sleep(0.5)
        assert world.written == ["p0", "p0"]
        assert not world.finder.asked
        assert not world.dead_lane.written

    lived(story, **DIRECT)


def test_a_queue_that_is_away_for_one_node_is_there_for_another_and_is_said_once() -> None:
    async def story(world: World) -> None:
        second = ScriptedLane()
        second.host = "b:5672"
        world.finder.away = {"queue": "its node is down"}
        both = [_of_another("queue"), _of_another("queue", second)]
        world.returns.ask(both)
        await asyncio.sleep(1)
        assert [one.flow.not_before > asyncio.get_running_loop().time() for one in both] == [True, True]
        world.finder.away_for = {"b:5672"}
        world.finder.there = {"queue"}
        await asyncio.sleep(2)
        assert [one.flow.not_before > asyncio.get_running_loop().time() for one in both] == [False, True]
        world.finder.away = {}
        await asyncio.sleep(2)
        assert [one.flow.not_before > asyncio.get_running_loop().time() for one in both] == [False, False]

    with capture_logs() as said:
        lived(story)
    assert [one["event"] for one in said if one["event"].startswith("queue_")] == ["queue_away", "queue_back"]


def keyed(number: int, key: bytes) -> Event:
    """Return an event with a key."""
    return Event(f"p{number}", 0, key, b"x", (), 1)


def _of_another(queue: str, lane: ScriptedLane = OTHER) -> Returned:
    """Return what came back to somebody else."""
    flow = PartitionFlow(Partition(queue, 0), Order.NONE, ADDRESS, 0, 100, CountingHost())
    flow.offer(events(0, 1), 1)
    batch = flow.take(1, asyncio.get_running_loop().time())
    assert batch is not None
    now = asyncio.get_running_loop().time()
    return Returned((Place(lane, queue),), flow, batch, 0, 1, 0.001, "", now, is_direct=True)
