"""What can be known of the cluster without starting it."""

import os
import subprocess
import threading
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from load.spark_cluster import guardian
from load.spark_cluster.software import S3A
from load.stack.processes import MARK, Identity, identity, is_running, marked, spawn

SECONDS = 30.0
CHECKOUT = Path(__file__).parents[3]


def await_end(process: Identity) -> None:
    waited, deadline = threading.Event(), time.monotonic() + SECONDS
    while is_running(process) and time.monotonic() < deadline:
        waited.wait(0.02)
    assert not is_running(process)


def test_nothing_of_a_cluster_is_left_when_its_script_is_killed(tmp_path: Path) -> None:
    home = tmp_path / "own"
    (home / "buckets").mkdir(parents=True)
    with subprocess.Popen(["sleep", "60"]) as script:
        owner = identity(script.pid)
        assert owner is not None
        spawn(["/bin/sleep", "60"], env={MARK: f"{home}:worker-1"}, output=home / "worker-1.log")
        watching = guardian.start(home, owner)
        assert marked(home)
        assert is_running(watching)
        script.kill()
    await_end(watching)
    assert marked(home) == []
    assert not home.exists()


@pytest.mark.parametrize("file", [S3A, CHECKOUT / "docs" / "examples" / "report_on_cluster.py"], ids=os.path.basename)
def test_the_client_for_s3_is_of_the_hadoop_in_spark(file: Path) -> None:
    spark = find_spec("pyspark")
    assert spark is not None
    assert spark.origin is not None
    (jar,) = Path(spark.origin).parent.glob("jars/hadoop-client-api-*.jar")
    version = jar.stem.removeprefix("hadoop-client-api-")
    text = file.read_text(encoding="utf-8")
    assert f"<version>{version}</version>" in text or f"hadoop-aws:{version} " in text
