"""What every `EventLog` does, proved on Nakadi, and where Nakadi's rules differ, what it does instead."""

from collections.abc import AsyncIterator

import pytest

from tests.contract.log_adapters import World
from tests.contract.nakadi_adapter import NakadiWorld
from tests.contract.test_event_log import EventLogContract, join, topic

__all__ = ["join", "topic"]


class TestNakadiLog(EventLogContract):
    @pytest.fixture
    async def world(self) -> AsyncIterator[World]:
        async with NakadiWorld.open() as world:
            yield world
