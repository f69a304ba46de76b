"""One Kafka node: broker and controller in one process, its settings, start, readiness."""

import base64
import shutil
import signal
import struct
import subprocess
import uuid
from dataclasses import dataclass
from pathlib import Path

from load.stack import probes
from load.stack.errors import StackError
from load.stack.processes import MARK, Identity, await_end, is_running, kill_marked, send, spawn
from load.stack.terminal import tail

ROLE = "kafka"
PORTS = ("kafka", "kafka_sasl", "kafka_controller")
START_SECONDS = 90.0
STOP_SECONDS = 30.0
FORMAT_SECONDS = 60.0

USERS = {"admin": "admin-secret", "tidegate": "tidegate-secret", "reader": "reader-secret"}
"""Who can log in on the SASL listener. admin may do all, tidegate uses all topics outside `forbidden.`, reader none."""

FORBIDDEN_PREFIX = "forbidden."

SETTINGS = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{kafka_controller}
listeners=PLAIN://127.0.0.1:{kafka},SASL://127.0.0.1:{kafka_sasl},CONTROLLER://127.0.0.1:{kafka_controller}
advertised.listeners=PLAIN://127.0.0.1:{kafka},SASL://127.0.0.1:{kafka_sasl}
listener.security.protocol.map=PLAIN:PLAINTEXT,SASL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAIN
controller.listener.names=CONTROLLER
listener.name.sasl.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256
listener.name.sasl.plain.sasl.jaas.config={plain_login}
listener.name.sasl.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS;User:admin
log.dirs={log}
log.segment.bytes=67108864
log.cleaner.threads=1
log.cleaner.dedupe.buffer.size=8388608
auto.create.topics.enable=false
num.partitions=1
num.network.threads=2
num.io.threads=4
background.threads=2
broker.session.timeout.ms=5000
broker.heartbeat.interval.ms=1000
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
offsets.topic.num.partitions=4
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
"""

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

FSYNC = "flushing left to the operating system (log.flush.interval.* unset, as shipped)"


@dataclass(frozen=True)
class KafkaNode:
    """Where a node lives. `data` is a folder that the node owns whole; `heap` is Java's -Xmx, such as 1g."""

    home: Path
    data: Path
    jars: Path
    java: Path
    ports: dict[str, int]
    heap: str

    @property
    def role(self) -> str:
        """The node's name in the state and in the mark of its processes."""
        return ROLE

    @property
    def log(self) -> Path:
        """What the node itself logs; at most 30 MB with its two predecessors."""
        return self.data / "kafka.log"

    def start(self) -> Identity:
        """Start the process, formatting its storage the first time. Raises StackError when that fails."""
        if not (self.data / "log" / "meta.properties").exists():
            self._format()
        options = (
            f"-Xms{min(256, _megabytes(self.heap))}m",
            f"-Xmx{self.heap}",
            "-XX:+UseG1GC",
            "-XX:MaxGCPauseMillis=20",
        )
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

    def grant(self) -> None:
        """Let tidegate use every topic and group but those that begin with `forbidden.`. Raises StackError."""
        topic, group, literal, prefixed, everything, deny, allow = 2, 3, 3, 4, 2, 2, 3
        rules = [
            (topic, "*", literal, everything, allow),
            (group, "*", literal, everything, allow),
            (topic, FORBIDDEN_PREFIX, prefixed, everything, deny),
        ]
        body = struct.pack(">i", len(rules))
        for kind, name, pattern, operation, permission in rules:
            body += struct.pack(">b", kind) + _string(name) + struct.pack(">b", pattern)
            body += _string("User:tidegate") + _string("*") + struct.pack(">bb", operation, permission)
        answer = probes.kafka_call(self.ports["kafka"], probes.CREATE_ACLS, 1, body)
        if any(struct.unpack_from(">h", answer, 8 + 4 * at)[0] for at in range(len(rules))):
            raise StackError(f"Kafka refuses the rights of its users: {answer!r}")

    def answers(self) -> bool:
        """Tell whether this node, not just any, answers now."""
        try:
            self._ask()
        except probes.NotReadyError:
            return False
        return True

    def stop(self, process: Identity, *, kill: bool) -> None:
        """End the process: orderly within 30 s, or at once. Data and ports stay. Raises StackError."""
        if not kill:
            send(process, signal.SIGTERM)
            await_end([process], seconds=STOP_SECONDS)
        kill_marked(self.home, ROLE, known=[process])

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
        return {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", MARK: f"{self.home}:{ROLE}"}

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
        users = " ".join(f'user_{name}="{password}"' for name, password in USERS.items())
        login = f"org.apache.kafka.common.security.plain.PlainLoginModule required {users};"
        self._settings.write_text(SETTINGS.format(**self.ports, log=self.data / "log", plain_login=login))
        (self.data / "logging.properties").write_text(LOGGING.format(file=self.log))
        scram = [f"--add-scram=SCRAM-SHA-256=[name={name},password={password}]" for name, password in USERS.items()]
        tool = [*self._java("-Xmx256m", "-XX:TieredStopAtLevel=1"), "kafka.tools.StorageTool", "format"]
        arguments = ["-t", _random_id(), "-c", str(self._settings), *scram]
        try:
            subprocess.run(
                [*tool, *arguments], env=self._env(), check=True, text=True, timeout=FORMAT_SECONDS,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
        except subprocess.CalledProcessError as error:
            raise StackError(f"Kafka's storage can't be formatted:\n{error.stdout}") from error
        except subprocess.TimeoutExpired as error:
            raise StackError(f"Kafka's storage was not formatted within {FORMAT_SECONDS:.0f} s") from error


def _random_id() -> str:
    """Return a cluster id in Kafka's spelling; it must not look like an option."""
    while (text := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return text


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def _megabytes(heap: str) -> int:
    number, unit = heap[:-1], heap[-1:].lower()
    if not number.isdigit() or unit not in {"m", "g"}:
        raise StackError(f"{heap!r} is no heap size; write 512m or 2g")
    return int(number) * (1024 if unit == "g" else 1)
