"""The report by a Spark cluster, from and to an object store, is the one that is made here."""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from load.metric_fleet import Plan, make
from load.spark_cluster import SparkCluster
from proxy.reports.store.lease import LEASE_S

pytestmark = pytest.mark.long
DEADLINE = pytest.mark.timeout(6_200)
"""For a test with all that it is the first to need: a cluster, a report made here, three made there."""

CHECKOUT = Path(__file__).parents[2]
HERE = "import sys; from proxy.reports.command import main; sys.exit(main(sys.argv[1:]))"
PLACES = """
import sys
from pathlib import Path
from proxy.reports.places import Places, join
from proxy.reports.session import spark_session
from test_places import check_places

to, home, *files = sys.argv[1:]
with spark_session("local[1]", Path("places.log")) as spark:
    for file in map(Path, files):
        Places(spark).upload(file, join(to, file.name))
    if home:
        check_places(Places(spark), home)
"""
"""Uploads files to a folder; says whether places keep their word in a store if one is named."""
HOLDS = """
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from proxy.reports.files import ReportError
from proxy.reports.places import Places
from proxy.reports.session import spark_session
from proxy.reports.store.lock import held

store = sys.argv[1]

with spark_session("local[1]", Path("holds.log")) as spark, ThreadPoolExecutor(4) as pool:
    places = Places(spark)
    for number in range(10):
        made = pool.map(lambda text: places.create_text(f"{store}-{number}", text), "abcd")
        assert sum(made) == 1, "one of four that make the same file at a time"
    try:
        with held(places, store, print) as check:
            try:
                with held(places, store, print):
                    print("held twice")
            except ReportError as error:
                print(error)
            check()
            print("held", flush=True)
            input()
    except ReportError as error:
        print(error)
"""
"""Says who has a store, once while it has it itself, and keeps it until a line comes."""
WORKERS = 2


@dataclass(frozen=True)
class Cluster:
    """A cluster and programs that use it."""

    spark: SparkCluster
    folder: Path

    def run(self, *command: object, **environment: str) -> "subprocess.CompletedProcess[str]":
        """Run a command to its end in the settings of the cluster."""
        return subprocess.run(
            [*map(str, command)],
            cwd=self.folder,
            env={**without_tidegate(os.environ), **self.spark.environment, **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    def report(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Make a report by all workers."""
        path = os.pathsep.join(filter(None, sys.path))
        command = [sys.executable, "-c", HERE, *arguments, "--master", self.spark.master]
        done = self.run(*command, PYTHONPATH=path)
        assert done.returncode == 0, done.stderr
        return done

    def hold(self, store: str) -> "subprocess.Popen[str]":
        """Start a process that has a store in its own name."""
        environment = {**without_tidegate(os.environ), **self.spark.environment}
        return subprocess.Popen(
            [sys.executable, "-c", HOLDS, store],
            cwd=self.folder,
            env=environment | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def upload(self, to: str, files: Iterable[Path], home: str = "") -> None:
        """Put files into a folder of the store; if a `home` is given, check that places keep their word there."""
        path = os.pathsep.join(filter(None, [*sys.path, str(Path(__file__).parent)]))
        done = self.run(sys.executable, "-c", PLACES, to, home, *files, PYTHONPATH=path)
        assert done.returncode == 0, done.stderr

    def bucket(self, name: str) -> Path:
        """Make a bucket; return the folder of its objects."""
        folder = self.spark.buckets / name
        folder.mkdir()
        return folder


def without_tidegate(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if not name.startswith("PYTHON")}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with SparkCluster.up() as spark:
        yield Cluster(spark, tmp_path_factory.mktemp("cluster"))


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The logs of a small fleet; of one file a crash left the open one, too."""
    folder = tmp_path_factory.mktemp("fleet") / "fleet"
    make(folder, Plan(types=3, active=2, minutes=1.0, events=True), 1)
    finished = next((folder / "logs").rglob("*.jsonl.gz"))
    finished.with_suffix(".open").write_bytes(gzip.decompress(finished.read_bytes()))
    return folder / "logs"


@pytest.fixture(scope="module")
def local(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report on the logs, made here."""
    out = tmp_path_factory.mktemp("local")
    path = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", HERE, str(logs), "--out", str(out)]
    subprocess.run(command, check=True, env=os.environ | path)
    return out


@pytest.fixture(scope="module")
def stored(cluster: Cluster, logs: Path) -> str:
    """The address of the logs; beside them places have kept their word, in the only Spark that this takes."""
    for name in ("logs", "places"):
        cluster.bucket(name)
    cluster.upload("s3a://logs/fleet", logs.iterdir(), "s3a://places/home")
    return "s3a://logs/fleet"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", folder, CHECKOUT]
    subprocess.run(build, check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture
def check_equal(spark: Any, local: Path) -> Callable[[Path], None]:
    """Compare the report in a folder with the local one: figures, and every row of every table."""

    def rows(folder: Path, table: str) -> list[str]:
        return sorted(
            json.dumps(row.asDict(recursive=True)) for row in spark.read.parquet(f"{folder}/tables/{table}").collect()
        )

    def check(folder: Path) -> None:
        ours, theirs = (json.loads((report / "report.json").read_text()) for report in (folder, local))
        del ours["made_at"], theirs["made_at"]
        assert ours == theirs
        assert {path.name for path in (folder / "tables").iterdir() if path.is_dir()} == set(theirs["tables"])
        for table in theirs["tables"]:
            assert rows(folder, table) == rows(local, table), table
        for name in ("report.html", "report.png"):
            assert (folder / name).stat().st_size > 10_000

    return check


def check_used(cluster: Cluster, name: str) -> None:
    """The program of this name had every core of the cluster, and has left it."""
    (found,) = [one for one in cluster.spark.applications() if one["name"] == name]
    assert (found["state"], found["cores"]) == ("FINISHED", WORKERS)


@DEADLINE
def test_places_keep_their_word_when_they_are_in_a_store(stored: str, cluster: Cluster, logs: Path) -> None:
    assert [path for path in (cluster.spark.buckets / "places").rglob("*") if path.is_file()] == []
    found = {path.name: path.read_bytes() for path in (cluster.spark.buckets / stored.removeprefix("s3a://")).iterdir()}
    assert found == {path.name: path.read_bytes() for path in logs.iterdir()}


@DEADLINE
def test_the_report_is_the_local_one_when_a_cluster_makes_it_from_and_to_a_store(
    cluster: Cluster, stored: str, check_equal: Callable[[Path], None]
) -> None:
    out = cluster.bucket("one") / "report"
    done = cluster.report(stored, "--conf", "spark.app.name=one", "--out", "s3a://one/report")
    assert "\nclass  run  " in done.stdout
    assert done.stderr.endswith("report: written to s3a://one/report: report.html, report.png, report.json, tables/\n")
    check_used(cluster, "one")
    check_equal(out)


@DEADLINE
def test_the_report_is_the_local_one_when_the_wheel_is_submitted(
    cluster: Cluster, stored: str, wheel: Path, check_equal: Callable[[Path], None]
) -> None:
    out = cluster.bucket("two") / "report"
    submit = [cluster.spark.spark_submit, "--master", cluster.spark.master, "--name", "two", "--py-files", wheel]
    script = CHECKOUT / "docs" / "examples" / "report_on_cluster.py"
    done = cluster.run(*submit, script, stored, "--out", "s3a://two/report")
    assert done.returncode == 0, done.stderr
    check_used(cluster, "two")
    check_equal(out)


@DEADLINE
def test_the_report_is_the_local_one_when_an_object_store_keeps_what_was_read_and_more_comes(
    cluster: Cluster, logs: Path, check_equal: Callable[[Path], None]
) -> None:
    bucket = cluster.bucket("three")
    arguments = ["s3a://three/logs", "--store", "s3a://three/store", "--out", "s3a://three/report"]

    def stored() -> dict[Path, int]:
        parts = [path for layer in ("batches", "records", "facts") for path in (bucket / "store" / layer).rglob("*")]
        return {path: path.stat().st_mtime_ns for path in parts if path.is_file()}

    early = sorted(logs.glob("*.jsonl.gz"))[::2]
    cluster.upload("s3a://three/logs", early)
    assert f": {len(early)} files\n" in cluster.report(*arguments).stderr
    before = stored()

    late = sorted({*logs.iterdir()}.difference(early))
    cluster.upload("s3a://three/logs", late)
    assert f": {len([path for path in late if path.suffix == '.gz'])} files\n" in cluster.report(*arguments).stderr
    after = stored()
    assert len(after) > len(before)
    assert {path: after.get(path) for path in before} == before
    check_equal(bucket / "report")

    cluster.report(*arguments, "--rebuild")
    check_equal(bucket / "report")


@DEADLINE
def test_one_report_at_a_time_has_a_store_in_an_object_store_and_a_killed_one_only_for_a_while(
    cluster: Cluster,
) -> None:
    turns, store = cluster.bucket("four") / "store" / "locks", "s3a://four/store"
    with cluster.hold(store) as one:
        first, second = heard(one), heard(one)
        assert f"{store}: another report has this store (process {one.pid} on " in first
        assert second == "held\n"
        one.kill()
    with cluster.hold(store) as two:
        assert f"(process {one.pid} on " in heard(two)
        two.kill()
    (left,) = turns.glob("0*")
    long_ago = left.stat().st_mtime - LEASE_S
    os.utime(left, (long_ago, long_ago))
    with cluster.hold(store) as three:
        assert f"(process {three.pid} on " in heard(three)
        assert heard(three) == "held\n"
        three.communicate("\n")
    assert [path.read_text() for path in turns.glob("0*")] == ["free\n"]


def heard(process: "subprocess.Popen[str]") -> str:
    """The next line that a process says."""
    assert process.stdout is not None
    return process.stdout.readline()
