"""Questions to a node in its own protocol: it is ready when it answers, not when its port is open."""

import socket
import struct
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pamqp import commands, frame

from load.stack.errors import StackError

CALL_SECONDS = 5.0
MAX_ANSWER = 1 << 20
RETRY_SECONDS = 0.1

Answer = TypeVar("Answer")

METADATA, FIND_COORDINATOR = 3, 10


class NotReadyError(Exception):
    """The node does not answer yet, or not as the one that is meant."""


def await_answer(
    ask: Callable[[], Answer],
    *,
    node: str,
    seconds: float,
    is_running: Callable[[], bool],
    last_lines: Callable[[], str],
) -> Answer:
    """Ask until the node answers. Raises StackError with its last lines when it ends before, or the time is over."""
    deadline = time.monotonic() + seconds
    while True:
        alive = is_running()  # before asking: one that answered and then ended has answered
        try:
            return ask()
        except NotReadyError as error:
            if not alive:
                raise StackError(f"{node} ended while starting:\n{last_lines()}") from None
            if time.monotonic() >= deadline:
                raise StackError(f"{node} is not ready after {seconds:.0f} s ({error}):\n{last_lines()}") from None
        time.sleep(RETRY_SECONDS)


def kafka_call(port: int, api: int, version: int, body: bytes) -> bytes:
    """Send one request (of a version without tagged fields) and return the answer's body. Raises NotReadyError."""
    client = b"load.stack"
    request = struct.pack(">hhih", api, version, 1, len(client)) + client + body
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=CALL_SECONDS) as connection:
            connection.sendall(struct.pack(">i", len(request)) + request)
            (length,) = struct.unpack(">i", _read(connection, 4))
            if not 4 <= length <= MAX_ANSWER:
                raise NotReadyError(f"port {port} does not speak Kafka")
            return _read(connection, length)[4:]
    except OSError as error:
        raise NotReadyError(f"Kafka on port {port}: {error}") from error


def listens(port: int) -> None:
    """Raise NotReadyError unless something listens on this port."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=CALL_SECONDS).close()
    except OSError as error:
        raise NotReadyError(f"port {port}: {error}") from error


def kafka_cluster(port: int, least: int = 1) -> str:
    """Return the id of the cluster that answers here, once it counts so many live brokers. Raises NotReadyError."""
    answer = kafka_call(port, METADATA, 2, struct.pack(">i", 0))
    (brokers,) = struct.unpack_from(">i", answer)
    if brokers < least:
        raise NotReadyError(f"{brokers} of {least} brokers are registered")
    at = 4
    for _ in range(brokers):
        at += 4
        _, at = string_at(answer, at)
        at += 4
        _, at = string_at(answer, at)
    return string_at(answer, at)[0]


def await_coordinator(port: int) -> None:
    """Have the topic of group offsets made, lest the first clients meet errors. Raises NotReadyError until it is."""
    group = b"tidegate"
    (error,) = struct.unpack_from(">h", kafka_call(port, FIND_COORDINATOR, 0, struct.pack(">h", len(group)) + group))
    if error:
        raise NotReadyError(f"no group coordinator yet (error {error})")


def amqp_handshake(port: int) -> dict[str, str]:
    """Log in as guest, open the default virtual host, return what the server says of itself. Raises NotReadyError."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=CALL_SECONDS) as connection:
            connection.sendall(b"AMQP\x00\x00\x09\x01")
            start = _expect(connection, commands.Connection.Start)
            login = commands.Connection.StartOk(
                client_properties={"product": "load.stack"},
                mechanism="PLAIN",
                response="\0guest\0guest",
                locale="en_US",
            )
            connection.sendall(frame.marshal(login, 0))
            tune = _expect(connection, commands.Connection.Tune)
            limits = commands.Connection.TuneOk(
                channel_max=tune.channel_max or 2047, frame_max=tune.frame_max, heartbeat=0
            )
            connection.sendall(frame.marshal(limits, 0) + frame.marshal(commands.Connection.Open(), 0))
            _expect(connection, commands.Connection.OpenOk)
            closing = commands.Connection.Close(reply_code=200, reply_text="", class_id=0, method_id=0)
            connection.sendall(frame.marshal(closing, 0))
            _expect(connection, commands.Connection.CloseOk)
    except (OSError, struct.error) as error:
        raise NotReadyError(f"RabbitMQ on port {port}: {error}") from error
    return {
        _text(key): _text(value) for key, value in start.server_properties.items() if not isinstance(value, Mapping)
    }


def rabbitmq_versions(server: Mapping[str, str]) -> dict[str, str]:
    """Return the versions in what a RabbitMQ says of itself."""
    return {"rabbitmq": server.get("version", ""), "erlang": server.get("platform", "").removeprefix("Erlang/OTP ")}


def _expect(connection: socket.socket, kind: Callable[..., Any]) -> Any:
    head = _read(connection, 7)
    size = struct.unpack(">I", head[3:])[0]
    if head[:1] != b"\x01" or size > MAX_ANSWER:
        raise NotReadyError("the port does not speak AMQP 0-9-1")
    _, _, method = frame.unmarshal(head + _read(connection, size + 1))
    if type(method) is not kind:
        raise NotReadyError(f"RabbitMQ answers {method!r}")
    return method


def _read(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            raise ConnectionResetError("closed in the middle of an answer")
        data += piece
    return bytes(data)


def string_at(answer: bytes, at: int) -> tuple[str, int]:
    """Return the string (null: empty) that begins here in an answer of Kafka, and where it ends."""
    (length,) = struct.unpack_from(">h", answer, at)
    at += 2
    return answer[at : at + max(length, 0)].decode(), at + max(length, 0)


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
