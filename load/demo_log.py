"""The log of the demo: a real Kafka, or a scripted Nakadi as a process of its own."""

import time
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from load.kafka import KafkaView
from load.nakadi import NakadiSender, NakadiView
from load.sender import EventSender, Sender
from load.worker import Worker, WorkerError

_KAFKA = """\
log:
  hosts: ["${DEMO_KAFKA}"]
  group: demo-${DEMO_POLICY}
"""
_NAKADI = """\
log:
  nakadi:
    url: ${DEMO_NAKADI}
    owning_application: demo
    consumer_group: demo-${DEMO_POLICY}
"""
READY_SECONDS = 30.0
POLL_SECONDS = 0.1


class View(Protocol):
    """What is asked of a log beside producing."""

    async def create(self, topic: str, partitions: int) -> None:
        """Make a topic or an event type."""

    async def committed(self, group: str) -> dict[tuple[str, int], int]:
        """Return how far a group has come in each partition."""
        ...


class DemoLog(Protocol):
    """One log."""

    @property
    def environment(self) -> Mapping[str, str]:
        """What the settings file needs to know of it."""
        ...

    def view(self) -> AbstractAsyncContextManager[View]:
        """Return an administrator's connection."""
        ...

    def sender(self) -> EventSender:
        """Return what writes to it."""
        ...

    def settings(self, kafka: Path, folder: Path) -> Path:
        """Return the settings file, made from that with a Kafka in a folder if need be."""
        ...


class KafkaOfDemo:
    """See `DemoLog`."""

    def __init__(self, address: str) -> None:
        self._address = address
        self.environment = {"DEMO_KAFKA": address}

    def view(self) -> AbstractAsyncContextManager[View]:
        """See `DemoLog`."""
        return KafkaView(self._address)

    def sender(self) -> EventSender:
        """See `DemoLog`."""
        return Sender(self._address)

    def settings(self, kafka: Path, folder: Path) -> Path:  # noqa: ARG002 -- it is as it is
        """See `DemoLog`."""
        return kafka


class NakadiOfDemo:
    """See `DemoLog`; a context manager: it runs within the block. Raises WorkerError if it does not come up."""

    def __init__(self, output: Path) -> None:
        self._output = output
        self._worker: Worker
        self._url = ""

    def __enter__(self) -> Self:
        """Start it and learn its address."""
        self._worker = Worker("tests.nakadi", output=self._output).__enter__()
        deadline = time.monotonic() + READY_SECONDS
        while not self._url:
            self._worker.check()
            if time.monotonic() > deadline:
                raise WorkerError(f"the scripted Nakadi is not up after {READY_SECONDS:.0f} s")
            told = self._output.read_text(encoding="utf-8")
            self._url = told.split("at ")[-1].strip() if told.endswith("\n") else ""
            time.sleep(POLL_SECONDS)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""
        self._worker.kill()

    @property
    def environment(self) -> Mapping[str, str]:
        """See `DemoLog`."""
        return {"DEMO_NAKADI": self._url}

    def view(self) -> AbstractAsyncContextManager[View]:
        """See `DemoLog`."""
        return NakadiView(self._url)

    def sender(self) -> EventSender:
        """See `DemoLog`."""
        return NakadiSender(self._url)

    def settings(self, kafka: Path, folder: Path) -> Path:
        """See `DemoLog`: the same file, with another log."""
        text = kafka.read_text(encoding="utf-8")
        assert _KAFKA in text
        made = folder / "settings.yaml"
        made.write_text(text.replace(_KAFKA, _NAKADI), encoding="utf-8")
        return made
