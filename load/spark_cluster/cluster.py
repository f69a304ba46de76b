"""One cluster: a standalone master, two workers of one core, and a store that speaks S3, on free ports of 127.0.0.1."""

import http.client
import json
import os
import secrets
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from load.spark_cluster import guardian
from load.spark_cluster.software import Software, provide
from load.stack import ports, probes
from load.stack.processes import MARK, Identity, identity, is_running, send, spawn
from load.stack.state import PROJECT
from load.stack.terminal import tail

HOMES = PROJECT / ".build" / "spark"
HOST = "127.0.0.1"
WORKERS = ("worker-1", "worker-2")
WORKER_MEMORY = "1g"
"""What a worker gives to executors: Spark asks for as much for one."""
DAEMON_MEMORY = "256m"
START_SECONDS = 120.0
"""Three Javas that start at once on a busy machine."""
CALL_SECONDS = 10.0
USER, PASSWORD = "somebody", "something"

STORE = """\
s3proxy.endpoint=http://{host}:{port}
s3proxy.authorization=aws-v2-or-v4
s3proxy.identity={user}
s3proxy.credential={password}
jclouds.provider=filesystem-nio2
jclouds.identity=unused
jclouds.credential=unused
jclouds.filesystem.basedir={folder}
"""
STORE_LOGGING = """\
<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d %p %m%n</pattern></encoder>
  </appender>
  <root level="warn"><appender-ref ref="out"/></root>
</configuration>
"""


class SparkCluster:
    """A handle on one cluster, which belongs to this process: should that end without `down`, a guardian clears it.

    As a context manager it takes the cluster down at the end. Methods raise StackError with a process's last words.
    """

    def __init__(self, home: Path, software: Software) -> None:
        self._home = home
        self._software = software
        names = ("store", "master", "master-ui", *(f"{name}{ui}" for name in WORKERS for ui in ("", "-ui")))
        self._ports = ports.choose(names)
        self._guardian: Identity | None = None
        self.master = f"spark://{HOST}:{self._ports['master']}"
        """What `--master` takes."""
        self.buckets = home / "buckets"
        """Each folder in it is a bucket of the store, each file in that an object. One that the store has not written
        itself lacks what S3's client asks for (an entity tag)."""

    @classmethod
    def up(cls) -> Self:
        """Start everything and return once the store answers and the master counts both workers.

        Raises SetupError when the machine lacks something, StackError when a process fails.
        """
        cluster = cls(HOMES / f"own-{os.getpid()}-{secrets.token_hex(3)}", provide())
        try:
            cluster._start()
        except BaseException:
            cluster.down()
            raise
        return cluster

    def __enter__(self) -> Self:
        """Return the cluster."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the cluster down."""
        self.down()

    def down(self) -> None:
        """End every process and delete every file of the cluster; nothing happens when it is down."""
        if self._guardian is not None:
            send(self._guardian, signal.SIGKILL)
        guardian.clear(self._home)

    @property
    def settings(self) -> dict[str, str]:
        """Settings of Spark's with which a program reaches workers and store."""
        return {
            "spark.driver.host": HOST,
            "spark.driver.bindAddress": HOST,
            # By path, not by spark.jars: every executor would copy 690 MB.
            "spark.driver.extraClassPath": f"{self._software.s3a}/*",
            "spark.executor.extraClassPath": f"{self._software.s3a}/*",
            "spark.hadoop.fs.s3a.endpoint": f"http://{HOST}:{self._ports['store']}",
            "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.access.key": USER,
            "spark.hadoop.fs.s3a.secret.key": PASSWORD,
        }

    @property
    def environment(self) -> dict[str, str]:
        """Environment in which `spark-submit` and `tidegate report` have these settings and find Java and Python."""
        return {
            "JAVA_HOME": str(self._java_home),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_CONF_DIR": str(self._home / "conf"),
            "SPARK_HOME": str(self._software.spark),
        }

    @property
    def spark_submit(self) -> Path:
        """The program."""
        return self._software.spark / "bin" / "spark-submit"

    def applications(self) -> list[dict[str, Any]]:
        """Return what the master knows of every program that has run or runs: `name`, `cores`, `state`, ..."""
        found = self._of_master()
        return [*found["activeapps"], *found["completedapps"]]

    @property
    def _java_home(self) -> Path:
        return self._software.java.resolve().parents[1]

    def _start(self) -> None:
        this = identity(os.getpid())
        assert this is not None, "this process runs"
        self._home.mkdir(parents=True)
        self._guardian = guardian.start(self._home, this)
        for folder in (self.buckets, self._home / "conf", self._home / "scratch"):
            folder.mkdir()
        self._write("conf/spark-defaults.conf", "".join(f"{key} {value}\n" for key, value in self.settings.items()))
        store = STORE.format(host=HOST, port=self._ports["store"], user=USER, password=PASSWORD, folder=self.buckets)
        logging = f"-Dlogback.configurationFile={self._write('store.xml', STORE_LOGGING)}"
        jars = f"{self._software.s3proxy}/*"
        program = [str(self._software.java), "-Xmx256m", logging, "-cp", jars, "org.gaul.s3proxy.Main"]
        started = {"store": self._spawn("store", [*program, "--properties", self._write("store.properties", store)])}
        started["master"] = self._spawn("master", self._daemon("master.Master", "master"))
        for name in WORKERS:
            wanted = ["--cores", "1", "--memory", WORKER_MEMORY, "--work-dir", str(self._home / name)]
            started[name] = self._spawn(name, [*self._daemon("worker.Worker", name), *wanted, self.master])
        self._await("The store", started, ["store"], lambda: self._ask("store", "/"))
        self._await("Spark's cluster", started, ["master", *WORKERS], self._count_workers)

    def _write(self, name: str, text: str) -> str:
        (self._home / name).write_text(text)
        return str(self._home / name)

    def _daemon(self, program: str, name: str) -> list[str]:
        spark_class = str(self._software.spark / "bin" / "spark-class")
        where = ["--host", HOST, "--port", str(self._ports[name]), "--webui-port", str(self._ports[f"{name}-ui"])]
        return [spark_class, f"org.apache.spark.deploy.{program}", *where]

    def _spawn(self, role: str, command: Sequence[str]) -> Identity:
        environment = {
            "JAVA_HOME": str(self._java_home),
            "LANG": "C.UTF-8",
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "SPARK_DAEMON_JAVA_OPTS": "-Dspark.master.rest.enabled=false",  # nobody asks, and its port is fixed
            "SPARK_DAEMON_MEMORY": DAEMON_MEMORY,
            "SPARK_HOME": str(self._software.spark),
            "SPARK_LOCAL_DIRS": str(self._home / "scratch"),
            "SPARK_LOCAL_IP": HOST,
            MARK: f"{self._home}:{role}",
        }
        return spawn(command, env=environment, output=self._home / f"{role}.log")

    def _await(self, what: str, started: dict[str, Identity], roles: Sequence[str], ask: Callable[[], object]) -> None:
        probes.await_answer(
            ask,
            node=what,
            seconds=START_SECONDS,
            is_running=lambda: all(is_running(started[role]) for role in roles),
            last_lines=lambda: "\n".join(tail(self._home / f"{role}.log") for role in roles),
        )

    def _ask(self, name: str, path: str) -> bytes:
        """Return what a server says, whatever that is. Raises NotReadyError if it says nothing."""
        connection = http.client.HTTPConnection(HOST, self._ports[name], timeout=CALL_SECONDS)
        try:
            connection.request("GET", path)
            return connection.getresponse().read()
        except (OSError, http.client.HTTPException) as error:
            raise probes.NotReadyError(f"{name}: {error}") from error
        finally:
            connection.close()

    def _of_master(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads(self._ask("master-ui", "/json/"))
        except ValueError as error:
            raise probes.NotReadyError(f"master: {error}") from error
        return found

    def _count_workers(self) -> None:
        if (alive := self._of_master()["aliveworkers"]) != len(WORKERS):
            raise probes.NotReadyError(f"{alive} of {len(WORKERS)} workers are registered")
