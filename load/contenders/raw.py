"""What RabbitMQ takes at most from one connection: frames made by hand, no log to read, nothing to commit.

Persistent, mandatory, confirmed, at most a window of messages unconfirmed: the work that the bridge also has.
`--properties` takes the content header of one message of the bridge, so that both carry the same number of bytes.
"""

import argparse
import asyncio
import socket
import struct
import sys
from typing import cast

import uvloop
from pamqp import base, commands, encode, frame

from load.events import Bulk
from load.wire import FRAME_MAX, WireError

WINDOW = 1000
PARTITIONS = 4
_HEAD = struct.Struct(">BHI")
_ACK, _NACK, _RETURN = b"\x00\x3c\x00\x50", b"\x00\x3c\x00\x78", b"\x00\x3c\x00\x32"


class Publisher(asyncio.Protocol):
    """Writes whatever the window has room for, each time confirms come in; `done` ends with the last of them."""

    def __init__(self, queue: str, events: int, bulk: Bulk, properties: bytes) -> None:
        self._events, self._bulk, self._properties = events, bulk, properties
        method = commands.Basic.Publish(routing_key=queue, mandatory=True)
        self._method = frame.marshal(method, 1)
        self._sent = self._confirmed = 0
        self._beyond: set[int] = set()
        self._buffer = b""
        self._opened = False
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin the handshake."""
        self._transport = cast("asyncio.Transport", transport)
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._transport.write(b"AMQP\x00\x00\x09\x01")

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail if anything was left to do."""
        if not self.done.done():
            self.done.set_exception(WireError(f"RabbitMQ closed the connection: {exc}"))

    def data_received(self, data: bytes) -> None:
        """Take all frames that are whole, then fill the window again in one write."""
        buffer, at = self._buffer + data, 0
        while len(buffer) - at >= _HEAD.size:
            kind, _, size = _HEAD.unpack_from(buffer, at)
            if len(buffer) - at < size + 8:
                break
            if kind == 1:
                self._on_method(buffer[at : at + size + 8], buffer[at + 7 : at + 7 + size])
            at += size + 8
        self._buffer = buffer[at:]
        if self._opened and not self.done.done():
            self._fill()

    def _on_method(self, whole: bytes, payload: bytes) -> None:
        kind = payload[:4]
        if kind == _ACK:
            self._on_ack(int.from_bytes(payload[4:12], "big"), multiple=payload[12] & 1)
        elif kind in {_NACK, _RETURN}:
            self.done.set_exception(WireError("RabbitMQ refused a message"))
        else:
            self._on_handshake(cast("base.Frame", frame.unmarshal(whole)[2]))

    def _on_ack(self, tag: int, *, multiple: int) -> None:
        if multiple:
            self._confirmed = tag
            self._beyond = {beyond for beyond in self._beyond if beyond > tag}
        else:
            self._beyond.add(tag)
        while self._confirmed + 1 in self._beyond:
            self._confirmed += 1
            self._beyond.discard(self._confirmed)
        if self._confirmed == self._events:
            self.done.set_result(None)

    def _on_handshake(self, method: base.Frame) -> None:
        if isinstance(method, commands.Connection.Start):
            self._say(commands.Connection.StartOk({}, "PLAIN", "\x00guest\x00guest", "en_US"), 0)
        elif isinstance(method, commands.Connection.Tune):
            self._say(commands.Connection.TuneOk(method.channel_max, FRAME_MAX, 0), 0)
            self._say(commands.Connection.Open("/"), 0)
        elif isinstance(method, commands.Connection.OpenOk):
            self._say(commands.Channel.Open(), 1)
        elif isinstance(method, commands.Channel.OpenOk):
            self._say(commands.Confirm.Select(), 1)
        elif isinstance(method, commands.Confirm.SelectOk):
            self._opened = True
        else:
            self.done.set_exception(WireError(f"unexpected: {method}"))

    def _say(self, method: base.Frame, channel: int) -> None:
        self._transport.write(frame.marshal(method, channel))

    def _fill(self) -> None:
        room = min(WINDOW - (self._sent - self._confirmed - len(self._beyond)), self._events - self._sent)
        if room <= 0:
            return
        size = self._bulk.size
        content = struct.pack(">HHQ", 60, 0, size) + self._properties
        head = self._method + _HEAD.pack(2, 1, len(content)) + content + b"\xce" + _HEAD.pack(3, 1, size)
        value = self._bulk.value
        numbers = range(self._sent, self._sent + room)
        self._transport.write(b"".join(head + value(n % PARTITIONS, n // PARTITIONS) + b"\xce" for n in numbers))
        self._sent += room


def bare_properties() -> bytes:
    """Return flags and properties of a persistent message with a message id and nothing else."""
    delivery_mode, message_id = 1 << 12, 1 << 7
    return struct.pack(">HB", delivery_mode | message_id, 2) + encode.short_string("bench-0-00000")


async def publish(port: int, queue: str, events: int, bulk: Bulk, properties: bytes) -> None:
    """Publish `events` bulk events into the queue. Raises WireError if RabbitMQ refuses any."""
    loop = asyncio.get_running_loop()
    _, publisher = await loop.create_connection(lambda: Publisher(queue, events, bulk, properties), "127.0.0.1", port)
    await publisher.done


def main() -> int:
    """Publish as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m load.contenders.raw", description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--queue", required=True)
    parser.add_argument("--events", type=int, required=True, help=f"a multiple of {PARTITIONS}")
    parser.add_argument("--size", type=int, required=True, help="bytes of one value")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--properties", type=bytes.fromhex, default=bare_properties(), help="content header, in hex")
    options = parser.parse_args()
    bulk = Bulk(options.size, seed=options.seed)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(publish(options.port, options.queue, options.events, bulk, options.properties))
    return 0


if __name__ == "__main__":
    sys.exit(main())
