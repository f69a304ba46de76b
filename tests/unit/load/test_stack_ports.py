"""Ports are free, different, and out of the way of outgoing connections."""

import socket

import pytest

from load.stack.errors import StackError
from load.stack.ports import ATTEMPTS, HIGHEST, LOWEST, choose, is_free

NAMES = ("kafka", "amqp", "epmd")


def test_ports_differ_and_lie_in_the_range_when_all_are_free() -> None:
    chosen = choose(NAMES, free=lambda _: True)

    assert tuple(chosen) == NAMES
    assert len(set(chosen.values())) == len(NAMES)
    assert all(LOWEST <= port < HIGHEST for port in chosen.values())


def test_no_taken_port_is_chosen_when_many_are_taken() -> None:
    chosen = choose(NAMES, free=lambda port: port % 10 == 0)

    assert all(port % 10 == 0 for port in chosen.values())


def test_the_search_ends_when_no_port_is_free() -> None:
    asked: list[int] = []

    with pytest.raises(StackError, match="no 3 free ports"):
        choose(NAMES, free=lambda port: bool(asked.append(port)))

    assert len(asked) == ATTEMPTS


@pytest.mark.parametrize(
    ("family", "address"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")]
)
def test_a_port_is_not_free_when_somebody_listens_there(family: socket.AddressFamily, address: str) -> None:
    with socket.socket(family) as server:
        server.bind((address, 0))
        server.listen()
        port = server.getsockname()[1]
        assert not is_free(port)

    assert is_free(port)
