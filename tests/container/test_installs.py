"""The sdist makes the wheel, and the wheel installs and works where nothing of this checkout is."""

import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from load import installs
from load.stack import Stack
from tests.support.tidegate import Ends, Tidegate, until

pytestmark = pytest.mark.timeout(600)

HERE = installs.pythons()
LOG = Path(__file__).resolve().parents[1] / "reports" / "version_1.jsonl"
EVENTS = 500


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The sdist, and the wheel made from it."""
    return installs.build(tmp_path_factory.mktemp("built"))


async def works(python: Path, stack: Stack, folder: Path) -> None:
    """Let the command of an environment move events of a real Kafka to a real RabbitMQ, and stop."""
    async with Ends.open(stack) as ends:
        topic, queue = await ends.topic(), await ends.queue()
        with Tidegate(folder, ends.settings({topic: {"routing_key": queue}}), python=python) as tidegate:
            await tidegate.ready()
            await ends.produce(topic, [b"%d" % number for number in range(EVENTS)])
            came = await ends.receive(queue, EVENTS)
            assert [int(message.body) for message in came] == [*range(EVENTS)]
            await until(lambda: ends.all_committed(topic, 1, EVENTS))
            assert await tidegate.stop() == 0


def test_the_sdist_holds_the_product_and_nothing_else_when_built(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {name.partition("/")[0] for name in names} == {
        "proxy", "README.md", "CHANGELOG.md", "LICENSE", "pyproject.toml", "PKG-INFO", ".gitignore",
    }  # fmt: skip
    assert {"proxy/__main__.py", "proxy/reports/assets/uplot/LICENSE"} <= names


async def test_it_installs_and_moves_events_when_the_environment_is_fresh(
    built: tuple[Path, Path], stack: Stack, tmp_path: Path
) -> None:
    python = installs.install(built[1], tmp_path / "fresh", min(HERE.items())[1])
    assert installs.tried(python).startswith("tidegate ")
    assert not (python.parents[1] / "bin" / "pytest").exists()
    await works(python, stack, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("release", [*sorted(HERE)[1:]])
async def test_it_installs_and_moves_events_when_python_is_another(
    built: tuple[Path, Path], stack: Stack, tmp_path: Path, release: str
) -> None:
    python = installs.install(built[1], tmp_path / "fresh", HERE[release])
    installs.tried(python)
    await works(python, stack, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("release", installs.SUPPORTED)
def test_every_dependency_has_a_wheel_when_python_is_another(built: tuple[Path, Path], release: str) -> None:
    names = {one.partition(" ")[0].lower() for one in installs.resolved(built[1], release)}
    assert {"tidegate", "aiokafka", "aio-pika", "uvloop"} <= names


@pytest.mark.long
def test_it_reports_when_it_is_installed_with_reports(built: tuple[Path, Path], tmp_path: Path) -> None:
    python = installs.install(built[1], tmp_path / "fresh", min(HERE.items())[1], "reports")
    (tmp_path / "logs").mkdir()
    shutil.copy(LOG, tmp_path / "logs" / "metrics.jsonl")
    done = subprocess.run(
        [python.with_name("tidegate"), "report", "logs", "--out", "report"],
        check=False, capture_output=True, text=True, timeout=300, cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTHON")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert {"report.html", "report.json"} <= {path.name for path in (tmp_path / "report").iterdir()}
