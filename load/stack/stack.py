"""One local stack: a Kafka and a RabbitMQ that are real, small, and nobody else's."""

import contextlib
import os
import secrets
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from load.stack import containers, kafka_node, packages, ports, rabbitmq_node
from load.stack.containers import ContainerNode
from load.stack.errors import AlreadyUpError, SetupError, StackError
from load.stack.kafka_node import KafkaNode
from load.stack.leftovers import clear, clear_abandoned, is_up
from load.stack.node import Kafka, Node, Rabbitmq
from load.stack.processes import identity
from load.stack.rabbitmq_node import RabbitmqNode
from load.stack.state import FILE_NAME, State, home_of, locked

VARIABLE = "TIDEGATE_STACK"
PORT_ATTEMPTS = 3


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
        management: bool = False,
    ) -> Self:
        """Start a stack and return once both nodes answer in their own protocol.

        Without a name it gets one of its own and belongs to this process: should that end without `down`, the next
        `up` of the project cleans up (`owned` says otherwise). `data` is a folder, new or empty. `heap` is Kafka's,
        such as 512m. `management` adds RabbitMQ's HTTP API. What an earlier stack of this name left behind is removed
        first.
        Raises AlreadyUpError when one runs, SetupError when the machine lacks something, StackError when a node fails.
        """
        owner = identity(os.getpid()) if (name is None if owned is None else owned) else None
        home = home_of(name or f"own-{os.getpid()}-{secrets.token_hex(3)}")
        in_containers = packages.lacks_java_for_good() and containers.engine_answers()
        if management and in_containers:
            raise SetupError("the containers' RabbitMQ has no management API; the machine needs a Java of its own")
        software = None if in_containers else packages.provide(Path(rabbitmq_sbin) if rabbitmq_sbin else None)
        clear_abandoned()
        with locked(home):
            if is_up(home):
                raise AlreadyUpError(f"stack {home.name} is up already; take it down first, or use another name")
            clear(home)
            folder = _empty_folder(Path(data).resolve()) if data else home / "data"
            state = State(home.name, home, folder, {}, software, owner=owner, heap=heap)
            return cls._started(state, (rabbitmq_node.MANAGEMENT,) if management else ())

    @classmethod
    def named(cls, name: str) -> Self:
        """Return the stack of this name."""
        return cls(State.load(home_of(name) / FILE_NAME))

    @classmethod
    def from_env(cls) -> Self:
        """Return the stack that TIDEGATE_STACK names, as set by `python -m load.stack run`."""
        path = os.environ.get(VARIABLE)
        if not path:
            raise StackError(f"{VARIABLE} is not set; run this by `python -m load.stack run -- ...`")
        return cls(State.load(Path(path)))

    def __enter__(self) -> Self:
        """Return the stack."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the stack down."""
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
    def in_containers(self) -> bool:
        """Whether the nodes are containers; their data is in the engine's volumes then, not in `data`."""
        return self._state.software is None

    @property
    def kafka(self) -> str:
        """Kafka's address, HOST:PORT: no encryption, no login, all rights."""
        return f"127.0.0.1:{self._state.ports['kafka']}"

    @property
    def kafka_sasl(self) -> str:
        """Kafka's address for SASL_PLAINTEXT by PLAIN or SCRAM-SHA-256; its users are `kafka_settings.USERS`."""
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
    def management(self) -> str:
        """RabbitMQ's HTTP API, user guest. Raises StackError if the stack was brought up without it."""
        port = self._state.ports.get(rabbitmq_node.MANAGEMENT)
        if port is None:
            raise StackError(f"stack {self.name} has no management API; bring it up with management=True")
        return f"http://127.0.0.1:{port}"

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
        return self._pid(self._kafka)

    @property
    def rabbitmq_pid(self) -> int | None:
        """Process of RabbitMQ; None while it is stopped."""
        return self._pid(self._rabbitmq)

    def answers(self) -> dict[str, bool]:
        """Ask each node in its own protocol, now, and tell which answered."""
        return {node.role: node.answers() for node in (self._kafka, self._rabbitmq)}

    def rabbitmqctl(self, *arguments: str) -> str:
        """Run `rabbitmqctl --quiet` on this node and return its output."""
        return self._rabbitmq.control(*arguments)

    def stop_kafka(self, kill: bool = False) -> None:
        """Stop Kafka, orderly or by SIGKILL; data and port stay."""
        self._stop(self._kafka, kill=kill)

    def start_kafka(self) -> None:
        """Start Kafka again and wait until it answers; nothing happens while it runs."""
        self._restart(self._kafka)

    def stop_rabbitmq(self, kill: bool = False) -> None:
        """Stop RabbitMQ, orderly or by SIGKILL; data and port stay."""
        self._stop(self._rabbitmq, kill=kill)

    def start_rabbitmq(self) -> None:
        """Start RabbitMQ again and wait until it answers; nothing happens while it runs."""
        self._restart(self._rabbitmq)

    def down(self) -> None:
        """End every process and delete every file of the stack; nothing happens when it is down."""
        with locked(self._state.home):
            clear(self._state.home)

    @property
    def _kafka(self) -> Kafka:
        known = self._state
        if known.software is None:
            return ContainerNode(known, kafka_node.ROLE)
        return KafkaNode(
            known.home,
            known.data / "kafka",
            jars=known.software.jars,
            java=known.software.java,
            ports=known.ports,
            heap=known.heap,
        )

    @property
    def _rabbitmq(self) -> Rabbitmq:
        known = self._state
        if known.software is None:
            return ContainerNode(known, rabbitmq_node.ROLE)
        return RabbitmqNode(
            known.home,
            known.data / "rabbitmq",
            sbin=known.software.rabbitmq_sbin,
            ports=known.ports,
            name=f"tidegate-{known.name}",
        )

    @classmethod
    def _started(cls, state: State, more_ports: tuple[str, ...]) -> Self:
        """Start both nodes on free ports; should another process take one of these meanwhile, on others."""
        attempt = 1
        while True:
            state = replace(state, ports=ports.choose((*kafka_node.PORTS, *rabbitmq_node.PORTS, *more_ports)))
            state.save()
            stack = cls(state)
            try:
                stack._start()
            except BaseException as error:
                clear(state.home)
                # Ours have ended: a port that is in use is held by somebody else.
                taken = not all(map(ports.is_free, state.ports.values()))
                if not (isinstance(error, StackError) and taken and attempt < PORT_ATTEMPTS):
                    raise
            else:
                return stack
            attempt += 1

    def _start(self) -> None:
        """Start both at once, then wait for each; RabbitMQ first, because Kafka begins with formatting its storage."""
        if self._state.software is None:
            containers.write_ports(self._state)
        self._launch(self._rabbitmq)
        self._launch(self._kafka)
        self._await(self._kafka)
        self._kafka.grant()
        self._await(self._rabbitmq)

    def _restart(self, node: Node) -> None:
        with self._locked():
            if self._pid(node) is None:
                self._launch(node)
                self._await(node)

    def _launch(self, node: Node) -> None:
        self._keep(self._state.with_process(node.role, node.start()))

    def _await(self, node: Node) -> None:
        process, versions = node.await_ready(self._state.processes[node.role])
        state = self._state.with_process(node.role, process)
        self._keep(replace(state, versions=state.versions | versions))

    def _stop(self, node: Node, *, kill: bool) -> None:
        with self._locked():
            process = self._state.processes.get(node.role)
            if process is not None:
                node.stop(process, kill=kill)
                self._keep(self._state.with_process(node.role, None))

    def _keep(self, state: State) -> None:
        state.save()
        self._state = state

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Work on the stack as it is now: another script may have stopped or started a node."""
        with locked(self._state.home):
            self._state = State.load(self._state.path)
            yield

    def _pid(self, node: Node) -> int | None:
        process = State.load(self._state.path).processes.get(node.role)
        return node.pid(process) if process else None


def _empty_folder(folder: Path) -> Path:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise StackError(f"{folder} is not empty; --data takes a new or an empty folder")
    return folder
