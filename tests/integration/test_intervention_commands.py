"""`tidegate pause | discard | resume | interventions`, as whoever is on duty runs them, against a real Kafka."""

import asyncio
import json
import os
import socket
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml
from aiokafka import AIOKafkaConsumer

from load.stack import Stack
from proxy.kafka_log.board import KafkaBoard
from proxy.model import Mode, Note
from proxy.operations.intervention import LONGEST_MS, Answer, Intervention, read
from proxy.settings import LogSettings
from tests.contract.log_adapters import DEADLINE, KafkaWorld, until

pytestmark = pytest.mark.timeout(120)

TYPES = {
    "order-confirmed": {"class": "P1"},
    "brand-alert": {"class": "P3"},
    "price-alert": {"class": "P3"},
    "marketing": {"pattern": "m.*"},
}
COMMANDS = {
    "pause": ("--type", "brand-alert", "--for", "10m"),
    "discard": ("--type", "brand-alert", "--for", "10m", "--yes"),
    "resume": ("--type", "brand-alert"),
    "interventions": (),
}


@dataclass
class Ended:
    """What a command left behind."""

    code: int
    out: str
    err: str


class Duty:
    """Whoever is on duty for one group: its settings, its commands, and hands on its board."""

    def __init__(self, stack: Stack, world: KafkaWorld, folder: Path) -> None:
        self.group = f"group-{uuid4().hex[:8]}"
        self.host = stack.kafka
        self.world = world
        self.file = folder / "tidegate.yaml"
        self.replicas = AsyncExitStack()
        self.topic = f"orders.{uuid4().hex[:8]}"
        self.write()

    def write(self, **log: Any) -> None:
        settings = {
            "log": {"hosts": [self.host], "group": self.group} | log,
            "broker": {"hosts": ["localhost:1"]},
            "routes": {"main": {"exchange": "events", "queues": ["mail"]}},
            "defaults": {"class": "P2", "route": "main", "routing_key": "mail", "dead_letter": {"routing_key": "dead"}},
            "event_types": TYPES,
        }
        self.file.write_text(yaml.safe_dump(settings))

    def board(self) -> KafkaBoard:
        return KafkaBoard(LogSettings(hosts=[self.host], group=self.group, metadata_age=0.5))

    async def run(self, command: str, *arguments: str, stdin: Any = asyncio.subprocess.DEVNULL) -> Ended:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "proxy", command, "-c", str(self.file), *arguments),
            stdin=stdin,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(DEADLINE):
            out, err = await process.communicate()
        ended = Ended(process.returncode or 0, out.decode(), err.decode())
        assert "Traceback" not in ended.err
        return ended

    async def notes(self) -> list[Note]:
        board = self.board()
        try:
            return await board.news()
        finally:
            await board.close()

    async def interventions(self) -> list[Intervention]:
        return [said for said in map(read, await self.notes()) if isinstance(said, Intervention)]

    async def join(self, *, answers: bool) -> str:
        """Bring a replica into the group; return its member id."""
        if self.topic not in await self.world.admin.list_topics():
            await self.world.create(self.topic, 4)
        consumer = AIOKafkaConsumer(self.topic, bootstrap_servers=self.host, group_id=self.group, client_id="tidegate")
        await self.replicas.enter_async_context(consumer)
        board = self.board()
        self.replicas.push_async_callback(board.close)

        async def is_in() -> bool:
            return consumer._coordinator.member_id in {member.id for member in await board.members()}

        await until(is_in)
        member: str = consumer._coordinator.member_id
        if answers:
            answering = asyncio.create_task(answer_all(board, member))
            self.replicas.callback(answering.cancel)
        return member


async def answer_all(board: KafkaBoard, member: str) -> None:
    while True:
        for note in await board.news():
            said = read(note)
            if isinstance(said, Intervention):
                answer = Answer(said.id, f"host of {member}", member, 2, time.time_ns() // 1_000_000)
                await board.pin(answer.key, answer.as_json())
        await asyncio.sleep(0.1)


@pytest.fixture
async def duty(stack: Stack, tmp_path: Path) -> AsyncIterator[Duty]:
    async with KafkaWorld.open(stack.kafka) as world:
        made = Duty(stack, world, tmp_path)
        async with made.replicas:
            yield made


async def test_a_pause_is_done_told_and_taken_back_when_every_replica_answers(duty: Duty) -> None:
    one, other = [await duty.join(answers=True) for _ in range(2)]
    paused = await duty.run("pause", "--class", "P3", "--for", "10m", "--by", "ann", "--why", "floods\x1b[2J")
    assert paused.code == 0, paused
    first, *answers = paused.out.splitlines()
    assert first.startswith("pause class P3 until 20")
    assert first.endswith(r"Z (in 10m), by ann: floods\x1b[2J")
    done = {f"  host of {member} at 127.0.0.1: done, for 2 event types that it serves" for member in (one, other)}
    assert set(answers) == done
    (kept,) = await duty.interventions()
    assert (kept.mode, kept.types, kept.classes, kept.by) == (Mode.PAUSE, (), ("P3",), "ann")
    assert kept.until_ms - kept.at_ms == 600_000
    assert f"kept in topic {duty.group}.tidegate as {kept.id}" in paused.err

    listed = await duty.run("interventions")
    assert listed.code == 0
    assert set(listed.out.splitlines()[1:]) == done
    assert listed.out.startswith("pause class P3 until")

    resumed = await duty.run("resume", "--type", "brand-alert", "--json")
    told = json.loads(resumed.out)
    assert (resumed.code, told["mode"], told["types"]) == (0, "run", ["brand-alert"])
    assert told["until_ms"] == kept.until_ms
    assert {replica["answer"]["member"] for replica in told["replicas"]} == {one, other}
    assert [each["mode"] for each in json.loads((await duty.run("interventions", "--json")).out)] == ["pause", "run"]

    assert (await duty.run("resume", "--class", "P3")).code == 0
    again = await duty.run("resume", "--class", "P3")
    assert (again.code, again.out) == (0, "Nothing holds for class P3: nothing was changed.\n")
    assert (await duty.run("resume", "--class", "P3", "--json")).out == "null\n"
    assert len(await duty.interventions()) == 3
    nothing = await duty.run("interventions")
    assert (nothing.code, nothing.out) == (
        0,
        "Nothing is paused, discarded or capped, and no route has another policy.\n",
    )


@pytest.mark.parametrize("is_json", [False, True])
async def test_the_silent_replica_is_named_and_the_exit_code_is_1_when_only_the_other_answers(
    duty: Duty, is_json: bool
) -> None:
    answering, silent = await duty.join(answers=True), await duty.join(answers=False)
    ended = await duty.run("pause", "--type", "price-alert", "--for", "1h", *(["--json"] if is_json else []))
    assert ended.code == 1
    assert "1 of 2 replicas did not answer within 10 s" in ended.err
    assert len(await duty.interventions()) == 1
    if is_json:
        replicas = {replica["id"]: replica["answer"] for replica in json.loads(ended.out)["replicas"]}
        assert replicas[silent] is None
        assert replicas[answering]["types"] == 2
    else:
        assert f"  no answer from {silent} at 127.0.0.1\n" in ended.out
        assert f"  host of {answering} at 127.0.0.1: done" in ended.out


async def test_it_holds_for_whoever_starts_when_no_replica_is_in_the_group(duty: Duty) -> None:
    ended = await duty.run("discard", "--type", "brand-alert", "--for", "7d", "--yes")
    assert ended.code == 0
    assert f"no replica is in group {duty.group} now: it holds for whoever starts" in ended.err
    (kept,) = await duty.interventions()
    assert (kept.mode, kept.types) == (Mode.DISCARD, ("brand-alert",))
    assert kept.by


async def test_nothing_is_created_when_there_is_nothing_to_take_back_or_to_tell(duty: Duty) -> None:
    assert (await duty.run("resume", "--type", "brand-alert")).code == 0
    assert (await duty.run("interventions", "--json")).out == "[]\n"
    assert f"{duty.group}.tidegate" not in await duty.world.admin.list_topics()


async def test_a_pause_is_taken_back_when_the_topic_that_it_was_kept_in_is_gone(duty: Duty) -> None:
    await duty.join(answers=True)
    assert (await duty.run("pause", "--class", "P3", "--for", "10m")).code == 0
    await duty.world.delete(f"{duty.group}.tidegate")
    listed = await duty.run("interventions")
    assert "or it was deleted" in listed.err
    resumed = await duty.run("resume", "--class", "P3")
    assert resumed.code == 0, resumed
    assert resumed.out.startswith("run class P3 until")
    assert "done, for 2 event types that it serves" in resumed.out


async def test_a_note_that_nobody_understands_is_told_and_hides_no_other(duty: Duty) -> None:
    assert (await duty.run("pause", "--type", "brand-alert", "--for", "1h")).code == 0
    board = duty.board()
    await board.pin("intervention/bad\x1b", b"{}")
    await board.close()
    listed = await duty.run("interventions")
    assert listed.code == 0
    assert "\x1b" not in listed.err
    assert r"note intervention/bad\x1b is not understood: mode is no text" in listed.err
    assert listed.out.startswith("pause type brand-alert until")


async def test_a_pause_is_taken_back_as_far_as_can_be_when_the_clock_of_who_asked_is_ahead(duty: Duty) -> None:
    now_ms = time.time_ns() // 1_000_000
    at_ms = now_ms + 60_000
    ahead = Intervention("ahead", Mode.PAUSE, ("brand-alert",), (), "ann", None, at_ms, at_ms + LONGEST_MS)
    board = duty.board()
    await board.create()
    await board.pin(ahead.key, ahead.as_json())
    await board.close()
    assert (await duty.run("resume", "--type", "brand-alert")).code == 0
    assert [one.mode for one in await duty.interventions()] == [Mode.PAUSE, Mode.RUN]


@pytest.mark.parametrize("typed", ["", "no\n", "y\n"])
async def test_nothing_is_dropped_when_a_discard_is_not_answered_by_yes(duty: Duty, typed: str) -> None:
    async with terminal(typed or "\x04") as stdin:
        ended = await duty.run("discard", "--class", "P3", "--for", "90s", stdin=stdin)
    assert ended.code == 1
    question = "Events of class P3 will be dropped for 90s, unsent, by every replica of group"
    assert ended.err == f"{question} {duty.group}. Type yes: Nothing was changed.\n"
    assert await duty.notes() == []


async def test_it_is_done_when_a_discard_is_answered_by_yes(duty: Duty) -> None:
    async with terminal("yes\n") as stdin:
        ended = await duty.run("discard", "--class", "P3", "--for", "90s", stdin=stdin)
    assert ended.code == 0
    assert [one.mode for one in await duty.interventions()] == [Mode.DISCARD]


@asynccontextmanager
async def terminal(typed: str) -> AsyncIterator[int]:
    """Give a terminal on which something was typed."""
    ours, theirs = os.openpty()
    try:
        os.write(ours, typed.encode())
        yield theirs
    finally:
        os.close(ours)
        os.close(theirs)


@pytest.mark.parametrize(
    ("command", "arguments", "why"),
    [
        ("discard", ["--type", "brand-alert", "--for", "1m"], "there is no terminal: say --yes\n"),
        ("pause", ["--type", "brand-alrt", "--for", "1m"], 'event type "brand-alrt" does not exist; did you mean "bra'),
        ("pause", ["--class", "P9", "--for", "1m"], 'class "P9" does not exist; allowed: P1'),
        ("resume", ["--class", "P9"], "allowed: P1, P2, P3\n"),
        ("pause", ["--for", "1m"], "say which event types are meant, by --type NAME or --class NAME"),
        ("pause", ["--class", "P3"], "the following arguments are required: --for"),
        (
            "pause",
            ["--class", "P3", "--for", "8d"],
            "argument --for: is no duration from 1s to 7d, like 30s, 10m or 2h",
        ),
        ("pause", ["--class", "P3", "--for", "soon"], "argument --for: is no duration from 1s to 7d"),
        ("pause", ["--class", "P3", "--for", "1m", "--why", " "], "argument --why: must have 1 to 1000 characters"),
        (
            "pause",
            [*(f"--type=m.{at}" for at in range(1_001)), "--for", "1m"],
            "names 1 to 1000 event types and classes",
        ),
    ],
)
async def test_a_mistake_is_told_and_changes_nothing(duty: Duty, command: str, arguments: list[str], why: str) -> None:
    ended = await duty.run(command, *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert why in ended.err
    assert f"{duty.group}.tidegate" not in await duty.world.admin.list_topics()


@pytest.mark.parametrize("command", COMMANDS)
async def test_one_line_says_that_kafka_does_not_answer(duty: Duty, command: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.shutdown(socket.SHUT_RDWR)  # listens no more, and keeps the port
        host = f"127.0.0.1:{server.getsockname()[1]}"
        duty.write(hosts=[host])
        ended = await duty.run(command, *COMMANDS[command])
    assert (ended.code, ended.out) == (1, "")
    (line,) = ended.err.splitlines()
    assert f"Kafka does not answer: {host}: " in line
    assert "refused" in line


@pytest.mark.parametrize("command", COMMANDS)
async def test_one_line_says_that_the_login_is_refused(duty: Duty, command: str, stack: Stack) -> None:
    security = {"protocol": "SASL_PLAINTEXT", "username": "tidegate", "password": "planted-secret"}
    duty.write(hosts=[stack.kafka_sasl], security=security)
    ended = await duty.run(command, *COMMANDS[command])
    assert (ended.code, ended.out) == (2, "")
    (line,) = ended.err.splitlines()
    assert "refuses the login; see log.security" in line
    assert "planted" not in line
