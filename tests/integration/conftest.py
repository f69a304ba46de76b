"""The stack with the listeners that enterprises have, shared by all tests of a session."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from load.stack import Stack
from tests.support.secrets import Secrets


@pytest.fixture(scope="session")
def secured() -> Iterator[Stack]:
    with Stack.up(heap="384m", secured=True) as stack:
        yield stack


@pytest.fixture
def secrets(secured: Stack, tmp_path: Path) -> Secrets:
    return Secrets(secured, tmp_path)
