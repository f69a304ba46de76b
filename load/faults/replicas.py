"""The three Tidegate processes, each with settings, network links, an admin port and a metric log of its own."""

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import yaml

from load.admin_view import owned
from load.faults.link import Link
from load.faults.streams import DEAD, EXCHANGE, STREAMS
from load.metric_tail import MetricTail
from load.stack import ports
from load.worker import Worker, WorkerError

COUNT = 3
GROUP = "faults"
USER, PASSWORD = "tidegate", "tidegate"
IN_FLIGHT = 200
UNCOMMITTED = 300
"""Small, so that an outage of some seconds drives it to its bound."""
SESSION_SECONDS = 6.0
"""Tidegate's default."""
HEARTBEAT_SECONDS = 3.0
"""Of RabbitMQ's connections: a node that says nothing is given up after little more."""
TOPIC_CHECK_SECONDS = 2.0
STOP_SECONDS = 40.0
READY_SECONDS = 60.0
POLL_SECONDS = 0.1
METRIC_BYTES = 4 * 1024**2


@dataclass
class Replica:
    """One of them; the process changes when it is restarted."""

    number: int
    folder: Path
    kafka: Sequence[Link]
    """To each node of Kafka, in their order."""
    rabbitmq: Sequence[Link]
    admin: int
    """Port."""
    metrics: Path
    """Folder of its metric log."""
    worker: Worker | None = None
    tail: MetricTail = field(init=False)
    started: float = 0.0

    def __post_init__(self) -> None:
        """Follow its metric log."""
        self.tail = MetricTail(self.metrics)

    def output(self) -> bytes:
        """Return all that it has printed."""
        file = self.folder / "tidegate.txt"
        return file.read_bytes() if file.exists() else b""


class Replicas:
    """Starts, watches and ends them; a context manager that kills those that still run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.every: list[Replica] = []
        self.counted: Counter[tuple[str, str]] = Counter()
        """What they wrote of themselves: figure and event type or topic."""
        self.kills: list[float] = []
        """When one was ended at once, on the monotonic clock."""

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Kill those that still run."""
        for replica in self.every:
            if replica.worker is not None:
                replica.worker.kill()

    def add(self, kafka: Sequence[Link], rabbitmq: Sequence[Link], metrics: Path | None = None) -> Replica:
        """Prepare one more; its metric log goes into its own folder, or into this one."""
        number = len(self.every)
        folder = self._folder / f"replica-{number}"
        port = ports.choose(["admin"])["admin"]
        replica = Replica(number, folder, kafka, rabbitmq, port, (metrics or folder / "metrics").resolve())
        folder.mkdir(parents=True)
        replica.metrics.mkdir(exist_ok=True)
        text = yaml.safe_dump(settings(replica), sort_keys=False)
        (folder / "tidegate.yaml").write_text(text, encoding="utf-8")
        self.every.append(replica)
        return replica

    def start(self, replica: Replica) -> None:
        """Start it, anew if it has ended."""
        file = replica.folder / "tidegate.yaml"
        replica.worker = Worker("proxy", "run", "-c", str(file), output=replica.folder / "tidegate.txt")
        replica.started = time.monotonic()

    async def terminate(self, replica: Replica) -> None:
        """End it in order (SIGTERM). Raises WorkerError if it does not end, or not with exit code 0."""
        if replica.worker is not None:
            await asyncio.to_thread(replica.worker.stop, STOP_SECONDS)
            replica.worker = None

    def kill(self, replica: Replica) -> None:
        """End it at once (SIGKILL)."""
        if replica.worker is not None:
            self.kills.append(time.monotonic())
            replica.worker.kill()
            replica.worker = None

    def said(self) -> list[int]:
        """Return how much each has printed so far, in bytes; see `speakers`."""
        return [len(replica.output()) for replica in self.every]

    def speakers(self, before: Sequence[int], addresses: Sequence[str]) -> int:
        """Return how many have named one of these addresses since, each the one that it knows the node by."""
        return sum(
            address.encode() in replica.output()[start:]
            for replica, start, address in zip(self.every, before, addresses, strict=True)
        )

    def check(self) -> None:
        """Raise WorkerError if one has ended by itself."""
        for replica in self.every:
            if replica.worker is not None and replica.worker.code is not None:
                words = replica.worker.last_words()
                raise WorkerError(f"replica {replica.number} ended by itself, code {replica.worker.code}\n{words}")

    async def owned(self) -> list[int]:
        """Return how many partitions each reads; 0 for one that does not run or is not ready."""
        running = [replica for replica in self.every if replica.worker is not None]
        return [await asyncio.to_thread(owned, replica.admin) for replica in running]

    def read_metrics(self) -> None:
        """Count what they have written since the last call."""
        for replica in self.every:
            for record in replica.tail.poll():
                if record["kind"] == "type":
                    for figure in ("overtaken", "resent", "resent_unknown", "nacked", "unknown"):
                        self.counted[figure, record["type"]] += record[figure]
                elif record["kind"] == "incident":
                    self.counted[record["name"], record.get("topic") or ""] += record.get("count") or 1


def settings(replica: Replica) -> dict[str, Any]:
    """Return a replica's settings; what is not named is at its default."""
    return {
        "log": {
            "hosts": [f"127.0.0.1:{link.port}" for link in replica.kafka],
            "group": GROUP,
            "session_timeout": SESSION_SECONDS,
            "topic_check_interval": TOPIC_CHECK_SECONDS,
        },
        "broker": {
            "hosts": [f"127.0.0.1:{link.port}" for link in replica.rabbitmq],
            "username": USER,
            "password": PASSWORD,
            "heartbeat": HEARTBEAT_SECONDS,
        },
        "routes": {
            "main": {
                "exchange": EXCHANGE,
                "queues": [stream.name for stream in STREAMS],
                "policy": "class_budget",
                "in_flight_bound": IN_FLIGHT,
            }
        },
        "event_types": {
            stream.name: {
                "topic": stream.name,
                "class": stream.priority,
                "route": "main",
                "routing_key": {"constant": stream.name},
                "order": stream.order.value,
                "dead_letter": {"exchange": "", "routing_key": DEAD},
            }
            for stream in STREAMS
        },
        "limits": {"uncommitted_events": UNCOMMITTED},
        "metric_log": {
            "folder": str(replica.metrics),
            "type_interval": 1.0,
            "file_bytes": METRIC_BYTES // 4,
            "total_bytes": METRIC_BYTES,
        },
        "admin": {"listen": f"127.0.0.1:{replica.admin}"},
    }
