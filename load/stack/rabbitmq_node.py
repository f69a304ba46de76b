"""One RabbitMQ node with its own name, cookie, epmd, ports and folders, started by the scripts of any RabbitMQ."""

import contextlib
import os
import secrets
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

from load.stack import probes, security
from load.stack.errors import StackError
from load.stack.processes import MARK, Identity, await_end, identity, is_running, kill_marked, send, spawn
from load.stack.state import RABBITMQ
from load.stack.terminal import tail

PORTS = ("amqp", "rabbitmq_dist", "epmd")
CLUSTER_PORTS = ("amqp", "rabbitmq_dist", "rabbitmq_dist_front")
MANAGEMENT = "management"
"""Name of one more port: a node that is given it serves RabbitMQ's HTTP API there, at the price of a slower start."""
START_SECONDS = 120.0
STOP_SECONDS = 60.0
TOOL_SECONDS = 60.0
MAX_SCHEDULERS = 4
SILENT_SECONDS = 6
"""A node of a cluster that says nothing for so long is down for the others. By default it is a minute (net_ticktime),
and so long nobody, plain clients neither, gets a message into a queue which that node led."""
NO_BUSY_WAIT = "+sbwt none +sbwtdcpu none +sbwtdio none"

SETTINGS = """\
listeners.tcp.default = 127.0.0.1:{amqp}
log.file = {log}
log.file.level = info
log.file.rotation.size = 10485760
log.file.rotation.count = 2
log.console = false
disk_free_limit.absolute = 200MB
"""
MANAGEMENT_SETTINGS = """\
management.tcp.ip = 127.0.0.1
management.tcp.port = {management}
"""
CLUSTER_SETTINGS = """\
cluster_name = {first}@localhost
cluster_partition_handling = pause_minority
cluster_formation.peer_discovery_backend = classic_config
"""


@dataclass(frozen=True)
class RabbitmqNode:
    """Where a node lives. `data` is a folder that the node owns whole, `sbin` holds rabbitmq-server and rabbitmqctl."""

    home: Path
    data: Path
    sbin: Path
    ports: dict[str, int]
    name: str
    role: str = RABBITMQ
    """The node's name in the state and in the mark of its processes."""
    members: tuple[str, ...] = ()
    """Names of all nodes of the cluster, this one included; empty if there is none."""

    @property
    def log(self) -> Path:
        """What the node logs; at most 30 MB with its two predecessors."""
        return self.data / "logs" / "rabbitmq.log"

    def start(self) -> Identity:
        """Start the node and return the script that runs it; `await_ready` tells the node's own process."""
        for folder in ("home", "mnesia", "logs", "schema", "generated"):
            (self.data / folder).mkdir(parents=True, exist_ok=True)
        managed, secured = MANAGEMENT in self.ports, "amqps" in self.ports
        settings = SETTINGS + (MANAGEMENT_SETTINGS if managed else "") + (security.RABBITMQ_SETTINGS if secured else "")
        if self.members:
            settings += CLUSTER_SETTINGS.format(first=self.members[0])
            for number, member in enumerate(self.members, 1):
                settings += f"cluster_formation.classic_config.nodes.{number} = {member}@localhost\n"
            self._share_cookie()
        self._settings.write_text(settings.format(log=self.log, folder=self.home / "certificates", **self.ports))
        (self.data / "advanced.config").write_text(security.rabbitmq_keys() if secured else "[].\n")
        plugins = [*(["rabbitmq_management"] if managed else []), *(security.PLUGINS if secured else [])]
        (self.data / "plugins").write_text(f"[{','.join(plugins)}].\n")
        self._pid_file.unlink(missing_ok=True)
        return spawn([str(self.sbin / "rabbitmq-server")], env=self._env(), output=self.data / "output")

    def await_ready(self, process: Identity) -> tuple[Identity, dict[str, str]]:
        """Wait until this node, not just any, lets a client in; return its process (not the script), versions.

        Raises StackError when it has ended, or after 120 s.
        """
        return probes.await_answer(
            self._ask,
            node="RabbitMQ",
            seconds=START_SECONDS,
            is_running=lambda: is_running(process),
            last_lines=self.last_lines,
        )

    def answers(self) -> bool:
        """Tell whether this node, not just any, answers now."""
        try:
            self._ask()
        except probes.NotReadyError:
            return False
        return True

    def pid(self, process: Identity) -> int | None:
        """Return the pid if that process still runs."""
        return process.pid if is_running(process) else None

    def stop(self, process: Identity, *, kill: bool) -> None:
        """End the node and its epmd: orderly within 60 s, or at once. Data and ports stay. Raises StackError."""
        if not kill:
            send(process, signal.SIGTERM)
            await_end([process], seconds=STOP_SECONDS)
        kill_marked(self.home, self.role, known=[process])

    def control(self, *arguments: str) -> str:
        """Run rabbitmqctl on this node and return what it prints.

        Raises StackError with its last lines when it fails, and after 60 s.
        """
        try:
            done = subprocess.run(
                [self.sbin / "rabbitmqctl", "--quiet", *arguments],
                env=self._env(),
                check=False,
                text=True,
                timeout=TOOL_SECONDS,
                stdin=subprocess.DEVNULL,
                capture_output=True,
            )
        except subprocess.TimeoutExpired as error:
            raise StackError(f"rabbitmqctl {arguments[0]} did not end within {TOOL_SECONDS:.0f} s") from error
        if done.returncode:
            last = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
            raise StackError(f"rabbitmqctl {' '.join(arguments)} failed ({done.returncode}):\n{last}")
        return done.stdout

    @staticmethod
    def fsync(version: str) -> str:
        """Return what has reached the disk when a persistent message is confirmed: seen by tracing 3.10.8 and 4.0.5."""
        classic = {"3.10": "in classic ones too", "4.0": "not in classic ones"}.get(".".join(version.split(".")[:2]))
        return f"syncs before each confirm in quorum queues, {classic or 'in classic ones perhaps'}"

    def last_lines(self) -> str:
        """Return the end of the node's log and of what its script said."""
        return f"{tail(self.log)}\n{tail(self.data / 'output')}"

    def _ask(self) -> tuple[Identity, dict[str, str]]:
        server = probes.amqp_handshake(self.ports["amqp"])
        first = self.members[0] if self.members else self.name
        if not server.get("cluster_name", "").startswith(f"{first}@"):
            raise probes.NotReadyError(f"another RabbitMQ answers on port {self.ports['amqp']}")
        try:
            node = identity(int(self._pid_file.read_text()))
        except (FileNotFoundError, ValueError):
            node = None
        if node is None:
            raise probes.NotReadyError("the node has not written its pid yet")
        return node, probes.rabbitmq_versions(server)

    def _share_cookie(self) -> None:
        """Give the node the secret by which the nodes of a cluster know each other, made by the first that starts."""
        common, own = self.home / "erlang.cookie", self.data / "home" / ".erlang.cookie"
        if not common.exists():
            drawn = self.data / "erlang.cookie"
            drawn.touch(0o600)  # before anything stands in it: Erlang refuses one that others may read
            drawn.write_text(secrets.token_hex(20))
            with contextlib.suppress(FileExistsError):  # whole or not at all, and the first wins
                os.link(drawn, common)
            drawn.unlink()
        if not own.exists():
            own.touch(0o600)
            own.write_text(common.read_text())

    @property
    def _settings(self) -> Path:
        return self.data / "rabbitmq.conf"

    @property
    def _pid_file(self) -> Path:
        return self.data / "pid"

    def _env(self) -> dict[str, str]:
        """Return all that the scripts look at: nothing set on the machine or by the user reaches this node."""
        ticks = f" -kernel net_ticktime {SILENT_SECONDS}" if self.members else ""
        schedulers = 1 if self.members else min(os.cpu_count() or 1, MAX_SCHEDULERS)
        return {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "LANG": "C.UTF-8",
            "HOME": str(self.data / "home"),
            "ERL_CRASH_DUMP": str(self.data / "logs" / "erl_crash.dump"),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(self.ports["epmd"]),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(self.data / "advanced.config"),
            "RABBITMQ_CONFIG_FILE": str(self._settings),
            "RABBITMQ_CONF_ENV_FILE": os.devnull,
            "RABBITMQ_DATA": str(self.data),  # asked for by scripts that enter another root
            "RABBITMQ_DIST_PORT": str(self.ports["rabbitmq_dist"]),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.data / "plugins"),
            "RABBITMQ_GENERATED_CONFIG_DIR": str(self.data / "generated"),
            "RABBITMQ_LOG_BASE": str(self.data / "logs"),
            "RABBITMQ_MNESIA_BASE": str(self.data / "mnesia"),
            "RABBITMQ_NODENAME": f"{self.name}@localhost",
            "RABBITMQ_PID_FILE": str(self._pid_file),
            "RABBITMQ_SCHEMA_DIR": str(self.data / "schema"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": (
                f"-kernel inet_dist_use_interface {{127,0,0,1}} +S {schedulers}:{schedulers} {NO_BUSY_WAIT}{ticks}"
            ),
            MARK: f"{self.home}:{self.role}",
        }
