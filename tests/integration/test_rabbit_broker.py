"""What only a real RabbitMQ can show: restarts, rights, sizes, alarms with full sockets, logins, topology."""

import asyncio
import gc
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any
from uuid import uuid4

import aio_pika
import aiormq
import pytest
import structlog
from pydantic import SecretStr

from load.stack import Stack
from proxy.bridge.broker import Address, Found, LaneState, QueueKind, QueueState
from proxy.errors import BrokerError, RefusedLoginError, SettingsError
from proxy.model import Event, Outcome, Partition, Reason
from proxy.publish_lane import PublishLane
from proxy.publish_lane.quarantine import blames_exchange
from proxy.rabbitmq.broker import MOST_CONNECTIONS, RabbitBroker
from proxy.settings import BrokerSettings, BrokerTls, Limits, Route, RoutingKey
from proxy.settings.secrets import Secret
from proxy.steering.depths import Depths
from tests.contract.lane_adapters import Bench, RabbitWorld, until
from tests.support.recipient import Recorder

pytestmark = [pytest.mark.timeout(180), pytest.mark.each_rabbitmq]


@pytest.fixture
async def world(stack: Stack) -> AsyncIterator[RabbitWorld]:
    async with RabbitWorld.open(stack) as world:
        yield world


@pytest.fixture
def bench(world: RabbitWorld) -> Bench:
    return Bench(world)


@pytest.fixture(autouse=True)
def no_noise(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Whatever happens, neither the client nor asyncio may write to the terminal."""
    yield
    gc.collect()
    assert [record.getMessage() for record in caplog.records if record.name.startswith(("aio", "asyncio"))] == []


def made(start: int, end: int, size: int = 20) -> list[Event]:
    return [Event(number, 1_700_000_000_000, b"key", b"x" * size, (), size + 3) for number in range(start, end)]


@asynccontextmanager
async def running(lane: PublishLane) -> AsyncIterator[None]:
    task = asyncio.create_task(lane.run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@contextmanager
def user(stack: Stack, name: str, *rights: str) -> Iterator[None]:
    """Let a user in for a while; `rights` are the patterns for configure, write, read."""
    stack.rabbitmqctl("add_user", name, "secret")
    try:
        stack.rabbitmqctl("set_permissions", name, *rights)
        yield
    finally:
        stack.rabbitmqctl("delete_user", name)


@asynccontextmanager
async def far_away(port: int, *, delay: float) -> AsyncIterator[str]:
    """Let the broker seem far away: what it says arrives late, so that much is written before it can be heard."""

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seconds: float) -> None:
        with suppress(OSError):
            while data := await reader.read(65_536):
                await asyncio.sleep(seconds)
                writer.write(data)
                await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to_reader, to_writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(forward(reader, to_writer, 0), forward(to_reader, writer, delay))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def send_all(lane: PublishLane, recorder: Recorder, events: list[Event]) -> None:
    """Publish as a listener does: again whatever ended as unknown or nacked."""
    while events:
        batch = recorder.batch(events)
        before = len(recorder.ends)
        await lane.publish([batch])
        await recorder.all_ended(deadline=60)
        again = {end.position for end in recorder.ends[before:] if end.outcome in {Outcome.UNKNOWN, Outcome.NACKED}}
        events = [event for event in events if event.position in again]


@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])
async def test_nothing_confirmed_is_missing_when_the_broker_restarts(
    world: RabbitWorld, bench: Bench, stack: Stack, *, kill: bool
) -> None:
    queue = await world.queue()
    # RabbitMQ writes down with a delay that a queue exists: a kill right now would take the queue with it.
    stack.rabbitmqctl("eval", "mnesia:sync_log().")
    recorder = bench.recorder(queue)
    async with bench.lane(alone=False, in_flight_events=400) as lane:  # one that adapts is wider on a slow machine
        first = asyncio.create_task(lane.publish([recorder.batch(made(n, n + 500)) for n in range(0, 20_000, 500)]))
        await until(lambda: recorder.count(Outcome.CONFIRMED) > 2_000)
        await asyncio.to_thread(stack.stop_rabbitmq, kill=kill)
        await until(lambda: lane.state is LaneState.LOST)
        assert lane.in_flight == 0
        await asyncio.to_thread(stack.start_rabbitmq)
        await first
        await recorder.all_ended(deadline=60)
        unknown = set(recorder.positions(Outcome.UNKNOWN))
        assert 0 < len(unknown) <= 400
        await send_all(lane, recorder, [event for event in made(0, 20_000) if event.position in unknown])
    stored = await world.ids(queue)
    assert set(recorder.positions(Outcome.CONFIRMED)) == set(range(20_000))
    assert set(stored) == {f"{recorder.partition}-{number}" for number in range(20_000)}
    assert len(stored) <= 20_000 + len(unknown)


async def test_events_are_refused_one_by_one_when_the_user_may_not_write(
    world: RabbitWorld, bench: Bench, stack: Stack
) -> None:
    open_queue, closed_queue = await world.queue(), await world.queue()
    closed = await world.fan_out(closed_queue)
    name = f"user-{uuid4().hex[:8]}"
    with user(stack, name, "^$", "^(amq\\.default|lane\\..*)$", "^$"):
        settings = world.settings.model_copy(update={"username": name, "password": pw("secret")})
        lane = RabbitBroker(settings, {"r": Route(exchange="")}, Limits()).lane("r")
        good, bad = bench.recorder(open_queue), bench.recorder("any", exchange=closed)
        async with running(lane):
            await asyncio.gather(send_all(lane, good, made(0, 100)), send_all(lane, bad, made(0, 10)))
            assert set(good.positions(Outcome.CONFIRMED)) == set(range(100))
            refused = [end for end in bad.ends if end.outcome is Outcome.UNDELIVERABLE]
            assert {end.position for end in refused} == set(range(10))
            assert all("ACCESS_REFUSED" in end.detail for end in refused)


CLASSES = ["P1", "P2", "P3"]
OTHERS = "others"
"""Who publish into the queue without a priority, after P3 and before P2."""
AS_SENT = ["P3"] * 3 + [OTHERS] * 3 + ["P2"] * 3 + ["P1"] * 3


async def handed_out(
    world: RabbitWorld, rule: str | dict[str, int], arguments: dict[str, Any]
) -> tuple[list[str], list[int | None]]:
    """Send three events of each class to a new queue, the lowest first, as a route with this rule does.

    Return whose messages the queue hands out in its order, and the priorities that those of the classes have.
    """
    queue = f"lane.{uuid4().hex[:12]}"
    await world.channel.declare_queue(queue, durable=True, arguments=arguments)
    route = Route.model_validate({"exchange": "", "message_priority": rule})
    lane = RabbitBroker(world.settings, {"r": route}, Limits()).lane("r")
    async with running(lane):
        for below, name in enumerate(reversed(CLASSES)):
            address = Address(
                "", RoutingKey(constant=queue), "text/plain", priority=route.priority_of(name, below=below)
            )
            await send_all(lane, Recorder(address, Partition(name, 0)), made(0, 3))
            for _ in range(3 if name == "P3" else 0):
                message = aio_pika.Message(b"", headers={"tidegate-topic": OTHERS})
                await world.channel.default_exchange.publish(message, queue)
    channel = await world.channel.get_underlay_channel()  # as it came: aio-pika makes 0 of a priority that is absent
    came = [(await channel.basic_get(queue, no_ack=True)).header.properties for _ in AS_SENT]
    given = {properties.headers["tidegate-topic"]: properties.priority for properties in came}
    return [properties.headers["tidegate-topic"] for properties in came], [given[name] for name in CLASSES]


@pytest.mark.parametrize(
    ("rule", "given", "order"),
    [
        ("class", [2, 1, 0], ["P1"] * 3 + ["P2"] * 3 + ["P3"] * 3 + [OTHERS] * 3),
        ("none", [None] * 3, AS_SENT),
        ({"P1": 9}, [9, None, None], ["P1"] * 3 + AS_SENT[:-3]),
    ],
)
async def test_a_classic_queue_hands_out_the_classes_as_the_route_s_message_priority_says(
    world: RabbitWorld, rule: str | dict[str, int], given: list[int | None], order: list[str]
) -> None:
    assert await handed_out(world, rule, {"x-max-priority": 2}) == (order, given)
    assert await handed_out(world, rule, {}) == (AS_SENT, given)


@pytest.mark.parametrize(
    ("rule", "given", "strict"),
    [
        ("class", [2, 1, 0], [OTHERS] * 3 + ["P1"] * 3 + ["P2"] * 3 + ["P3"] * 3),
        ("none", [None] * 3, AS_SENT),
        ({"P1": 5}, [5, None, None], ["P1"] * 3 + AS_SENT[:-3]),
    ],
)
async def test_a_quorum_queue_hands_out_the_classes_as_its_version_knows_priorities(
    world: RabbitWorld, stack: Stack, rule: str | dict[str, int], given: list[int | None], strict: list[str]
) -> None:
    order, found = await handed_out(world, rule, {"x-queue-type": "quorum"})
    assert found == given
    version = tuple(int(part) for part in stack.versions["rabbitmq"].split(".")[:2])
    if version >= (4, 3):
        assert order == strict
    elif version >= (4, 0) and rule == {"P1": 5}:  # the only priority above 4: two of them for each other message
        assert [name for name in order if name != "P1"] == AS_SENT[:-3]
        assert order[:5].count("P1") == 3
    else:
        assert order == AS_SENT


async def test_an_event_without_a_priority_is_known_again_when_the_broker_returns_it(
    world: RabbitWorld, bench: Bench
) -> None:
    address = Address("", RoutingKey(constant=f"no.{uuid4().hex}"), "text/plain", priority=None)
    recorder = Recorder(address, Partition("returned", 0))
    async with bench.lane() as lane:
        await lane.publish([recorder.batch(made(0, 3))])
        await recorder.ended(3)
    assert [(end.position, end.reason) for end in recorder.ends] == [(n, Reason.UNROUTABLE) for n in range(3)]


@pytest.mark.parametrize(
    ("fault", "is_exchange"), [("missing", True), ("closed", True), ("internal", True), ("topic", False)]
)
async def test_the_exchange_or_the_event_is_blamed_as_the_broker_words_it_when_a_channel_is_closed(
    world: RabbitWorld, bench: Bench, stack: Stack, fault: str, *, is_exchange: bool
) -> None:
    exchange, name = f"{fault}.{uuid4().hex[:8]}", f"user-{uuid4().hex[:8]}"
    if fault != "missing":
        await world.channel.declare_exchange(exchange, "topic", internal=fault == "internal", auto_delete=False)
    with user(stack, name, "^$", "^(missing|internal|topic)", "^$"):
        stack.rabbitmqctl("set_topic_permissions", name, exchange, "^allowed$", "^$")
        settings = world.settings.model_copy(update={"username": name, "password": pw("secret")})
        lane = RabbitBroker(settings, {"r": Route(exchange="")}, Limits()).lane("r")
        recorder = bench.recorder("access to exchange", exchange=exchange)
        async with running(lane):
            await lane.publish([recorder.batch(made(0, 1))])
            await recorder.ended(1)
    (end,) = recorder.ends
    assert (end.outcome, end.reason) == (Outcome.UNDELIVERABLE, Reason.REFUSED)
    assert blames_exchange(end.detail) == is_exchange, end.detail
    await world.channel.exchange_delete(exchange)


@pytest.mark.parametrize("fault", ["exchange", "key"])
async def test_an_event_is_refused_and_others_pass_when_the_broker_fails_at_saying_what_is_wrong_with_it(
    world: RabbitWorld, bench: Bench, stack: Stack, fault: str
) -> None:
    """It cuts its text at so many characters, and of long names that are not ASCII that is too many bytes."""
    exchange, name, long = f"topic.{uuid4().hex[:8]}", f"user-{uuid4().hex[:8]}", "ä" * 120
    await world.channel.declare_exchange(exchange, "topic", auto_delete=False)
    queue = await world.queue()
    await (await world.channel.get_queue(queue)).bind(exchange, "allowed")
    with user(stack, name, "^$", ".*", "^$"):
        stack.rabbitmqctl("set_topic_permissions", name, exchange, "^allowed$", "^$")
        settings = world.settings.model_copy(update={"username": name, "password": pw("secret")})
        lane = RabbitBroker(settings, {"r": Route(exchange="")}, Limits()).lane("r")
        bad = bench.recorder(long, exchange=long if fault == "exchange" else exchange)
        good = bench.recorder("allowed", exchange=exchange)
        async with running(lane), asyncio.timeout(60):
            await asyncio.gather(send_all(lane, bad, made(0, 1)), send_all(lane, good, made(0, 20)))
    assert [end.reason for end in bad.ends if end.outcome is Outcome.UNDELIVERABLE] == [Reason.REFUSED]
    assert good.count(Outcome.CONFIRMED) == 20
    await world.channel.exchange_delete(exchange)


@pytest.mark.parametrize("name", ["k" * 255, "ä" * 120, "ä" * 127, "€" * 85])
async def test_a_queue_is_not_there_whatever_its_name(world: RabbitWorld, name: str) -> None:
    finder = RabbitBroker(world.settings, {"r": Route(exchange="")}, Limits()).finder()
    there = await world.queue()
    try:
        found = await finder.find([there, name, there], world.settings.hosts[0])
    finally:
        await finder.close()
    assert {queue: one.found for queue, one in found.items()} == {there: Found.THERE, name: Found.GONE}


async def test_what_is_larger_than_the_broker_takes_is_refused_alone_and_cut_as_a_dead_letter_over_one_connection(
    world: RabbitWorld, bench: Bench, stack: Stack
) -> None:
    queue, dead = await world.queue(), await world.queue()
    recorder, letters = bench.recorder(queue), bench.recorder(dead)
    letters.address = Address("", RoutingKey(constant=dead), "", lenient=True)
    large = {20, 25, 30, 35}
    before = stack.rabbitmqctl("eval", "application:get_env(rabbit, max_message_size).").strip()
    stack.rabbitmqctl("eval", "application:set_env(rabbit, max_message_size, 950000).")
    stack.rabbitmqctl("eval", "persistent_term:put(max_message_size, 950000).")
    try:
        with structlog.testing.capture_logs() as said:
            async with bench.lane() as lane:
                events = [
                    event
                    for number in range(40)
                    for event in made(number, number + 1, size=1_000_000 if number in large else 900_000)
                ]
                await send_all(lane, recorder, events)
                refused = [end for end in recorder.ends if end.outcome is Outcome.UNDELIVERABLE]
                assert {(end.position, end.reason) for end in refused} == {(at, Reason.TOO_LARGE) for at in large}
            async with bench.lane() as lane:
                await send_all(lane, letters, made(0, 1, size=1_000_000))
                assert letters.count(Outcome.CONFIRMED) == 1
        assert {one["state"] for one in said if one["event"] == "lane_state"} == {LaneState.OPEN.value}
    finally:
        size = before.removeprefix("{ok,").removesuffix("}") if before.startswith("{ok") else "134217728"
        stack.rabbitmqctl("eval", f"application:set_env(rabbit, max_message_size, {size}).")
        stack.rabbitmqctl("eval", f"persistent_term:put(max_message_size, {size}).")
    assert len(set(await world.ids(queue))) == 36
    letter = await (await world.channel.get_queue(dead)).get()
    assert (len(letter.body), letter.headers["tidegate-original-size"]) == (950_000, 1_000_000)


async def test_the_connection_lives_and_nothing_is_sent_twice_when_an_alarm_outlasts_full_sockets(
    world: RabbitWorld, stack: Stack
) -> None:
    queue = await world.queue()
    async with far_away(stack.amqp_port, delay=0.3) as host:
        await _outlast_an_alarm(world, world.settings.model_copy(update={"heartbeat": 1.0, "hosts": [host]}), queue)
    assert len(await world.ids(queue)) == 400


async def _outlast_an_alarm(world: RabbitWorld, settings: BrokerSettings, queue: str) -> None:
    route = Route(exchange="", in_flight_events=1000, in_flight_bytes=64 * 1024**2)
    lane = RabbitBroker(settings, {"r": route}, Limits(write_deadline=2.0, confirm_deadline=3.0)).lane("r")
    recorder = Bench(world).recorder(queue)
    async with running(lane):
        await send_all(lane, recorder, made(0, 1))
        await world.block()
        try:
            publishing = asyncio.create_task(lane.publish([recorder.batch(made(1, 400, size=100_000))]))
            await until(lambda: lane.state is LaneState.BLOCKED)
            await asyncio.sleep(20)
            assert lane.state is LaneState.BLOCKED
        finally:
            await world.unblock()
        await publishing
        await recorder.ended(400)
        assert recorder.count(Outcome.CONFIRMED) == 400


async def test_all_open_ends_as_unknown_and_flow_returns_when_the_broker_stops_answering(
    world: RabbitWorld, bench: Bench, stack: Stack
) -> None:
    queue = await world.queue()
    recorder = bench.recorder(queue)
    async with bench.lane(Limits(confirm_deadline=1.0, connect_deadline=1.0)) as lane:
        await send_all(lane, recorder, made(0, 10))
        (rabbitmq,) = stack.rabbitmq_roles
        stack.suspend(rabbitmq)
        try:
            await lane.publish([recorder.batch(made(10, 60))])
            assert lane.in_flight == 50
            await recorder.ended(60, deadline=3)
            assert lane.state is LaneState.LOST
            assert recorder.count(Outcome.UNKNOWN) == 50
        finally:
            stack.resume(rabbitmq)
        await send_all(lane, recorder, made(10, 60))
        assert set(recorder.positions(Outcome.CONFIRMED)) == set(range(60))


async def test_the_next_host_is_taken_when_one_is_dead(world: RabbitWorld, bench: Bench) -> None:
    hosts = ["127.0.0.1:1", *world.settings.hosts]
    lane = RabbitBroker(world.settings.model_copy(update={"hosts": hosts}), {"r": Route(exchange="")}, Limits()).lane(
        "r"
    )
    queue = await world.queue()
    recorder = bench.recorder(queue)
    async with running(lane):
        await until(lambda: lane.state is LaneState.OPEN, deadline=5)
        await send_all(lane, recorder, made(0, 10))
    assert recorder.positions(Outcome.CONFIRMED) == list(range(10))
    assert len(await world.ids(queue)) == 10


async def test_a_refused_login_is_named_when_it_never_worked(world: RabbitWorld) -> None:
    settings = world.settings.model_copy(update={"username": "nobody"})
    lane = RabbitBroker(settings, {"r": Route(exchange="")}, Limits()).lane("r")
    with pytest.raises(RefusedLoginError, match=r"127\.0\.0\.1:\d+ refuses broker.username 'nobody'"):
        await lane.run()


async def test_a_login_refused_later_is_waited_out(world: RabbitWorld, bench: Bench, stack: Stack) -> None:
    queue = await world.queue()
    recorder = bench.recorder(queue)
    name = f"user-{uuid4().hex[:8]}"
    with user(stack, name, ".*", ".*", ".*"):
        settings = world.settings.model_copy(update={"username": name, "password": pw("secret")})
        lane = RabbitBroker(settings, {"r": Route(exchange="")}, Limits()).lane("r")
        async with running(lane):
            await send_all(lane, recorder, made(0, 10))
            await asyncio.to_thread(stack.rabbitmqctl, "change_password", name, "other")
            await world.drop_connections()
            await until(lambda: lane.state is LaneState.LOST)
            await asyncio.sleep(1)
            assert lane.state is LaneState.LOST
            await asyncio.to_thread(stack.rabbitmqctl, "change_password", name, "secret")
            await send_all(lane, recorder, made(10, 20))
            assert recorder.count(Outcome.CONFIRMED) == 20


async def test_a_missing_virtual_host_is_named_and_waited_for(
    world: RabbitWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = world.settings.model_copy(update={"virtual_host": "nowhere"})
    lane = RabbitBroker(settings, {"r": Route(exchange="")}, Limits()).lane("r")
    async with running(lane):
        await until(lambda: lane.state is LaneState.LOST)
        await asyncio.sleep(0.5)
    said = capsys.readouterr().out
    assert said.count("broker.virtual_host 'nowhere'") == 1


async def test_the_monitor_answers_while_the_publishing_connection_is_blocked(world: RabbitWorld, bench: Bench) -> None:
    queue = await world.queue()
    recorder = bench.recorder(queue)
    monitor = world.monitor()
    async with bench.lane(alone=False) as lane:
        await send_all(lane, recorder, made(0, 10))
        await world.block()
        try:
            await lane.publish([recorder.batch(made(10, 11))])
            await until(lambda: lane.state is LaneState.BLOCKED)
            state = (await monitor.poll([queue]))[queue]
            assert state is not None
            assert state.ready == 10
        finally:
            await world.unblock()
    await monitor.close()


async def test_the_monitor_raises_in_time_and_recovers_when_the_broker_hangs(world: RabbitWorld, stack: Stack) -> None:
    queue = await world.queue()
    monitor = world.monitor()
    assert (await monitor.poll([queue]))[queue] is not None
    (rabbitmq,) = stack.rabbitmq_roles
    stack.suspend(rabbitmq)
    try:
        async with asyncio.timeout(1.5):
            with pytest.raises(BrokerError):
                await monitor.poll([queue])
    finally:
        stack.resume(rabbitmq)
    assert (await monitor.poll([queue]))[queue] is not None
    await world.drop_connections()
    with suppress(BrokerError):
        await monitor.poll([queue])
    assert (await monitor.poll([queue]))[queue] is not None
    await monitor.close()


async def test_many_queues_are_polled_at_once_with_consumers_and_gaps(world: RabbitWorld) -> None:
    queues = [await world.queue() for _ in range(30)]

    async def on_message(_: object) -> None: ...

    await (await world.channel.get_queue(queues[3])).consume(on_message, no_ack=True)
    monitor = world.monitor()
    asked = [*queues[:10], "missing.1", *queues[10:], "missing.2"]
    states = await monitor.poll(asked)
    assert [name for name, state in states.items() if state is None] == ["missing.1", "missing.2"]
    assert [state.consumers for name, state in states.items() if state] == [int(n == 3) for n in range(30)]
    await monitor.close()


async def test_a_queue_is_watched_when_its_name_is_one_that_the_client_refuses(world: RabbitWorld) -> None:
    name = f"Größe & Co. {uuid4().hex[:8]}"
    world.stack.rabbitmqctl(
        "eval",
        f'rabbit_amqqueue:declare(rabbit_misc:r(<<"/">>, queue, <<"{name}"/utf8>>), '
        'false, false, [], none, <<"test">>).',
    )
    monitor = world.monitor()
    assert await monitor.poll([name, f"{name}?"]) == {name: QueueState(0, 0, QueueKind.CLASSIC), f"{name}?": None}
    await monitor.close()


@pytest.mark.parametrize("kind", list(QueueKind))
async def test_the_kind_of_a_queue_is_known_and_nothing_is_taken_from_it(
    world: RabbitWorld, stack: Stack, kind: QueueKind
) -> None:
    name = f"kind.{uuid4().hex[:8]}"
    queue = await world.channel.declare_queue(name, durable=True, arguments={"x-queue-type": kind.value})
    for number in range(3):
        await world.channel.default_exchange.publish(aio_pika.Message(str(number).encode()), name)
    monitor, reader = world.monitor(), f"user-{uuid4().hex[:8]}"
    async with asyncio.timeout(10):
        while (state := (await monitor.poll([name]))[name]) != QueueState(3, 0, kind):
            assert state is not None
            assert (state.consumers, state.kind) == (0, kind)
    await monitor.close()
    if kind is not QueueKind.STREAM:
        taken = await queue.get(no_ack=True)
        assert (taken.body, taken.redelivered) == (b"0", False)
    with user(stack, reader, "", ".*", ""):
        settings = world.settings.model_copy(update={"username": reader, "password": Secret(SecretStr("secret"))})
        restricted = RabbitBroker(settings, {}, Limits()).monitor()
        state = (await restricted.poll([name]))[name]
        await restricted.close()
    assert state is not None
    assert state.kind is None
    await world.channel.queue_delete(name)


async def test_a_queue_in_use_is_seen_at_once_when_many_others_do_not_exist(world: RabbitWorld) -> None:
    queue = await world.queue()
    absent = [f"absent.{uuid4().hex[:8]}" for _ in range(200)]
    monitor = world.monitor()
    seen: dict[str, QueueState | None] = {}
    async with asyncio.timeout(20):
        while len(seen) < 201:
            states = await monitor.poll([*absent, queue] if queue not in seen else [*absent[::-1], queue])
            assert queue not in seen or states[queue] == QueueState(0, 0, QueueKind.CLASSIC)
            seen |= states
    assert {name for name, state in seen.items() if state} == {queue}
    await world.channel.declare_queue(absent[0], auto_delete=True)
    async with asyncio.timeout(5):
        while (await monitor.poll([queue, absent[0]]))[absent[0]] is None:
            pass
    await monitor.close()


async def test_used_queues_are_asked_for_again_and_again_and_idle_ones_in_turn_when_a_thousand_are_watched(
    world: RabbitWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"many.{uuid4().hex[:8]}" for _ in range(1000)]
    await asyncio.gather(*(world.channel.declare_queue(name) for name in names))
    for name in names[:20]:
        await world.channel.default_exchange.publish(aio_pika.Message(b"one"), name)
    settings, monitor, asked = world.settings, world.monitor(), Counter[str]()
    poll = monitor.poll

    async def counted(queues: Collection[str]) -> Mapping[str, QueueState | None]:
        asked.update(queues)
        return await poll(queues)

    monkeypatch.setattr(monitor, "poll", counted)
    depths = Depths(monitor, names, settings.depth_interval, settings.depth_polls)
    running = asyncio.create_task(depths.run())
    try:
        await until(lambda: len(depths.known()) == 1000)
        asked.clear()
        await until(lambda: min(asked[name] for name in names) >= 1)
        assert min(asked[name] for name in names[:20]) >= 5 * max(asked[name] for name in names[20:])
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await asyncio.gather(*(world.channel.queue_delete(name) for name in names))


async def test_exchange_queues_and_bindings_exist_when_a_route_declares_them(world: RabbitWorld, bench: Bench) -> None:
    names = [f"declared.{uuid4().hex[:8]}" for _ in range(3)]
    route = Route(exchange=names[0], queues=tuple(names[1:]), declare=True)
    lane = RabbitBroker(world.settings, {"r": route}, Limits()).lane("r")
    recorder = bench.recorder("any.key", exchange=names[0])
    async with running(lane):
        await send_all(lane, recorder, made(0, 10))
    assert recorder.count(Outcome.CONFIRMED) == 10
    assert [len(await world.ids(name)) for name in names[1:]] == [10, 10]


async def test_data_flows_and_the_refusal_is_said_when_a_queue_exists_with_other_arguments(
    world: RabbitWorld, bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    queue = await world.queue(bound=1000)
    route = Route(exchange=f"declared.{uuid4().hex[:8]}", queues=(queue,), declare=True)
    lane = RabbitBroker(world.settings, {"r": route}, Limits()).lane("r")
    recorder = bench.recorder(queue, exchange=route.exchange)
    said: list[str] = []

    def has_opened_again() -> bool:  # it may be open again before the command that dropped it has ended
        said.append(capsys.readouterr().out)
        return "".join(said).count("state=open") == 2

    async with running(lane):
        await send_all(lane, recorder, made(0, 10))
        await world.drop_connections()
        await until(has_opened_again)
    assert recorder.count(Outcome.CONFIRMED) == 10
    assert len(await world.ids(queue)) == 10, "it is bound as it is"
    assert "".join(said).count("declaration_refused") == 1


async def test_routes_share_sixteen_connections_when_there_are_more(
    world: RabbitWorld, bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    routes = {f"r{n}": Route(exchange="", in_flight_events=200 if n else 100) for n in range(20)}
    broker = RabbitBroker(world.settings, routes, Limits())
    lanes = [broker.lane(name) for name in routes]
    assert len(set(map(id, lanes))) == MOST_CONNECTIONS
    assert capsys.readouterr().out.count("routes_share_connections") == 1
    recorders = [bench.recorder(await world.queue()) for _ in range(2)]
    async with running(broker.lane("r0")), running(broker.lane("r16")):
        await asyncio.gather(
            send_all(broker.lane("r0"), recorders[0], made(0, 500)),
            send_all(broker.lane("r16"), recorders[1], made(0, 500)),
        )
    assert [recorder.count(Outcome.CONFIRMED) for recorder in recorders] == [500, 500]


async def test_key_headers_and_properties_arrive_as_the_mapping_says(world: RabbitWorld, bench: Bench) -> None:
    queue = await world.queue()
    recorder = bench.recorder(queue)
    headers = (
        ("trace", b"abc"),
        ("raw", b"\xff\x00"),
        ("none", None),
        ("dup", b"1"),
        ("dup", b"\xfe"),
        ("CC", b"nowhere"),
        ("x-delay", b"5"),
        ("Content-Type", b"a/b"),
    )
    full = Event("7:9", 1_700_000_000_123, b"\x00key", b"\x00body", headers, 60)
    tombstone = Event("8", None, None, None, (), 0)
    async with bench.lane() as lane:
        await send_all(lane, recorder, [full, tombstone])
    first, second = await world.messages(queue)
    assert (first.body, first.content_type, first.message_id) == (b"\x00body", "a/b", f"{recorder.partition}-7:9")
    assert first.delivery_mode == aio_pika.DeliveryMode.PERSISTENT
    assert first.timestamp is not None
    assert int(first.timestamp.timestamp()) == 1_700_000_000
    assert first.headers == {
        "tidegate-topic": recorder.partition.topic,
        "tidegate-partition": 0,
        "tidegate-position": "7:9",
        "tidegate-timestamp": 1_700_000_000_123,
        "tidegate-key": b"\x00key",
        "trace": "abc",
        "raw": b"\xff\x00",
        "none": None,
        "dup": ["1", b"\xfe"],
        "log.CC": "nowhere",
        "log.x-delay": "5",
    }
    assert (second.body, second.timestamp, second.content_type) == (b"", None, "text/plain")
    assert second.headers["tidegate-tombstone"] is True
    assert "tidegate-key" not in second.headers


async def test_nothing_piles_up_when_the_channel_closes_a_thousand_times(world: RabbitWorld, bench: Bench) -> None:
    recorder = bench.recorder("x", exchange="no-such-exchange")

    def alive() -> int:
        gc.collect()
        return sum(isinstance(thing, aiormq.Channel | asyncio.Task) for thing in gc.get_objects())

    async with bench.lane() as lane:
        await send_all(lane, recorder, made(0, 20))
        before = alive()
        await send_all(lane, recorder, made(20, 1020))
        assert recorder.count(Outcome.UNDELIVERABLE) == 1020
        assert alive() <= before + 10


def test_a_certificate_that_cannot_be_read_is_a_mistake_in_the_settings() -> None:
    settings = BrokerSettings(hosts=["127.0.0.1:1"], tls=BrokerTls(ca_file="/no/such/file.pem"))
    with pytest.raises(SettingsError, match=r"broker\.tls"):
        RabbitBroker(settings, {}, Limits())


def pw(text: str) -> Any:
    return BrokerSettings(hosts=["h:1"], password=text).password  # type: ignore[arg-type]
