"""The connections of the admin port are bounded in number and in time."""

import asyncio
from typing import Any
from unittest import mock

import pytest

from proxy.operations.visitors import ASKING_SECONDS, SILENT_SECONDS, VISITORS, Visitors


class Clock:
    """Seconds that pass when they are told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class House:
    """Visitors, and the connections that come."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.visitors = Visitors(lambda: mock.create_autospec(asyncio.Protocol, instance=True), self.clock)

    def come(self) -> tuple[Any, mock.Mock]:
        """Return one connection's protocol and its transport."""
        transport = mock.create_autospec(asyncio.Transport, instance=True)
        protocol = self.visitors()
        protocol.connection_made(transport)
        self.clock.now += 0.001
        return protocol, transport


@pytest.fixture
def house() -> House:
    return House()


def test_whoever_was_silent_longest_makes_room_when_all_places_are_taken(house: House) -> None:
    guests = [house.come() for _ in range(VISITORS)]
    guests[0][0].data_received(b"GET")
    house.come()
    assert [transport.abort.called for _, transport in guests[:3]] == [False, True, False]


def test_places_are_free_again_when_connections_have_left(house: House) -> None:
    guests = [house.come() for _ in range(VISITORS)]
    for protocol, _ in guests[:5]:
        protocol.connection_lost(None)
    more = [house.come() for _ in range(5)]
    assert not any(transport.abort.called for _, transport in guests + more)


def test_one_is_ended_when_it_says_nothing_for_long(house: House) -> None:
    silent, talking = house.come(), house.come()
    house.clock.now += SILENT_SECONDS / 2
    talking[0].data_received(b"GET")
    house.visitors.on_asked(talking[0].inner)
    house.clock.now = SILENT_SECONDS + 0.01
    house.visitors.end_silent()
    assert (silent[1].abort.called, talking[1].abort.called) == (True, False)


def test_one_is_ended_when_its_question_trickles_in_for_long(house: House) -> None:
    trickling, asking_often = house.come(), house.come()
    while house.clock.now < 2 * ASKING_SECONDS:
        for protocol, _ in (trickling, asking_often):
            protocol.data_received(b"G")
        house.visitors.on_asked(asking_often[0].inner)
        house.visitors.end_silent()
        house.clock.now += 1.0
    assert (trickling[1].abort.called, asking_often[1].abort.called) == (True, False)


def test_one_that_only_listens_stays_while_it_is_told_something(house: House) -> None:
    listening, silent = house.come(), house.come()
    house.clock.now += SILENT_SECONDS / 2
    house.visitors.on_told(listening[0].inner)
    house.clock.now = SILENT_SECONDS + 0.01
    house.visitors.end_silent()
    assert (listening[1].abort.called, silent[1].abort.called) == (False, True)
