"""What all tests share: where code comes from, the local stack, the order of the folders, no skips where CI counts.

`proxy` must be the installed wheel, never the checkout beside these tests; so the checkout, where `load` and `tests`
come from, goes last.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
import structlog

CHECKOUT = Path(__file__).resolve().parents[1]
if str(CHECKOUT) not in sys.path:
    sys.path.append(str(CHECKOUT))

from load.stack import Stack, rabbitmq_4  # noqa: E402 - found only now

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

hypothesis.settings.register_profile("untimed", deadline=None)  # how long an example takes is the machine's
hypothesis.settings.load_profile("untimed")

RABBITMQS = "TIDEGATE_TEST_RABBITMQS"
"""Environment variable: the RabbitMQs that tests which meet a broker run on: `system`, `4`, or `system 4`."""

ORDER = {
    folder: place
    for place, folder in enumerate(
        ("reports", "histories", "wire", "simulation", "records", "properties", "unit", "contract", "integration")
    )
}
"""What runs on Spark comes first, on one worker, while the others do what no clock times: what lives by virtual time,
the longest first. So Spark doesn't compete with what is timed, least of all with real brokers, which come last.
"""

COVERED = {"unit", "contract", "integration"}
"""Folders whose tests coverage watches, in `make test-all`: it makes Python four times as slow, and histories and
scenarios go where these went before, a thousand times.
"""

FOR_LITTLE = (
    ("spark.sql.shuffle.partitions", "1"),
    ("spark.sql.codegen.wholeStage", "false"),
    ("spark.sql.codegen.factoryMode", "NO_CODEGEN"),
)
"""Of a Spark whose tables have a few rows: code that is made for each query takes longer to compile than to interpret.
What the command starts by itself compiles.
"""


def pytest_configure(config: pytest.Config) -> None:
    """Let groups of tests begin in the order below: pytest-xdist would begin with the largest."""
    config.option.loadscopereorder = False


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test that meets brokers the last RabbitMQ named, which users run; all of them where they could differ."""
    if "stack" in metafunc.fixturenames:
        named = os.environ.get(RABBITMQS, "system").split()
        chosen = named if metafunc.definition.get_closest_marker("each_rabbitmq") else named[-1:]
        metafunc.parametrize("stack", chosen, indirect=True, scope="session", ids=lambda name: f"rabbitmq-{name}")


@pytest.fixture(scope="session")
def stack(request: pytest.FixtureRequest) -> Iterator[Stack]:
    """A real Kafka and a real RabbitMQ for all tests: the stack that TIDEGATE_STACK names, or one of this session."""
    if "TIDEGATE_STACK" in os.environ:
        yield Stack.from_env()
        return
    with Stack.up(rabbitmq_sbin=rabbitmq_4.sbin() if request.param == "4" else None) as stack:
        yield stack


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator["SparkSession"]:
    """One Spark for all tests of a worker: Java takes one at a time."""
    from proxy.reports.session import spark_session

    with spark_session("local[2]", tmp_path_factory.mktemp("spark") / "spark.log", settings=FOR_LITTLE) as session:
        yield session


@pytest.hookimpl(tryfirst=True)  # xdist's own reads the groups; pytest-randomly's wraps all
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort by what a test needs and by folder, keeping the chance order within; what shares a stack is as one folder.

    Where tests run side by side, those that share a stack, a Spark, a browser or a container engine go to one worker;
    of those with a stack each half, with one of its own.
    """

    def place(item: pytest.Item) -> tuple[bool, int, str, int]:
        within = ORDER.get(_folder(item), len(ORDER))
        return not _on_spark(item), ORDER["contract"] if _rabbitmq(item) else within, _rabbitmq(item), within

    items.sort(key=place)
    for item in items:
        if _folder(item) not in COVERED:
            item.add_marker("no_cover")
        if group := _group(item):
            item.add_marker(pytest.mark.xdist_group(group))


def _folder(item: pytest.Item) -> str:
    return item.path.relative_to(CHECKOUT / "tests").parts[0]


def _rabbitmq(item: pytest.Item) -> str:
    call = getattr(item, "callspec", None)
    return str(call.params.get("stack", "")) if call else ""


def _on_spark(item: pytest.Item) -> bool:
    return not {"spark", "cluster"}.isdisjoint(item.fixturenames)


def _group(item: pytest.Item) -> str:
    """Return what a test shares with others; "" if nothing."""
    folder = _folder(item)
    if folder == "container":
        return folder  # an image takes longer to make than a stack to start
    if rabbitmq := _rabbitmq(item):
        # They take the longest and come last: one worker alone would be busy with them for minutes.
        is_first = "TIDEGATE_STACK" in os.environ or (folder == "integration" and item.path.name < "test_l")
        return f"stack-{rabbitmq}-{'first' if is_first else 'second'}"
    if _on_spark(item):
        return "spark"
    return folder if folder in {"page", "integration"} else ""


def pytest_runtest_makereport(call: pytest.CallInfo[Any]) -> None:
    """After a failure, which may be the deadline in the midst of a call to Java, let nobody read the call's answer."""
    if call.excinfo is not None:
        forget_calls()


def forget_calls() -> None:
    """End what Spark is doing, and forget the connection of this thread, which may owe the answer to an earlier call.

    Without it each later call is given the answer to the one before, and all tests behind a deadline fail.
    """
    pyspark = sys.modules.get("pyspark")
    context = None if pyspark is None else pyspark.SparkContext._active_spark_context
    if context is None:
        return
    client = context._gateway._gateway_client
    if (connection := client.get_thread_connection()) is not None:
        connection.close()  # the next call makes one
    context.cancelAllJobs()


def _skipped(config: pytest.Config) -> list[str]:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    return [report.nodeid for report in reporter.stats.get("skipped", ())] if reporter else []


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """In CI a skipped test proves nothing and fails the run."""
    if os.environ.get("CI") == "true" and exitstatus == pytest.ExitCode.OK and _skipped(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say which tests made it fail."""
    if os.environ.get("CI") == "true":
        for name in _skipped(config):
            terminalreporter.write_line(f"A skipped test fails CI: {name}", red=True)


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """Undo what a command that was run in this process did to the logs of all."""
    before = structlog.get_config()
    yield
    structlog.configure(**before)
