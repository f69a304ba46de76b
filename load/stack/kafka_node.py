"""One Kafka node: broker and controller in one process, its settings, start, readiness."""

import base64
import shutil
import signal
import subprocess
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from load.stack import kafka_settings, probes
from load.stack.errors import StackError
from load.stack.processes import MARK, Identity, await_end, is_running, kill_marked, send, spawn
from load.stack.state import KAFKA
from load.stack.terminal import tail

PORTS = ("kafka", "kafka_sasl", "kafka_controller")
CLUSTER_PORTS = (*PORTS, "kafka_internal", "kafka_internal_front", "kafka_controller_front")
START_SECONDS = 90.0
STOP_SECONDS = 30.0
CLUSTER_STOP_SECONDS = 12.0
"""The last of several that stop at once waits in vain for the others' leave."""
FORMAT_SECONDS = 60.0

LOGGING = """\
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {file}
appender.file.filePattern = {file}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d %p %m (%c{{1}})%n%xEx{{30}}
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 10MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 2
"""


@dataclass(frozen=True)
class KafkaNode:
    """Where a node lives. `data` is a folder that the node owns whole; `heap` is Java's -Xmx, such as 1g."""

    home: Path
    data: Path
    jars: Path
    java: Path
    ports: dict[str, int]
    heap: str
    role: str = KAFKA
    """The node's name in the state and in the mark of its processes."""
    cluster: Mapping[str, str] = field(default_factory=dict)
    """Properties that it has because it is one of several; empty if it is not."""
    cluster_id: str = ""
    """Chosen by the node if empty."""

    @property
    def log(self) -> Path:
        """What the node itself logs; at most 30 MB with its two predecessors."""
        return self.data / "kafka.log"

    def start(self) -> Identity:
        """Start the process, formatting its storage the first time. Raises StackError when that fails."""
        if not (self.data / "log" / "meta.properties").exists():
            self._format()
        # Three collectors with threads of their own are too much for a small machine.
        collector = ("-XX:+UseSerialGC",) if self.cluster else ("-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")
        options = (f"-Xms{min(256, _megabytes(self.heap))}m", f"-Xmx{self.heap}", *collector)
        return spawn([*self._java(*options), "kafka.Kafka", str(self._settings)], env=self._env(), output=self._output)

    def await_ready(self, process: Identity) -> tuple[Identity, dict[str, str]]:
        """Wait until this node, not just any, answers and coordinates groups; return its process and version.

        Raises StackError when it has ended, or after 90 s.
        """
        probes.await_answer(
            self._ask,
            node="Kafka",
            seconds=START_SECONDS,
            is_running=lambda: is_running(process),
            last_lines=self.last_lines,
        )
        return process, {"kafka": next(self.jars.glob("kafka_2*.jar")).stem.partition("-")[2]}

    def answers(self) -> bool:
        """Tell whether this node, not just any, answers now."""
        try:
            self._ask()
        except probes.NotReadyError:
            return False
        return True

    def grant(self) -> None:
        """Give the users of the SASL listener their rights."""
        kafka_settings.grant(self.ports["kafka"])

    def pid(self, process: Identity) -> int | None:
        """Return the pid if that process still runs."""
        return process.pid if is_running(process) else None

    def stop(self, process: Identity, *, kill: bool) -> None:
        """End the process: orderly within 30 s, or at once. Data and ports stay. Raises StackError."""
        if not kill:
            send(process, signal.SIGTERM)
            await_end([process], seconds=CLUSTER_STOP_SECONDS if self.cluster else STOP_SECONDS)
        kill_marked(self.home, self.role, known=[process])

    def last_lines(self) -> str:
        """Return the end of the node's log and of what Java said outside it."""
        return f"{tail(self.log)}\n{tail(self._output, 5)}"

    @property
    def _settings(self) -> Path:
        return self.data / "server.properties"

    @property
    def _output(self) -> Path:
        return self.data / "output"

    def _ask(self) -> None:
        if probes.kafka_cluster(self.ports["kafka"]) != self._cluster_id():
            raise probes.NotReadyError(f"another Kafka answers on port {self.ports['kafka']}")
        probes.await_coordinator(self.ports["kafka"])

    def _cluster_id(self) -> str:
        lines = (self.data / "log" / "meta.properties").read_text().splitlines()
        return next(line.partition("=")[2] for line in lines if line.startswith("cluster.id="))

    def _env(self) -> dict[str, str]:
        return {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", MARK: f"{self.home}:{self.role}"}

    def _java(self, *options: str) -> list[str]:
        own_files = (
            "-XX:-UsePerfData",
            f"-XX:ErrorFile={self.data}/java-crash.log",
            f"-Djava.io.tmpdir={self.data / 'scratch'}",
        )
        logging = f"-Dlog4j2.configurationFile={self.data}/logging.properties"
        exits = ("-XX:+ExitOnOutOfMemoryError", "-Djava.awt.headless=true")
        return [str(self.java), *options, *own_files, *exits, logging, "-cp", f"{self.jars}/*"]

    def _format(self) -> None:
        shutil.rmtree(self.data, ignore_errors=True)  # a format that was cut short
        (self.data / "scratch").mkdir(parents=True)
        certificates = self.home / "certificates" if "kafka_tls" in self.ports else None
        properties = kafka_settings.settings(self.ports, log_folder=str(self.data / "log"), certificates=certificates)
        properties |= self.cluster
        self._settings.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        (self.data / "logging.properties").write_text(LOGGING.format(file=self.log))
        scram = [
            f"--add-scram={mechanism}=[name={name},password={password}]"
            for name, password in kafka_settings.USERS.items()
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
        ]
        tool = [*self._java("-Xmx256m", "-XX:TieredStopAtLevel=1"), "kafka.tools.StorageTool", "format"]
        arguments = ["-t", self.cluster_id or random_id(), "-c", str(self._settings), *scram]
        try:
            subprocess.run(
                [*tool, *arguments],
                env=self._env(),
                check=True,
                text=True,
                timeout=FORMAT_SECONDS,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        except subprocess.CalledProcessError as error:
            raise StackError(f"Kafka's storage can't be formatted:\n{error.stdout}") from error
        except subprocess.TimeoutExpired as error:
            raise StackError(f"Kafka's storage was not formatted within {FORMAT_SECONDS:.0f} s") from error


def random_id() -> str:
    """Return a cluster id in Kafka's spelling; it must not look like an option."""
    while (text := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return text


def _megabytes(heap: str) -> int:
    number, unit = heap[:-1], heap[-1:].lower()
    if not number.isdigit() or unit not in {"m", "g"}:
        raise StackError(f"{heap!r} is no heap size; write 512m or 2g")
    return int(number) * (1024 if unit == "g" else 1)
