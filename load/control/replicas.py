"""The Tidegate processes of one run, each with settings, an admin port and a metric log of its own."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import yaml

from load.admin_view import lag, owned, wanted
from load.metric_tail import MetricTail
from load.stack import Stack, ports
from load.worker import Worker, WorkerError
from proxy.simulation import scenario_file
from proxy.simulation.scenario import Scenario

READY_SECONDS = 60.0
STOP_SECONDS = 20.0
POLL_SECONDS = 0.1
DRAIN_SECONDS = 1.0
"""Tidegate may take so long to see its last events confirmed; what is left stays in the log."""
RECORD_SECONDS = 0.2
"""Between two records of routes and classes in the metric log."""


def placed(settings: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Return the settings of a scenario with group, topics, exchanges and queues that are one run's own."""
    routes = {
        name: {
            **route,
            "exchange": f"{prefix}.{route['exchange']}",
            **({"queues": [_of_run(prefix, queue) for queue in route["queues"]]} if "queues" in route else {}),
        }
        for name, route in settings["routes"].items()
    }
    types = {
        name: {**kind, "topics": [f"{prefix}.{topic}" for topic in kind["topics"]]}
        for name, kind in settings["event_types"].items()
    }
    return dict(settings) | {
        "log": {**settings["log"], "group": prefix},
        "routes": routes,
        "event_types": types,
        "limits": {"drain_deadline": DRAIN_SECONDS, **settings.get("limits", {})},
    }


@dataclass
class Replicas:
    """Starts, watches and ends Tidegate processes; on leaving the context it kills those that still run."""

    stack: Stack
    scenario: Scenario
    policy: str
    folder: Path
    prefix: str
    amqp_port: int
    """Where they find RabbitMQ."""
    tails: list[MetricTail] = field(default_factory=list)
    """Of all ever started, in that order."""
    reads: list[tuple[str, ...]] = field(default_factory=list)
    _ended_cpu: float = 0.0
    """Processor seconds of those that have ended."""
    _workers: list[Worker | None] = field(default_factory=list)
    _admin: list[int] = field(default_factory=list)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Kill those that still run."""
        for worker in self._workers:
            if worker is not None:
                worker.kill()

    def folder_of(self, number: int) -> Path:
        """Return where a replica's settings, output and metric log are."""
        return self.folder / f"replica-{number}"

    def start(self, reads: tuple[str, ...]) -> None:
        """Start one more replica, for these classes.

        Raises StackError where the scenario has the management API and the stack has not.
        """
        folder = self.folder_of(len(self._workers))
        folder.mkdir(parents=True)
        port = ports.choose(["admin"])["admin"]
        hosts = {"kafka": self.stack.kafka, "rabbitmq": f"127.0.0.1:{self.amqp_port}"}
        if self.scenario.management:
            hosts["management"] = self.stack.management
        told = scenario_file.document(self.scenario, self.policy, reads, **hosts)
        told = placed(told, self.prefix) | {
            "metric_log": {"folder": str(folder.resolve()), "route_interval": RECORD_SECONDS},
            "admin": {"listen": f"127.0.0.1:{port}"},
        }
        file = folder / "tidegate.yaml"
        file.write_text(yaml.safe_dump(told, sort_keys=False), encoding="utf-8")
        self._workers.append(Worker("proxy", "run", "-c", str(file), output=folder / "tidegate.txt"))
        self._admin.append(port)
        self.tails.append(MetricTail(folder))
        self.reads.append(reads)

    def check(self) -> None:
        """Raise WorkerError if one has ended by itself."""
        for worker in self._workers:
            if worker is not None:
                worker.check()

    async def until_owned(self, partitions: int) -> None:
        """Wait until they own so many partitions together. Raises WorkerError after 60 s."""
        deadline = time.monotonic() + READY_SECONDS
        while sum([await asyncio.to_thread(owned, port) for port in self._admin]) < partitions:
            self.check()
            if time.monotonic() > deadline:
                words = next(worker.last_words() for worker in self._workers if worker is not None)
                raise WorkerError(f"Tidegate owns too few partitions after {READY_SECONDS:.0f} s\n{words}")
            await asyncio.sleep(POLL_SECONDS)

    @property
    def cpu(self) -> float:
        """Processor seconds of all, since their starts."""
        return self._ended_cpu + sum(worker.cpu_seconds() for worker in self._workers if worker is not None)

    async def lag(self) -> int:
        """Return how many events wait in the log."""
        return sum(await asyncio.gather(*(asyncio.to_thread(lag, port) for port in self._living)))

    async def wanted(self, route: str, queue: str) -> int | None:
        """Return how many consumers the replicas want for a queue of the scenario, the most; None if nobody knows."""
        name = f"{self.prefix}.{queue}"
        told = await asyncio.gather(*(asyncio.to_thread(wanted, port, route, name) for port in self._living))
        return max((count for count in told if count is not None), default=None)

    @property
    def _living(self) -> list[int]:
        return [port for port, worker in zip(self._admin, self._workers, strict=True) if worker is not None]

    async def end(self, number: int, *, kill: bool = False) -> None:
        """End a replica, in order or at once; nothing happens if it has ended."""
        worker, self._workers[number] = self._workers[number], None
        if worker is None:
            return
        self._ended_cpu += worker.cpu_seconds()
        if kill:
            worker.kill()
        else:
            await asyncio.to_thread(worker.stop, STOP_SECONDS)

    async def end_all(self) -> None:
        """End those that still run."""
        await asyncio.gather(*(self.end(number) for number in range(len(self._workers))))


def _of_run(prefix: str, queue: str | dict[str, Any]) -> str | dict[str, Any]:
    """Return what a route says of a queue, with the queue's name in this run."""
    return f"{prefix}.{queue}" if isinstance(queue, str) else queue | {"name": f"{prefix}.{queue['name']}"}
