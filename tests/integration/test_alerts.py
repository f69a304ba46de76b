"""Every alert is fired by a fault of real brokers and real processes, and by nothing else; a real Prometheus looks on.

The rules are those that ship, expressions and all; only how long a state must last (`for`) is cut to a second, and
Prometheus looks twice a second instead of every 15 s.
"""

import asyncio
import contextlib
import json
import os
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete
from aiokafka.producer import message_accumulator
from aiokafka.producer import producer as library_producer
from aiokafka.record.default_records import _DefaultRecordBatchBuilderPy
from aiokafka.structs import TopicPartition

from load.prometheus import Prometheus
from load.stack import Stack
from load.stack.authority import Authority
from tests.support.tidegate import Ends, Tidegate, until

pytestmark = pytest.mark.timeout(240)

FILES = Path(__file__).resolve().parents[2] / "helm" / "tidegate" / "files"
RULES = yaml.safe_load((FILES / "alerts.yaml").read_text())
ALERTS = {rule["alert"] for group in RULES["groups"] for rule in group["rules"]}
BOARD: dict[str, Any] = json.loads((FILES / "board.json").read_text())
TOKEN = "a-token-for-tests-0123456789"
FULL = {"x-max-length": 5, "x-overflow": "reject-publish"}
SECONDS = 60.0
FIRST = {
    "TidegateStuck", "TidegateLosingEvents", "TidegateTypeStopped", "TidegateNotReading", "TidegateImportantLate",
    "TidegateRefused", "TidegateCongested", "TidegateDeadLetters", "TidegateMetricLogFailing",
    "TidegateCertificateEnds", "TidegateAdminRefused", "TidegateSettingsRefused", "TidegateRetentionNear",
}  # fmt: skip
LAST = {"TidegateDown", "TidegateNothingConfirmed"}
"""These come with a process that is killed and a broker that falls silent, and end some of the others."""

STUCK = """
import proxy.bridge.listener as module
async def ended(self, *arguments, **named):
    return None
module.Listener.run = ended
"""
"""A deliberate bug: the task of an event type ends at its start."""


def quick_rules(folder: Path) -> Path:
    """Write the rules with a shorter `for`."""
    rules = json.loads(json.dumps(RULES))
    for group in rules["groups"]:
        for rule in group["rules"]:
            if "for" in rule:
                rule["for"] = "1s"
    path = folder / "rules.yaml"
    path.write_text(yaml.safe_dump(rules))
    return path


def expressions() -> list[str]:
    """Return what the board asks, its variables filled in."""
    told = [target["expr"] for panel in BOARD["panels"] for target in panel["targets"]]
    return [one.replace("$__rate_interval", "10s").replace("$job", ".+") for one in told]


class Fleet:
    """Bridges by name, each with a fault of its own."""

    def __init__(self, ends: Ends, folder: Path, running: contextlib.ExitStack) -> None:
        self.ends = ends
        self.folder = folder
        self.running = running
        self.by_name: dict[str, Tidegate] = {}

    def start(self, name: str, types: dict[str, Any], **changes: Any) -> Tidegate:
        """Start a bridge in a group of its own."""
        settings = self.ends.settings(types, **changes)
        settings["log"] |= {"group": f"{self.ends.name}.{name}"}
        self.by_name[name] = self.running.enter_context(Tidegate(self.folder, settings))
        return self.by_name[name]

    async def ports(self) -> dict[str, int]:
        """Wait until all listen; return where."""
        for bridge in self.by_name.values():
            await until(lambda bridge=bridge: bridge.log_path.exists() and bridge.events("admin_listening"))
        return {name: bridge.events("admin_listening")[0]["port"] for name, bridge in self.by_name.items()}


@contextlib.asynccontextmanager
async def looking_on(fleet: Fleet, folder: Path, **guarded: str) -> AsyncIterator[Prometheus]:
    """Start a Prometheus that looks at a fleet."""
    with Prometheus(folder, await fleet.ports(), quick_rules(folder), guarded=guarded) as prometheus:
        await until(lambda: len(prometheus.query("up == 1")) == len(fleet.by_name))
        yield prometheus


async def fires(prometheus: Prometheus, alerts: set[str]) -> None:
    """Wait until these fire, all at once."""
    deadline = time.monotonic() + SECONDS
    while missing := alerts - prometheus.firing():
        assert time.monotonic() < deadline, f"{missing} do not fire, only {prometheus.firing()}"
        await asyncio.sleep(0.2)


async def poison(stack: Stack, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a record whose header's name is no text, as clients in C can."""

    class Bytes(str):
        __slots__ = ()

        def encode(self, *_: str) -> bytes:  # type: ignore[override]
            return b"\xff\xfe"

    for module in (message_accumulator, library_producer):
        monkeypatch.setattr(module, "DefaultRecordBatchBuilder", _DefaultRecordBatchBuilderPy)
    async with AIOKafkaProducer(bootstrap_servers=stack.kafka) as producer:
        await producer.send_and_wait(topic, b"poison", headers=[(Bytes("name"), b"")])
    monkeypatch.undo()


async def test_no_alert_fires_and_the_board_shows_figures_when_all_is_well(stack: Stack, tmp_path: Path) -> None:
    async with Ends.open(stack) as ends:
        topic, queue = await ends.topic(retention_ms="3600000"), await ends.queue()
        with contextlib.ExitStack() as running:
            fleet = Fleet(ends, tmp_path, running)
            route = {"main": {"exchange": "", "queues": [queue]}}
            await fleet.start("well", {topic: {"routing_key": queue}}, routes=route).ready()
            async with looking_on(fleet, tmp_path) as prometheus:
                consuming = asyncio.create_task(ends.receive(queue, 600))
                for number in range(30):
                    await ends.produce(topic, [b"%d" % number] * 20)
                    await asyncio.sleep(0.1)
                await consuming
                await until(lambda: prometheus.query("increase(tidegate_confirmed_events_total[1m]) > 100"))
                silent = [one for one in expressions() if not prometheus.query(one)]
                assert [one for one in silent if "dead_lettered" not in one and "awaits" not in one
                        and "congested" not in one and "rate_limit" not in one] == []  # fmt: skip
                assert prometheus.firing() == set()


async def test_each_alert_fires_when_its_fault_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert FIRST | LAST == ALERTS
    with Stack.up(heap="384m") as stack:
        async with Ends.open(stack) as ends:
            with contextlib.ExitStack() as running:
                await _all_faults(stack, ends, Fleet(ends, tmp_path, running), monkeypatch)


async def _all_faults(stack: Stack, ends: Ends, fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("stopped", "letters", "late", "losing", "poisoned", "stuck", "silent", "other", "refused")
    topics = {name: await ends.topic(f".{name}") for name in names}
    topics["near"] = await ends.topic(".near", retention_ms="20000")
    queue, dead = await ends.queue(), await ends.queue(".dead")
    full, unwatched = await ends.queue(".full", **FULL), await ends.queue(".unwatched", **FULL)
    away, metric_folder = {"routing_key": "nowhere"}, fleet.folder / "metrics"
    certificate, key = _short_certificate(fleet.folder)

    fleet.start("letters", {topics["stopped"]: away, topics["letters"]: away | {"dead_letter": {"routing_key": dead}}})
    route = {"main": {"exchange": "", "queues": [full]}}
    fleet.start("late", {topics["late"]: {"routing_key": full}}, routes=route)
    fleet.start("refused", {topics[name]: {"routing_key": unwatched} for name in ("refused", "near")})
    fleet.start("poisoned", {topics["poisoned"]: {"routing_key": queue}})
    fleet.start("silent", {topics["silent"]: {"routing_key": queue}}, metric_log={"folder": str(metric_folder)})
    tls = {"certificate_file": str(certificate), "key_file": str(key)}
    admin = {"listen": "127.0.0.1:0", "token": TOKEN, "tls": tls}
    fleet.start("guarded", {topics["other"]: {"routing_key": queue}}, admin=admin)
    bugs = fleet.folder / "bugs"
    bugs.mkdir()
    (bugs / "sitecustomize.py").write_text(STUCK)
    with monkeypatch.context() as patched:
        patched.setenv("PYTHONPATH", f"{bugs}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
        fleet.start("stuck", {topics["stuck"]: {"routing_key": queue}})
    await _lose(ends, topics["losing"], stack)
    fleet.start("losing", {topics["losing"]: {"routing_key": queue}})

    async with looking_on(fleet, fleet.folder, guarded=TOKEN) as prometheus:
        assert prometheus.firing() <= {"TidegateStuck", "TidegateLosingEvents", "TidegateCertificateEnds"}
        port = (await fleet.ports())["guarded"]
        await ends.produce(topics["stopped"], [b"x"])
        await ends.produce(topics["letters"], [b"x"])
        await poison(stack, topics["poisoned"], monkeypatch)
        await ends.produce(topics["stuck"], [b"x"])
        for name in ("refused", "near"):
            await ends.produce(topics[name], [b"x"] * 1000)
        past = int(time.time() * 1000) - 120_000
        sent = [await ends.producer.send(topics["late"], b"x", timestamp_ms=past) for _ in range(3000)]
        await asyncio.gather(*sent)
        for _ in range(6):
            with contextlib.suppress(urllib.error.HTTPError):
                _ask(port, "a-wrong-token-0123456789")
        _spoil(metric_folder)
        fleet.by_name["poisoned"].write("event_types: {mistaken: ")
        await fires(prometheus, FIRST)
        assert not LAST & prometheus.firing()
        stack.suspend("rabbitmq")
        await ends.produce(topics["silent"], [b"x"])
        fleet.by_name["letters"].process.kill()
        try:
            await fires(prometheus, LAST)
        finally:
            stack.resume("rabbitmq")


def _short_certificate(folder: Path) -> tuple[Path, Path]:
    return Authority(folder).issue("short", folder / "short", days=5)


def _spoil(metric_folder: Path) -> None:
    """Put a file where the folder was."""
    metric_folder.rename(metric_folder.with_name("moved"))
    metric_folder.write_text("no folder")


def _ask(port: int, token: str) -> None:
    request = urllib.request.Request(f"https://127.0.0.1:{port}/metrics", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=5, context=ssl._create_unverified_context()):
        pass


async def _lose(ends: Ends, topic: str, stack: Stack) -> None:
    """Let the group commit the first of twenty events, then drop what follows, as retention would."""
    await ends.produce(topic, [b"x"] * 20)
    group = f"{ends.name}.losing"
    consumer = AIOKafkaConsumer(bootstrap_servers=stack.kafka, group_id=group, enable_auto_commit=False)
    await consumer.start()
    place = TopicPartition(topic, 0)
    consumer.assign([place])
    await consumer.commit({place: 1})
    await consumer.stop()
    admin = AIOKafkaAdminClient(bootstrap_servers=stack.kafka)
    await admin.start()
    await admin.delete_records({place: RecordsToDelete(10)})
    await admin.close()
