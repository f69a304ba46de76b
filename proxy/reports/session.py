"""Spark, started quietly: what it has to say goes to a file, not to the terminal."""

import contextlib
import logging
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from proxy.reports.files import ReportError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA = 17
"""The oldest Java that PySpark 4 runs on."""
JAVA_ANSWER_DEADLINE = 30.0
_SMALL_BYTES = 128 * 1024**2
"""Below this, compiling Spark's code thoroughly costs more than it gives: 66 s of processor time instead of 42 s for
66 MB of text, but 85 s instead of 104 s for 272 MB."""
SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""Environment variable: `spark-submit` started this program, and Java before it."""
_UTC = ("spark.sql.session.timeZone", "UTC")
_SMALL_JAVA = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:MetaspaceSize=256m -XX:+UseSerialGC -Xmn400m"
"""Room for compiled code: 48 MB, what Java gives by itself at this level, is full after thirty queries, and then Java
ends or interprets. And room for classes: all of the heap is gone through each time that it grows. A collector without
threads of its own, with most of the heap for what is soon garbage."""
_LARGE_JAVA = (
    "-XX:Tier4InvocationThreshold=80000 -XX:Tier4MinInvocationThreshold=20000 "
    "-XX:Tier4CompileThreshold=240000 -XX:Tier4BackEdgeThreshold=800000"
)
"""Sixteen times and more what Java has by itself: forty queries make code that runs for a second each, and to compile
all of it thoroughly was a third of a large report's processor time. What goes on for longer is compiled as before."""
_FOR_LITTLE = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # What is worked out once instead of twice goes through a cache, which takes longer where nothing is compiled.
    "spark.sql.subexpressionElimination.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
}
"""Of queries over a few thousand rows: code that is made for each takes longer to compile than to interpret."""
_ASKED_FOR = (
    *("functions", "PythonUtils", "PythonSQLUtils"),
    *(f"org.apache.spark.sql.{name}" for name in ("functions", "expressions.Window")),
)
"""Names of Java's that PySpark asks for each time that it needs one: of a report's 35,000 questions to it a third. For
one without a package Java looks through several, each time through all of Spark's 280 archives."""
_FOR_FEW: "WeakKeyDictionary[SparkSession, SparkSession]" = WeakKeyDictionary()
_REMEDY = f"a report needs JDK {JAVA} or newer (Debian: openjdk-17-jre-headless), by JAVA_HOME or on the PATH"


def check_installed() -> None:
    """Raise `ReportError` naming the extra or the JDK, if a report can't be made here."""
    missing = [name for name in ("pyspark", "pyarrow", "matplotlib") if find_spec(name) is None]
    if missing:
        raise ReportError(f"a report needs {' and '.join(missing)}: pip install 'tidegate[reports]'")
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home, "bin")) if home else None)
    if java is None:
        raise ReportError(f"no Java found{f' in JAVA_HOME={home}' if home else ''}: {_REMEDY}")
    try:
        answer = subprocess.run(  # noqa: S603 - the Java that Spark itself is about to start
            [java, "-version"], capture_output=True, text=True, timeout=JAVA_ANSWER_DEADLINE, check=True
        ).stderr
    except (OSError, subprocess.SubprocessError) as error:
        raise ReportError(f"{java} does not run ({error}): {_REMEDY}") from error
    version = re.search(r'version "(?:1\.)?(\d+)', answer)
    if version and int(version[1]) < JAVA:
        raise ReportError(f"{java} is version {version[1]}: {_REMEDY}")


@contextlib.contextmanager
def spark_session(
    master: str, noise: Path, text_size: int = 0, settings: Sequence[tuple[str, str]] = ()
) -> Iterator["SparkSession"]:
    """Give a session that reads and shows times in UTC; Java's output goes to the file `noise`.

    `text_size`, the bytes of text that will be read, decides how a local Spark is tuned; `settings` are Spark's own and
    go before ours. Under `spark-submit` Java runs already: its master and its settings count, and its output is there.
    Raises `ReportError` if Spark does not start.
    """
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    on_interrupt = signal.getsignal(signal.SIGINT)
    with tempfile.TemporaryDirectory(prefix="tidegate-report-") as scratch, noise.open("wb") as output, _silence():
        conf = SparkConf().setAll(_settings(master, text_size)).setAll(list(settings))
        conf.set("spark.sql.warehouse.dir", scratch)
        try:
            pipes = {"stdout": output, "stderr": output, "cwd": scratch}
            gateway = launch_gateway(conf, pipes)  # type: ignore[no-untyped-call]
            if SUBMITTED in os.environ:
                conf = SparkConf(_jvm=gateway.jvm)
                for name, value in _settings(conf.get("spark.master") or master, text_size):
                    conf.setIfMissing(name, value)
                conf.set(*_UTC)
            context = SparkContext(conf=conf, gateway=gateway)
            _remember(gateway.jvm)
        except (PySparkException, Py4JError) as error:
            raise ReportError(f"Spark does not start at {master}: see {noise}") from error
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, on_interrupt)  # Spark's own would talk to Java in the middle of a call
        try:
            yield SparkSession(context)
        finally:
            with contextlib.suppress(Py4JError):  # Java has ended before us
                context.stop()


def for_little(spark: "SparkSession") -> "SparkSession":
    """Return the session beside a session that interprets: what is read by it is meant to be little.

    Of a query over frames of both, the one of the leftmost frame plans all.
    """
    little = _FOR_FEW.get(spark)
    if little is None:
        little = spark.newSession()
        for name, value in _FOR_LITTLE.items():
            little.conf.set(name, value)
        _FOR_FEW[spark] = little
    return little


class _Remembered:
    """A class of Java's whose members are asked for once."""

    def __init__(self, of: Any) -> None:
        self._of = of

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._of, name)
        setattr(self, name, found)
        return found


def _remember(jvm: Any) -> None:
    """Keep what PySpark asks Java for at every turn."""
    for name in _ASKED_FOR:
        setattr(jvm, name, _Remembered(getattr(jvm, name)))


def raise_interrupt(error: BaseException) -> None:
    """Raise the KeyboardInterrupt that an error hides: cleaning up after it fails when Java has ended already."""
    context: BaseException | None = error
    while context is not None:
        if isinstance(context, KeyboardInterrupt):
            raise context
        context = context.__context__


def said_by_spark(error: Exception) -> str:
    """Return the first line of what Spark raised, as a sentence; of Java's own, what it all began with."""
    from py4j.protocol import Py4JError, Py4JJavaError

    words = str(error)
    if isinstance(error, Py4JJavaError):
        with contextlib.suppress(Py4JError):  # Java has ended before us
            cause = error.java_exception
            while cause.getCause() is not None:
                cause = cause.getCause()
            words = str(cause.toString())
    return f"Spark failed: {(words.strip() or type(error).__name__).splitlines()[0]}"


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Keep what the clients log off the terminal; errors arrive as exceptions, once."""
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger", "py4j"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    nothing = logging.NullHandler()  # a root logger without any handler writes to stderr
    logging.getLogger().addHandler(nothing)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(nothing)


def _settings(master: str, text_size: int) -> list[tuple[str, str]]:
    settings = [
        ("spark.master", master),
        ("spark.app.name", "tidegate report"),
        ("spark.ui.enabled", "false"),
        ("spark.ui.showConsoleProgress", "false"),
        _UTC,
        # Else every column asks where it was made, which is slow and, on Python 3.11, an import that can race with a
        # garbage collection.
        ("spark.python.sql.dataFrameDebugging.enabled", "false"),
        # Checks of Spark's own planner after each of its steps, conditions that it derives, texts of each plan.
        ("spark.sql.lightweightPlanChangeValidation", "false"),
        ("spark.sql.constraintPropagation.enabled", "false"),
        ("spark.sql.dataFrameQueryContext.enabled", "false"),
        ("spark.sql.ui.explainMode", "simple"),
        ("spark.ui.liveUpdate.period", "1s"),
        # Nobody looks at them, and a thousand plans of ours are a large part of Java's memory.
        *[(f"spark.{kept}", "20") for kept in ("sql.ui.retainedExecutions", "ui.retainedJobs", "ui.retainedStages")],
        # Lines are written by their kind, of which there are fewer: each its own file, unsorted.
        ("spark.sql.maxConcurrentOutputFileWriters", "32"),
    ]
    if master.startswith("local"):
        small = text_size < _SMALL_BYTES
        settings += [
            ("spark.driver.host", "127.0.0.1"),
            ("spark.driver.bindAddress", "127.0.0.1"),
            ("spark.driver.memory", "1g" if small else "3g"),
            ("spark.sql.shuffle.partitions", "2" if small else "16"),
            ("spark.driver.extraJavaOptions", _SMALL_JAVA if small else _LARGE_JAVA),
        ]
        if small:
            # It plans each stage anew once the one before is done: more work than the stages themselves.
            settings.append(("spark.sql.adaptive.enabled", "false"))
        else:
            # Before the table of all groups another one of 65,536, for those that come again soon. Buckets of many
            # distributions do not, and each is looked for in both.
            settings.append(("spark.sql.codegen.aggregate.map.twolevel.enabled", "false"))
    return settings
