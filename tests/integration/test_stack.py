"""The local stack on its real nodes: it comes up, keeps what it should, and leaves nothing behind, however it ends."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import aio_pika
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaConnectionError, TopicAuthorizationFailedError

from load.stack import Stack, StackError, rabbitmq_4
from load.stack import ports as ports_module
from load.stack.disk import filesystem
from load.stack.errors import AlreadyUpError
from load.stack.ports import is_free
from load.stack.processes import identity, is_running, marked
from load.stack.state import PROJECT, State, home_of, homes

pytestmark = pytest.mark.timeout(300)

COMMAND_LINE = [sys.executable, "-m", "load.stack"]

# Runs the command line, and kills itself at the N-th time that a function of the stack, or of the interpreter, is met.
KILLED_AT = """
import os, signal, sys
from load.stack.__main__ import main
from load.stack import guardian
if os.environ.get("UNGUARDED"):
    guardian.start = lambda home, owner: owner
event, name, times = sys.argv[1], sys.argv[2], int(sys.argv[3])
def look(frame, what, function):
    global times
    ours = frame.f_code.co_name == name and "/load/stack/" in frame.f_code.co_filename
    if what == event and (getattr(function, "__name__", "") == name if what[:2] == "c_" else ours):
        times -= 1
        if not times:
            os.kill(os.getpid(), signal.SIGKILL)
sys.setprofile(look)
sys.exit(main(sys.argv[4:]))
"""


@pytest.fixture
def name() -> Iterator[str]:
    """Give a stack a name of its own; whatever is left of it after the test goes."""
    chosen = f"test-{os.getpid()}-{time.monotonic_ns() % 10**9}"
    yield chosen
    command("down", "--name", chosen)


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND_LINE, *arguments], cwd=PROJECT, check=False, capture_output=True, text=True)


def killed_at(
    event: str, function: str, times: int, *arguments: str, guarded: bool = True
) -> subprocess.CompletedProcess[str]:
    command_line = [sys.executable, "-c", KILLED_AT, event, function, str(times), *arguments]
    environment = os.environ | ({} if guarded else {"UNGUARDED": "yes"})
    return subprocess.run(command_line, cwd=PROJECT, env=environment, check=False, capture_output=True, text=True)


GUARDIAN_SECONDS = 30.0
PORTS_SECONDS = 10.0
"""What is under way to a process that was killed holds its port until the other side has heard of it."""


def await_gone(home: Path) -> None:
    """Wait until the guardian has done its work."""
    waited, deadline = threading.Event(), time.monotonic() + GUARDIAN_SECONDS
    while (home.exists() or marked(home)) and time.monotonic() < deadline:
        waited.wait(0.05)


def assert_nothing_is_left(home: Path, ports: dict[str, int]) -> None:
    assert marked(home) == []
    assert not home.exists()
    assert not home.with_suffix(".lock").exists()
    deadline = time.monotonic() + PORTS_SECONDS
    while (held := [port for port in ports.values() if not is_free(port)]) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not held


async def create_topic(stack: Stack, topic: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=stack.kafka)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(topic, 1, 1)])
    finally:
        await admin.close()


async def produce(stack: Stack, topic: str, value: bytes, **login: str) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=stack.kafka_sasl if login else stack.kafka, **login)
    try:
        await producer.start()
        await producer.send_and_wait(topic, value)
    finally:
        await producer.stop()


async def first_value(stack: Stack, topic: str) -> bytes:
    consumer = AIOKafkaConsumer(bootstrap_servers=stack.kafka, auto_offset_reset="earliest")
    await consumer.start()
    try:
        consumer.assign([TopicPartition(topic, 0)])
        ((record,),) = (await consumer.getmany(timeout_ms=30_000)).values()
        return bytes(record.value)
    finally:
        await consumer.stop()


async def publish(stack: Stack, queue: str, body: bytes) -> None:
    async with await aio_pika.connect(stack.amqp) as connection:
        channel = await connection.channel()
        await channel.declare_queue(queue, durable=True)
        message = aio_pika.Message(body, delivery_mode=aio_pika.DeliveryMode.PERSISTENT)
        await channel.default_exchange.publish(message, routing_key=queue)


async def get(stack: Stack, queue: str) -> bytes:
    async with await aio_pika.connect(stack.amqp) as connection:
        channel = await connection.channel()
        message = await (await channel.declare_queue(queue, durable=True)).get(no_ack=True)
        return message.body


def login(user: str, password: str, mechanism: str = "PLAIN") -> dict[str, str]:
    return {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": user,
        "sasl_plain_password": password,
    }


def test_both_nodes_answer_and_tell_their_versions_when_up(stack: Stack) -> None:
    assert stack.answers() == {"kafka": True, "rabbitmq": True}
    assert stack.versions["kafka"] == "4.3.1"
    assert stack.versions["rabbitmq"].split(".")[0] in {"3", "4"}
    assert str(stack.data) in stack.rabbitmqctl("status")


def test_the_tools_last_lines_are_raised_when_rabbitmqctl_fails(stack: Stack) -> None:
    with pytest.raises(StackError, match=r"(?s)rabbitmqctl delete_queue nothing failed \(\d+\):.*not found"):
        stack.rabbitmqctl("delete_queue", "nothing")


def test_the_node_listens_on_the_loopback_only_when_up(stack: Stack) -> None:
    owned = {str(port) for port in State.load(stack.state_file).ports.values()}
    listening = subprocess.run(["ss", "-Htln"], check=True, capture_output=True, text=True).stdout.splitlines()
    addresses = {line.split()[3] for line in listening}

    ours = {address for address in addresses if address.rpartition(":")[2] in owned}
    assert {address.rpartition(":")[2] for address in ours} == owned
    assert all(address.startswith(("127.0.0.1:", "[::ffff:127.0.0.1]:", "[::1]:")) for address in ours)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
async def test_rights_are_as_documented_when_users_log_in(stack: Stack, mechanism: str) -> None:
    suffix = mechanism.lower()
    await create_topic(stack, f"events-{suffix}")
    await create_topic(stack, f"forbidden.{suffix}")

    await produce(stack, f"events-{suffix}", b"1", **login("tidegate", "tidegate-secret", mechanism))
    await produce(stack, f"forbidden.{suffix}", b"1", **login("admin", "admin-secret", mechanism))
    with pytest.raises(TopicAuthorizationFailedError):
        await produce(stack, f"forbidden.{suffix}", b"1", **login("tidegate", "tidegate-secret", mechanism))
    with pytest.raises(TopicAuthorizationFailedError):
        await produce(stack, f"events-{suffix}", b"1", **login("reader", "reader-secret", mechanism))
    with pytest.raises(KafkaConnectionError):
        await produce(stack, f"events-{suffix}", b"1", **login("tidegate", "wrong", mechanism))


@pytest.mark.parametrize(
    "kill", [pytest.param(False, id="orderly", marks=pytest.mark.long), pytest.param(True, id="killed")]
)
async def test_data_and_port_are_kept_when_nodes_stop_and_start(stack: Stack, kill: bool) -> None:
    topic = f"kept-{kill}".lower()
    before = (stack.kafka, stack.amqp)
    await create_topic(stack, topic)
    await produce(stack, topic, b"in kafka")
    await publish(stack, topic, b"in rabbitmq")

    stack.stop_kafka(kill=kill)
    stack.stop_rabbitmq(kill=kill)
    assert (stack.kafka_pid, stack.rabbitmq_pid) == (None, None)
    assert stack.answers() == {"kafka": False, "rabbitmq": False}
    assert marked(stack.state_file.parent) == []
    stack.start_rabbitmq()
    stack.start_kafka()

    assert (stack.kafka, stack.amqp) == before
    assert await first_value(stack, topic) == b"in kafka"
    if not kill:  # RabbitMQ 4 confirms what a classic queue holds before it is on disk
        assert await get(stack, topic) == b"in rabbitmq"


def test_any_script_can_stop_a_node_when_it_knows_the_state_file(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEGATE_STACK", str(stack.state_file))
    other = Stack.from_env()

    other.stop_rabbitmq()
    assert stack.rabbitmq_pid is None
    stack.start_rabbitmq()

    assert other.rabbitmq_pid == stack.rabbitmq_pid is not None


@pytest.mark.long
async def test_stacks_do_not_meet_when_side_by_side(stack: Stack) -> None:
    with Stack.up(heap="512m") as other:
        home, ports = other.state_file.parent, State.load(other.state_file).ports
        assert not {*ports.values()} & {*State.load(stack.state_file).ports.values()}
        await publish(stack, "same", b"ours")
        await publish(other, "same", b"theirs")
        assert await get(other, "same") == b"theirs"
        await create_topic(other, "theirs")

    assert_nothing_is_left(home, ports)
    assert stack.answers() == {"kafka": True, "rabbitmq": True}
    assert await get(stack, "same") == b"ours"


@pytest.mark.long
def test_rabbitmq_4_runs_in_a_stack_when_its_scripts_are_given(tmp_path: Path) -> None:
    with Stack.up(data=tmp_path / "data", rabbitmq_sbin=rabbitmq_4.sbin()) as other:
        home, ports = other.state_file.parent, State.load(other.state_file).ports
        assert other.versions["rabbitmq"].startswith("4.")
        assert {path.name for path in (tmp_path / "data").iterdir()} == {"kafka", "rabbitmq"}
        other.stop_rabbitmq()
        other.start_rabbitmq()
        assert other.rabbitmqctl("list_queues", "name") == ""

    assert_nothing_is_left(home, ports)
    assert not (tmp_path / "data").exists()


@pytest.mark.long
def test_a_foreign_port_is_left_alone_when_it_was_taken_after_the_choice(
    name: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    listener = (
        "import socket; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True); input()"
    )
    with subprocess.Popen([sys.executable, "-c", listener], stdin=-1, stdout=-1, text=True) as foreign:
        assert foreign.stdout is not None
        taken = int(foreign.stdout.readline())
        choose, tried = ports_module.choose, []

        def choose_taken_first(names: tuple[str, ...]) -> dict[str, int]:
            tried.append(choose(names) | ({} if tried else {"amqp": taken}))
            return tried[-1]

        monkeypatch.setattr(ports_module, "choose", choose_taken_first)
        with Stack.up(name) as other:
            assert len(tried) == 2
            assert other.amqp_port != taken
            assert foreign.poll() is None
        assert foreign.poll() is None
        foreign.communicate("\n")
    assert foreign.returncode == 0


def test_nothing_is_started_when_a_stack_of_the_name_is_up(stack: Stack) -> None:
    pids = (stack.kafka_pid, stack.rabbitmq_pid)

    with pytest.raises(AlreadyUpError, match="is up already"):
        Stack.up(stack.name)
    again = command("up", "--name", stack.name)

    assert (again.returncode, f"export TIDEGATE_AMQP={stack.amqp}\n" in again.stdout) == (0, True)
    assert (stack.kafka_pid, stack.rabbitmq_pid) == pids


def test_the_data_folder_is_refused_when_something_lies_there(name: str, tmp_path: Path) -> None:
    (tmp_path / "precious").touch()

    with pytest.raises(StackError, match="is not empty"):
        Stack.up(name, data=tmp_path)

    assert (tmp_path / "precious").exists()
    assert not home_of(name).exists()


def test_each_node_is_told_apart_when_status_is_asked_for(stack: Stack) -> None:
    stack.stop_rabbitmq()
    try:
        seen = command("status")
    finally:
        stack.start_rabbitmq()

    assert f"rabbitmq {stack.versions['rabbitmq']}: {stack.amqp}, not running\n" in seen.stdout
    assert f"kafka 4.3.1: {stack.kafka}, answers, pid {stack.kafka_pid}\n" in seen.stdout
    assert seen.returncode == 1


KILL_POINTS = [
    ("c_return", "posix_spawn", 1),  # the guardian has been started
    ("c_return", "posix_spawn", 2),  # RabbitMQ has been started, its pid is not known to the script
    ("return", "save", 3),
    ("c_return", "fork_exec", 2),  # Kafka's storage is being formatted; the first was to ask Java's version
    ("c_return", "posix_spawn", 3),  # Kafka has been started
    ("return", "grant", 1),
    ("return", "await_ready", 2),  # all is up
]


def point_id(point: tuple[str, str, int]) -> str:
    return "-".join(map(str, point))


@pytest.mark.parametrize("point", KILL_POINTS, ids=point_id)
def test_the_guardian_leaves_nothing_when_the_script_was_killed(name: str, point: tuple[str, str, int]) -> None:
    killed = killed_at(*point, "up", "--name", name, "--heap", "512m")
    assert killed.returncode == -signal.SIGKILL, killed.stderr

    await_gone(home_of(name))

    assert_nothing_is_left(home_of(name), {})


@pytest.mark.parametrize("point", [("return", "save", 1), ("c_return", "posix_spawn", 2)], ids=point_id)
def test_down_leaves_nothing_when_script_and_guardian_were_killed(name: str, point: tuple[str, str, int]) -> None:
    killed = killed_at(*point, "up", "--name", name, "--heap", "512m", guarded=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    ports = State.load(home_of(name) / "state.json").ports

    done = command("down", "--name", name)

    assert (done.returncode, done.stderr) == (0, "")
    assert_nothing_is_left(home_of(name), ports)


def test_a_stale_pid_in_the_state_is_not_killed_when_somebody_else_has_it_now(name: str) -> None:
    with subprocess.Popen(["sleep", "60"]) as foreign, ExitStack() as after, Stack.up(name) as one:
        after.callback(foreign.kill)
        mine = identity(foreign.pid)
        assert mine is not None
        state = State.load(one.state_file)
        real = state.processes["kafka"]
        state.with_process("kafka", replace(mine, started=mine.started - 1)).save()

        one.down()

        assert is_running(mine)
        assert not is_running(real)


def test_the_command_gets_its_stack_and_gives_its_exit_code_when_run() -> None:
    script = (
        "from load.stack import Stack; s = Stack.from_env(); import os;"
        "assert s.answers() == {'kafka': True, 'rabbitmq': True};"
        "assert os.environ['TIDEGATE_KAFKA'] == s.kafka and os.environ['TIDEGATE_AMQP'] == s.amqp;"
        "assert os.environ['TIDEGATE_KAFKA_SASL'] == s.kafka_sasl; print(s.state_file); raise SystemExit(7)"
    )

    done = command("run", "--", sys.executable, "-c", script)

    assert done.returncode == 7, done.stderr
    assert "Kafka 4.3.1" in done.stderr
    assert f" on {filesystem(PROJECT)}\nFsync: Kafka" in done.stderr
    assert_nothing_is_left(Path(done.stdout.strip()).parent, {})


@pytest.mark.parametrize("signum", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_nothing_is_left_when_run_is_interrupted(signum: signal.Signals) -> None:
    shell = 'echo "$TIDEGATE_STACK"; exec sleep 60'
    with subprocess.Popen([*COMMAND_LINE, "run", "--", "sh", "-c", shell], cwd=PROJECT, stdout=-1, stderr=-1) as run:
        assert run.stdout is not None
        path = Path(run.stdout.readline().decode().strip())
        ports = State.load(path).ports
        run.send_signal(signum)
        run.communicate()

    assert run.returncode == 128 + signum
    assert_nothing_is_left(path.parent, ports)


def test_nothing_is_left_when_up_is_interrupted(name: str) -> None:
    with subprocess.Popen([*COMMAND_LINE, "up", "--name", name], cwd=PROJECT, stdout=-1, stderr=-1) as up:
        path = home_of(name) / "state.json"
        waited = threading.Event()
        while not marked(home_of(name)) and up.poll() is None:
            waited.wait(0.01)
        ports = State.load(path).ports
        up.send_signal(signal.SIGINT)
        up.communicate()

    assert up.returncode == 130
    assert_nothing_is_left(home_of(name), ports)


def test_nothing_is_left_when_run_and_its_command_are_killed() -> None:
    shell = 'echo "$TIDEGATE_STACK"; exec sleep 60'
    with subprocess.Popen([*COMMAND_LINE, "run", "--", "sh", "-c", shell], cwd=PROJECT, stdout=-1, stderr=-1) as run:
        assert run.stdout is not None
        path = Path(run.stdout.readline().decode().strip())
        state = State.load(path)
        sleeper = int(Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()[-1])
        run.kill()
        os.kill(sleeper, signal.SIGKILL)

    await_gone(state.home)

    assert_nothing_is_left(state.home, state.ports)


@pytest.mark.long
def test_the_next_up_cleans_when_scripts_and_guardians_were_killed(stack: Stack, name: str) -> None:
    half_started = killed_at("c_return", "posix_spawn", 2, "run", "--", "true", guarded=False)
    assert half_started.returncode == -signal.SIGKILL
    abandoned = [State.load(home / "state.json") for home in homes() if home.name.startswith("own-")]
    abandoned = [state for state in abandoned if state.is_abandoned()]
    same_name = killed_at("c_return", "posix_spawn", 2, "up", "--name", name, guarded=False)
    assert same_name.returncode == -signal.SIGKILL
    stale = [*marked(home_of(name)), *(process for state in abandoned for process in marked(state.home))]
    assert len(abandoned) == 1
    assert all(map(is_running, stale))

    with Stack.up(name) as one:
        assert_nothing_is_left(abandoned[0].home, abandoned[0].ports)
        assert not any(map(is_running, stale))
        assert one.answers() == stack.answers() == {"kafka": True, "rabbitmq": True}


@pytest.mark.long
def test_the_stack_stays_when_it_is_to_be_kept() -> None:
    done = command("run", "--keep", "--", "true")
    kept = done.stderr.rpartition("--name ")[2].split("`")[0]
    try:
        assert Stack.named(kept).answers() == {"kafka": True, "rabbitmq": True}
    finally:
        assert command("down", "--name", kept).returncode == 0
    assert_nothing_is_left(home_of(kept), {})
