"""Whatever an event is made of, it travels as promised, or ends as undeliverable with its reason; others go on."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pamqp import commands

from proxy.bridge.broker import Address
from proxy.model import Event, Origin, Outcome, Partition, Reason
from proxy.publish_lane.frames import PIECE_BYTES
from proxy.publish_lane.line import Line, Request, Window
from proxy.publish_lane.message_ids import message_id
from proxy.publish_lane.outcomes import Outcomes
from proxy.publish_lane.patience import Patience
from proxy.publish_lane.quarantine import Quarantine
from proxy.publish_lane.refusals import Refusals
from proxy.publish_lane.session import Session
from proxy.publish_lane.wire import Sent
from proxy.settings import Limits, RoutingKey
from proxy.simulation import virtual_time
from tests.support.amqp_messages import Message, expected_headers, frames_of, origin_of, read, without_origin
from tests.support.recipient import Recorder

LIMITS = Limits(event_bytes=20_000, headers=24)
PARTITION = Partition("orders.über", 3)
YEAR_10000_S = 253_402_300_800
LONG = "😀" * 80
"""A name that AMQP can't carry and that is ten times as long when it is written in ASCII."""
SPECIAL = [
    *("CC", "BCC", "x-delay", "x-", "tidegate-key", "tidegate-topic", "tidegate-omitted", "log.CC", "log.tidegate-key"),
    *("content-type", "Content-Type", "CONTENT-TYPE", "message-id", "message_id", "priority", "headers", "to", ""),
]
lengths = st.sampled_from([0, 1, 254, 255, 256, 300, 4_000, 8_150, 9_000])
names = st.one_of(
    st.sampled_from(SPECIAL),
    st.text(max_size=8),
    st.sampled_from(["n" * 251, "n" * 255, "n" * 256, "x-" + "n" * 249, "x-" + "n" * 250, "ä" * 128, LONG]),
)
data = st.none() | st.binary(max_size=30) | lengths.map(lambda n: b"d" * n) | st.text(max_size=10).map(str.encode)
few = st.lists(st.tuples(names, data), max_size=6)
many = st.tuples(st.integers(0, 26), data).map(lambda of: [(f"{LONG}{n}", of[1]) for n in range(of[0])])
timestamps = st.none() | st.integers(-(2**63), 2**63 - 1) | st.integers(0, 2**41)


def sized(*parts: Any) -> Event:
    key, value, headers = parts[2:]
    size = len(key or b"") + len(value or b"") + sum(len(name.encode()) + len(held or b"") for name, held in headers)
    return Event(*parts, size)


any_event = st.builds(
    sized,
    st.integers(0, 2**63 - 1),
    timestamps,
    data,
    data | lengths.map(lambda n: bytes(3 * n)),
    (few | many).map(tuple),
)
sources = st.sampled_from([RoutingKey(constant="queue"), RoutingKey(key=True), RoutingKey(header="to")])


class Wire:
    """Keeps what is written, for a decoder."""

    host = "h:1"
    writable = True
    heartbeat = 0.0
    heard = 0.0

    def __init__(self, frame_max: int) -> None:
        self.frame_max = frame_max
        self.pieces: list[bytes] = []

    def is_blocked(self) -> bool:
        return False

    async def open_channel(self) -> int:
        return 7

    async def close_channel(self, number: int) -> None:
        del number

    def write(self, piece: bytes, sent: Sequence[Sent]) -> bool:
        del sent
        self.pieces.append(piece)
        return False

    async def close(self, *, gracefully: bool) -> None:
        del gracefully


async def written(events: Sequence[Event], address: Address, frame_max: int) -> tuple[Wire, Recorder]:
    """Write the events through a session, all of them."""
    wire, recorder = Wire(frame_max), Recorder(address, PARTITION)
    window = Window(10**6, 10**9)
    outcomes = Outcomes(window, Quarantine(Line(window)))
    patience = Patience(LIMITS.confirm_deadline)
    session = Session(outcomes, LIMITS, patience, Refusals(), stir=lambda: None, lost=lambda _: None)
    await session.start(wire)
    ended = asyncio.Event()
    outcomes.quarantine.add(Request([recorder.batch(events)], ended.set))
    while not ended.is_set() or session._outbox:
        session.write()
        session.on_written()
    assert window.events == len(events) - len(recorder.ends)
    return wire, recorder


def messages(pieces: Iterable[bytes]) -> Iterator[Message]:
    """Split what was written where a publication begins."""
    count = 0
    parts: list[tuple[int, bytes]] = []
    for raw, _, value in frames_of(b"".join(pieces)):
        count += isinstance(value, commands.Basic.Publish)
        parts.append((count, raw))
    for _, group in groupby(parts, key=lambda part: part[0]):
        yield read(b"".join(raw for _, raw in group))


def is_short(value: bytes | None) -> bool:
    try:
        return value is None or (len(value) <= 255 and value.decode() is not None)
    except UnicodeDecodeError:
        return False


def unfit(event: Event, address: Address, frame_max: int) -> tuple[set[Reason], bool]:
    """Return why the event can't be carried, and whether that is sure."""
    source = address.routing_key
    why = {Reason.TOO_LARGE} if event.size > LIMITS.event_bytes else set()
    if len(event.headers) > LIMITS.headers:
        why.add(Reason.TOO_MANY_HEADERS)
    types = [held for name, held in event.headers if name.lower() == "content-type" and held is not None]
    to = [held for name, held in event.headers if name == "to"]
    shorts = [*(name.encode() for name in expected_headers(event)), *types[-1:]]
    shorts += [event.key] if source.key else to[-1:] if source.header else []
    no_key = source.header is not None and (not to or to[-1] is None)
    carried = sum(len(name.encode()) + len(held or b"") for name, held in event.headers)
    carried += len(event.key or b"") if address.carries_key else 0
    if no_key or not all(map(is_short, shorts)) or carried - sum(map(len, types)) > frame_max:
        why.add(Reason.BAD_PROPERTY)
    elif not why and carried + 1_200 > frame_max:
        return {Reason.BAD_PROPERTY}, False
    return why, True


def check(message: Message, event: Event, address: Address) -> None:
    own, source = without_origin(message.headers), address.routing_key
    key = event.key if source.key else dict(event.headers).get("to") if source.header else b"queue"
    assert (message.publish.exchange, message.publish.routing_key) == ("ex", (key or b"").decode())
    assert (message.body, message.properties.priority) == (event.value or b"", address.priority)
    assert origin_of(message) == (*PARTITION, str(event.position), event.timestamp_ms)
    assert own.pop("tidegate-key", None) == (event.key if address.carries_key else None)
    assert own.pop("tidegate-tombstone", False) is (event.value is None)
    assert own == {name: held[0] if len(held) == 1 else held for name, held in expected_headers(event).items()}
    assert message.properties.message_id == message_id(address, PARTITION, event).decode()
    is_full = "tidegate-topic" in message.headers
    assert is_full is (address.origin is Origin.FULL or (event.timestamp_ms is not None and event.timestamp_ms < 0))
    has_time = event.timestamp_ms is not None and 0 <= event.timestamp_ms // 1000 < YEAR_10000_S
    assert (message.properties.timestamp is not None) is (is_full and has_time)


@settings(max_examples=150)
@given(
    st.lists(any_event, min_size=1, max_size=5),
    sources,
    st.sampled_from([8_192, 131_072, 0]),
    st.none() | st.integers(0, 255),
    st.sampled_from(Origin),
    st.booleans(),
)
def test_an_event_is_carried_as_promised_or_ends_with_its_reason_when_it_is_of_any_shape(
    made: list[Event], source: RoutingKey, frame_max: int, priority: int | None, origin: Origin, carries_key: bool
) -> None:
    events = [event._replace(position=number) for number, event in enumerate(made)]
    longest = frame_max or 131_072
    address = Address("ex", source, "text/plain", priority=priority, origin=origin, carries_key=carries_key)
    wire, recorder = virtual_time.run(written(events, address, frame_max))
    found = {int(origin_of(message)[2]): message for message in messages(wire.pieces)}
    ends = {end.position: end for end in recorder.ends}
    assert sorted([*found, *ends]) == list(range(len(events))), "each event once"
    assert list(found) == sorted(found), "in their order"
    for number, event in enumerate(events):
        reasons, is_sure = unfit(event, address, longest)
        if number in found:
            assert not (reasons and is_sure), reasons
            check(found[number], event, address)
            assert max(map(len, found[number].frames)) <= longest
        else:
            assert ends[number].outcome is Outcome.UNDELIVERABLE
            assert ends[number].reason in reasons
            assert 0 < len(ends[number].detail) < 400
    assert all(len(piece) <= max(PIECE_BYTES, longest) for piece in wire.pieces)


@settings(max_examples=150)
@given(any_event, sources, st.sampled_from([8_192, 131_072, 0]), st.text(max_size=200))
def test_a_dead_letter_is_always_carried_when_the_event_is_of_any_shape(
    event: Event, source: RoutingKey, frame_max: int, detail: str
) -> None:
    notes = (("tidegate-reason", "refused"), ("tidegate-detail", detail))
    address = Address("ex", source, "text/plain", notes=notes, lenient=True)
    wire, recorder = virtual_time.run(written([event], address, frame_max))
    assert recorder.ends == []
    (message,) = messages(wire.pieces)
    assert max(map(len, message.frames)) <= (frame_max or 131_072)
    assert message.body == (event.value or b"")[: LIMITS.event_bytes]
    assert message.headers["tidegate-detail"] == detail
    carried = len(message.headers) + ("tidegate-omitted" in message.headers)
    assert carried >= len(notes), "what is left out is named"
