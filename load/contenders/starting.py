"""Everybody who is compared by throughput, and how each is started."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from load import bridge_settings
from load.bridge_settings import Lane
from load.contenders.raw import WINDOW, bare_properties
from load.stack import Stack
from load.worker import Worker

TASKS = 4
"""Of mq-bridge side by side, when it may lose the order."""


@dataclass(frozen=True)
class Course:
    """What a contender is to do once: move all events of a topic into a queue."""

    stack: Stack
    folder: Path
    """For its settings and what it prints."""
    group: str
    """Its consumer group, and name of its files."""
    topic: str
    queue: str
    events: int
    size: int
    """Bytes of one value."""
    seed: int
    """Of the values."""
    properties: bytes
    """Content header of a message of Tidegate's; empty before its first run."""

    @property
    def output(self) -> Path:
        """Return the file for what it prints."""
        return self.folder / f"{self.group}.txt"


@dataclass(frozen=True)
class Contender:
    """Somebody who is measured."""

    start: Callable[[Course], Worker]
    words: str
    """What it is, for whoever reads the results."""
    is_ours: bool = False
    """A loss, a repetition or a place lost is a fault, not a remark."""
    reads_log: bool = True
    ends_alone: bool = False
    """Ends once all is moved; else it is told to."""
    is_consumed: bool = False
    """A consumer takes what it brings: who steers by the queue would rightly stop before one that nobody reads."""


def contenders(without: Collection[str] = ()) -> dict[str, Contender]:
    """Return who can run here; Tidegate first and always, because raw copies the header of its messages."""
    absent = set(without) if find_spec("mq_bridge") else {*without, "mq-bridge", "mq-bridge-tuned"}
    return {name: one for name, one in ALL.items() if name == "tidegate" or name not in absent}


def _tidegate(course: Course) -> Worker:
    return _bridge(course, WINDOW, "static")


def _tidegate_static(course: Course) -> Worker:
    return _bridge(course, None, "static")


def _tidegate_defaults(course: Course) -> Worker:
    return _bridge(course, None, "class_budget")


def _bridge(course: Course, in_flight: int | None, policy: str) -> Worker:
    file, lane = course.folder / f"{course.group}.yaml", Lane("bulk", course.topic, course.queue)
    bridge_settings.write(file, course.stack, course.group, [lane], in_flight=in_flight, policy=policy)
    return Worker("proxy", "run", "-c", str(file), output=course.output)


def _naive(course: Course) -> Worker:
    return Worker("load.contenders.naive", *_places(course), "--events", str(course.events), output=course.output)


def _mq_bridge(course: Course) -> Worker:
    return Worker("load.contenders.mq_bridge", *_places(course), output=course.output)


def _mq_bridge_tuned(course: Course) -> Worker:
    return Worker("load.contenders.mq_bridge", *_places(course), "--tasks", str(TASKS), output=course.output)


def _places(course: Course) -> tuple[str, ...]:
    return (
        *("--kafka", course.stack.kafka, "--amqp", course.stack.amqp, "--topic", course.topic),
        *("--group", course.group, "--queue", course.queue),
    )


def _raw(course: Course) -> Worker:
    return _raw_with(course, course.properties)


def _raw_bare(course: Course) -> Worker:
    return _raw_with(course, bare_properties())


def _raw_with(course: Course, properties: bytes) -> Worker:
    return Worker(
        "load.contenders.raw",
        *("--port", str(course.stack.amqp_port), "--queue", course.queue, "--events", str(course.events)),
        *("--size", str(course.size), "--seed", str(course.seed), "--properties", properties.hex()),
        output=course.output,
    )


ALL: Mapping[str, Contender] = {
    "tidegate": Contender(_tidegate, f"a window of {WINDOW:,}, policy: static, the rest at its default", is_ours=True),
    "raw": Contender(
        _raw, "frames made by hand, content headers as Tidegate's", reads_log=False, ends_alone=True,
    ),
    "raw-bare": Contender(
        _raw_bare, "the same with nothing but a message id", reads_log=False, ends_alone=True,
    ),
    "mq-bridge": Contender(_mq_bridge, "one task, which keeps the order"),
    "mq-bridge-tuned": Contender(_mq_bridge_tuned, f"{TASKS} tasks, which lose the order"),
    "naive": Contender(_naive, "poll 500, gather 500 publishes, commit", ends_alone=True),
    "tidegate-static": Contender(
        _tidegate_static, "policy: static, window adapts; consumed", is_ours=True, is_consumed=True
    ),
    "tidegate-defaults": Contender(
        _tidegate_defaults, "all at its default (class_budget, window adapts); consumed", is_ours=True,
        is_consumed=True,
    ),
}  # fmt: skip
