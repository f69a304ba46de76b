"""The services behind RabbitMQ, without a broker: frames in, the ledgers' entries out."""

import asyncio
from typing import cast

import pytest
from pamqp import base, body, commands, frame, header

from load.faults import sink as module
from load.faults.ledger import Counts, Ledger
from load.faults.sink import LOGIN_SECONDS, Sink
from load.faults.streams import PAYLOAD, place
from load.wire import CHANNEL, WireError

WORK, DEAD = 0, 1


class Wire(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.aborted = False

    def abort(self) -> None:
        self.aborted = True

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)


class Services:
    """A sink of one queue and its dead letters, and the ledger of one partition that Kafka has five events of."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.ledger.keep(self.ledger.send(5), 5, 0)
        self.sink = Sink([0], ["work", "dead"], {(0, 0): self.ledger})
        self.tag = 0
        self.connect()

    def connect(self) -> None:
        self.sink.connection_made(Wire())

    def give(self, number: int, queue: int = WORK, *, redelivered: bool = False) -> None:
        self.give_value(PAYLOAD.value(place(0, 0), number), queue, redelivered=redelivered)

    def give_value(self, value: bytes, queue: int = WORK, *, redelivered: bool = False) -> None:
        self.tag += 1
        deliver = commands.Basic.Deliver(str(queue), self.tag, redelivered=redelivered, exchange="", routing_key="")
        head = header.ContentHeader(body_size=len(value))
        parts: list[base.Frame | header.ContentHeader | body.ContentBody] = [deliver, head]
        parts += [body.ContentBody(value[:100]), body.ContentBody(value[100:])]
        data = b"".join(frame.marshal(cast("base.Frame", part), CHANNEL) for part in parts)
        for start in range(0, len(data), 37):
            self.sink.data_received(data[start : start + 37])


def test_an_event_out_of_its_queue_has_arrived_and_one_out_of_the_other_is_a_dead_letter() -> None:
    services = Services()
    services.give(0)
    services.give(1, DEAD)

    assert services.ledger.counts == Counts(sent=5, kept=5, arrived=1, dead=1)


def test_an_event_that_comes_again_on_the_same_connection_is_a_duplicate() -> None:
    services = Services()
    services.give(0)
    services.give(0)

    assert services.ledger.counts.duplicates == 1
    assert services.sink.returned == 0


def test_what_was_held_when_the_connection_broke_may_come_once_more() -> None:
    services = Services()
    services.give(0)
    services.sink.connection_lost(None)
    services.connect()
    services.give(0)
    assert (services.ledger.counts.duplicates, services.sink.returned) == (0, 1)

    services.give(0)
    assert services.ledger.counts.duplicates == 1


def test_a_message_with_another_byte_is_foreign() -> None:
    services = Services()
    value = PAYLOAD.value(place(0, 0), 0)
    services.give_value(value[:-1] + bytes([value[-1] ^ 1]))

    assert services.sink.foreign == 1
    assert services.ledger.counts.arrived == 0


def test_what_rabbitmq_gives_out_again_after_the_loss_of_a_leader_is_no_duplicate() -> None:
    services = Services()
    services.give(0)
    services.give(0, redelivered=True)

    assert (services.ledger.counts.duplicates, services.sink.returned) == (0, 1)


async def test_another_node_is_asked_when_one_is_avoided(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: asyncio.Queue[int] = asyncio.Queue()

    def refuse(port: int, seconds: float) -> None:
        assert seconds == LOGIN_SECONDS
        asked.put_nowait(port)
        raise WireError("away")

    monkeypatch.setattr(module, "Wire", refuse)
    sink = Sink([1, 2, 3], ["work", "dead"], {})
    sink.avoid(2)
    consuming = asyncio.create_task(sink.run())
    seen = [await asked.get() for _ in range(4)]
    consuming.cancel()

    assert seen == [1, 3, 1, 3]


def declared(queue: str, count: int) -> bytes:
    return frame.marshal(commands.Queue.DeclareOk(queue, count, 1), CHANNEL)


@pytest.mark.parametrize(("count", "breaks"), [(0, False), (3, True)])
def test_the_connection_is_made_anew_when_a_silent_queue_holds_something(count: int, breaks: bool) -> None:
    services = Services()
    wire = Wire()
    services.sink.connection_made(wire)

    services.sink.data_received(declared("work", count))

    assert wire.aborted is breaks
