"""One local stack: a Kafka and a RabbitMQ, of one node each or of several, real, small, and nobody else's."""

import contextlib
import os
import secrets
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from load.stack import (
    containers,
    guardian,
    kafka_node,
    network,
    nodes,
    packages,
    ports,
    probes,
    rabbitmq_node,
    security,
)
from load.stack.at_once import all_at_once
from load.stack.errors import AlreadyUpError, SetupError, StackError
from load.stack.leftovers import clear, clear_abandoned, is_up
from load.stack.node import Kafka, Node, Rabbitmq
from load.stack.processes import identity, is_running, send, suspend
from load.stack.reach import VARIABLE, Reach
from load.stack.state import FILE_NAME, GUARDIAN, NETWORK, State, empty_folder, home_of, locked

PORT_ATTEMPTS = 3
HEAP, CLUSTER_HEAP = "1g", "384m"
"""Of Kafka, of each of its nodes."""
JOIN_SECONDS = 60.0
"""Within so long, after the last has answered, all nodes count each other as members."""
NETWORK_SECONDS = 20.0


class Stack(Reach):
    """A handle on one stack, made by `up`, `from_env` or `named`; any number of scripts may hold one.

    As a context manager it takes the stack down at the end. Every method raises StackError with the node's last words.
    """

    @classmethod
    def up(
        cls,
        name: str | None = None,
        data: str | Path | None = None,
        rabbitmq_sbin: str | Path | None = None,
        heap: str | None = None,
        *,
        owned: bool | None = None,
        management: bool = False,
        secured: bool = False,
        kafka_nodes: int = 1,
        rabbitmq_nodes: int = 1,
    ) -> Self:
        """Start a stack and return once all nodes answer in their own protocol and know each other.

        Without a name it gets one of its own and belongs to this process: should that end without `down`, a guardian
        takes it down (`owned` says otherwise). `data` is a folder, new or empty. `heap` is that of each node of Kafka,
        such as 512m; with no node there is no Kafka. `management` adds RabbitMQ's HTTP API, on its first node,
        `secured` the listeners of `load.stack.security`, where there is one node each. What an earlier stack of this
        name left behind is removed first.
        Raises AlreadyUpError when one runs, SetupError when the machine lacks something, StackError when a node fails.
        """
        this = identity(os.getpid())
        stays_owned = name is None if owned is None else owned
        home = home_of(name or f"own-{os.getpid()}-{secrets.token_hex(3)}")
        single = max(kafka_nodes, rabbitmq_nodes) == 1
        in_containers = packages.lacks_java_for_good() and containers.engine_answers()
        if in_containers and (management or secured or not single):
            raise SetupError("in containers there is one node each, plain and without management API; install a Java")
        assert single or not secured, "a cluster has plain listeners only"
        software = None if in_containers else packages.provide(Path(rabbitmq_sbin) if rabbitmq_sbin else None)
        clear_abandoned()
        with locked(home):
            if is_up(home):
                raise AlreadyUpError(f"stack {home.name} is up already; take it down first, or use another name")
            clear(home)
            folder = empty_folder(Path(data).resolve()) if data else home / "data"
            heap = heap or (HEAP if kafka_nodes == 1 else CLUSTER_HEAP)
            state = State(
                home.name, home, folder, {}, software, owner=this, heap=heap, kafka_nodes=kafka_nodes,
                rabbitmq_nodes=rabbitmq_nodes, cluster_id="" if kafka_nodes == 1 else kafka_node.random_id(),
            )  # fmt: skip
            if secured:
                security.certificates(home / "certificates")
            more_ports = (*([rabbitmq_node.MANAGEMENT] if management else []), *(security.PORTS if secured else []))
            state = cls._started(state, more_ports)
            if not stays_owned:
                state = replace(state, owner=None)
                state.save()
            return cls(state)

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
    def kafka_pid(self) -> int | None:
        """Process of Kafka's first node; None while it is stopped."""
        return self.pid(self.kafka_roles[0])

    @property
    def rabbitmq_pid(self) -> int | None:
        """Process of RabbitMQ's first node; None while it is stopped."""
        return self.pid(self.rabbitmq_roles[0])

    @property
    def logs(self) -> dict[str, Path]:
        """What the nodes write of themselves, by role; none of those in containers."""
        data = self._state.data
        return {path.relative_to(data).parts[0]: path for path in (*data.glob("*/*.log"), *data.glob("*/logs/*.log"))}

    def pid(self, role: str) -> int | None:
        """Return the process of a node, None while it is stopped."""
        process = State.load(self._state.path).processes.get(role)
        return self._nodes[role].pid(process) if process else None

    def rabbitmqctl(self, *arguments: str, role: str | None = None) -> str:
        """Run `rabbitmqctl --quiet` on a node, the first unless said, and return its output."""
        return self._rabbitmq[role or self.rabbitmq_roles[0]].control(*arguments)

    def stop_kafka(self, kill: bool = False) -> None:
        """Stop Kafka, all its nodes, orderly or by SIGKILL; data and ports stay."""
        self.stop(*self.kafka_roles, kill=kill)

    def start_kafka(self) -> None:
        """Start what is stopped of Kafka again and wait until it answers."""
        self.start(*self.kafka_roles)

    def stop_rabbitmq(self, kill: bool = False) -> None:
        """Stop RabbitMQ, all its nodes, orderly or by SIGKILL; data and ports stay."""
        self.stop(*self.rabbitmq_roles, kill=kill)

    def start_rabbitmq(self) -> None:
        """Start what is stopped of RabbitMQ again and wait until it answers."""
        self.start(*self.rabbitmq_roles)

    def stop(self, *roles: str, kill: bool = False) -> None:
        """Stop these nodes, all at once, orderly or by SIGKILL; data and ports stay."""
        with self._locked():
            running = {role: self._state.processes[role] for role in roles if role in self._state.processes}
            known = self._nodes
            all_at_once([partial(known[role].stop, process, kill=kill) for role, process in running.items()])
            for role in running:
                self._keep(self._state.with_process(role, None))

    def start(self, *roles: str) -> None:
        """Start these nodes again, all at once, and wait until they answer; nothing happens to those that run."""
        with self._locked():
            stopped = [role for role in roles if self.pid(role) is None]
            self._launch(stopped)
            for role in stopped:
                self._await(role)

    def suspend(self, role: str) -> None:
        """Let a node stand still (SIGSTOP): from now on it answers nothing, and its connections stay open."""
        process = State.load(self._state.path).processes.get(role)
        if process is not None:
            suspend(process)

    def resume(self, role: str) -> None:
        """Let it go on."""
        process = State.load(self._state.path).processes.get(role)
        if process is not None:
            send(process, signal.SIGCONT)

    def cut_off(self, *roles: str) -> None:
        """Let nothing pass between these nodes and any other, in silence; clients still reach all. For clusters."""
        network.order(self._state.ports[network.CONTROL], network.CUT, *roles)

    def heal(self) -> None:
        """Let everything pass between all nodes again."""
        network.order(self._state.ports[network.CONTROL], network.HEAL)

    def down(self) -> None:
        """End every process and delete every file of the stack; nothing happens when it is down."""
        with locked(self._state.home):
            clear(self._state.home)

    @property
    def _kafka(self) -> dict[str, Kafka]:
        return nodes.kafka(self._state)

    @property
    def _rabbitmq(self) -> dict[str, Rabbitmq]:
        return nodes.rabbitmq(self._state)

    @property
    def _nodes(self) -> dict[str, Node]:
        return {**self._kafka, **self._rabbitmq}

    @classmethod
    def _started(cls, state: State, more_ports: tuple[str, ...]) -> State:
        """Start all nodes on free ports; should another process take one of these meanwhile, on others."""
        names = (*nodes.port_names(state.kafka_nodes, state.rabbitmq_nodes), *more_ports)
        attempt = 1
        while True:
            state = replace(state, ports=ports.choose(names))
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
                return stack._state
            attempt += 1

    def _start(self) -> None:
        """Start all at once, then wait for each; RabbitMQ first, because Kafka begins with formatting its storage."""
        state = self._state
        assert state.owner is not None, "a stack that is being started has an owner"
        self._keep(state.with_process(GUARDIAN, guardian.start(state.home, state.owner)))
        if state.software is None:
            containers.write_ports(state)
        if state.is_cluster:
            self._start_network()
        self._launch(state.rabbitmq_roles)
        self._launch(state.kafka_roles)
        for role in state.kafka_roles:
            self._await(role)
        if state.kafka_roles:
            self._await_all("Kafka", lambda: probes.kafka_cluster(self.kafka_ports[0], state.kafka_nodes))
            self._kafka[state.kafka_roles[0]].grant()
        for role in state.rabbitmq_roles:
            self._await(role)
        if state.rabbitmq_nodes > 1:
            members = "{} = length(rabbit_mnesia:cluster_nodes(running))."
            self._await_all("RabbitMQ", lambda: self._ask_erlang(members.format(state.rabbitmq_nodes)))

    def _start_network(self) -> None:
        process = nodes.start_network(self._state)
        self._keep(self._state.with_process(NETWORK, process))
        probes.await_answer(
            lambda: probes.listens(self._state.ports[network.CONTROL]),
            node="The network between the nodes",
            seconds=NETWORK_SECONDS,
            is_running=lambda: is_running(process),
            last_lines=lambda: nodes.last_words_of_network(self._state.home),
        )

    def _ask_erlang(self, question: str) -> None:
        try:
            self.rabbitmqctl("eval", question)
        except StackError as error:
            raise probes.NotReadyError(str(error)) from error

    def _await_all(self, kind: str, ask: Callable[[], object]) -> None:
        """Wait until the nodes of a kind know each other."""
        probes.await_answer(
            ask, node=f"{kind} as a cluster", seconds=JOIN_SECONDS, is_running=lambda: True, last_lines=lambda: ""
        )

    def _launch(self, roles: Sequence[str]) -> None:
        """Start nodes; several side by side, because each of Kafka's formats its storage first."""
        known = self._nodes
        for role, process in zip(roles, all_at_once([known[role].start for role in roles]), strict=True):
            self._keep(self._state.with_process(role, process))

    def _await(self, role: str) -> None:
        process, versions = self._nodes[role].await_ready(self._state.processes[role])
        state = self._state.with_process(role, process)
        self._keep(replace(state, versions=state.versions | versions))

    def _keep(self, state: State) -> None:
        state.save()
        self._state = state

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Work on the stack as it is now: another script may have stopped or started a node."""
        with locked(self._state.home):
            self._state = State.load(self._state.path)
            yield
