"""One local stack: a Kafka and a RabbitMQ that are real, small, and nobody else's."""

import contextlib
import os
import secrets
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from load.stack import kafka_node, packages, ports, rabbitmq_node
from load.stack.errors import StackError
from load.stack.kafka_node import KafkaNode
from load.stack.processes import Identity, identity, is_running, kill_marked
from load.stack.rabbitmq_node import RabbitmqNode
from load.stack.state import State, home_of, homes, locked, remove

VARIABLE = "TIDEGATE_STACK"


class Stack:
    """A handle on one stack, made by `up`, `from_env` or `named`; any number of scripts may hold one.

    As a context manager it takes the stack down at the end. Every method raises StackError with the node's last words.
    """

    def __init__(self, state: State) -> None:
        self._state = state

    @classmethod
    def up(
        cls,
        name: str | None = None,
        data: str | Path | None = None,
        rabbitmq_sbin: str | Path | None = None,
        heap: str = "1g",
        *,
        owned: bool | None = None,
    ) -> Self:
        """Start a stack and return once both nodes answer in their own protocol.

        Without a name it gets one of its own and belongs to this process: should that end without `down`, the next `up` of
        the project cleans up after it (`owned` says otherwise). `data` is a folder, new or empty. `heap` is Kafka's, such as
        512m. Raises SetupError when the machine lacks something, StackError when a stack of this name is up or a node fails.
        """
        owned = name is None if owned is None else owned
        home = home_of(name or f"own-{os.getpid()}-{secrets.token_hex(3)}")
        software = packages.provide(Path(rabbitmq_sbin) if rabbitmq_sbin else None)
        clean_abandoned()
        with locked(home):
            if _is_up(home):
                raise StackError(f"stack {home.name} is up already; take it down first, or use another name")
            clear(home)
            folder = _empty_folder(Path(data).resolve()) if data else home / "data"
            state = State(
                name=home.name,
                home=home,
                data=folder,
                ports=ports.choose((*kafka_node.PORTS, *rabbitmq_node.PORTS)),
                java=software.java,
                jars=software.jars,
                rabbitmq_sbin=software.rabbitmq_sbin,
                owner=identity(os.getpid()) if owned else None,
                heap=heap,
            )
            state.save()
            stack = cls(state)
            try:
                stack._start()
            except BaseException:
                clear(home)
                raise
        return stack

    @classmethod
    def named(cls, name: str) -> Self:
        """Return the stack of this name."""
        return cls(State.load(home_of(name) / "state.json"))

    @classmethod
    def from_env(cls) -> Self:
        """Return the stack that TIDEGATE_STACK names, as set by `python -m load.stack run`."""
        path = os.environ.get(VARIABLE)
        if not path:
            raise StackError(f"{VARIABLE} is not set; run this by `python -m load.stack run -- ...`")
        return cls(State.load(Path(path)))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.down()

    @property
    def name(self) -> str:
        """Name, as `--name` takes it."""
        return self._state.name

    @property
    def state_file(self) -> Path:
        """Path of the state file."""
        return self._state.path

    @property
    def data(self) -> Path:
        """Folder that holds the data of both nodes."""
        return self._state.data

    @property
    def kafka(self) -> str:
        """Kafka's address, HOST:PORT: no encryption, no login, all rights."""
        return f"127.0.0.1:{self._state.ports['kafka']}"

    @property
    def kafka_sasl(self) -> str:
        """Kafka's address for SASL_PLAINTEXT by PLAIN or SCRAM-SHA-256; its users are in `kafka_node.USERS`."""
        return f"127.0.0.1:{self._state.ports['kafka_sasl']}"

    @property
    def amqp_port(self) -> int:
        """RabbitMQ's port on 127.0.0.1."""
        return self._state.ports["amqp"]

    @property
    def amqp(self) -> str:
        """RabbitMQ's URL."""
        return f"amqp://guest:guest@127.0.0.1:{self.amqp_port}/%2f"

    @property
    def versions(self) -> dict[str, str]:
        """Versions: kafka, rabbitmq, erlang."""
        return dict(self._state.versions)

    @property
    def environment(self) -> dict[str, str]:
        """What `run` sets for its command."""
        return {
            "TIDEGATE_KAFKA": self.kafka,
            "TIDEGATE_KAFKA_SASL": self.kafka_sasl,
            "TIDEGATE_AMQP": self.amqp,
            VARIABLE: str(self.state_file),
        }

    @property
    def kafka_pid(self) -> int | None:
        """Process of Kafka; None while it is stopped."""
        return self._pid(kafka_node.ROLE)

    @property
    def rabbitmq_pid(self) -> int | None:
        """Process of RabbitMQ; None while it is stopped."""
        return self._pid(rabbitmq_node.ROLE)

    def rabbitmqctl(self, *arguments: str) -> str:
        """Run `rabbitmqctl --quiet` on this node and return its output."""
        return self._rabbitmq.control(*arguments)

    def stop_kafka(self, kill: bool = False) -> None:
        """Stop Kafka, orderly or by SIGKILL; data and port stay."""
        self._stop(kafka_node.ROLE, lambda process: self._kafka.stop(process, kill=kill))

    def start_kafka(self) -> None:
        """Start Kafka again and wait until it answers; nothing happens while it runs."""
        with self._locked():
            if self.kafka_pid is None:
                self._launch(kafka_node.ROLE, self._kafka.start)
                self._kafka.await_ready(self._state.processes[kafka_node.ROLE])

    def stop_rabbitmq(self, kill: bool = False) -> None:
        """Stop RabbitMQ, orderly or by SIGKILL; data and port stay."""
        self._stop(rabbitmq_node.ROLE, lambda process: self._rabbitmq.stop(process, kill=kill))

    def start_rabbitmq(self) -> None:
        """Start RabbitMQ again and wait until it answers; nothing happens while it runs."""
        with self._locked():
            if self.rabbitmq_pid is None:
                self._launch(rabbitmq_node.ROLE, self._rabbitmq.start)
                self._await_rabbitmq()

    def down(self) -> None:
        """End every process and delete every file of the stack; nothing happens when it is down."""
        with locked(self._state.home):
            clear(self._state.home)

    @property
    def _kafka(self) -> KafkaNode:
        state = self._state
        return KafkaNode(
            home=state.home,
            data=state.data / "kafka",
            jars=state.jars,
            java=state.java,
            ports=state.ports,
            heap=state.heap,
        )

    @property
    def _rabbitmq(self) -> RabbitmqNode:
        state = self._state
        return RabbitmqNode(
            home=state.home,
            data=state.data / "rabbitmq",
            sbin=state.rabbitmq_sbin,
            ports=state.ports,
            name=f"tidegate-{state.name}",
        )

    def _start(self) -> None:
        """Start both at once and wait for each; RabbitMQ first, because Kafka begins with formatting its storage."""
        self._launch(rabbitmq_node.ROLE, self._rabbitmq.start)
        self._launch(kafka_node.ROLE, self._kafka.start)
        self._kafka.await_ready(self._state.processes[kafka_node.ROLE])
        self._kafka.grant()
        self._await_rabbitmq()

    def _await_rabbitmq(self) -> None:
        node, versions = self._rabbitmq.await_ready(self._state.processes[rabbitmq_node.ROLE])
        state = self._state.with_process(rabbitmq_node.ROLE, node)
        self._keep(replace(state, versions={"kafka": self._kafka.version, **versions}))

    def _launch(self, role: str, start: Callable[[], Identity]) -> None:
        self._keep(self._state.with_process(role, start()))

    def _stop(self, role: str, stop: Callable[[Identity], None]) -> None:
        with self._locked():
            process = self._state.processes.get(role)
            if process is not None:
                stop(process)
                self._keep(self._state.with_process(role, None))

    def _keep(self, state: State) -> None:
        state.save()
        self._state = state

    @contextlib.contextmanager
    def _locked(self):
        """Work on the stack as it is now: another script may have stopped or started a node."""
        with locked(self._state.home):
            self._state = State.load(self._state.path)
            yield

    def _pid(self, role: str) -> int | None:
        process = State.load(self._state.path).processes.get(role)
        return process.pid if process and is_running(process) else None


def clear(home: Path) -> None:
    """End whatever runs and delete whatever lies there for the stack of this folder, however it got into that state.

    Raises StackError when a process can't be ended.
    """
    try:
        state = State.load(home / "state.json")
    except StackError:
        state = None  # never written, or lost: the mark on the processes still tells them
    kill_marked(home, known=state.processes.values() if state else ())
    remove(home, state)


def clean_abandoned() -> list[str]:
    """Take down the stacks of this project whose script ended without doing so; return their names."""
    cleaned = []
    for home in homes():
        with contextlib.suppress(StackError, BlockingIOError), locked(home, wait=False):
            if State.load(home / "state.json").is_abandoned():
                clear(home)
                cleaned.append(home.name)
    return cleaned


def _is_up(home: Path) -> bool:
    try:
        state = State.load(home / "state.json")
    except StackError:
        return False
    return len(state.processes) == 2 and all(map(is_running, state.processes.values())) and bool(state.versions)


def _empty_folder(folder: Path) -> Path:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise StackError(f"{folder} is not empty; --data takes a new or an empty folder")
    return folder
