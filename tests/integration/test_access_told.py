"""Planted secrets come out nowhere: not where brokers refuse them, not where all libraries tell all they do."""

import asyncio
import base64
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml

from load.stack.kafka_settings import USERS
from tests.support.secrets import Secrets
from tests.support.tidegate import Ends, until

pytestmark = pytest.mark.timeout(180)

TALKATIVE = """
import logging, sys
logging.basicConfig(level=logging.DEBUG)
for name in ("asyncio", "aiokafka.conn", "aiokafka.client", "aiormq.connection", "aio_pika.connection", "aiohttp"):
    logging.getLogger(name).setLevel(logging.DEBUG)
logging.getLogger("aiokafka").setLevel(logging.DEBUG)
from proxy.__main__ import main
sys.exit(main(sys.argv[1:]))
"""
"""Tidegate, and each library that logs in says all it does."""


@dataclass
class Process:
    """One that runs, and the file of what it says."""

    process: subprocess.Popen[bytes]
    out: Path

    def said(self, name: str) -> list[dict[str, Any]]:
        """Return what Tidegate itself has said under a name, among all that its libraries say."""
        return [json.loads(line) for line in self.out.read_text().splitlines() if f'"event": "{name}"' in line]


class Told:
    """All that came out of processes, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.planted: set[str] = set()

    def plant(self, *secrets: str) -> None:
        """Remember secrets, and the forms in which they travel."""
        for secret in secrets:
            self.planted |= {secret, *(part for part in secret.split(".") if len(part) > 20)}
            self.planted.add(base64.b64encode(secret.encode()).decode().rstrip("=")[:-2])

    def start(self, command: str, settings: Path) -> "Process":
        """Run Tidegate; its outputs are kept."""
        file = self.folder / f"{uuid4().hex}.out"
        with file.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, "-c", TALKATIVE, *command.split(), "-c", str(settings)],
                stdout=out,
                stderr=subprocess.STDOUT,
                env=os.environ | {"PYTHONASYNCIODEBUG": "1"},
            )
        return Process(process, file)

    @asynccontextmanager
    async def running(self, settings: Path) -> AsyncIterator["Process"]:
        """Run Tidegate to the end of the block."""
        started = self.start("run", settings)
        try:
            yield started
            started.process.terminate()
            await until(lambda: started.process.poll() is not None)
        finally:
            started.process.kill()
            started.process.wait()

    async def run(self, command: str, settings: Path) -> int:
        """Run Tidegate to its end; return the exit code."""
        process = self.start(command, settings).process
        try:
            await until(lambda: process.poll() is not None)
        finally:
            process.kill()
        return process.wait()

    @property
    def text(self) -> str:
        return "\n".join(
            file.read_bytes().decode(errors="replace") for file in self.folder.rglob("*") if file.is_file()
        )


@pytest.fixture
def told(tmp_path: Path) -> Told:
    (tmp_path / "told").mkdir()
    return Told(tmp_path / "told")


def written(told: Told, secrets: Secrets, ends: Ends, place: tuple[str, str], **parts: Any) -> Path:
    topic, queue = place
    made = ends.settings({topic: {"routing_key": queue}}, broker=parts["broker"])
    made["log"] |= parts["log"]
    made["metric_log"] = {"folder": str(told.folder / "metrics")}
    file = secrets.folder / f"{uuid4().hex}.yaml"
    file.write_text(yaml.safe_dump(made))
    return file


async def test_no_secret_is_told_when_logins_succeed_fail_and_are_refused_later(secrets: Secrets, told: Told) -> None:
    right, wrong = f"planted-right-{uuid4().hex}", f"planted-wrong-{uuid4().hex}"
    told.plant(right, wrong)
    pair = secrets.certificate("tidegate")
    told.plant(*lines_of(pair["key_file"])[1:-1])
    mechanism = "SCRAM-SHA-256"
    await secrets.rabbitmq_user(right)
    await secrets.kafka_password(right, mechanism)
    try:
        async with Ends.open(secrets.stack) as ends:
            place = await ends.topic(), await ends.queue()

            def settings(password: str, mechanism: str = mechanism) -> Path:
                log = secrets.log("SASL_SSL", mechanism=mechanism, username="tidegate", password=password, **pair)
                broker = secrets.broker(username=secrets.user, password=password)
                return written(told, secrets, ends, place, log=log, broker=broker)

            for command in ("check", "check --json"):
                assert await told.run(command, settings(right)) == 0
            for kind in (mechanism, "PLAIN"):
                assert await told.run("run", settings(wrong, kind)) == 2
            async with told.running(settings(right)) as running:
                await ends.produce(place[0], [b"event"])
                await ends.receive(place[1], 1)
                await metrics_into(told, running)
                await secrets.kafka_password(wrong, mechanism)
                await secrets.control("change_password", secrets.user, wrong)
                await secrets.control("close_all_user_connections", secrets.user, "test")
                await until(lambda: running.said("login_refused") and running.said("lane_unreachable"))
    finally:
        await secrets.kafka_password(USERS["tidegate"], mechanism)
    assert "SaslAuthenticateRequest" in told.text  # the libraries did tell
    assert [secret for secret in told.planted if secret in told.text] == []


async def test_no_token_is_told_when_it_is_taken_refused_or_can_not_be_made(secrets: Secrets, told: Told) -> None:
    argument = f"planted-argument-{uuid4().hex}"
    told.plant(argument)
    kafka, rabbitmq = secrets.kafka_token(), secrets.rabbitmq_token()
    late, stranger = secrets.kafka_token(life=-3600), secrets.rabbitmq_token().rpartition(".")[0] + ".c2lnbmF0dXJl"
    told.plant(kafka, rabbitmq, late, stranger)
    failing = ["sh", "-c", "echo $0; echo $0 >&2; exit 3", argument]
    async with Ends.open(secrets.stack) as ends:
        place = await ends.topic(), await ends.queue()

        def settings(log_token: dict[str, Any], broker_token: dict[str, Any]) -> Path:
            log = secrets.log("SASL_SSL", mechanism="OAUTHBEARER", token=log_token)
            return written(told, secrets, ends, place, log=log, broker=secrets.broker(token=broker_token))

        def files(log_token: str, broker_token: str) -> Path:
            secrets.write("kafka", log_token)
            secrets.write("rabbitmq", broker_token)
            return settings({"file": "kafka"}, {"file": "rabbitmq"})

        assert await told.run("check --json", files(kafka, rabbitmq)) == 0
        assert await told.run("check", files(late, "{" + rabbitmq)) == 2
        assert await told.run("check", settings({"command": failing}, {"command": failing})) == 2
        assert await told.run("run", files(late, rabbitmq)) == 2
        assert await told.run("run", files(kafka, stranger)) == 2
        async with told.running(files(kafka, rabbitmq)):
            await ends.produce(place[0], [b"event"])
            await ends.receive(place[1], 1)
        async with told.running(settings({"file": "kafka"}, {"command": failing})) as running:
            await until(lambda: running.said("secret_unusable"))
    assert "exit code 3" in told.text
    assert [secret for secret in told.planted if secret in told.text] == []


def lines_of(file: str) -> list[str]:
    return Path(file).read_text().splitlines()


async def metrics_into(told: Told, running: Process) -> None:
    """Keep what /metrics tells."""
    port = running.said("admin_listening")[0]["port"]

    def ask() -> bytes:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            return bytes(answer.read())

    body = await asyncio.to_thread(ask)
    assert b"tidegate_certificate_seconds_left" in body
    (told.folder / f"{uuid4().hex}.metrics").write_bytes(body)
