"""One run of one contender, timed at the queue: the same way for all, whatever they say of themselves."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import psutil

from load.checker import Tally, tally
from load.events import Bulk
from load.wire import Delivery
from load.worker import Worker, WorkerError

POLL_SECONDS = 0.02


@dataclass(frozen=True)
class Span:
    """What was seen between the first event in the queue and the last."""

    events: int
    seconds: float
    cpu: float
    """Processor seconds of the worker within."""
    broker_cpu: Mapping[str, float]
    """The same of each broker."""
    start_cpu: float
    """Processor seconds of the worker before."""
    peak_rss: int

    @property
    def rate(self) -> float:
        """Return events a second."""
        return self.events / self.seconds


def watch(
    arrived: Callable[[], int], worker: Worker, brokers: Mapping[str, psutil.Process], events: int, seconds: float
) -> Span:
    """Watch until so many `events` have `arrived`. Raises WorkerError after `seconds` or at a crash."""
    deadline = time.monotonic() + seconds
    first: tuple[float, ...] | None = None
    while True:
        count = arrived()
        seen = (count, time.monotonic(), worker.cpu_seconds(), *map(cpu_seconds, brokers.values()))
        peak_rss = worker.peak_rss()  # asked each time: who has moved all may end at any moment
        if first is None and count:
            first = seen
        if first is not None and count >= events:
            if first == seen:
                raise WorkerError("all events arrived between two polls: take more of them")
            moved, took, cpu, *rest = (now - then for now, then in zip(seen, first, strict=True))
            return Span(int(moved), took, cpu, dict(zip(brokers, rest, strict=True)), first[2], peak_rss)
        worker.check()
        if time.monotonic() > deadline:
            raise WorkerError(f"{count} of {events} events after {seconds:.0f} s\n{worker.last_words()}")
        time.sleep(POLL_SECONDS)


def verify(came: Iterable[Delivery], bulk: Bulk, counts: list[int]) -> tuple[Tally, bytes]:
    """Return what became of all partitions together, and the content header of the first message.

    Raises ValueError if a value is not as it was produced.
    """
    arrivals: list[list[int]] = [[] for _ in counts]
    properties = b""
    for delivery in came:
        properties = properties or delivery.properties
        partition, number = bulk.read(delivery.body)
        arrivals[partition].append(number)
    return sum(map(tally, counts, arrivals), Tally()), properties


def cpu_seconds(process: psutil.Process) -> float:
    """Return the processor time that a process has used, user and system."""
    times = process.cpu_times()
    return float(times.user + times.system)
