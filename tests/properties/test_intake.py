"""However bytes are cut into pieces, what tells of messages is told in order, and the client sees all the rest."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pamqp import commands, frame
from pamqp.body import ContentBody
from pamqp.header import ContentHeader
from pamqp.heartbeat import Heartbeat

from proxy.rabbitmq.intake import FIRST_BYTES, Intake
from proxy.simulation import virtual_time

TAKEN, OTHER, ASKED = 3, 4, 5
BEAT = frame.marshal(Heartbeat(), 0)


class Reader:
    """What the client would read."""

    def __init__(self) -> None:
        self.fed = b""
        self.is_at_end = False

    def feed_data(self, data: bytes) -> None:
        self.fed += data

    def feed_eof(self) -> None:
        self.is_at_end = True


class Told:
    """Remembers what is told."""

    def __init__(self) -> None:
        self.all: list[tuple[Any, ...]] = []

    def on_confirm(self, channel: int, tag: int, *, multiple: bool, acked: bool) -> None:
        self.all.append((channel, tag, multiple, acked))

    def on_return(self, channel: int, message_id: bytes, why: str) -> None:
        self.all.append((channel, message_id, why))

    def on_lost(self, why: str, *, refused: bool, failed: bool = False) -> None:
        self.all.append((why, refused or failed))


def returned(number: int, sizes: Sequence[int]) -> list[Any]:
    properties = commands.Basic.Properties(message_id=f"id-{number}")
    header = ContentHeader(0, sum(sizes), properties)
    return [commands.Basic.Return(312, "NO_ROUTE", "ex", "key"), header, *(ContentBody(bytes(n)) for n in sizes if n)]


confirms = st.builds(
    lambda tag, multiple, acked: (commands.Basic.Ack if acked else commands.Basic.Nack)(tag, multiple),
    st.integers(0, 2**63 - 1),
    st.booleans(),
    st.booleans(),
)
ours = st.one_of(
    confirms.map(lambda one: [one]), st.builds(returned, st.integers(0, 9), st.lists(st.integers(0, 5), max_size=3))
)
others = st.one_of(
    st.just((0, Heartbeat())),
    st.just((0, commands.Connection.Blocked("low on memory"))),
    st.just((OTHER, commands.Basic.Ack(1))),
    st.just((TAKEN, commands.Basic.CancelOk("tag"))),
)


def told_of(parts: Sequence[Any]) -> tuple[Any, ...]:
    if isinstance(parts[0], commands.Basic.Return):
        return TAKEN, parts[1].properties.message_id.encode(), "NO_ROUTE: exchange 'ex', routing key 'key'"
    return TAKEN, parts[0].delivery_tag, parts[0].multiple, isinstance(parts[0], commands.Basic.Ack)


def pieces(data: bytes, cuts: Sequence[int]) -> Iterator[bytes]:
    at = 0
    for size in cuts:
        yield data[at : at + size]
        at += size
    yield data[at:]


async def fed(data: bytes, cuts: Sequence[int] = (), *, takes: bool = True) -> tuple[Reader, Told, Intake]:
    reader, told = Reader(), Told()
    intake: Any = Intake(reader)
    intake.tell(told)
    if takes:
        intake.take(TAKEN)
    for piece in pieces(data, cuts):
        reader.feed_data(piece)
    return reader, told, intake


@given(st.lists(ours | others, max_size=20), st.lists(st.integers(0, 40), max_size=60))
def test_what_tells_of_messages_is_taken_in_order_and_the_rest_passed_on_however_bytes_come(
    sent: list[Any], cuts: list[int]
) -> None:
    data = passed = b""
    told: list[tuple[Any, ...]] = []
    for one in sent:
        if isinstance(one, tuple):
            data += frame.marshal(one[1], one[0])
            passed += frame.marshal(one[1], one[0])
        else:
            data += b"".join(frame.marshal(part, TAKEN) for part in one)
            told.append(told_of(one))
    reader, found, _ = virtual_time.run(fed(data, cuts))
    assert (reader.fed.replace(BEAT, b""), found.all) == (passed.replace(BEAT, b""), told)
    reader, found, _ = virtual_time.run(fed(data, cuts, takes=False))
    assert (reader.fed, found.all) == (data, [])


def declared(channel: int) -> st.SearchStrategy[tuple[int, commands.Queue.DeclareOk]]:
    names, counts = st.text("ab.-_", max_size=20), st.integers(0, 2**32 - 1)
    return st.tuples(st.just(channel), st.builds(commands.Queue.DeclareOk, names, counts, counts))


@given(st.lists(declared(ASKED) | declared(OTHER) | others, max_size=20), st.lists(st.integers(0, 40), max_size=60))
def test_what_a_channel_tells_of_queues_is_taken_in_order_and_the_rest_passed_on_however_bytes_come(
    sent: list[tuple[int, Any]], cuts: list[int]
) -> None:
    async def story() -> None:
        reader, told = Reader(), list[tuple[int, int]]()
        intake: Any = Intake(reader)
        intake.answer(ASKED, lambda messages, consumers: told.append((messages, consumers)))
        for piece in pieces(b"".join(frame.marshal(one, channel) for channel, one in sent), cuts):
            reader.feed_data(piece)
        kept = b"".join(frame.marshal(one, channel) for channel, one in sent if channel != ASKED)
        assert reader.fed.replace(BEAT, b"") == kept.replace(BEAT, b"")
        assert told == [(one.message_count, one.consumer_count) for channel, one in sent if channel == ASKED]
        intake.end(ASKED)
        last = frame.marshal(commands.Queue.DeclareOk("q", 1, 1), ASKED)
        reader.feed_data(last)
        assert reader.fed.endswith(last), "nobody asks any more"

    virtual_time.run(story())


@pytest.mark.parametrize(("at", "byte"), [(-1, 0), (11, 200), (7, 9)], ids=["end", "length of the name", "class"])
def test_the_client_sees_what_a_channel_tells_of_a_queue_when_it_is_not_whole(at: int, byte: int) -> None:
    async def story() -> None:
        reader, told = Reader(), list[tuple[int, int]]()
        intake: Any = Intake(reader)
        intake.answer(ASKED, lambda messages, consumers: told.append((messages, consumers)))
        broken = bytearray(frame.marshal(commands.Queue.DeclareOk("q", 3, 1), ASKED))
        broken[at] = byte
        reader.feed_data(bytes(broken))
        assert (reader.fed, told) == (bytes(broken), [])

    virtual_time.run(story())


@given(st.binary(max_size=60), st.lists(st.integers(0, 20), max_size=6))
def test_the_client_sees_every_byte_when_what_comes_is_no_amqp(data: bytes, cuts: list[int]) -> None:
    async def story() -> None:
        reader, told, intake = await fed(data, cuts, takes=False)
        reader.feed_eof()
        assert (reader.fed, reader.is_at_end, told.all) == (data, True, [])
        assert intake.first == data[:FIRST_BYTES]

    virtual_time.run(story())


@pytest.mark.parametrize(
    "broken",
    [
        frame.marshal(commands.Basic.Ack(1), TAKEN)[:-1] + b"\x00",
        b"\x01\x00\x03\x00\x00\x00\x05\x00\x3c\x00\x50\x01\xce",
        b"".join(frame.marshal(part, TAKEN) for part in (returned(1, [4])[0], commands.Basic.Ack(1))),
        b"".join(frame.marshal(part, TAKEN) for part in (*returned(1, [4])[:2], commands.Basic.Ack(1))),
        b"\x01\x00\x03\x00\x00\x00\x06\x00\x3c\x00\x32\x01\x38\xce",
    ],
    ids=["end", "short confirm", "confirm for header", "confirm for body", "short return"],
)
def test_the_connection_is_lost_and_nothing_more_is_believed_when_a_frame_of_ours_is_broken(broken: bytes) -> None:
    reader, told, _ = virtual_time.run(fed(broken + frame.marshal(commands.Basic.Ack(9), TAKEN) + BEAT))
    assert [one[1:] for one in told.all] == [(False,)], "lost, not refused, and no confirm"
    assert reader.fed == b""


def test_the_rest_of_a_channel_is_the_client_s_when_it_has_been_closed() -> None:
    close = frame.marshal(commands.Channel.Close(404, "NOT_FOUND", 60, 40), TAKEN)
    after = frame.marshal(commands.Basic.Ack(2), TAKEN)
    reader, told, _ = virtual_time.run(fed(frame.marshal(commands.Basic.Ack(1), TAKEN) + close + after))
    assert (reader.fed, told.all) == (close + after, [(TAKEN, 1, False, True)])


@given(st.binary(max_size=255), st.lists(st.integers(0, 40), max_size=60))
def test_the_client_can_read_why_a_channel_is_closed_whatever_bytes_say_so(text: bytes, cuts: list[int]) -> None:
    close = frame.marshal(commands.Channel.Close(403, "x" * len(text), 60, 40), TAKEN).replace(
        b"x" * len(text), text, 1
    )
    reader, _, _ = virtual_time.run(fed(BEAT + close + BEAT, cuts))
    assert len(reader.fed) == len(BEAT + close + BEAT)
    told = frame.unmarshal(reader.fed[len(BEAT) :])[2]
    assert isinstance(told, commands.Channel.Close)
    assert (told.reply_code, told.class_id, told.method_id) == (403, 60, 40)
    assert told.reply_text.rstrip("?") == text.decode(errors="ignore").rstrip("?")


def test_the_client_hears_a_heartbeat_now_and_then_when_all_that_comes_is_taken() -> None:
    async def story() -> None:
        reader, told, _ = await fed(b"")
        for tag in range(1, 50):
            reader.feed_data(frame.marshal(commands.Basic.Ack(tag), TAKEN))
            await asyncio.sleep(0.1)
        assert len(told.all) == 49
        assert reader.fed in {BEAT * count for count in (4, 5, 6)}

    virtual_time.run(story())


def test_a_frame_longer_than_agreed_is_not_gathered() -> None:
    async def story() -> None:
        reader, _, intake = await fed(b"")
        intake.longest = 4_096
        start = b"\x03\x00\x03\xff\xff\xff\xff"
        reader.feed_data(start + bytes(10))
        reader.feed_data(bytes(10_000))
        assert reader.fed == start + bytes(10_010), "the client says what is wrong with it"

    virtual_time.run(story())
