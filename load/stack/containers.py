"""The nodes as containers of docker/compose.yaml, where an engine answers and Java is missing.

The compose file says which images; a second file, written to the stack's home folder, gives the stack its own ports.
The data is in the engine's volumes.
"""

import json
import shutil
import subprocess
from dataclasses import dataclass

from load.stack import kafka_settings, probes
from load.stack.errors import StackError
from load.stack.processes import Identity
from load.stack.state import KINDS, PROJECT, State

COMPOSE_FILE = PROJECT / "docker" / "compose.yaml"
START_SECONDS = 120.0
STOP_SECONDS = 30
ENGINE_SECONDS = 600.0
ASK_SECONDS = 20.0
KAFKA_DATA = "/var/lib/kafka/data"
AMQP_PORT = 5672
NO_START = 0
"""Start time of a container's process: never a real one's, so that no signal is ever sent to it from here."""


def engine_answers() -> bool:
    """Tell whether there are a container engine and its compose command, and the engine can be reached."""
    if not shutil.which("docker") or not COMPOSE_FILE.exists():
        return False
    try:
        return all(
            subprocess.run(command, check=False, capture_output=True, timeout=ASK_SECONDS).returncode == 0
            for command in (["docker", "info"], ["docker", "compose", "version"])
        )
    except (OSError, subprocess.TimeoutExpired):
        return False


def are_running(state: State) -> bool:
    """Tell whether the containers of both nodes run."""
    return {*KINDS} <= {*_run(state, "ps", "--services", "--status", "running").split()}


def remove(state: State) -> None:
    """Remove the containers and their data. Raises StackError when the engine can't."""
    _run(state, "down", "--volumes", "--timeout", "0")


def write_ports(state: State) -> None:
    """Write the compose file that gives the nodes of this stack their ports."""
    ports = state.ports
    inside = kafka_settings.settings(ports, log_folder=KAFKA_DATA, listen_on="")
    environment = {_variable(key): value for key, value in inside.items()}
    published = [f"127.0.0.1:{ports[name]}:{ports[name]}" for name in ("kafka", "kafka_sasl")]
    lines = [
        "services:",
        "  kafka:",
        '    restart: "no"',
        f"    environment: {json.dumps(environment)}",
        f"    ports: !override {json.dumps(published)}",
        "  rabbitmq:",
        '    restart: "no"',
        f'    ports: !override ["127.0.0.1:{ports["amqp"]}:{AMQP_PORT}"]',
    ]
    state.home.mkdir(parents=True, exist_ok=True)
    (state.home / "ports.yaml").write_text("\n".join(lines) + "\n")


@dataclass(frozen=True)
class ContainerNode:
    """One service of the compose file."""

    state: State
    role: str

    def start(self) -> Identity:
        """Create or start the container."""
        _run(self.state, "up", "--detach", "--no-deps", self.role)
        return Identity(int(self._inspect("{{.State.Pid}}")), NO_START)

    def await_ready(self, process: Identity) -> tuple[Identity, dict[str, str]]:
        """Wait until the node answers; return its process as the engine sees it, and versions."""
        versions = probes.await_answer(
            self._ask,
            node=self.role,
            seconds=START_SECONDS,
            is_running=lambda: self.pid(process) is not None,
            last_lines=lambda: _run(self.state, "logs", "--tail", "15", self.role),
        )
        return process, versions

    def answers(self) -> bool:
        """Tell whether the node answers now."""
        try:
            self._ask()
        except probes.NotReadyError:
            return False
        return True

    def pid(self, process: Identity) -> int | None:
        """Return the pid while the container runs."""
        return process.pid if self._inspect("{{.State.Pid}}") == str(process.pid) else None

    def stop(self, process: Identity, *, kill: bool) -> None:
        """Stop the container, orderly or by SIGKILL."""
        del process
        orderly = ("stop", "--timeout", str(STOP_SECONDS))
        _run(self.state, *(("kill",) if kill else orderly), self.role)

    def grant(self) -> None:
        """Give the users of the SASL listener their rights; in a container it knows PLAIN alone."""
        kafka_settings.grant(self.state.ports["kafka"])

    def control(self, *arguments: str) -> str:
        """Run rabbitmqctl in the container and return what it prints."""
        return _run(self.state, "exec", "-T", self.role, "rabbitmqctl", "--quiet", *arguments)

    def _ask(self) -> dict[str, str]:
        if self.role == "rabbitmq":
            return probes.rabbitmq_versions(probes.amqp_handshake(self.state.ports["amqp"]))
        probes.kafka_cluster(self.state.ports["kafka"])
        probes.await_coordinator(self.state.ports["kafka"])
        return {"kafka": self._inspect("{{.Config.Image}}").rpartition(":")[2]}

    def _inspect(self, template: str) -> str:
        container = _run(self.state, "ps", "--all", "--quiet", self.role).strip()
        return _docker("inspect", "--format", template, container).strip()


def _variable(key: str) -> str:
    """Return the environment variable that the image of Kafka turns into this property."""
    return "KAFKA_" + key.replace("_", "__").replace("-", "___").replace(".", "_").upper()


def _run(state: State, *arguments: str) -> str:
    files = ("--file", str(COMPOSE_FILE), "--file", str(state.home / "ports.yaml"))
    return _docker("compose", "--project-name", f"tidegate-{state.name}", *files, *arguments)


def _docker(*arguments: str) -> str:
    command = ["docker", *arguments]
    try:
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=ENGINE_SECONDS
        )
    except subprocess.TimeoutExpired as error:
        raise StackError(f"the container engine did not do {' '.join(command)} in {ENGINE_SECONDS:.0f} s") from error
    if done.returncode:
        last = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
        raise StackError(f"{' '.join(command)} failed:\n{last}")
    return done.stdout
