"""What every lane promises, in memory and on a real RabbitMQ."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from functools import wraps
from random import Random
from typing import Any

import pytest

from load.stack import Stack
from proxy.bridge.broker import LaneState
from proxy.model import Event, Outcome, Reason
from proxy.settings import Limits
from proxy.simulation import virtual_time
from tests.contract.lane_adapters import Bench, MemoryWorld, RabbitWorld, WireWorld, until
from tests.contract.lane_storm import storm
from tests.wire.loop import WireLoop

pytestmark = pytest.mark.timeout(120)


def made(start: int, end: int, size: int = 20) -> list[Event]:
    return [Event(number, 1_700_000_000_000, b"key", b"x" * size, (), size + 3) for number in range(start, end)]


def ids(recorder: object, start: int, end: int) -> list[str]:
    return [f"{recorder.partition}-{number}" for number in range(start, end)]  # type: ignore[attr-defined]


class LaneContract:
    """The tests; one class below for each broker they are run on."""

    async def test_all_are_confirmed_and_stored_in_order_when_nothing_goes_wrong(self, bench: Bench) -> None:
        queue = await bench.world.queue()
        recorder = bench.recorder(queue)
        async with bench.lane() as lane:
            for start in range(0, 3000, 150):
                await lane.publish(
                    [recorder.batch(made(start, start + 100)), recorder.batch(made(start + 100, start + 150))]
                )
            await recorder.ended(3000)
            assert recorder.count(Outcome.CONFIRMED) == 3000
            assert all(end.seconds is not None and end.seconds >= 0 for end in recorder.ends)
        assert await bench.world.ids(queue) == ids(recorder, 0, 3000)

    async def test_what_a_full_queue_refuses_is_nacked_and_nothing_else(self, bench: Bench) -> None:
        queue = await bench.world.queue(bound=50)
        recorder = bench.recorder(queue)
        async with bench.lane() as lane:
            for start in range(0, 400, 40):
                await lane.publish([recorder.batch(made(start, start + 40))])
            await recorder.ended(400)
        stored = await bench.world.ids(queue)
        assert recorder.count(Outcome.NACKED) > 0
        assert recorder.count(Outcome.NACKED) + recorder.count(Outcome.CONFIRMED) == 400
        confirmed = {f"{recorder.partition}-{position}" for position in recorder.positions(Outcome.CONFIRMED)}
        assert confirmed == set(stored)

    async def test_only_the_unroutable_are_undeliverable_when_they_stand_among_others(self, bench: Bench) -> None:
        queue = await bench.world.queue()
        good, lost = bench.recorder(queue), bench.recorder(f"{queue}.none")
        async with bench.lane() as lane:
            for start in range(0, 300, 30):
                await asyncio.gather(
                    lane.publish([good.batch(made(start, start + 30))]),
                    lane.publish([lost.batch(made(start, start + 30, size=200_000 if start == 0 else 5))]),
                )
            await good.ended(300)
            await lost.ended(300)
        assert good.count(Outcome.CONFIRMED) == 300
        assert {(end.outcome, end.reason) for end in lost.ends} == {(Outcome.UNDELIVERABLE, Reason.UNROUTABLE)}
        assert sorted(lost.positions(Outcome.UNDELIVERABLE), key=lambda number: int(str(number))) == list(range(300))
        assert "NO_ROUTE" in lost.ends[0].detail

    async def test_a_lone_event_is_undeliverable_when_its_exchange_is_missing(self, bench: Bench) -> None:
        recorder = bench.recorder("x", exchange="no-such-exchange")
        async with bench.lane() as lane:
            await lane.publish([recorder.batch(made(0, 1))])
            await recorder.ended(1)
            (end,) = recorder.ends
            assert (end.outcome, end.reason) == (Outcome.UNDELIVERABLE, Reason.REFUSED)
            assert "no-such-exchange" in end.detail
            assert lane.state is LaneState.OPEN

    async def test_each_culprit_is_found_and_the_others_arrive_when_several_close_the_channel(
        self, bench: Bench
    ) -> None:
        queue = await bench.world.queue()
        good, bad = bench.recorder(queue), bench.recorder("x", exchange="no-such-exchange")
        async with bench.lane() as lane:
            todo = {good: made(0, 60), bad: made(0, 5)}
            while any(todo.values()):
                sent = {recorder: recorder.batch(events) for recorder, events in todo.items() if events}
                await asyncio.gather(*(lane.publish([batch]) for batch in sent.values()))
                for recorder in sent:
                    await recorder.all_ended()
                for recorder, batch in sent.items():
                    last = {end.position: end for end in recorder.ends}
                    todo[recorder] = [
                        event for event in batch.events if last[event.position].outcome is Outcome.UNKNOWN
                    ]
        assert len(set(good.positions(Outcome.CONFIRMED))) == 60
        assert not good.positions(Outcome.UNDELIVERABLE)
        assert sorted(map(str, bad.positions(Outcome.UNDELIVERABLE))) == ["0", "1", "2", "3", "4"]
        unknown = [end for recorder in (good, bad) for end in recorder.ends if end.outcome is Outcome.UNKNOWN]
        assert {end.reason for end in unknown} <= {Reason.REFUSED}
        assert set(await bench.world.ids(queue)) == set(ids(good, 0, 60))

    async def test_others_keep_full_speed_when_every_event_of_one_type_is_refused(self, bench: Bench) -> None:
        queue = await bench.world.queue()
        good, bad = bench.recorder(queue), bench.recorder("x", exchange="no-such-exchange")
        async with bench.lane() as lane:
            await lane.publish([bad.batch(made(0, 1))])
            await bad.ended(1)
            refusing = asyncio.create_task(lane.publish([bad.batch(made(1, 400))]))
            for start in range(0, 4000, 100):
                await lane.publish([good.batch(made(start, start + 100))])
            await good.ended(4000)
            assert good.count(Outcome.CONFIRMED) == 4000
            assert all(end.outcome is Outcome.UNDELIVERABLE for end in bad.ends)
            refusing.cancel()
            with suppress(asyncio.CancelledError):
                await refusing
        assert await bench.world.ids(queue) == ids(good, 0, 4000)

    async def test_a_type_returns_to_full_speed_with_its_first_success_when_its_exchange_was_missing(
        self, bench: Bench
    ) -> None:
        queue = await bench.world.queue()
        bad = bench.recorder("x", exchange="no-such-exchange", topic="one")
        mended = bench.recorder(queue, topic="one")
        async with bench.lane() as lane:
            await lane.publish([bad.batch(made(0, 1))])
            await bad.ended(1)
            await lane.publish([mended.batch(made(0, 1))])
            await mended.ended(1)
            await lane.publish([mended.batch(made(1, 500))])
            await mended.ended(500)
            assert mended.most_open > 1
        assert await bench.world.ids(queue) == ids(mended, 0, 500)

    async def test_nothing_is_lost_or_repeated_when_the_broker_blocks_and_unblocks(self, bench: Bench) -> None:
        queue = await bench.world.queue()
        recorder = bench.recorder(queue)
        async with bench.lane(Limits(confirm_deadline=1.0, write_deadline=0.5)) as lane:
            await lane.publish([recorder.batch(made(0, 10))])
            await recorder.ended(10)
            await bench.world.block()
            try:
                publishing = asyncio.create_task(lane.publish([recorder.batch(made(10, 500))]))
                await until(lambda: lane.state is LaneState.BLOCKED)
                written = recorder.written
                await asyncio.sleep(1.5)
                assert lane.state is LaneState.BLOCKED
                assert (recorder.written, publishing.done()) == (written, False)
                assert lane.oldest(asyncio.get_running_loop().time()) > 1.2 or not lane.in_flight
            finally:
                await bench.world.unblock()
            await publishing
            await recorder.ended(500)
        assert recorder.count(Outcome.CONFIRMED) == 500
        assert await bench.world.ids(queue) == ids(recorder, 0, 500)

    async def test_each_event_ends_once_and_none_confirmed_is_missing_when_the_connection_drops(
        self, bench: Bench
    ) -> None:
        queue = await bench.world.queue()
        recorder = bench.recorder(queue)
        async with bench.lane(alone=False, in_flight_bound=200) as lane:
            publishing = asyncio.create_task(
                lane.publish([recorder.batch(made(start, start + 500)) for start in range(0, 30_000, 500)])
            )
            for _ in range(3):
                goal = recorder.count(Outcome.CONFIRMED) + 500
                await until(lambda goal=goal: recorder.count(Outcome.CONFIRMED) > goal or publishing.done())
                await bench.world.drop_connections()
            await publishing
            await recorder.all_ended()
            unknown = set(recorder.positions(Outcome.UNKNOWN))
            again = [event for event in made(0, 30_000) if event.position in unknown]
            await lane.publish([recorder.batch(again)])
            await recorder.all_ended()
        assert len(unknown) <= 3 * 200
        assert len(set(recorder.positions(Outcome.CONFIRMED))) == 30_000
        stored = await bench.world.ids(queue)
        assert set(stored) == set(ids(recorder, 0, 30_000))
        assert len(stored) <= 30_000 + len(unknown)

    async def test_the_window_in_events_is_used_and_never_exceeded(self, bench: Bench) -> None:
        recorder = bench.recorder(await bench.world.queue())
        async with bench.lane(in_flight_events=37) as lane:
            await lane.publish([recorder.batch(made(0, 1000))])
            await recorder.ended(1000)
        assert recorder.most_open == 37

    async def test_the_window_in_bytes_holds_and_a_larger_event_goes_alone(self, bench: Bench) -> None:
        recorder = bench.recorder(await bench.world.queue())
        most = 0
        async with bench.lane(in_flight_bytes=10_000) as lane:
            events = made(0, 20, size=997) + made(20, 22, size=150_000) + made(22, 40, size=997)
            publishing = asyncio.create_task(lane.publish([recorder.batch(events)]))
            while len(recorder.ends) < 40:
                out = events[len(recorder.ends) : recorder.written]
                assert sum(event.size for event in out) <= 10_000 or len(out) == 1
                most = max(most, len(out))
                await asyncio.sleep(0)
            await publishing
        assert most == 10
        assert recorder.count(Outcome.CONFIRMED) == 40

    async def test_slots_go_to_the_smallest_rank_first_but_for_a_trickle_when_several_wait(self, bench: Bench) -> None:
        queue = await bench.world.queue()
        recorders = [bench.recorder(queue, topic=f"rank{rank}", rank=rank) for rank in (2, 0, 1, 0)]
        async with bench.lane(in_flight_events=20) as lane:
            async with asyncio.TaskGroup() as tasks:
                for recorder in recorders:
                    tasks.create_task(lane.publish([recorder.batch(made(0, 60))]))
            for recorder in recorders:
                await recorder.ended(60)
        order = [name.rsplit("-", 2)[0] for name in await bench.world.ids(queue)]
        assert order[:120].count("rank0") >= 114
        assert order[126:180].count("rank1") >= 50
        assert order[:120].count("rank2") in {2, 3, 4}

    async def test_a_wait_ends_at_once_when_its_batch_is_withdrawn(self, bench: Bench) -> None:
        queue = await bench.world.queue()
        first, second = bench.recorder(queue), bench.recorder(queue)
        async with bench.lane(in_flight_events=10) as lane:
            await bench.world.block()
            try:
                await lane.publish([first.batch(made(0, 1))])
                await until(lambda: lane.state is LaneState.BLOCKED)
                waiting, staying = second.batch(made(0, 50)), second.batch(made(50, 60))
                publishing = asyncio.create_task(lane.publish([waiting, staying]))
                await asyncio.sleep(0.05)
                lane.withdraw([waiting])
                await asyncio.sleep(0.05)
                assert not publishing.done()
                lane.withdraw([staying])
                await asyncio.wait_for(publishing, 0.5)
            finally:
                await bench.world.unblock()
            await first.ended(1)
        assert (waiting.done, staying.done, second.ends) == (0, 0, [])

    async def test_nothing_more_is_written_when_the_recipient_may_not_send(self, bench: Bench) -> None:
        recorder = bench.recorder(await bench.world.queue())

        def hold(*_: object) -> None:
            recorder.is_held = True

        async with bench.lane(in_flight_events=10) as lane:
            recorder.on_end = hold
            await asyncio.wait_for(lane.publish([recorder.batch(made(0, 500))]), 5)
            await recorder.all_ended()
        assert 0 < recorder.written <= 20

    async def test_what_was_written_keeps_its_outcomes_when_publish_is_cancelled(self, bench: Bench) -> None:
        queue = await bench.world.queue()
        recorder = bench.recorder(queue)
        async with bench.lane(in_flight_events=20) as lane:
            for turns in range(40):
                first = recorder.written
                batch = recorder.batch(made(first, first + 100))
                publishing = asyncio.create_task(lane.publish([batch]))
                for _ in range(turns):
                    await asyncio.sleep(0)
                publishing.cancel()
                with suppress(asyncio.CancelledError):
                    await publishing
                assert batch.done <= 100
            last = recorder.batch(made(recorder.written, recorder.written + 30))
            await lane.publish([last])
            await recorder.all_ended()
        assert recorder.positions(Outcome.CONFIRMED) == list(range(recorder.written)) or isinstance(
            bench.world, MemoryWorld | WireWorld
        )
        assert await bench.world.ids(queue) == ids(recorder, 0, recorder.written)

    async def test_what_breaks_a_limit_never_leaves_and_the_rest_does(self, bench: Bench) -> None:
        queue = await bench.world.queue()
        recorder = bench.recorder(queue)
        limits = Limits(event_bytes=1000, headers=2)
        many = Event(1, 0, None, b"x", (("a", b""), ("b", b""), ("c", b"")), 4)
        large = Event(2, 0, None, b"x" * 1001, (), 1001)
        named = Event(3, 0, None, b"x", (("n" * 256, b""),), 257)
        async with bench.lane(limits) as lane:
            await lane.publish([recorder.batch([*made(0, 1), many, large, named, *made(4, 5)])])
            await recorder.ended(5)
        reasons = {end.position: end.reason for end in recorder.ends if end.outcome is Outcome.UNDELIVERABLE}
        assert reasons == {1: Reason.TOO_MANY_HEADERS, 2: Reason.TOO_LARGE, 3: Reason.BAD_PROPERTY}
        assert await bench.world.ids(queue) == [f"{recorder.partition}-0", f"{recorder.partition}-4"]

    async def test_an_event_is_nacked_but_kept_by_the_free_queue_when_one_of_two_is_full(self, bench: Bench) -> None:
        free, full = await bench.world.queue(), await bench.world.queue(bound=1)
        recorder = bench.recorder("any", exchange=await bench.world.fan_out(free, full))
        async with bench.lane(in_flight_events=1) as lane:
            await lane.publish([recorder.batch(made(0, 5))])
            await recorder.ended(5)
        assert recorder.ends[0].outcome is Outcome.CONFIRMED
        assert recorder.count(Outcome.NACKED) >= 3
        assert len(await bench.world.ids(free)) == 5

    async def test_everything_open_ends_as_unknown_when_the_lane_is_stopped(self, bench: Bench) -> None:
        recorder = bench.recorder(await bench.world.queue())
        await bench.world.block()
        try:
            async with bench.lane() as lane:
                await lane.publish([recorder.batch(made(0, 10))])  # no more are risked before the first ack
                assert lane.in_flight == 10
            assert recorder.count(Outcome.UNKNOWN) == 10
        finally:
            await bench.world.unblock()

    @pytest.mark.parametrize("seed", range(3))
    async def test_each_event_ends_once_and_truly_when_everything_happens_at_once(
        self, bench: Bench, seed: int
    ) -> None:
        aftermath = await storm(bench, Random(seed))
        assert all(aftermath.written.values())
        assert aftermath.ended == aftermath.written
        assert aftermath.untrue == []

    async def test_the_monitor_tells_depths_and_missing_queues(self, bench: Bench) -> None:
        queue = await bench.world.queue()
        recorder = bench.recorder(queue)
        monitor = bench.world.monitor()
        async with bench.lane(alone=False) as lane:
            await lane.publish([recorder.batch(made(0, 123))])
            await recorder.ended(123)
            for _ in range(3):
                states = await monitor.poll([queue, f"{queue}.none", f"{queue}.neither"])
                assert [state and state.ready for state in states.values()] == [123, None, None]
        await monitor.close()
        await monitor.close()


class TestMemoryLane(LaneContract):
    @pytest.fixture
    def bench(self) -> Bench:
        return Bench(MemoryWorld())


class TestWireLane:
    """The scripted RabbitMQ of the wire histories, with aiormq in front of it; every test in virtual time."""

    @pytest.fixture
    def bench(self) -> Callable[[], Bench]:
        return lambda: Bench(WireWorld())


def in_virtual_time(test: Any) -> Any:
    """Return a test of the contract that makes its bench in a loop of its own."""

    @wraps(test)
    def lived(self: TestWireLane, bench: Callable[[], Bench], **more: Any) -> None:
        async def live() -> None:
            await test(self, bench(), **more)

        virtual_time.run(live(), lambda: WireLoop(Random(1)))

    return lived


for name, test in vars(LaneContract).items():
    if name.startswith("test_"):
        setattr(TestWireLane, name, in_virtual_time(test))


@pytest.mark.each_rabbitmq
class TestRabbitLane(LaneContract):
    @pytest.fixture
    async def bench(self, stack: Stack) -> AsyncIterator[Bench]:
        async with RabbitWorld.open(stack) as world:
            yield Bench(world)
