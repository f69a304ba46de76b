"""One event type's task, seen alone."""

import asyncio

import pytest
from structlog.testing import capture_logs

from proxy.bridge.budget import OBJECTS
from proxy.bridge.letter_slots import LETTERS
from proxy.errors import AssignmentLostError, LogError
from proxy.model import Order, Origin, Outcome, Reason
from proxy.settings import Limits, Route
from tests.support.events import PARTITION, events
from tests.support.world import World, lived


def test_a_position_is_committed_only_after_its_confirm_when_events_flow() -> None:
    async def story(world: World) -> None:
        await world.feed(*events(0, 3))
        await asyncio.sleep(5)
        assert world.written == ["p0", "p1", "p2"]
        assert world.log.committed == {}
        world.lane.finish()
        await asyncio.sleep(1)
        assert world.log.committed == {PARTITION: "p2"}

    lived(story)


@pytest.mark.parametrize(
    ("rule", "priority"), [("class", 2), ("none", None), ({"P1": 9, "P3": 1}, 9), ({"P3": 1}, None)]
)
def test_messages_have_the_priority_of_their_class_when_the_route_says_which(
    rule: str | dict[str, int], priority: int | None
) -> None:
    async def story(world: World) -> None:
        await world.feed(*events(0, 1))
        await asyncio.sleep(1)
        assert [batch.address.priority for batch in world.lane.batches] == [priority]
        world.lane.finish(Outcome.UNDELIVERABLE, reason=Reason.UNROUTABLE)
        await asyncio.sleep(1)
        assert [batch.address.priority for batch in world.dead_lane.batches] == [0]

    lived(story, route=Route(exchange="x", message_priority=rule))


@pytest.mark.parametrize(
    ("route", "has_one_class", "told"),
    [
        (Route(exchange="x"), False, (Origin.ID, True, 2)),
        (Route(exchange="x"), True, (Origin.ID, True, None)),
        (Route(exchange="x", message_priority={"P1": 2}), True, (Origin.ID, True, 2)),
        (Route(exchange="x", origin=Origin.FULL, key="none"), True, (Origin.FULL, False, 2)),
    ],
)
def test_messages_tell_their_origin_as_the_route_says_and_dead_letters_in_full(
    route: Route, has_one_class: bool, told: tuple[Origin, bool, int | None]
) -> None:
    async def story(world: World) -> None:
        await world.feed(*events(0, 1))
        await asyncio.sleep(1)
        (batch,) = world.lane.batches
        assert (batch.address.origin, batch.address.carries_key, batch.address.priority) == told
        world.lane.finish(Outcome.UNDELIVERABLE, reason=Reason.UNROUTABLE)
        await asyncio.sleep(1)
        (letter,) = world.dead_lane.batches
        assert (letter.address.origin, letter.address.carries_key) == (Origin.FULL, True)

    lived(story, route=route, has_one_class=has_one_class)


def test_partitions_are_paused_at_the_high_mark_and_resumed_at_the_low_mark_when_the_lane_is_full() -> None:
    async def story(world: World) -> None:
        world.lane.room = asyncio.Semaphore(0)
        await world.feed(*events(0, 250))
        assert world.log.paused == {PARTITION}
        assert world.listener.inbox.events <= 250
        world.lane.give_room(400)
        for _ in range(4):
            await asyncio.sleep(0.1)
            world.lane.finish()
        assert world.log.paused == set()
        assert len(world.written) == 250

    lived(story, limits=Limits(inbox_events=50, uncommitted_events=10**6))


def test_what_a_batch_size_holds_back_stays_in_the_log_but_for_twenty_ticks_of_it() -> None:
    async def story(world: World) -> None:
        for fetch in range(6):
            await world.feed(*events(100 * fetch, 100 * (fetch + 1)))
        assert world.log.paused == {PARTITION}
        assert 300 - 15 <= world.listener.inbox.events <= 300 + 100
        async with asyncio.timeout(5):
            while world.log.paused:
                await asyncio.sleep(0.1)
                world.lane.finish()
        assert world.listener.inbox.events <= 150

    lived(story, policy="per_type", limits=Limits(uncommitted_events=10**6))


def test_nothing_is_published_when_the_group_has_not_confirmed_the_assignment_for_half_a_session() -> None:
    async def story(world: World) -> None:
        world.log.failure = LogError("unreachable")
        await asyncio.sleep(4)
        await world.feed(*events(0, 3))
        assert world.written == []
        world.log.failure = None
        await asyncio.sleep(1)
        assert world.written == ["p0", "p1", "p2"]

    lived(story)


def test_what_waits_at_a_lane_is_not_written_when_the_lease_ends_meanwhile() -> None:
    async def story(world: World) -> None:
        world.lane.room = asyncio.Semaphore(0)
        await world.feed(*events(0, 3))
        world.log.failure = AssignmentLostError("fenced")
        await asyncio.sleep(4)
        world.lane.give_room(10)
        await asyncio.sleep(1)
        assert world.written == []

    lived(story)


def test_an_idle_replica_keeps_its_lease_when_it_has_nothing_to_commit() -> None:
    async def story(world: World) -> None:
        await asyncio.sleep(60)
        await world.feed(*events(0, 1))
        assert world.written == ["p0"]
        assert 20 <= world.log.affirmed <= 60

    lived(story)


def test_an_undeliverable_event_is_committed_only_after_its_dead_letter_is_confirmed() -> None:
    async def story(world: World) -> None:
        await world.feed(*events(0, 2))
        world.lane.finish(Outcome.UNDELIVERABLE, reason=Reason.TOO_LARGE)
        await asyncio.sleep(2)
        assert [one.position for one in world.dead_lane.written] == ["p0", "p1"]
        notes = dict(world.dead_lane.batches[0].address.notes)
        assert notes["tidegate-reason"] == "too_large"
        assert world.log.committed == {}
        world.dead_lane.finish(Outcome.NACKED)
        await asyncio.sleep(2.5)
        assert world.log.committed == {}
        world.dead_lane.finish()
        await asyncio.sleep(0.1)
        world.dead_lane.finish()
        await asyncio.sleep(1)
        assert world.log.committed == {PARTITION: "p1"}
        assert world.tally.dead_lettered == {"too_large": 2}

    lived(story)


def test_dead_letters_are_said_once_a_minute_for_each_reason_when_every_event_is_undeliverable() -> None:
    async def story(world: World) -> None:
        with capture_logs() as said:
            for number, reason in enumerate([Reason.UNROUTABLE, Reason.UNROUTABLE, Reason.REFUSED, Reason.EXPIRED]):
                await world.feed(*events(number, number + 1))
                world.lane.finish(Outcome.UNDELIVERABLE, reason=reason)
            await asyncio.sleep(60)
            await world.feed(*events(4, 5))
            world.lane.finish(Outcome.UNDELIVERABLE, reason=Reason.UNROUTABLE)
        told = [(line["reason"], line["position"]) for line in said if line["event"] == "event_undeliverable"]
        assert told == [("unroutable", "p0"), ("refused", "p2"), ("unroutable", "p4")]

    lived(story)


def test_the_type_stops_and_commits_nothing_more_when_an_event_has_nowhere_to_go() -> None:
    async def story(world: World) -> None:
        await world.feed(*events(0, 2))
        world.lane.finish(Outcome.UNDELIVERABLE, reason=Reason.UNROUTABLE)
        await world.feed(*events(2, 4))
        await asyncio.sleep(5)
        assert world.written == ["p0", "p1"]
        assert world.log.committed == {}
        assert world.log.paused == {PARTITION}
        assert [incident["name"] for incident in world.incidents] == ["type_stopped"]

    lived(story, dead_letter=None)


def test_only_the_old_are_dead_lettered_when_an_age_is_set() -> None:
    async def story(world: World) -> None:
        await asyncio.sleep(100)
        fresh = [world.recent(n) for n in (1, 2, 4)]
        old = [
            one._replace(timestamp_ms=(one.timestamp_ms or 0) - 11_000) for one in (world.recent(0), world.recent(3))
        ]
        await world.feed(old[0], fresh[0], fresh[1], old[1], fresh[2])
        assert world.written == ["p1", "p2", "p4"]
        assert [one.position for one in world.dead_lane.written] == ["p0", "p3"]
        world.lane.finish()
        world.dead_lane.finish()
        await asyncio.sleep(1)
        assert world.log.committed == {PARTITION: "p4"}
        assert world.tally.dead_lettered == {"expired": 2}

    lived(story, max_age=10)


@pytest.mark.parametrize("order", Order)
def test_no_more_than_the_cap_is_sent_ahead_when_commits_fail(order: Order) -> None:
    async def story(world: World) -> None:
        await asyncio.sleep(0.01)  # the assignment is affirmed
        world.log.failure = LogError("slow")
        await world.feed(*events(0, 100))
        for _ in range(50):
            world.lane.finish()
            await asyncio.sleep(0.01)
        assert len(world.written) == 30
        world.log.failure = None
        await asyncio.sleep(1)
        assert len(world.written) > 30

    lived(story, limits=Limits(uncommitted_events=30), order=order)


def test_one_event_at_a_time_is_out_when_order_is_strict() -> None:
    async def story(world: World) -> None:
        await world.feed(*events(0, 3))
        assert world.written == ["p0"]
        world.lane.finish(Outcome.UNKNOWN)
        await asyncio.sleep(1)
        assert world.written == ["p0", "p0"]
        world.lane.finish()
        await asyncio.sleep(1)
        assert world.written == ["p0", "p0", "p1"]

    lived(story, order=Order.STRICT)


def test_what_is_written_is_awaited_and_the_rest_left_when_partitions_are_revoked() -> None:
    async def story(world: World) -> None:
        world.lane.room = asyncio.Semaphore(2)
        await world.feed(*events(0, 5))
        revoked = asyncio.create_task(world.assignment.on_revoked([PARTITION]))
        await asyncio.sleep(1)
        assert not revoked.done()
        world.lane.finish()
        assert await revoked == {PARTITION: "p1"}
        assert world.written == ["p0", "p1"]
        assert world.listener.inbox.events == 0

    lived(story)


def test_a_late_outcome_moves_nothing_when_the_partition_has_come_back_in_a_new_epoch() -> None:
    async def story(world: World) -> None:
        await world.feed(*events(0, 2))
        late = world.lane.batches
        world.lane.batches = []
        assert await world.assignment.on_revoked([PARTITION]) == {}
        world.assignment.on_assigned([PARTITION])
        await world.feed(*events(0, 2))
        for batch in late:
            batch.recipient.on_outcome(batch, 0, batch.done, Outcome.CONFIRMED, seconds=9.0)
        await asyncio.sleep(2)
        assert world.log.committed == {}
        world.lane.finish()
        await asyncio.sleep(1)
        assert world.log.committed == {PARTITION: "p1"}

    lived(story)


def test_nothing_is_sent_any_more_when_the_type_stops_while_its_throttle_makes_it_wait() -> None:
    async def story(world: World) -> None:
        await world.feed(*events(0, 100))
        sent = len(world.written)
        assert 15 <= sent < 100
        world.lane.finish(Outcome.UNDELIVERABLE, reason=Reason.UNROUTABLE)
        await asyncio.sleep(5)
        assert len(world.written) == sent

    lived(story, dead_letter=None, policy="per_type")


def test_nothing_is_sent_any_more_when_the_type_stops_over_an_event_that_is_too_old() -> None:
    async def story(world: World) -> None:
        await asyncio.sleep(100)
        await world.feed(world.recent(0)._replace(timestamp_ms=0), world.recent(1))
        await asyncio.sleep(1)
        assert world.listener.is_stopped
        assert world.written == []

    lived(story, dead_letter=None, max_age=10)


def test_a_stopped_type_leaves_the_budget_to_the_others_and_takes_nothing_in() -> None:
    async def story(world: World) -> None:
        await world.feed(*events(0, 100))
        assert (world.written, world.budget.used) == (["p0", "p1"], 98 * (1 + OBJECTS))
        world.lane.finish(Outcome.UNDELIVERABLE, reason=Reason.UNROUTABLE)
        await world.feed(*events(300, 310))
        assert world.listener.is_stopped
        assert (world.budget.used, world.listener.inbox.events) == (0, 0)
        assert world.tally.received == 100

    lived(story, dead_letter=None, limits=Limits(uncommitted_events=2))


def test_what_was_sent_before_is_still_committed_when_the_type_stops() -> None:
    async def story(world: World) -> None:
        await world.feed(*events(0, 2))
        first = world.lane.batches
        world.lane.batches = []
        await world.feed(*events(2, 4))
        world.lane.finish(Outcome.UNDELIVERABLE, reason=Reason.UNROUTABLE)
        await asyncio.sleep(1)
        for batch in first:
            batch.recipient.on_outcome(batch, 0, batch.done, Outcome.CONFIRMED, seconds=0.001)
        await asyncio.sleep(1)
        assert world.log.committed == {PARTITION: "p1"}

    lived(story, dead_letter=None)


def test_the_unwritten_and_the_rest_keep_their_order_when_some_in_the_middle_are_too_old() -> None:
    async def story(world: World) -> None:
        await asyncio.sleep(100)
        fresh = [world.recent(n) for n in range(6)]
        old = [one._replace(timestamp_ms=0) for one in fresh]
        world.lane.room = asyncio.Semaphore(1)
        await world.feed(fresh[0], fresh[1], old[2], old[3], fresh[4]._replace(timestamp_ms=None), fresh[5])
        assert world.written == ["p0"]
        world.lane.give_room(1)
        await asyncio.sleep(0.1)
        assert world.written == ["p0", "p1"]
        world.lane.give_room(10)
        await asyncio.sleep(0.1)
        assert world.written == ["p0", "p1", "p4", "p5"]
        world.lane.finish()
        await asyncio.sleep(1)
        assert world.log.committed == {PARTITION: "p1"}
        world.dead_lane.finish()
        await asyncio.sleep(1)
        assert world.log.committed == {PARTITION: "p5"}

    lived(story, max_age=10)


def test_an_age_is_measured_again_when_an_event_is_sent_again() -> None:
    async def story(world: World) -> None:
        await world.feed(world.recent(0))
        await asyncio.sleep(20)
        world.lane.finish(Outcome.NACKED)
        await asyncio.sleep(1)
        assert world.written == ["p0"]
        assert [one.position for one in world.dead_lane.written] == ["p0"]

    lived(story, max_age=10)


def test_latencies_and_errors_reach_the_collector_but_not_those_without_congestion() -> None:
    async def story(world: World) -> None:
        await world.feed(*events(0, 3))
        world.lane.finish(Outcome.UNKNOWN, reason=Reason.REFUSED)
        await asyncio.sleep(1)
        assert world.statistics.report().errors == 0
        world.lane.finish(Outcome.NACKED)
        await asyncio.sleep(1)
        world.lane.finish(Outcome.UNKNOWN)
        await asyncio.sleep(1)
        assert world.statistics.report().errors == 6
        world.lane.finish()
        report = world.statistics.report()
        assert (report.samples, report.errors) == (3, 0)
        assert report.p50 == pytest.approx(0.001, rel=0.01)

    lived(story)


def test_the_type_waits_for_its_dead_letters_when_no_more_may_lie_in_memory() -> None:
    async def story(world: World) -> None:
        world.listener._around.letters_held.max_events = 400
        await world.feed(*events(0, 200))
        world.lane.finish(Outcome.UNDELIVERABLE, reason=Reason.UNROUTABLE)
        await world.feed(*events(200, 203))
        assert len(world.dead_lane.written) == LETTERS / 2
        assert len(world.written) == 200
        world.dead_lane.finish()
        await asyncio.sleep(0.1)
        assert len(world.written) == 203

    lived(story)


def test_good_events_go_on_up_to_the_cap_when_no_dead_letter_is_taken() -> None:
    async def story(world: World) -> None:
        await world.feed(*events(0, 300))
        for batch in world.lane.batches:
            batch.recipient.on_outcome(batch, 0, batch.done, Outcome.UNDELIVERABLE, reason=Reason.TOO_LARGE)
        world.lane.batches.clear()
        await asyncio.sleep(0.1)
        world.dead_lane.finish(Outcome.NACKED)
        await world.feed(*events(300, 600))
        world.lane.finish()
        assert len(world.written) == 500
        assert world.listener.dead_letters.is_stuck
        await world.feed()
        assert world.log.committed == {}

    lived(story, limits=Limits(uncommitted_events=500))


@pytest.mark.parametrize("order", list(Order))
@pytest.mark.parametrize("refusal", [Outcome.UNDELIVERABLE, Outcome.NACKED])
def test_events_go_by_their_own_route_again_when_it_is_back_and_no_dead_letter_is_taken(
    order: Order, refusal: Outcome
) -> None:
    async def story(world: World) -> None:
        await world.feed(*events(0, 5))
        for _ in range(40):  # both destinations are away
            world.lane.finish(Outcome.UNDELIVERABLE, reason=Reason.UNROUTABLE)
            await asyncio.sleep(0.1)
            world.dead_lane.finish(refusal)
            await asyncio.sleep(0.1)
        assert world.listener.dead_letters.is_stuck
        world.lane.written.clear()
        await world.feed(*events(5, 8))
        for _ in range(50):
            world.lane.finish()
            world.dead_lane.finish(refusal)
            await asyncio.sleep(0.1)
        assert world.written == [f"p{number}" for number in range(8)]
        assert world.log.committed == {PARTITION: "p7"}
        assert not world.listener.dead_letters.is_stuck
        assert world.tally.dead_lettered == {}
        assert [incident["name"] for incident in world.incidents] == ["dead_letter_refused"]

    lived(story, order=order)


def test_an_event_stays_a_dead_letter_when_its_partition_has_gone_on_past_it() -> None:
    async def story(world: World) -> None:
        await world.feed(*events(0, 1))
        world.lane.finish(Outcome.UNDELIVERABLE, reason=Reason.UNROUTABLE)
        await world.feed(*events(1, 4))
        world.lane.finish()
        for _ in range(4):
            world.dead_lane.finish(Outcome.UNDELIVERABLE, reason=Reason.REFUSED)
            await asyncio.sleep(2.5)
        assert world.written == ["p0", "p1", "p2", "p3"]
        world.dead_lane.finish()
        await asyncio.sleep(1)
        assert world.log.committed == {PARTITION: "p3"}

    lived(story)


def test_what_can_not_be_dead_lettered_is_said_with_its_destination_and_that_it_is_over() -> None:
    async def story(world: World) -> None:
        with capture_logs() as logs:
            await world.feed(*events(0, 1))
            world.lane.finish(Outcome.UNDELIVERABLE, reason=Reason.TOO_LARGE)
            for outcome in (Outcome.NACKED, Outcome.NACKED, Outcome.CONFIRMED):
                await asyncio.sleep(2.5)
                world.dead_lane.finish(outcome)
        said = [one for one in logs if one["event"].startswith("dead_letter")]
        assert [one["event"] for one in said] == ["dead_letter_refused", "dead_letters_flow"]
        assert {one["destination"] for one in said} == {"queue 'dead'"}
        assert "make room" in said[0]["remedy"]

    lived(story)


def test_events_flow_on_when_a_dead_letter_waits_for_its_lane() -> None:
    async def story(world: World) -> None:
        world.dead_lane.room = asyncio.Semaphore(0)
        await world.feed(*events(0, 1))
        world.lane.finish(Outcome.UNDELIVERABLE, reason=Reason.UNROUTABLE)
        for number in range(1, 5):
            await world.feed(*events(number, number + 1))
            assert len(world.written) == number + 1
        world.lane.finish()
        await asyncio.sleep(1)
        assert world.log.committed == {}
        world.dead_lane.give_room(1)
        await asyncio.sleep(0.1)
        world.dead_lane.finish()
        await asyncio.sleep(1)
        assert world.log.committed == {PARTITION: "p4"}

    lived(story)


def test_slots_of_dead_letters_come_back_however_they_end() -> None:
    async def story(world: World) -> None:
        slots = world.listener._around.letter_slots
        world.dead_lane.room = asyncio.Semaphore(6)
        await world.feed(*events(0, 9))
        world.lane.finish(Outcome.UNDELIVERABLE, reason=Reason.UNROUTABLE)
        await asyncio.sleep(0.1)
        assert (slots.events, slots.bytes) == (9, 9)
        revoked = asyncio.create_task(world.assignment.on_revoked([PARTITION]))
        await asyncio.sleep(0.1)
        assert (slots.events, slots.bytes) == (6, 6)
        world.dead_lane.finish_written()
        await revoked
        assert (slots.events, slots.bytes) == (0, 0)
        await asyncio.sleep(1)
        assert world.listener.dead_letters.open == 0

    lived(story)


def test_dead_letters_are_sent_again_and_everything_flows_on_when_they_are_nacked() -> None:
    async def story(world: World) -> None:
        await world.feed(*events(0, 1))
        world.lane.finish(Outcome.UNDELIVERABLE, reason=Reason.UNROUTABLE)
        await asyncio.sleep(0.1)
        for _ in range(3):
            world.dead_lane.finish(Outcome.UNKNOWN)
            await asyncio.sleep(0.6)
        assert [one.position for one in world.dead_lane.written] == ["p0"] * 4
        await world.feed(*events(1, 2))
        assert world.written == ["p0", "p1"]

    lived(story)


def test_dead_letters_wait_and_are_said_once_when_their_destination_refuses_them() -> None:
    async def story(world: World) -> None:
        await world.feed(*events(0, 3))
        world.lane.finish(Outcome.UNDELIVERABLE, reason=Reason.TOO_LARGE)
        await asyncio.sleep(0.1)
        for _ in range(3):
            world.dead_lane.finish(Outcome.UNDELIVERABLE, reason=Reason.REFUSED)
            await asyncio.sleep(2.5)
        assert [incident["name"] for incident in world.incidents] == ["dead_letter_refused"]
        assert [one.position for one in world.dead_lane.written] == ["p0", "p1", "p2", "p0", "p1", "p2"]
        assert not world.listener.is_stopped
        assert world.log.committed == {}

    lived(story)


def test_all_dead_letters_leave_at_once_when_their_destination_takes_one_again() -> None:
    async def story(world: World) -> None:
        await world.feed(*events(0, 4))
        world.lane.finish(Outcome.UNDELIVERABLE, reason=Reason.TOO_LARGE)
        await asyncio.sleep(0.1)
        world.dead_lane.finish(Outcome.UNDELIVERABLE, reason=Reason.REFUSED)
        await asyncio.sleep(2.5)
        world.dead_lane.finish()
        await asyncio.sleep(0.1)
        assert len(world.dead_lane.written) == 8
        world.dead_lane.finish()
        await asyncio.sleep(1)
        assert world.log.committed == {PARTITION: "p3"}

    lived(story)


def test_nothing_is_lost_when_the_listener_is_cancelled_while_it_waits_at_the_lane() -> None:
    async def story(world: World) -> None:
        world.lane.room = asyncio.Semaphore(2)
        await world.feed(*events(0, 5))
        world.end_listener()
        await asyncio.sleep(0.1)
        world.lane.finish_written()
        (flow,) = world.assignment.flows()
        assert (flow.out, flow.waiting, flow.watermark.resolved) == (0, 3, 2)

    lived(story)


def test_nothing_is_sent_before_the_dead_letter_is_confirmed_when_order_is_strict() -> None:
    async def story(world: World) -> None:
        await world.feed(*events(0, 2))
        world.lane.finish(Outcome.UNDELIVERABLE, reason=Reason.UNROUTABLE)
        await asyncio.sleep(2)
        assert world.written == ["p0"]
        world.dead_lane.finish()
        await asyncio.sleep(1)
        assert world.written == ["p0", "p1"]

    lived(story, order=Order.STRICT)


def test_what_was_admitted_in_vain_goes_at_once_when_the_hold_ends() -> None:
    async def story(world: World) -> None:
        await asyncio.sleep(0.01)
        world.log.fetched = {PARTITION: events(0, 30)}
        await asyncio.sleep(0.25)
        (batch, *_) = world.lane.batches
        assert (len(batch.events), batch.done) == (15, 15)
        world.lane.batches.clear()
        world.lane.written.clear()
        batch.recipient.on_outcome(batch, 0, 1, Outcome.NACKED)
        await asyncio.sleep(0.1)
        assert world.written == []
        batch.recipient.on_outcome(batch, 1, 15, Outcome.CONFIRMED, seconds=0.001)
        await asyncio.sleep(0.001)
        assert world.written[:2] == ["p0", "p15"]

    lived(story, policy="per_type")


def test_trips_are_from_handing_on_to_the_last_outcome_when_a_law_asks_for_them() -> None:
    async def story(world: World) -> None:
        world.statistics.trips.is_heard = True
        await world.feed(*events(0, 4))
        await asyncio.sleep(2)
        assert world.statistics.trips.take() == ()
        world.lane.finish(Outcome.NACKED)
        (trip,) = world.statistics.trips.take()
        assert trip.seconds == pytest.approx(2, abs=0.5)
        assert (trip.in_flight, trip.is_dropped, trip.cost) == (1, True, 4.0)
        await asyncio.sleep(5)
        world.lane.finish()
        assert not any(trip.is_dropped for trip in world.statistics.trips.take())

    lived(story)
