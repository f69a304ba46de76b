"""The image, built once for all tests of this folder, from the Dockerfile as it is."""

import os
from collections.abc import Iterator

import pytest

from load.container import Engine, Image, find_engine


@pytest.fixture(scope="session")
def engine() -> Engine:
    return find_engine()


@pytest.fixture(scope="session")
def image(engine: Engine) -> Iterator[Image]:
    image = engine.build(f"localhost/tidegate-test:{os.getpid()}")
    yield image
    engine.remove(image)
