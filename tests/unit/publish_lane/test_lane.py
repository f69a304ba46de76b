"""The lane on a wire that does what the test says, under virtual time."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from functools import wraps
from itertools import pairwise
from typing import Any

import pytest
import structlog

from proxy.bridge.broker import Batch, LaneState
from proxy.errors import BrokerError, RefusedLoginError
from proxy.model import Event, Outcome, Partition, Reason
from proxy.publish_lane import PublishLane
from proxy.publish_lane.frames import PIECE_BYTES
from proxy.publish_lane.patience import LONGEST_LOOK, Silence
from proxy.publish_lane.pieces import UNPROVEN_EVENTS
from proxy.publish_lane.quarantine import STRIKES
from proxy.publish_lane.wire import Sent, WireEvents
from proxy.settings import Limits
from proxy.simulation import virtual_time
from tests.support.amqp_messages import frames_of
from tests.support.events import ADDRESS, PARTITION
from tests.support.recipient import Recorder

LIMITS = Limits(confirm_deadline=30, write_deadline=10, connect_deadline=10)


class ScriptedWire:
    """Takes pieces; says only what the test makes it say."""

    frame_max = 131_072
    heartbeat = 5.0
    unsent = 0

    def __init__(self, events: WireEvents, host: str) -> None:
        self.events = events
        self.host = host
        self.writable = True
        self.drains = True
        """Whether pieces leave at once."""
        self.blocked = False
        self.pieces: list[bytes] = []
        self.sent: list[Sent] = []
        self.channels = 0
        self.channels_closed: list[int] = []
        self.closed: list[bool] = []
        self.silent_since: float | None = None

    @property
    def heard(self) -> float:
        return asyncio.get_running_loop().time() if self.silent_since is None else self.silent_since

    def is_blocked(self) -> bool:
        return self.blocked

    async def open_channel(self) -> int:
        await asyncio.sleep(0.001)
        self.channels += 1
        return self.channels

    async def close_channel(self, number: int) -> None:
        await asyncio.sleep(0.001)
        self.channels_closed.append(number)

    def write(self, piece: bytes, sent: Sequence[Sent]) -> bool:
        self.pieces.append(piece)
        self.sent.extend(sent)
        if self.drains:
            asyncio.get_running_loop().call_later(0.001, self.events.on_written)
        return False

    async def close(self, *, gracefully: bool) -> None:
        self.closed.append(gracefully)

    def ack(self, tag: int, channel: int = 1) -> None:
        self.events.on_confirm(channel, tag, multiple=True, acked=True)

    def ack_alone(self, tag: int, channel: int = 1) -> None:
        self.events.on_confirm(channel, tag, multiple=False, acked=True)

    def nack(self, tag: int, channel: int = 1) -> None:
        self.events.on_confirm(channel, tag, multiple=False, acked=False)


class ScriptedConnector:
    """Gives what the test lines up: an error, or a wire; of two hosts in turn."""

    home = "h:1"

    def __init__(self, *fates: Exception | None) -> None:
        self.fates = list(fates)
        self.wires: list[ScriptedWire] = []
        self.attempts: list[float] = []
        self.doubted: list[str] = []
        self.trusted: list[str] = []

    def silence(self, seconds: float) -> str:
        return f"h:{2 - len(self.attempts) % 2} said nothing for {seconds:g} s"

    def doubt(self, host: str) -> None:
        self.doubted.append(host)

    def trust(self, host: str) -> None:
        self.trusted.append(host)

    async def connect(self, events: WireEvents, host: str | None = None) -> ScriptedWire:
        host = host or f"h:{1 + len(self.attempts) % 2}"
        self.attempts.append(round(asyncio.get_running_loop().time(), 3))
        fate = self.fates.pop(0) if self.fates else None
        if fate is not None:
            raise fate
        self.wires.append(ScriptedWire(events, host))
        return self.wires[-1]

    @property
    def wire(self) -> ScriptedWire:
        return self.wires[-1]


class Stage:
    """A lane, its connector and one recipient."""

    def __init__(self, *fates: Exception | None, window: int = 200, size: int = 10**7, limits: Limits = LIMITS) -> None:
        self.connector = ScriptedConnector(*fates)
        self.lane = PublishLane(
            "orders",
            self.connector,
            window_events=window,
            window_bytes=size,
            limits=limits,
            backoff=0.2,
            backoff_limit=2.0,
        )
        self.recorder = Recorder(ADDRESS, PARTITION)

    @property
    def wire(self) -> ScriptedWire:
        return self.connector.wire

    @asynccontextmanager
    async def running(self, *, is_proven: bool = False) -> AsyncIterator[None]:
        """Run the lane; `is_proven` if its channel has had an ack."""
        task = asyncio.create_task(self.lane.run())
        await asyncio.sleep(0.01)
        if is_proven:
            assert self.lane._session is not None
            for channel in self.lane._session._channels:
                channel.is_proven = True
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def publish(self, count: int, size: int = 10) -> "asyncio.Task[None]":
        start = sum(len(batch.events) for batch in self.recorder.batches)
        made = [Event(n, 0, None, bytes(size), (), size) for n in range(start, start + count)]
        return asyncio.create_task(self.lane.publish([self.recorder.batch(made)]))


class Classes(Stage):
    """One lane, types of several classes that always have more to send, confirms after a fixed time."""

    def __init__(self, *, window: int, latency: float = 0.01) -> None:
        super().__init__(window=window)
        self.latency = latency
        self.recorders: list[Recorder] = []
        self._told = 0

    async def send(self, rank: int, want: int) -> None:
        recorder = Recorder(ADDRESS, Partition(f"t{len(self.recorders)}", 0), rank=rank)
        self.recorders.append(recorder)
        event = Event(0, 0, None, b"x", (), 1)
        while True:
            await self.lane.publish([recorder.batch([event] * want)])

    async def confirm(self) -> None:
        """Confirm everything written, `latency` later."""
        loop = asyncio.get_running_loop()
        while True:
            sent, self._told = self.wire.sent[self._told :], len(self.wire.sent)
            for one in sent:
                last = one.events.first_tag + one.events.end - one.events.start - 1
                loop.call_later(self.latency, self.wire.ack, last)
            await asyncio.sleep(0.0005)

    async def shares(self, seconds: float, **wants: int) -> list[float]:
        """Return which share of all each class has of what was written; `p0=200` is one type of the top class."""
        async with self.running():
            senders = [asyncio.create_task(self.send(int(name[1]), want)) for name, want in wants.items()]
            senders.append(asyncio.create_task(self.confirm()))
            await asyncio.sleep(seconds)
            for sender in senders:
                sender.cancel()
            await asyncio.gather(*senders, return_exceptions=True)
        written = {rank: sum(r.written for r in self.recorders if r.rank == rank) for rank in range(3)}
        return [count / sum(written.values()) for count in written.values()]


Test = Callable[..., Coroutine[Any, Any, None]]


def in_virtual_time(test: Test) -> Callable[..., None]:
    @wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        virtual_time.run(test(*arguments, **named))

    del run.__wrapped__  # type: ignore[attr-defined]
    return run


def out_of_reach() -> BrokerError:
    return BrokerError("h:1: connection refused")


@in_virtual_time
async def test_attempts_back_off_to_the_limit_and_begin_anew_after_a_connection_that_lasted() -> None:
    stage = Stage(*[out_of_reach() for _ in range(6)])
    async with stage.running():
        await asyncio.sleep(10)
        assert stage.connector.attempts == [0.0, 0.2, 0.6, 1.4, 3.0, 5.0, 7.0]
        stage.connector.fates = [out_of_reach(), None]
        await asyncio.sleep(10)
        stage.wire.events.on_lost("reset", refused=False)
        await asyncio.sleep(1)
        again = [round(attempt - stage.connector.attempts[7], 2) for attempt in stage.connector.attempts[7:]]
        assert again == [0.0, 0.2]


@in_virtual_time
async def test_a_connection_that_never_lasts_is_not_tried_without_pause() -> None:
    stage = Stage()
    async with stage.running():
        for _ in range(200):
            if not stage.wire.closed:
                stage.wire.events.on_lost("reset", refused=False)
            await asyncio.sleep(0.05)
        assert len(stage.connector.attempts) < 12


@in_virtual_time
async def test_each_change_of_state_is_said_once() -> None:
    stage = Stage(*[out_of_reach() for _ in range(4)])
    with structlog.testing.capture_logs() as said:
        async with stage.running():
            await asyncio.sleep(5)
            stage.wire.blocked = True
            await asyncio.sleep(1)
            stage.wire.blocked = False
            await asyncio.sleep(1)
            stage.connector.fates = [RefusedLoginError("h:1 refuses"), RefusedLoginError("h:1 refuses"), None]
            stage.wire.events.on_lost("reset", refused=False)
            await asyncio.sleep(5)
    assert [(entry["event"], entry.get("state"), entry.get("why")) for entry in said] == [
        ("lane_state", "lost", "h:1: connection refused"),
        ("lane_state", "open", None),
        ("lane_state", "blocked", "RabbitMQ has an alarm, of memory or disk"),
        ("lane_state", "open", None),
        ("lane_state", "lost", "reset"),
        ("lane_unreachable", None, "h:1 refuses"),
        ("lane_state", "open", None),
    ]
    assert {entry["route"] for entry in said} == {"orders"}


@asynccontextmanager
async def away(*fates: Exception | None) -> AsyncIterator[Stage]:
    """A lane that found its home host absent; the fates are those of its attempts to get back."""
    stage = Stage(out_of_reach(), None, *fates)
    async with stage.running():
        await asyncio.sleep(1)
        assert stage.wire.host == "h:2"
        yield stage


async def whole_moves(stage: Stage) -> set[LaneState]:
    """Let a move begin and end; return the states that the lane shows meanwhile."""
    states = set()
    for _ in range(6500):
        await asyncio.sleep(0.01)
        states.add(stage.lane.state)
    return states


@in_virtual_time
async def test_a_lane_goes_home_without_being_lost_when_its_host_takes_connections_again() -> None:
    with structlog.testing.capture_logs() as said:
        async with away() as stage:
            assert await whole_moves(stage) == {LaneState.OPEN}
            assert [wire.host for wire in stage.connector.wires] == ["h:2", "h:1"]
            assert [wire.closed for wire in stage.connector.wires] == [[True], []]
            await stage.publish(2)
            stage.wire.ack(2)
            await asyncio.sleep(0.1)
            assert stage.recorder.count(Outcome.CONFIRMED) == 2
            await asyncio.sleep(200)
            assert len(stage.connector.attempts) == 3, "home is where it stays"
    assert ("lane_moved", "h:1") in [(entry["event"], entry.get("host")) for entry in said]


@in_virtual_time
async def test_nothing_is_open_on_two_connections_when_events_are_in_flight_as_a_lane_goes_home() -> None:
    async with away() as stage:
        old = stage.wire
        await asyncio.sleep(58.5)
        await stage.publish(3)
        await asyncio.sleep(0.8)
        later = stage.publish(2)
        await asyncio.sleep(0.5)
        assert [wire.host for wire in stage.connector.wires] == ["h:2", "h:1"]
        assert (len(old.sent), stage.wire.sent, old.closed) == (1, [], [])
        old.ack(3)
        await later
        assert (len(old.sent), len(stage.wire.sent)) == (1, 1)
        stage.wire.ack(2)
        await asyncio.sleep(0.1)
        assert (stage.recorder.count(Outcome.CONFIRMED), stage.lane.in_flight) == (5, 0)


@in_virtual_time
async def test_a_lane_stays_and_tries_again_later_when_a_confirm_keeps_it_from_going_home() -> None:
    async with away() as stage:
        old = stage.wire
        await asyncio.sleep(58.5)
        await stage.publish(1)
        await asyncio.sleep(1)
        later = stage.publish(1)
        await asyncio.sleep(1.5)
        assert stage.wire.closed == [True]
        assert (later.done(), len(old.sent)) == (True, 2), "it writes again"
        old.ack(2)
        await asyncio.sleep(62)
        assert [wire.closed for wire in stage.connector.wires] == [[True], [True], []]


@in_virtual_time
async def test_a_lane_stays_when_its_home_host_is_absent_or_refuses_it_or_leaves_again() -> None:
    async with away(out_of_reach(), RefusedLoginError("h:1 refuses"), None) as stage:
        old = stage.wire
        await asyncio.sleep(150)
        assert len(stage.connector.attempts) == 4
        await stage.publish(1)
        await others_confirmed(old, stage, 29, first=2)
        await asyncio.sleep(0.5)
        stage.wire.events.on_lost("reset", refused=False)
        old.ack(1)
        await asyncio.sleep(1)
        assert stage.lane.state is LaneState.OPEN
        assert old.closed == []


@in_virtual_time
async def test_no_connection_is_left_open_when_a_lane_ends_as_it_goes_home() -> None:
    async with away() as stage:
        await asyncio.sleep(58.5)
        await stage.publish(1)
        await asyncio.sleep(1)
        assert len(stage.connector.wires) == 2
    assert all(wire.closed for wire in stage.connector.wires)
    assert stage.recorder.count(Outcome.UNKNOWN) == 1


@in_virtual_time
async def test_run_raises_when_the_first_login_is_refused() -> None:
    stage = Stage(out_of_reach(), RefusedLoginError("h:1 refuses broker.username 'x'"))
    with pytest.raises(RefusedLoginError):
        await stage.lane.run()


@in_virtual_time
async def test_run_raises_what_a_recipient_raises() -> None:
    stage = Stage()

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    stage.recorder.on_end = fail
    task = asyncio.create_task(stage.lane.run())
    await asyncio.sleep(0.01)
    await stage.publish(3)
    stage.wire.ack(3)
    with pytest.raises(ZeroDivisionError):
        await task
    assert stage.wire.closed == [True]


@in_virtual_time
async def test_everything_open_is_unknown_and_the_wire_cut_when_no_confirm_comes_in_time() -> None:
    stage = Stage()
    async with stage.running():
        await asyncio.sleep(11)
        await stage.publish(3)
        stage.wire.ack(1)
        await asyncio.sleep(4.5)
        assert stage.lane.in_flight == 2
        assert 4.4 < stage.lane.oldest(asyncio.get_running_loop().time()) < 4.6
        await asyncio.sleep(0.7)
        assert [end.outcome for end in stage.recorder.ends] == [Outcome.CONFIRMED, Outcome.UNKNOWN, Outcome.UNKNOWN]
        assert stage.connector.wires[0].closed == [False]
        stage.connector.wires[0].ack(3)
        await asyncio.sleep(0.1)
        assert (len(stage.recorder.ends), stage.lane.in_flight, stage.lane.oldest(99.0)) == (3, 0, 0.0)


@in_virtual_time
async def test_a_confirm_is_awaited_as_long_as_what_was_written_is_on_its_way_and_moves() -> None:
    stage = Stage()
    async with stage.running():
        wire = stage.wire
        wire.unsent = 20 * 16_384
        await stage.publish(1, size=wire.unsent)
        while wire.unsent:
            await asyncio.sleep(1.5)
            wire.unsent -= 16_384
        await asyncio.sleep(0.1)
        now = asyncio.get_running_loop().time()
        assert stage.lane.unanswered(now) <= 0.1
        assert stage.lane.oldest(now) > 20
        await asyncio.sleep(4.5)
        assert not stage.recorder.ends
        await asyncio.sleep(1)
        assert [end.outcome for end in stage.recorder.ends] == [Outcome.UNKNOWN]


@in_virtual_time
async def test_a_confirm_is_not_awaited_for_longer_when_nothing_of_what_is_on_its_way_moves() -> None:
    stage = Stage()
    async with stage.running():
        stage.wire.unsent = 20 * 16_384
        await stage.publish(1, size=stage.wire.unsent)
        await asyncio.sleep(2.2)
        assert [end.outcome for end in stage.recorder.ends] == [Outcome.UNKNOWN]


@in_virtual_time
async def test_patience_begins_anew_when_the_broker_unblocks() -> None:
    stage = Stage()
    async with stage.running():
        stage.wire.drains = False
        await stage.publish(3)
        await asyncio.sleep(5)
        stage.wire.blocked = True
        await asyncio.sleep(100)
        assert stage.lane.state is LaneState.BLOCKED
        stage.wire.blocked = False
        await asyncio.sleep(9)
        assert stage.lane.state is LaneState.OPEN
        await asyncio.sleep(2)
        assert stage.recorder.count(Outcome.UNKNOWN) == 3


@in_virtual_time
async def test_a_connection_is_kept_when_the_process_itself_stood_still_and_has_not_read_the_confirms_yet() -> None:
    stage = Stage()
    async with stage.running():
        loop: Any = asyncio.get_running_loop()
        for _ in range(2):  # on a young channel, and on an old one
            stage.publish(3)
            await asyncio.sleep(1)
            loop._pass(60.0)
            loop.call_later(0.01, stage.wire.ack, 3 * (1 + stage.recorder.count(Outcome.CONFIRMED) // 3))
            await asyncio.sleep(15)
        assert len(stage.connector.wires) == 1
        assert stage.recorder.count(Outcome.CONFIRMED) == 6


@in_virtual_time
async def test_the_connection_is_given_up_when_a_piece_does_not_leave() -> None:
    stage = Stage()
    async with stage.running():
        stage.wire.drains = False
        await stage.publish(1)
        await asyncio.sleep(10.2)
        assert stage.recorder.count(Outcome.UNKNOWN) == 1
        assert len(stage.connector.wires) == 2


@in_virtual_time
async def test_the_next_piece_waits_until_the_last_has_left() -> None:
    stage = Stage(window=1000)
    async with stage.running(is_proven=True):
        stage.wire.drains = False
        publishing = stage.publish(1000, size=300)
        for pieces in range(1, 5):
            await asyncio.sleep(1)
            assert len(stage.wire.pieces) == pieces
            assert len(stage.wire.pieces[-1]) <= PIECE_BYTES
            stage.wire.events.on_written()
        assert not publishing.done()
        stage.wire.drains = True
        stage.wire.events.on_written()
        await publishing
        assert stage.recorder.written == 1000


@in_virtual_time
async def test_small_batches_of_many_callers_leave_as_one_piece_behind_the_first() -> None:
    stage = Stage()
    async with stage.running(is_proven=True):
        await asyncio.gather(*(stage.publish(2) for _ in range(50)))
        assert len(stage.wire.pieces) == 2
        assert [(sent.events.start, sent.events.end) for sent in stage.wire.sent] == [(0, 2)] * 50


@in_virtual_time
async def test_an_event_leaves_in_the_step_that_brings_it_while_the_window_is_roomy() -> None:
    stage = Stage(window=200)
    async with stage.running(is_proven=True):
        await stage.publish(49)
        for is_written in (True, False):  # the fiftieth; then a quarter of the window is in flight
            await asyncio.sleep(0.01)
            publishing = stage.lane.publish([stage.recorder.batch([Event(0, 0, None, b"x", (), 1)])])
            if is_written:
                with pytest.raises(StopIteration):
                    publishing.send(None)
            else:
                publishing.send(None)
                publishing.close()
        assert stage.recorder.written == 50


@in_virtual_time
async def test_one_event_a_millisecond_leaves_at_once_when_many_come_together() -> None:
    stage = Stage(window=200)
    async with stage.running(is_proven=True):
        left = 0
        for _ in range(20):
            publishing = stage.lane.publish([stage.recorder.batch([Event(0, 0, None, b"x", (), 1)])])
            try:
                publishing.send(None)
            except StopIteration:
                left += 1
            publishing.close()
            stage.wire.events.on_written()
            await asyncio.sleep(0.00025)
        assert left == 5


@in_virtual_time
async def test_nothing_leaves_at_once_when_somebody_waits_for_a_turn() -> None:
    stage = Stage(window=200)
    async with stage.running(is_proven=True):
        first = stage.publish(100)
        await asyncio.sleep(0)
        publishing = stage.lane.publish([stage.recorder.batch([Event(0, 0, None, b"x", (), 1)])])
        assert publishing.send(None) is not None
        publishing.close()
        await first
        assert stage.recorder.written == 100


@in_virtual_time
async def test_a_large_event_leaves_in_pieces_before_anything_else() -> None:
    stage = Stage()
    async with stage.running():
        stage.wire.drains = False
        await asyncio.gather(stage.publish(1, size=200_000), asyncio.sleep(0.1))
        small = stage.publish(1)
        while not small.done():
            stage.wire.events.on_written()
            await asyncio.sleep(0.1)
        *large, last = stage.wire.pieces
        assert [len(piece) > PIECE_BYTES // 10 for piece in large] == [True] * 4
        assert all(len(piece) <= PIECE_BYTES for piece in large)
        assert len(last) < 1000
        bodies = b"".join(
            frame.value for _, _, frame in frames_of(b"".join(stage.wire.pieces)) if frame.name == "ContentBody"
        )
        assert len(bodies) == 200_010


@in_virtual_time
async def test_the_frames_of_a_large_event_stand_together_when_small_ones_come_with_it() -> None:
    stage = Stage()
    sizes = [5, 200_000, 5, 64_000, 5]
    events = [Event(at, 0, None, bytes(size), (), size) for at, size in enumerate(sizes)]
    async with stage.running(is_proven=True):
        await stage.lane.publish([stage.recorder.batch(events)])
        frames = [frame for _, _, frame in frames_of(b"".join(stage.wire.pieces))]
        whole = [frame.body_size for frame in frames if frame.name == "ContentHeader"]
        assert whole[-len(sizes) :] == sizes
        left = 0
        for frame in frames:
            assert (frame.name == "ContentBody") == (left > 0)
            left = frame.body_size if frame.name == "ContentHeader" else left - len(getattr(frame, "value", b""))
        assert left == 0


@pytest.mark.parametrize("size", [70_000, 200_000])
def test_a_message_is_ended_and_none_begun_before_the_broker_is_answered_when_its_channel_closes(size: int) -> None:
    @in_virtual_time
    async def story() -> None:
        stage = Stage()
        async with stage.running():
            stage.wire.drains = False
            stage.publish(2, size=size)
            await asyncio.sleep(0.1)
            rest = stage.wire.events.on_channel_closed(1, "NOT_FOUND")
            assert rest is not None
            while not rest.done():
                stage.wire.events.on_written()
                await asyncio.sleep(0)
            frames = [frame for _, channel, frame in frames_of(b"".join(stage.wire.pieces)) if channel == 1]
            assert [frame.body_size for frame in frames if frame.name == "ContentHeader"] == [size]
            assert sum(len(frame.value) for frame in frames if frame.name == "ContentBody") == size

    story()


@in_virtual_time
async def test_the_broker_is_answered_at_once_when_no_message_has_begun_on_the_channel_that_it_closes() -> None:
    stage = Stage()
    async with stage.running():
        await stage.publish(2)
        assert stage.wire.events.on_channel_closed(1, "NOT_FOUND") is None


@in_virtual_time
async def test_nobody_waits_for_the_rest_of_a_message_when_the_connection_is_lost_meanwhile() -> None:
    stage = Stage()
    async with stage.running():
        stage.wire.drains = False
        stage.publish(1, size=200_000)
        await asyncio.sleep(0.1)
        rest = stage.wire.events.on_channel_closed(1, "NOT_FOUND")
        stage.wire.events.on_lost("reset", refused=False)
        assert rest is not None
        assert rest.done()


@in_virtual_time
async def test_a_lone_event_is_not_blamed_when_the_connection_may_have_ended_over_a_channel_that_was_closed() -> None:
    stage = Stage()
    other = Recorder(ADDRESS, PARTITION._replace(topic="other"))
    async with stage.running():
        await stage.publish(1)
        stage.wire.events.on_channel_closed(1, "PRECONDITION_FAILED")
        await asyncio.sleep(0.1)
        await stage.publish(1)  # of a suspect, on the second channel
        main = max(sent.channel for sent in stage.wire.sent) - 1
        await stage.lane.publish([other.batch([Event(n, 0, None, b"x", (), 1) for n in range(2)])])
        stage.wire.events.on_channel_closed(main, "PRECONDITION_FAILED")
        stage.wire.events.on_lost("505 UNEXPECTED_FRAME", refused=True)
        await asyncio.sleep(2)
        assert [end.outcome for end in stage.recorder.ends[1:]] == [Outcome.UNKNOWN]


@in_virtual_time
async def test_what_is_longer_than_the_broker_takes_is_found_before_it_is_written_once_it_has_said_so() -> None:
    stage = Stage()
    async with stage.running():
        await stage.publish(1, size=2_000)
        stage.wire.events.on_channel_closed(
            1, "PRECONDITION_FAILED - message size 2000 is larger than configured max size 1000"
        )
        await asyncio.sleep(1)
        assert [end.outcome for end in stage.recorder.ends] == [Outcome.UNKNOWN]
        before = len(stage.wire.sent)
        await stage.publish(1, size=1_001)
        assert len(stage.wire.sent) == before
        assert (stage.recorder.ends[-1].outcome, stage.recorder.ends[-1].reason) == (
            Outcome.UNDELIVERABLE,
            Reason.TOO_LARGE,
        )
        stage.publish(1, size=1_000)
        await asyncio.sleep(1)
        assert len(stage.wire.sent) == before + 1


@in_virtual_time
async def test_writing_goes_on_when_the_wire_has_room_again() -> None:
    stage = Stage()
    async with stage.running():
        stage.wire.writable = False
        publishing = stage.publish(1)
        await asyncio.sleep(1)
        assert not publishing.done()
        stage.wire.writable = True
        await asyncio.sleep(0.1)
        assert publishing.done()


@in_virtual_time
async def test_writes_stay_large_when_confirms_come_singly() -> None:
    stage = Stage(window=100)
    async with stage.running(is_proven=True):
        publishing = stage.publish(300)
        await asyncio.sleep(0.1)
        for tag in range(1, 201):
            stage.wire.ack(tag)
            await asyncio.sleep(0.01)
        await publishing
        assert [sent.events.end - sent.events.start for sent in stage.wire.sent] == [100] + [25] * 8


@in_virtual_time
async def test_confirms_of_one_turn_are_told_as_one_range() -> None:
    stage = Stage()
    calls: list[tuple[int, int]] = []
    stage.recorder.on_end = lambda _, start, end, __: calls.append((start, end))
    async with stage.running(is_proven=True):
        await stage.publish(100)
        for tag in range(1, 51):
            stage.wire.ack(tag)
        await asyncio.sleep(0.01)
        assert calls == [(0, 50)]


@in_virtual_time
async def test_only_a_lone_event_is_blamed_when_the_broker_closes_the_connection_over_what_was_written() -> None:
    stage = Stage()
    async with stage.running():
        await stage.publish(2)
        stage.wire.events.on_lost("501 FRAME_ERROR", refused=True)
        await asyncio.sleep(1)
        assert [(end.outcome, end.reason) for end in stage.recorder.ends] == [(Outcome.UNKNOWN, Reason.REFUSED)] * 2
        publishing = stage.publish(2)
        await asyncio.sleep(1)
        assert not publishing.done()
        stage.wire.events.on_lost("501 FRAME_ERROR", refused=True)
        await asyncio.sleep(2)
        last = stage.recorder.ends[-1]
        assert (last.outcome, last.reason, last.detail) == (
            Outcome.UNDELIVERABLE,
            Reason.REFUSED,
            "501 FRAME_ERROR",
        )
        assert len(stage.recorder.ends) == 3


@in_virtual_time
async def test_a_lone_event_is_blamed_when_the_broker_itself_fails_at_it_three_times() -> None:
    stage = Stage()
    async with stage.running():
        for _ in range(STRIKES):
            await stage.lane.publish([stage.recorder.batch([Event(0, 0, None, b"x", (), 1)])])
            await asyncio.sleep(2)
            stage.wire.events.on_lost("541 INTERNAL_ERROR", refused=False, failed=True)
            await asyncio.sleep(2)
        outcomes = [end.outcome for end in stage.recorder.ends]
        assert outcomes == [*[Outcome.UNKNOWN] * (STRIKES - 1), Outcome.UNDELIVERABLE]
        assert stage.recorder.ends[-1].reason is Reason.REFUSED


@in_virtual_time
async def test_nobody_is_blamed_when_the_broker_fails_with_several_events_open() -> None:
    stage = Stage()
    async with stage.running():
        await stage.publish(2)
        stage.wire.events.on_lost("541 INTERNAL_ERROR", refused=False, failed=True)
        await asyncio.sleep(4)
        assert [end.outcome for end in stage.recorder.ends] == [Outcome.UNKNOWN] * 2
        publishing = stage.publish(2)
        await asyncio.sleep(1)
        assert not publishing.done(), "they go one at a time"


@in_virtual_time
async def test_neither_suspects_nor_others_starve_when_the_window_is_one_event() -> None:
    stage = Stage(window=1)
    other = Recorder(ADDRESS, PARTITION._replace(topic="other"))
    async with stage.running():
        await stage.publish(1)
        stage.wire.events.on_channel_closed(1, "PRECONDITION_FAILED")
        await asyncio.sleep(0.1)
        suspects = stage.publish(20)
        made = [Event(n, 0, None, b"x", (), 1) for n in range(20)]
        others = asyncio.create_task(stage.lane.publish([other.batch(made)]))
        acked = 0
        for _ in range(41):
            await asyncio.sleep(0.1)
            for sent in stage.wire.sent[acked:]:
                stage.wire.ack(sent.events.first_tag, channel=sent.channel)
            acked = len(stage.wire.sent)
            assert stage.lane.in_flight <= 1
        await asyncio.gather(suspects, others)
        assert (stage.recorder.count(Outcome.CONFIRMED), other.count(Outcome.CONFIRMED)) == (20, 20)
        assert len({sent.channel for sent in stage.wire.sent}) == 3


@pytest.mark.parametrize(
    ("why", "is_exchange"),
    [
        ("NOT_FOUND - no exchange 'x' in vhost '/'", True),
        ("ACCESS_REFUSED - access to exchange 'x' in vhost '/' refused for user 'u'", True),
        ("ACCESS_REFUSED - write access to exchange 'x' in vhost '/' refused for user 'u'", True),
        ("ACCESS_REFUSED - write access to topic 'k' in exchange 'x' in vhost '/' refused for user 'u'", False),
        ("ACCESS_REFUSED - cannot publish to internal exchange 'x' in vhost '/'", True),
        (
            "ACCESS_REFUSED - access to topic 'access to exchange' in exchange 'x' in vhost '/' refused for user 'u'",
            False,
        ),
        ("PRECONDITION_FAILED - invalid expiration", False),
    ],
)
def test_events_go_together_again_after_one_success_when_the_exchange_was_to_blame(
    why: str, *, is_exchange: bool
) -> None:
    @in_virtual_time
    async def story() -> None:
        stage = Stage()
        async with stage.running():
            await stage.publish(1)
            stage.wire.events.on_channel_closed(1, why)
            await asyncio.sleep(0.1)
            before = len(stage.wire.sent)
            rest = stage.publish(10)
            await asyncio.sleep(0.1)
            (probe,) = stage.wire.sent[before:]
            stage.wire.ack(probe.events.first_tag, channel=probe.channel)
            await asyncio.sleep(0.1)
            assert rest.done() == is_exchange
            rest.cancel()

    story()


@in_virtual_time
async def test_an_event_larger_than_the_window_is_not_starved_by_suspects() -> None:
    stage = Stage(window=2, size=1_000)
    other = Recorder(ADDRESS, PARTITION._replace(topic="other"))
    async with stage.running():
        await stage.publish(1)
        stage.wire.events.on_channel_closed(1, "PRECONDITION_FAILED")
        await asyncio.sleep(0.1)
        suspects = stage.publish(500)
        large = Event(0, 0, None, bytes(5_000), (), 5_000)
        publishing = asyncio.create_task(stage.lane.publish([other.batch([large])]))
        acked = 0
        for _ in range(50):
            await asyncio.sleep(0.01)
            for sent in stage.wire.sent[acked:]:
                stage.wire.ack(sent.events.first_tag, channel=sent.channel)
            acked = len(stage.wire.sent)
        assert publishing.done()
        suspects.cancel()


@in_virtual_time
async def test_one_event_is_undeliverable_when_its_encoding_fails_unexpectedly() -> None:
    stage = Stage()
    async with stage.running():
        broken = Event(0, 2**63, None, b"x", (), 1)
        batch = stage.recorder.batch([broken, Event(1, 0, None, b"x", (), 1)])
        await stage.lane.publish([batch])
        (end,) = stage.recorder.ends
        assert (end.outcome, end.reason) == (Outcome.UNDELIVERABLE, Reason.INTERNAL)
        assert stage.lane.in_flight == 1


@in_virtual_time
async def test_a_recipient_that_withdraws_on_an_outcome_gets_nothing_more_written() -> None:
    stage = Stage(window=10)

    def withdraw(batch: Batch, *_: object) -> None:
        stage.lane.withdraw([batch])

    stage.recorder.on_end = withdraw
    async with stage.running():
        publishing = stage.publish(100)
        await asyncio.sleep(0.1)
        stage.wire.ack(5)
        await publishing
        assert stage.recorder.written == 10
        stage.wire.ack(10)
        await asyncio.sleep(0.1)
        assert len(stage.recorder.ends) == 10


@in_virtual_time
async def test_routes_that_share_a_lane_may_each_run_it() -> None:
    stage = Stage()
    async with stage.running(), stage.running():
        await asyncio.sleep(1)
        assert len(stage.connector.wires) == 1


async def others_confirmed(wire: ScriptedWire, stage: Stage, seconds: int, *, first: int) -> None:
    """Send an event every second, and confirm it a second later; `first` is the tag of the first."""
    for tag in range(first, first + seconds):
        stage.publish(1)
        await asyncio.sleep(1)
        wire.ack_alone(tag)


async def lost_after(stage: Stage, deadline: float = 40.0) -> float:
    """Return how many seconds from now the connection is given up."""
    began, wire = asyncio.get_running_loop().time(), stage.wire
    async with asyncio.timeout(deadline):
        while not wire.closed:  # noqa: ASYNC110 -- seen by looking
            await asyncio.sleep(0.05)
    return asyncio.get_running_loop().time() - began


@in_virtual_time
async def test_a_young_connection_is_given_up_early_when_one_event_is_never_confirmed_and_only_once() -> None:
    async def send_two(stage: Stage) -> None:
        stage.publish(1)
        stage.publish(1)
        await asyncio.sleep(0.02)
        stage.wire.events.on_confirm(1, 2, multiple=False, acked=True)

    stage = Stage()
    async with stage.running():
        await send_two(stage)
        assert 1.9 < await lost_after(stage) < 2.3
        await asyncio.sleep(0.5)
        assert stage.recorder.count(Outcome.UNKNOWN) == 1
        await send_two(stage)
        assert 29.3 < await lost_after(stage) < 30.3
        await asyncio.sleep(31)
        stage.wire.events.on_lost("reset", refused=False)
        await asyncio.sleep(0.5)
        await send_two(stage)
        assert 1.9 < await lost_after(stage) < 2.3


@in_virtual_time
async def test_few_events_are_risked_on_a_channel_until_its_first_ack() -> None:
    stage = Stage()
    async with stage.running():
        stage.publish(100)
        await asyncio.sleep(1)
        assert stage.lane.in_flight == UNPROVEN_EVENTS
        stage.wire.nack(1)
        await asyncio.sleep(0.01)
        assert stage.lane.in_flight == UNPROVEN_EVENTS, "a nack proves nothing"
        stage.wire.events.on_confirm(1, 2, multiple=False, acked=True)
        await asyncio.sleep(0.01)
        assert stage.lane.in_flight == 98
        stage.wire.events.on_lost("reset", refused=False)
        await asyncio.sleep(0.5)
        stage.publish(100)
        await asyncio.sleep(0.1)
        assert stage.lane.in_flight == UNPROVEN_EVENTS


@in_virtual_time
async def test_patience_doubles_after_three_when_one_connection_after_another_confirms_nothing() -> None:
    stage = Stage()
    async with stage.running():
        for seconds in (2, 2, 2, 4, 8, 16, 30, 30):
            stage.publish(1)
            assert seconds - 0.1 < await lost_after(stage) < seconds + 0.3
            await asyncio.sleep(0.5)
        stage.publish(1)
        await asyncio.sleep(0.02)
        stage.wire.ack(1)
        stage.wire.events.on_lost("reset", refused=False)
        await asyncio.sleep(0.5)
        stage.publish(1)
        assert 1.9 < await lost_after(stage) < 2.3


@in_virtual_time
async def test_a_connection_is_given_up_when_nothing_at_all_came_for_a_heartbeat_even_if_it_was_blocked() -> None:
    for blocked in (False, True):
        stage = Stage()
        async with stage.running():
            await asyncio.sleep(11)
            stage.wire.blocked = blocked
            stage.wire.silent_since = asyncio.get_running_loop().time()
            assert 5.9 < await lost_after(stage) < 6.3


@in_virtual_time
async def test_a_host_is_in_doubt_when_it_kept_the_lane_waiting_and_trusted_with_its_first_confirm() -> None:
    stage = Stage()
    connector = stage.connector
    async with stage.running():
        stage.publish(1)
        await lost_after(stage)
        assert (connector.doubted, connector.trusted) == ([connector.wires[0].host], [])
        await asyncio.sleep(0.5)
        for tag in (1, 2):
            stage.publish(1)
            await asyncio.sleep(0.1)
            stage.wire.ack(tag)
            await asyncio.sleep(0.1)
        assert connector.trusted == [stage.wire.host]
        await asyncio.sleep(11)
        stage.wire.silent_since = asyncio.get_running_loop().time()
        await lost_after(stage)
        assert connector.doubted == [wire.host for wire in connector.wires[:2]]


def test_silence_does_not_count_while_the_process_itself_stood_still() -> None:
    silence = Silence(0.0)
    assert silence.look(0.0, 0.05) == 0
    assert silence.look(0.0, 60.0) == LONGEST_LOOK
    assert silence.look(0.0, 60.2) == pytest.approx(LONGEST_LOOK + 0.2)
    assert silence.look(60.1, 60.3) == 0


@in_virtual_time
async def test_a_host_is_given_up_early_but_one_attempt_after_another_has_more_time_when_it_has_never_let_in() -> None:
    class Slow(ScriptedConnector):
        seconds = 5.0

        async def connect(self, events: WireEvents, host: str | None = None) -> ScriptedWire:
            wire = await super().connect(events, host)
            await asyncio.sleep(self.seconds)
            return wire

    stage = Stage()
    stage.connector = slow = Slow()
    stage.lane._connector = slow
    async with stage.running():
        while stage.lane.state is not LaneState.OPEN:  # noqa: ASYNC110 -- virtual time
            await asyncio.sleep(0.01)
        waits = [later - earlier for earlier, later in pairwise(slow.attempts)]
        assert [round(wait) for wait in waits] == [2, 4]
        slow.attempts.clear()
        stage.wire.events.on_lost("reset", refused=False)
        await asyncio.sleep(8)
        assert len(slow.attempts) == 1
        assert stage.lane.state is LaneState.OPEN


class Refusing(Stage):
    """A broker that nacks everything on some channels, and a type that sends what was nacked again."""

    def __init__(self) -> None:
        super().__init__()
        self.refused: set[int] = {1}
        self.wrote: dict[int, int] = {}
        """Events by channel."""
        self._seen = 0

    async def send(self, seconds: float, pause: float = 0.5) -> None:
        """Send an event every so often and have it confirmed."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while loop.time() < end:
            self.publish(1)
            await asyncio.sleep(0.01)
            for sent in self.wire.sent[self._seen :]:
                self.wrote[sent.channel] = self.wrote.get(sent.channel, 0) + 1
                tag = sent.events.first_tag
                self.wire.events.on_confirm(sent.channel, tag, multiple=False, acked=sent.channel not in self.refused)
            self._seen = len(self.wire.sent)
            await asyncio.sleep(pause - 0.01)


@in_virtual_time
async def test_a_channel_is_opened_anew_when_the_broker_refuses_all_on_it() -> None:
    stage = Refusing()
    async with stage.running():
        with structlog.testing.capture_logs() as said:
            await stage.send(3)
        assert stage.wire.channels_closed == [1]
        assert stage.recorder.count(Outcome.NACKED) == 3
        assert stage.recorder.count(Outcome.CONFIRMED) == 3
        assert stage.recorder.count(Outcome.UNKNOWN) == 0
        assert said == [
            {
                "event": "lane_channels_renewed",
                "log_level": "info",
                "route": "orders",
                "host": "h:1",
                "refused_for": 1.0,
                "effect": "what is sent is refused again and again, as by a full queue, and sent anew until taken",
            }
        ]


@in_virtual_time
async def test_a_warning_is_said_when_the_broker_refuses_all_for_long() -> None:
    stage = Refusing()
    stage.refused = set(range(1, 100))
    async with stage.running():
        with structlog.testing.capture_logs() as said:
            await stage.send(40)
        levels = [
            (one["log_level"], one["refused_for"] >= 5) for one in said if one["event"] == "lane_channels_renewed"
        ]
        assert ("warning", True) in levels
        assert ("info", True) not in levels


@in_virtual_time
async def test_what_is_open_is_waited_for_and_nothing_overtakes_it_when_a_channel_is_opened_anew() -> None:
    stage = Stage()
    async with stage.running():
        stage.publish(1)
        await asyncio.sleep(0.02)
        stage.wire.ack(1)
        await asyncio.sleep(11)
        stage.publish(1)
        for tag in (3, 4, 5):
            stage.publish(1)
            await asyncio.sleep(0.45)
            stage.wire.nack(tag)
        await asyncio.sleep(0.2)
        stage.publish(3)
        await asyncio.sleep(1)
        assert [sent.channel for sent in stage.wire.sent] == [1] * 5
        assert stage.wire.channels_closed == []
        stage.wire.nack(2)
        await asyncio.sleep(0.2)
        assert stage.wire.channels_closed == [1]
        assert [(sent.channel, sent.events.first_tag) for sent in stage.wire.sent[5:]] == [(2, 1)]


@in_virtual_time
async def test_pauses_grow_when_a_fresh_channel_is_refused_as_the_one_before() -> None:
    stage = Refusing()
    stage.refused = set(range(1, 1000))
    async with stage.running():
        await stage.send(10)
        assert 3 <= len(stage.wire.channels_closed) <= 5
        await stage.send(120)
        assert 15 <= len(stage.wire.channels_closed) <= 20
        assert stage.lane.state is LaneState.OPEN
        assert len(stage.connector.wires) == 1


@in_virtual_time
async def test_channels_stay_when_only_now_and_then_something_is_refused() -> None:
    stage = Refusing()
    async with stage.running():
        for _ in range(10):
            stage.refused = {1}
            await stage.send(0.4, 0.1)
            stage.refused = set()
            await stage.send(6, 0.1)
        assert stage.wire.channels_closed == []


@in_virtual_time
async def test_the_connection_is_given_up_when_what_is_open_on_a_refusing_channel_gets_no_answer() -> None:
    stage = Stage()
    async with stage.running():
        stage.publish(1)
        await asyncio.sleep(0.02)
        stage.wire.ack(1)
        await asyncio.sleep(15)
        stage.publish(2)
        await asyncio.sleep(0.02)
        stage.wire.nack(2)
        assert 2.9 < await lost_after(stage) < 3.3
        await asyncio.sleep(0.5)
        assert stage.recorder.count(Outcome.UNKNOWN) == 1


@in_virtual_time
async def test_the_whole_deadline_is_waited_when_the_connection_is_not_young_and_other_events_are_confirmed() -> None:
    stage = Stage()
    async with stage.running():
        await asyncio.sleep(11)
        stage.publish(1)
        others = asyncio.create_task(others_confirmed(stage.wire, stage, 40, first=2))
        assert 29.8 < await lost_after(stage) < 30.3
        others.cancel()


@in_virtual_time
async def test_an_old_connection_is_given_up_once_after_five_seconds_when_nothing_is_confirmed_any_more() -> None:
    stage = Stage()
    async with stage.running():
        await asyncio.sleep(11)
        stage.publish(1)
        assert 4.9 < await lost_after(stage) < 5.3
        await asyncio.sleep(11)
        stage.publish(1)
        assert await lost_after(stage) > 18


@in_virtual_time
async def test_patience_is_longer_when_slow_confirms_were_seen() -> None:
    stage = Stage()
    async with stage.running():
        stage.publish(1)
        await asyncio.sleep(0.8)
        stage.wire.ack(1)
        stage.publish(1)
        assert 3.9 < await lost_after(stage) < 4.3


@in_virtual_time
async def test_patience_is_five_seconds_at_most_when_a_confirm_took_far_longer() -> None:
    stage = Stage()
    async with stage.running():
        await asyncio.sleep(10.5)
        stage.publish(1)
        await others_confirmed(stage.wire, stage, 9, first=2)
        stage.wire.ack(1)
        stage.wire.events.on_lost("reset", refused=False)
        await asyncio.sleep(0.5)
        stage.publish(1)
        assert 4.9 < await lost_after(stage) < 5.3


def shares(window: int, **wants: int) -> list[float]:
    """Return the shares of the classes over some seconds."""

    async def live() -> list[float]:
        return await Classes(window=window).shares(2, **wants)

    return virtual_time.run(live())


@pytest.mark.parametrize("window", [1, 7, 200])
@pytest.mark.parametrize("want", [1, 200])
def test_the_lowest_class_has_its_trickle_of_the_window_when_the_top_class_fills_it(window: int, want: int) -> None:
    top, _, low = shares(window, p0=200, p2=want)
    assert top >= 0.97
    assert low >= 0.02


def test_no_class_starves_in_the_window_when_all_are_saturated() -> None:
    top, middle, low = shares(200, p0=200, p1=200, p2=200)
    assert top >= 0.94
    assert middle >= 0.02
    assert low >= 0.02


def test_a_class_between_has_its_share_of_the_window_when_it_leaves_between_two_requests() -> None:
    _, middle, low = shares(200, p0=200, p1=1, p2=200)
    assert middle >= 0.018
    assert low >= 0.02
