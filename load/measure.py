"""One run of one contender, timed at the queue: the same way for all, whatever they say of themselves."""

import time
from dataclasses import dataclass

import psutil

from load.checker import Tally, tally
from load.events import Bulk
from load.wire import Wire
from load.worker import Worker, WorkerError

POLL_SECONDS = 0.02


@dataclass(frozen=True)
class Span:
    """What was seen between the first event in the queue and the last."""

    events: int
    seconds: float
    cpu: float
    """Processor seconds of the worker within."""
    rabbitmq_cpu: float
    start_cpu: float
    """Processor seconds of the worker before."""
    peak_rss: int

    @property
    def rate(self) -> float:
        """Return events a second."""
        return self.events / self.seconds


def watch(wire: Wire, queue: str, worker: Worker, rabbitmq: psutil.Process, events: int, seconds: float) -> Span:
    """Watch a queue that nobody consumes until it holds `events`. Raises WorkerError after `seconds` or at a crash."""
    deadline = time.monotonic() + seconds
    first: tuple[int, float, float, float] | None = None
    while True:
        ready = wire.count(queue).ready
        seen = (ready, time.monotonic(), worker.cpu_seconds(), _cpu(rabbitmq))
        if first is None and ready:
            first = seen
        if first is not None and ready >= events:
            if first == seen:
                raise WorkerError("all events arrived between two polls: take more of them")
            moved, took, cpu, rabbitmq_cpu = (now - then for now, then in zip(seen, first, strict=True))
            return Span(int(moved), took, cpu, rabbitmq_cpu, first[2], worker.peak_rss())
        worker.check()
        if time.monotonic() > deadline:
            raise WorkerError(f"{ready} of {events} events after {seconds:.0f} s\n{worker.last_words()}")
        time.sleep(POLL_SECONDS)


def verify(wire: Wire, queue: str, bulk: Bulk, counts: list[int]) -> tuple[Tally, bytes]:
    """Empty the queue; return what was in it, all partitions together, and the content header of the first message.

    Raises WireError if it gives nothing more before it is empty, ValueError if a value is not as it was produced.
    """
    arrivals: list[list[int]] = [[] for _ in counts]
    properties = b""
    for delivery in wire.drain(queue, wire.count(queue).ready):
        properties = properties or delivery.properties
        partition, number = bulk.read(delivery.body)
        arrivals[partition].append(number)
    return sum(map(tally, counts, arrivals), Tally()), properties


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)
