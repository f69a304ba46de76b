"""The board on a real Kafka: everybody reads the same, whatever becomes of the topic, and a refusal says its remedy."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from uuid import uuid4

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from structlog.testing import capture_logs

from load.stack import Stack
from load.stack.kafka_settings import FORBIDDEN_PREFIX, USERS
from proxy.errors import LogError, RefusedLoginError
from proxy.kafka_log import board as board_module
from proxy.kafka_log import own_topic
from proxy.kafka_log.board import KafkaBoard
from proxy.kafka_log.protocol import Topic, topics
from proxy.model import Note
from proxy.settings import LogSettings
from tests.contract.log_adapters import DEADLINE, KafkaWorld, until

RESTART_SECONDS = 240
"""A Kafka alone on a busy machine takes up to a minute to be back."""

Make = Callable[..., KafkaBoard]


@pytest.fixture
async def world(stack: Stack) -> AsyncIterator[KafkaWorld]:
    async with KafkaWorld.open(stack.kafka) as world:
        yield world


@pytest.fixture
def group() -> str:
    return f"group-{uuid4().hex[:8]}"


@pytest.fixture
async def board(stack: Stack, group: str) -> AsyncIterator[Make]:
    """Make boards of one group; all are closed at the end."""
    made: list[KafkaBoard] = []

    def make(**settings: Any) -> KafkaBoard:
        chosen = {"hosts": [stack.kafka], "group": group, "metadata_age": 0.5} | settings
        made.append(KafkaBoard(LogSettings.model_validate(chosen)))
        return made[-1]

    yield make
    for one in made:
        await one.close()


def login(stack: Stack, user: str, password: str | None = None) -> dict[str, Any]:
    security = {"protocol": "SASL_PLAINTEXT", "username": user, "password": password or USERS[user]}
    return {"hosts": [stack.kafka_sasl], "security": security}


def notes(count: int, first: int = 0) -> list[Note]:
    return [Note(f"intervention/{number}", b"%d" % number) for number in range(first, first + count)]


async def pin(board: KafkaBoard, pinned: list[Note]) -> None:
    for note in pinned:
        await board.pin(*note)


async def read(board: KafkaBoard, count: int) -> list[Note]:
    """Return so many notes, which may take several looks."""
    found: list[Note] = []
    async with asyncio.timeout(DEADLINE):
        while len(found) < count:
            found += await board.news()
            await asyncio.sleep(0.02)
    return found


async def gone(world: KafkaWorld, board: KafkaBoard) -> None:
    """Delete the board and wait until Kafka no longer knows it."""
    await world.delete(board.topic)

    async def is_gone() -> bool:
        return board.topic not in await world.admin.list_topics()

    await until(is_gone)


async def created(board: KafkaBoard) -> None:
    """Create it; Kafka refuses for a moment after it was deleted."""

    async def is_created() -> bool:
        with contextlib.suppress(LogError):
            await board.create()
            return True
        return False

    await until(is_created)


async def test_two_boards_read_the_same_in_one_order_when_both_pin(board: Make) -> None:
    one, other = board(), board()
    await one.create()
    pinned = [*notes(3), Note("answer/0/häuser", None)]
    for number, note in enumerate(pinned):
        await (one, other)[number % 2].pin(*note)
    assert await read(one, 4) == await read(other, 4) == pinned
    assert await one.news() == []
    await pin(other, notes(1, first=3))
    assert await read(one, 1) == await read(other, 1) == notes(1, first=3)


async def test_the_board_has_what_the_design_says_when_a_command_creates_it_and_a_second_one_changes_nothing(
    board: Make, world: KafkaWorld
) -> None:
    one = board()
    assert await one.members() == []
    await asyncio.gather(one.create(), board().create())
    await pin(one, notes(1))
    await board().create()
    assert await read(one, 1) == notes(1)
    (answer,) = await world.admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, one.topic)])
    configs = {name: value for *_, entries in answer.resources for name, value, *_ in entries}
    assert configs["cleanup.policy"] == "compact,delete"
    assert configs["retention.ms"] == str(14 * 24 * 3600 * 1000)
    (told,) = await world.admin.describe_topics([one.topic])
    assert len(told["partitions"]) == 1


async def test_there_is_no_news_and_a_pin_says_so_when_there_is_no_board_and_one_made_later_is_noticed(
    board: Make, world: KafkaWorld
) -> None:
    one, command = board(), board()
    assert await one.news() == []
    with pytest.raises(LogError, match=rf"topic {one.topic} does not exist"):
        await one.pin("intervention/0", b"0")
    assert one.topic not in await world.admin.list_topics()
    await command.create()
    await pin(command, notes(2))
    assert await read(one, 2) == notes(2)


@pytest.mark.parametrize(("again", "has_ids"), [(1, True), (5, True), (1, False)])
async def test_a_board_is_read_from_its_beginning_when_it_was_deleted_and_made_anew(
    board: Make, world: KafkaWorld, again: int, has_ids: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(board_module, "LOOK_SECONDS", 0.5)
    if not has_ids:  # as brokers before 2.8

        def nameless(answer: Any) -> dict[str, Topic]:
            return {name: topic._replace(id="") for name, topic in topics(answer).items()}

        monkeypatch.setattr(own_topic, "topics", nameless)
    one, command = board(), board()
    await command.create()
    await pin(command, notes(3))
    assert await read(one, 3) == notes(3)
    await gone(world, command)
    await created(command)
    anew = notes(again, first=10)
    await pin(command, anew)
    found: list[Note] = []
    async with asyncio.timeout(DEADLINE):
        while found[-again:] != anew:  # perhaps the last of them come first, before it is known to be another board
            found += await read(one, 1)


async def test_a_reader_finds_none_and_then_the_new_ones_when_it_looks_while_the_board_is_deleted(
    board: Make, world: KafkaWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(board_module, "LOOK_SECONDS", 0.5)
    one, command = board(), board()
    await command.create()
    await pin(command, notes(1))
    assert await read(one, 1) == notes(1)
    await gone(world, command)
    assert await one.news() == []
    await created(command)
    await pin(command, notes(2, first=5))
    assert await read(one, 2) == notes(2, first=5)


async def test_what_is_kept_is_read_when_older_notes_are_gone_and_others_write_what_is_no_note(
    board: Make, world: KafkaWorld, stack: Stack
) -> None:
    one = board()
    await world.create(one.topic)  # by hand, and not compacted, which would refuse what has no key
    await pin(one, notes(4))
    await world.truncate(one.topic, 0, 2)
    async with (
        AIOKafkaProducer(
            bootstrap_servers=stack.kafka, transactional_id=f"gap-{uuid4()}", compression_type="gzip"
        ) as producer,
        producer.transaction(),
    ):
        await producer.send_and_wait(one.topic, b"no key", partition=0)
        await producer.send_and_wait(one.topic, b"packed", key=b"\xff", partition=0)
    await pin(one, notes(1, first=4))
    assert await read(board(), 4) == [*notes(2, first=2), Note("�", b"packed"), *notes(1, first=4)]


async def test_everything_is_read_at_one_look_when_it_takes_many_fetches(
    board: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = board()
    await one.create()
    pinned = [Note(f"intervention/{number}", bytes(300_000)) for number in range(4)]
    await pin(one, pinned)
    monkeypatch.setattr(own_topic, "_WISH", own_topic._WISH._replace(most_bytes=1000, partition_bytes=1000))
    assert await board().news() == pinned


async def test_nothing_is_passed_over_when_a_look_is_given_up_in_its_midst(
    board: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = board()
    await one.create()
    await pin(one, notes(3))
    monkeypatch.setattr(own_topic, "_WISH", own_topic._WISH._replace(most_bytes=1, partition_bytes=1))
    fetch, reader = own_topic.OwnTopic.fetch, board()

    async def fail_once(self: own_topic.OwnTopic, first: int) -> bytes:
        if first == 2:
            monkeypatch.setattr(own_topic.OwnTopic, "fetch", fetch)
            raise LogError("in the midst")
        return await fetch(self, first)

    monkeypatch.setattr(own_topic.OwnTopic, "fetch", fail_once)
    with pytest.raises(LogError):
        await reader.news()
    assert await reader.news() == notes(3)


async def test_every_member_of_the_group_is_named_with_its_host(
    board: Make, world: KafkaWorld, stack: Stack, group: str
) -> None:
    topic = f"orders.{uuid4().hex[:8]}"
    await world.create(topic)
    one = board()
    async with AIOKafkaConsumer(topic, bootstrap_servers=stack.kafka, group_id=group, client_id="replica") as consumer:

        async def is_in() -> bool:
            return len(await one.members()) == 1

        await until(is_in)
        (member,) = await one.members()
        assert member.id == consumer._coordinator.member_id
        assert member.host == "127.0.0.1"
    assert await one.members() == []


async def test_a_login_with_rights_does_all_and_one_without_is_told_which_it_needs(board: Make, stack: Stack) -> None:
    one, reader = board(**login(stack, "tidegate")), board(**login(stack, "reader"))
    await one.create()
    await pin(one, notes(1))
    assert await read(one, 1) == notes(1)
    assert await one.members() == []
    with pytest.raises(LogError, match=rf"no right to topic {one.topic}; grant it Read"):
        await reader.news()
    with pytest.raises(LogError, match=r"grant it Describe on the group"):
        await reader.members()
    with pytest.raises(LogError, match=rf"topic {one.topic}.* can't be created: .*a command needs Create, Read"):
        await reader.create()


async def test_a_login_is_told_that_it_needs_create_when_it_may_do_all_but_that(
    board: Make, world: KafkaWorld, stack: Stack, group: str
) -> None:
    one = board(**login(stack, "tidegate"), group=f"{FORBIDDEN_PREFIX}{group}")
    with pytest.raises(LogError, match=r"can't be created: this login has no right to topic \S+; grant it"):
        await one.create()
    assert one.topic not in await world.admin.list_topics()


async def test_a_refused_login_is_told_as_such_to_a_command_and_ends_no_replica(board: Make, stack: Stack) -> None:
    one = board(**login(stack, "tidegate", "wrong"))
    with pytest.raises(RefusedLoginError, match=r"refuses the login; see log\.security"):
        await one.create()
    for ask in (one.news, lambda: one.pin("a", None)):
        with pytest.raises(LogError, match=r"refuses the login"):
            await ask()


@pytest.mark.parametrize("group", ["orders of today", "g" * 249])
async def test_a_group_whose_name_makes_no_topic_has_a_board_all_the_same(board: Make, group: str) -> None:
    one = board(group=group)
    assert await one.news() == []
    await one.create()
    await pin(one, notes(1))
    assert await read(one, 1) == notes(1)


@pytest.mark.parametrize("is_silent", [True, False])
async def test_every_call_says_so_in_time_and_the_log_says_nothing_when_kafka_is_absent(
    board: Make, is_silent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_topic, "ANSWER_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server, capture_logs() as said:
        if not is_silent:
            server.shutdown(socket.SHUT_RDWR)  # listens no more, and keeps the port
        one = board(hosts=[f"127.0.0.1:{server.getsockname()[1]}"])
        calls: list[Callable[[], Awaitable[object]]] = [one.create, one.news, one.members, lambda: one.pin("a", b"b")]
        for call in calls:
            address = f"127.0.0.1:{server.getsockname()[1]}"
            with pytest.raises(LogError, match=rf"Kafka .*{address}.*does not answer|does not answer: {address}: .*\w"):
                await asyncio.wait_for(call(), 2)
    assert said == []


@pytest.mark.timeout(RESTART_SECONDS)
async def test_a_board_goes_on_where_it_was_when_kafka_was_away(board: Make, stack: Stack) -> None:
    one, other = board(), board()
    await one.create()
    await pin(one, notes(2))
    assert await read(one, 2) == notes(2)
    await asyncio.to_thread(stack.stop_kafka)
    try:
        with capture_logs() as said:
            for call in (one.news, other.members):
                with pytest.raises(LogError, match=r"Kafka .*does not answer"):
                    await call()
        assert said == []
    finally:
        await asyncio.to_thread(stack.start_kafka)

    async def is_pinned() -> bool:
        with contextlib.suppress(LogError):
            await one.pin(*notes(1, first=2)[0])
            return True
        return False

    await until(is_pinned)
    assert set(await read(one, 1)) == {*notes(1, first=2)}
