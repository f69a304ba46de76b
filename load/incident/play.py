"""The incident from its beginning to its end."""

import asyncio
import gzip
import json
import time
import uuid
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from load.admin_view import owned
from load.incident.duty import Duty
from load.incident.traffic import NORMAL, SLOW, Orders, Services, place, quantile, write
from load.kafka import KafkaView
from load.stack import Stack, ports
from load.terminal import say
from load.wire import Wire
from load.worker import Worker, WorkerError

REPLICAS = PARTITIONS = 3
CAMPAIGN, AFTER, ALERTS = 3_000, 30, 90
"""Events of the campaign, of what comes after it, and alerts."""
AGE, KEPT = 200.0, 360.0
"""Seconds: the campaign is so old when it comes, and its topic keeps so much, so that half of its time is soon over."""
BOUND = 1_000
"""Messages that the queue takes."""
SECONDS = 90.0
"""Until something must be so; on a machine alone it takes some seconds."""


@dataclass
class Ended:
    """What became of it."""

    told: dict[str, Any] = field(default_factory=dict)
    """What duty saw, and figures."""
    differences: list[str] = field(default_factory=list)
    """Where an event is not accounted for, a sentence each."""
    written: dict[str, int] = field(default_factory=dict)
    """Events by topic."""
    skipped: int = 0


async def play(stack: Stack, folder: Path) -> Ended:
    """Live through it; the metric log is in `folder`/metrics. Raises WorkerError when something is not so in time."""
    name = f"incident-{uuid.uuid4().hex[:8]}"
    async with AsyncExitStack() as running:
        return await _Incident(stack, folder, name).live(running)


class _Incident:
    def __init__(self, stack: Stack, folder: Path, name: str) -> None:
        self._stack = stack
        self._folder = folder
        self._name = name
        self._topics = {kind: f"{name}.{kind}" for kind in ("orders", "alerts", "campaign")}
        self._services = Services(name)
        self._ended = Ended()
        self._began = time.monotonic()
        self._workers: list[Worker] = []

    async def live(self, running: AsyncExitStack) -> Ended:
        """Live through it."""
        await self._prepare()
        producer = AIOKafkaProducer(bootstrap_servers=self._stack.kafka, linger_ms=2)
        await producer.start()
        running.push_async_callback(producer.stop)
        duty = await self._start(running)
        orders = Orders(producer, self._topics["orders"], self._services)
        serving = asyncio.create_task(self._services.run(self._stack.amqp))
        ordering = asyncio.create_task(orders.run())
        for task in (serving, ordering):
            running.callback(task.cancel)
        await self._until(lambda: len(self._services.orders) > 20, "orders come")

        campaign = await write(producer, self._topics["campaign"], "campaign", CAMPAIGN, PARTITIONS, age=AGE)
        alerts = await write(producer, self._topics["alerts"], "alert", ALERTS, PARTITIONS)
        self._services.rate = SLOW
        skipped = await self._make_way(duty)
        later = await write(
            producer, self._topics["campaign"], "campaign", AFTER, PARTITIONS, first=CAMPAIGN // PARTITIONS
        )
        self._services.rate = NORMAL
        await self._until(lambda: all(self._services.came[one] for one in later), "what comes after the campaign")
        await self._redrive(duty)
        await self._until(lambda: all(self._services.came[one] for one in alerts), "the alerts come")

        orders.stop()
        await ordering
        await self._until(lambda: all(self._services.came[one] for one in orders.written), "the last orders come")
        self._ended.written = {
            self._topics["orders"]: len(orders.written),
            self._topics["alerts"]: ALERTS,
            self._topics["campaign"]: CAMPAIGN + AFTER,
        }
        await self._until(self._all_committed, "all is committed")
        for worker in self._workers:
            await asyncio.to_thread(worker.stop)
        self._account([*campaign, *later], alerts, list(orders.written), skipped)
        seconds, others = orders.waits()
        self._ended.told |= {
            "orders": len(orders.written),
            "order_seconds": {f"p{100 * share:g}": round(quantile(seconds, share), 3) for share in (0.5, 0.99, 1.0)},
            "others_before_an_order": max(others),
            "campaign_came": sum(1 for one in campaign if self._services.came[one]),
            "seconds": round(time.monotonic() - self._began, 1),
        }
        return self._ended

    async def _prepare(self) -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=self._stack.kafka)
        await admin.start()
        try:
            for kind, topic in self._topics.items():
                kept = {"retention.ms": f"{KEPT * 1000:.0f}"} if kind == "campaign" else {}
                await admin.create_topics([NewTopic(topic, PARTITIONS, 1, topic_configs=kept)])
        finally:
            await admin.close()
        with Wire(self._stack.amqp_port) as wire:
            wire.declare(self._name, {"x-max-length": BOUND, "x-overflow": "reject-publish"})
            wire.declare(f"{self._name}.dead")
            wire.exchange(self._name)
            for kind in ("orders", "campaign"):
                wire.bind(self._name, self._name, kind)

    async def _start(self, running: AsyncExitStack) -> Duty:
        """Start the replicas, and wait until they have shared the partitions out."""
        at = ports.choose([f"admin-{number}" for number in range(REPLICAS)])
        for number, port in enumerate(at.values()):
            settings = self._settings(port)
            file = self._folder / f"replica-{number}.yaml"
            file.write_text(yaml.safe_dump(settings), encoding="utf-8")
            worker = Worker("proxy", "run", "-c", str(file), output=self._folder / f"replica-{number}.txt")
            self._workers.append(running.enter_context(worker))
        whole = len(self._topics) * PARTITIONS

        async def is_shared() -> bool:
            each = [await asyncio.to_thread(owned, port) for port in at.values()]
            return sum(each) == whole and all(each)

        await self._until(is_shared, "each replica has partitions")
        return Duty(self._folder / "replica-0.yaml", list(at.values()))

    def _settings(self, port: int) -> dict[str, Any]:
        dead = {"routing_key": f"{self._name}.dead"}
        return {
            "log": {"hosts": [self._stack.kafka], "group": self._name},
            "broker": {"hosts": [f"127.0.0.1:{self._stack.amqp_port}"]},
            "routes": {"main": {"exchange": self._name, "queues": [self._name]}},
            "defaults": {"route": "main", "dead_letter": dead},
            "event_types": {
                self._topics["orders"]: {"class": "P1", "routing_key": "orders"},
                self._topics["alerts"]: {"class": "P2", "routing_key": "alerts"},
                self._topics["campaign"]: {"class": "P3", "routing_key": "campaign"},
            },
            "metric_log": {"folder": str(self._folder / "metrics"), "type_interval": "1s"},
            "admin": {"listen": f"127.0.0.1:{port}"},
        }

    async def _make_way(self, duty: Duty) -> dict[int, tuple[int, int]]:
        """See it, pause the campaign, pass over what is left of it; return which range of which partition."""
        told = self._ended.told

        async def is_seen() -> bool:
            told["top"] = await duty.top()
            return bool(told["top"]["classes"]["P3"]["lag"] and "P3" in told["top"]["answers"]["drop"])

        await self._until(is_seen, "top names what may be dropped")
        near = 'tidegate_retention_near_partitions{class="P3"}'
        await self._until(lambda: _is_more(duty.gauge(near)), "the log is said to drop the campaign soon")
        status, page = await duty.ask("GET", "/")
        told["page"] = [status, "<!doctype html" in page.lower(), (await duty.first_of_stream())["answers"]]
        asked = {"mode": "pause", "class": "P3", "for": "10m", "why": "the consumers are slow", "who": "duty"}
        status, paused = await duty.ask("POST", "/interventions", json=asked)
        told["pause"] = [status, len(paused["replicas"]), paused["silent"]]
        to_end = ("--type", self._topics["campaign"], "--to-end")
        looked = await duty.command("skip", *to_end, "--dry-run")
        skipped = await duty.command("skip", *to_end, "--yes", "--why", "the campaign is over")
        told["dry_run"] = sum(one["events"] for one in looked["partitions"])
        told["answered"] = [one["answered"] for one in skipped["replicas"]]
        again = await duty.command("skip", *to_end, "--yes")
        told["again"] = again["id"]
        await self._until(lambda: _is_none(duty.gauge(near)), "nothing is near its end any more")
        status, ended = await duty.ask("DELETE", f"/interventions/{paused['id']}", 1, params={"who": "duty"})
        told["resumed"] = [status, ended["silent"]]
        return {one["partition"]: (one["first"], one["end"]) for one in skipped["partitions"]}

    async def _redrive(self, duty: Duty) -> None:
        """Give the alerts their queue, and send again what lay with the dead letters."""
        with Wire(self._stack.amqp_port) as wire:
            await self._until(lambda: wire.count(f"{self._name}.dead").ready == ALERTS, "the alerts are dead letters")
            wire.bind(self._name, self._name, "alerts")
        (done,) = await duty.command(
            "redrive", "--reason", "unroutable", "--yes", "--why", "the alerts' queue was lost"
        )
        self._ended.told["redriven"] = [done["waiting"], done["redriven"], done["stay"]]

    async def _all_committed(self) -> bool:
        async with KafkaView(self._stack.kafka) as kafka:
            committed = await kafka.committed(self._name)
        total = sum(offset for (topic, _), offset in committed.items() if topic in self._ended.written)
        return total == sum(self._ended.written.values())

    def _account(
        self, campaign: list[bytes], alerts: list[bytes], orders: list[bytes], skipped: dict[int, tuple[int, int]]
    ) -> None:
        """Hold what came against what was written, skipped and recorded."""
        differences, came = self._ended.differences, self._services.came
        for name in (*orders, *alerts):
            if came[name] != 1:
                differences.append(f"{name.decode()} came {came[name]} times")
        for name in campaign:
            partition, offset = place(name)
            first, end = skipped.get(partition, (0, 0))
            if came[name] != int(not first <= offset < end):
                differences.append(f"{name.decode()} came {came[name]} times; [{first}, {end}) was passed over")
        if extra := came.keys() - {*orders, *alerts, *campaign}:
            differences.append(f"nobody wrote {sorted(extra)[:5]}")
        recorded = [one for one in self._records() if one["kind"] in {"skip", "redrive"}]
        ranges = {one["partition"]: (one["first"], one["end"]) for one in recorded if one["kind"] == "skip"}
        if ranges != skipped:
            differences.append(f"{skipped} was passed over, {ranges} is recorded")
        redriven = sum(one["count"] for one in recorded if one["kind"] == "redrive")
        if redriven != len(alerts):
            differences.append(f"{redriven} of {len(alerts)} redriven alerts are recorded")
        self._ended.skipped = sum(end - first for first, end in skipped.values())

    def _records(self) -> list[dict[str, Any]]:
        files = sorted((self._folder / "metrics").rglob("*.gz"))
        return [json.loads(line) for file in files for line in gzip.decompress(file.read_bytes()).splitlines()]

    async def _until(self, is_so: Callable[[], bool | Awaitable[bool]], what: str) -> None:
        """Wait until something is so. Raises WorkerError if it is not in time, or a replica has ended."""
        end = time.monotonic() + SECONDS
        while True:
            found = is_so()
            if found if isinstance(found, bool) else await found:
                say(f"{time.monotonic() - self._began:6.1f} s: {what}")
                return
            for worker in self._workers:
                worker.check()
            if time.monotonic() > end:
                raise WorkerError(f"not within {SECONDS:.0f} s: {what}")
            await asyncio.sleep(0.1)


async def _is_more(gauge: Awaitable[float]) -> bool:
    return await gauge > 0


async def _is_none(gauge: Awaitable[float]) -> bool:
    return await gauge == 0
