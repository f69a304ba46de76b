"""What becomes of events that came back, by what the broker says of their queue."""

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from proxy.bridge.broker import QueueState
from proxy.bridge.presence import TRUST
from proxy.bridge.returns import LEASE, PATIENCE, QUIET
from proxy.errors import BrokerError
from proxy.model import Order, Outcome, Reason
from proxy.settings import Limits, Route
from tests.support.events import PARTITION, events
from tests.support.world import World, lived

DIRECT: dict[str, Any] = {"route": Route(exchange="")}
"""To the queue that the routing key names, `queue`."""
THERE = QueueState(0, 1)


def come_back(world: World) -> None:
    """Let RabbitMQ return all that was written."""
    world.lane.finish(Outcome.UNDELIVERABLE, reason=Reason.UNROUTABLE)


@pytest.mark.parametrize("order", list(Order))
@pytest.mark.parametrize("letters", [True, False])
def test_events_go_again_in_order_and_none_is_a_letter_when_their_queue_is_away_for_a_while(
    order: Order, *, letters: bool
) -> None:
    async def story(world: World) -> None:
        world.monitor.away = {"queue"}
        await world.feed(*events(0, 3))
        come_back(world)
        await asyncio.sleep(20)
        sent = len(world.lane.written)
        assert sent == (1 if order is Order.STRICT else 3)
        world.monitor.away, world.monitor.states = set(), {"queue": THERE}
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
        world.monitor.away = {"queue"}
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
        world.monitor.delay = 0.9
        world.monitor.away = {"queue"}
        await world.feed(*events(0, 1))
        come_back(world)
        await world.feed(*events(1, 2))
        assert world.written == ["p0"]

    lived(story, **DIRECT)


def test_an_event_goes_once_more_and_then_is_a_letter_when_its_queue_is_there_but_not_bound() -> None:
    async def story(world: World) -> None:
        world.monitor.states = {"queue": THERE}
        await world.feed(*events(0, 2))
        come_back(world)
        await asyncio.sleep(0.2)
        assert world.written == ["p0", "p1", "p0", "p1"]
        come_back(world)
        await asyncio.sleep(0.2)
        assert [event.position for event in world.dead_lane.written] == ["p0", "p1"]
        await world.feed(*events(2, 3))  # within the second in which the queue is known to have been there
        come_back(world)
        await asyncio.sleep(0.2)
        assert [event.position for event in world.dead_lane.written] == ["p0", "p1", "p2"]
        assert world.written[4:] == ["p2"]
        await asyncio.sleep(TRUST)
        await world.feed(*events(3, 4))
        come_back(world)
        await asyncio.sleep(0.2)
        assert world.written[5:] == ["p3", "p3"]

    lived(story, route=Route(exchange="x", queues=("queue",)))


def test_an_event_is_a_letter_when_it_has_come_back_twice_from_a_broker_that_answers_slowly() -> None:
    async def story(world: World) -> None:
        world.monitor.states, world.monitor.delay = {"queue": THERE}, 2 * TRUST
        await world.feed(*events(0, 1))
        for _ in range(2):
            come_back(world)
            await asyncio.sleep(3 * TRUST)
        assert world.written == ["p0", "p0"]
        assert [event.position for event in world.dead_lane.written] == ["p0"]

    lived(story, route=Route(exchange="x", queues=("queue",)))


def test_an_event_is_none_without_a_queue_when_that_came_back_before_anybody_asked() -> None:
    async def story(world: World) -> None:
        world.monitor.states = {"queue": THERE}
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
        world.monitor.states, world.monitor.away = {"a": THERE}, {"b"}
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
        assert world.monitor.polls == 0

    lived(story, route=Route(exchange="x"))


def test_an_event_waits_for_an_answer_and_then_is_what_the_broker_said_when_nobody_answers() -> None:
    async def story(world: World) -> None:
        world.monitor.failure = BrokerError("no answer")
        await world.feed(*events(0, 1))
        come_back(world)
        await asyncio.sleep(PATIENCE - 1)
        assert not world.dead_lane.written
        await asyncio.sleep(2)
        assert [event.position for event in world.dead_lane.written] == ["p0"]

    lived(story, **DIRECT)


def test_a_partition_tries_by_itself_when_nobody_answers_any_more() -> None:
    async def story(world: World) -> None:
        world.monitor.away = {"queue"}
        await world.feed(*events(0, 1))
        come_back(world)
        await asyncio.sleep(5)
        world.monitor.failure = BrokerError("no answer")
        await asyncio.sleep(LEASE + 1)
        assert world.written == ["p0", "p0"]

    lived(story, **DIRECT)


def test_a_partition_is_let_go_at_once_and_its_events_stay_in_the_log_when_they_are_in_question() -> None:
    async def story(world: World) -> None:
        world.monitor.failure = BrokerError("no answer")
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
        world.monitor.away, world.monitor.whys = {"queue"}, {"queue": "its node is down"}
        await world.feed(*events(0, 1))
        come_back(world)
        await asyncio.sleep(10)
        world.monitor.away, world.monitor.states = set(), {"queue": THERE}
        await asyncio.sleep(1)

    with capture_logs() as said:
        lived(story, **DIRECT)
    told = [one for one in said if one["event"].startswith("queue_")]
    assert [(one["event"], one["queue"]) for one in told] == [("queue_away", "queue"), ("queue_back", "queue")]
    assert told[0]["why"] == "its node is down"
    assert told[1]["after_s"] == pytest.approx(10, abs=1)


def test_the_connection_is_closed_when_nothing_was_asked_for_a_while() -> None:
    async def story(world: World) -> None:
        await world.feed(*events(0, 1))
        come_back(world)
        await asyncio.sleep(QUIET / 2)
        assert not world.monitor.is_closed
        await asyncio.sleep(QUIET)
        assert world.monitor.is_closed

    lived(story, **DIRECT)
