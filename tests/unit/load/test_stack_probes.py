"""Ready means that the node itself answers, not that a port is open."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress

import pytest

from load.stack import kafka_settings, probes
from load.stack.errors import StackError
from load.stack.probes import NotReadyError, await_answer

Serve = Callable[[bytes], int]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Start a server that answers its first connection with the same bytes, whatever is asked."""
    monkeypatch.setattr(probes, "CALL_SECONDS", 2.0)
    with ExitStack() as servers:

        def start(answer: bytes) -> int:
            server = servers.enter_context(socket.create_server(("127.0.0.1", 0)))

            def talk() -> None:
                connection, _ = server.accept()
                with connection, suppress(OSError):  # a client that has seen enough hangs up
                    connection.recv(4096)
                    connection.sendall(answer)
                    connection.shutdown(socket.SHUT_WR)
                    connection.recv(4096)

            thread = threading.Thread(target=talk)
            thread.start()
            servers.callback(thread.join)
            return int(server.getsockname()[1])

        yield start


def kafka_answer(body: bytes) -> bytes:
    return struct.pack(">ii", len(body) + 4, 1) + body


def metadata(brokers: int, cluster: str) -> bytes:
    broker = struct.pack(">ih9sih", 1, 9, b"127.0.0.1", 9092, -1)
    return struct.pack(">i", brokers) + broker * brokers + struct.pack(">h", len(cluster)) + cluster.encode()


def test_the_clusters_id_is_read_when_a_broker_is_registered(serve: Serve) -> None:
    assert probes.kafka_cluster(serve(kafka_answer(metadata(2, "our-cluster")))) == "our-cluster"


def test_kafka_is_not_ready_when_no_broker_is_registered(serve: Serve) -> None:
    with pytest.raises(NotReadyError, match="0 of 1 brokers are registered"):
        probes.kafka_cluster(serve(kafka_answer(metadata(0, "our-cluster"))))


def test_kafka_is_not_ready_when_its_coordinator_is_not(serve: Serve) -> None:
    with pytest.raises(NotReadyError, match="error 15"):
        probes.await_coordinator(serve(kafka_answer(struct.pack(">h", 15))))


@pytest.mark.parametrize(
    "answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x00\x00\x00\x01", b"AMQP\x00\x00\x09\x01"]
)
def test_nothing_is_ready_when_the_port_speaks_something_else(serve: Serve, answer: bytes) -> None:
    with pytest.raises(NotReadyError):
        probes.kafka_cluster(serve(answer))
    with pytest.raises(NotReadyError):
        probes.amqp_handshake(serve(answer))


def test_nothing_is_ready_when_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(NotReadyError, match="refused"):
        probes.kafka_cluster(port)
    with pytest.raises(NotReadyError, match="refused"):
        probes.amqp_handshake(port)


def test_refused_rights_are_told_when_kafka_refuses_one(serve: Serve) -> None:
    fine, silent, refused = struct.pack(">hh", 0, -1), struct.pack(">hh", 0, 0), struct.pack(">hh2s", 54, 2, b"no")
    kafka_settings.grant(serve(kafka_answer(struct.pack(">ii", 0, 3) + silent + fine * 2)))

    with pytest.raises(StackError, match=r"refuses the rights of its users: no \(error 54\)"):
        kafka_settings.grant(serve(kafka_answer(struct.pack(">ii", 0, 3) + fine * 2 + refused)))


def never() -> None:
    raise NotReadyError("still loading")


@pytest.mark.parametrize(
    ("running", "seconds", "message"),
    [
        (False, 60.0, r"Kafka ended while starting:\nlast line"),
        (True, 0.0, r"not ready after 0 s \(still loading\):\nlast"),
    ],
)
def test_the_last_lines_are_shown_when_the_node_never_answers(running: bool, seconds: float, message: str) -> None:
    with pytest.raises(StackError, match=message):
        await_answer(never, node="Kafka", seconds=seconds, is_running=lambda: running, last_lines=lambda: "last line")


def test_waiting_ends_when_the_node_answers() -> None:
    answers = iter([False, False, True])

    def ask() -> str:
        if not next(answers):
            raise NotReadyError("not yet")
        return "here"

    assert await_answer(ask, node="Kafka", seconds=60, is_running=lambda: True, last_lines=str) == "here"
