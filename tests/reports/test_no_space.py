"""A disk that is full ends a report with one message, and the next one goes on where it stopped."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from load.metric_fleet import Plan, make
from proxy.reports.files import ReportError, SparkError
from proxy.reports.no_space import is_no_space, said


class Usage(NamedTuple):
    """As `shutil.disk_usage` tells it, in bytes."""

    total: int
    used: int
    free: int


class CapturedError(Exception):
    """As PySpark raises what Java raised: Java's trace stands in a field of its own."""

    _stackTrace = "Job aborted\n\tat ...\nCaused by: java.io.IOException: No space left on device"  # noqa: N815 - theirs


def failed(error: BaseException) -> SparkError:
    try:
        raise SparkError("Spark failed: Job aborted") from error
    except SparkError as found:
        return found


@pytest.mark.parametrize(
    "error",
    [
        OSError(28, "No space left on device", "/store/x"),
        OSError(122, "Disk quota exceeded"),
        ReportError("/store/store.json: FSError: java.io.IOException: No space left on device"),
        failed(CapturedError("Job aborted")),
    ],
)
def test_a_disk_without_room_is_known_whoever_says_it(error: BaseException) -> None:
    assert is_no_space(error)


def test_another_failure_is_none_of_a_full_disk() -> None:
    assert not is_no_space(failed(OSError(13, "Permission denied")))


def test_the_message_names_the_place_that_has_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "full").mkdir()
    out, store = tmp_path / "out" / "deep", tmp_path / "full" / "store"
    monkeypatch.setattr(shutil, "disk_usage", lambda place: Usage(9, 9, 300_000 if place.name == "full" else 10**9))
    message = said(ReportError("no words"), [str(out), str(store), "s3a://bucket/out"])
    assert message.startswith(f"no space left on the disk of {tmp_path}/full (0.3 MB free); make room there")
    spark = SparkError(f"Spark failed (more in {out}/spark.log)")
    spark.__cause__ = CapturedError(f"Task failed while writing rows to file:{store}/x")
    assert said(spark, [str(out), str(store)]) == message
    named = said(ReportError(f"Task failed while writing rows to file:{tmp_path}/out/deep/tables/x"), [str(out)])
    assert named.startswith(f"no space left on the disk of {tmp_path}/out (953.7 MB free)")


FULL = """
import os, subprocess, sys
from pathlib import Path
from load.faults.small_disk import mounted
folder, kilobytes, *arguments = sys.argv[1:]
code = "import sys; from proxy.reports.command import main; sys.exit(main(sys.argv[1:]))"

def report(out, *more):
    store = str(Path(folder, "store"))
    print(subprocess.run([sys.executable, "-c", code, *arguments, "--store", store, "--out", out, *more]).returncode)

with mounted(Path(folder)) as disk:
    if disk is None:
        sys.exit("only root may mount a small disk")
    room = os.statvfs(disk)
    with (disk / "filled").open("wb") as file:
        file.write(bytes(room.f_bavail * room.f_frsize - int(kilobytes) * 1024))
    report("first")
    (disk / "filled").unlink()
    report("again")
    report("anew", "--rebuild")
"""


@pytest.mark.long
@pytest.mark.timeout(1_800)
def test_a_report_goes_on_when_the_disk_of_its_store_was_full_and_has_room_again(tmp_path: Path) -> None:
    make(tmp_path / "fleet", Plan(types=3, active=2, minutes=1.0), 1)
    disk, logs = tmp_path / "disk", tmp_path / "fleet" / "logs"
    path = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", FULL, disk, "120", logs]
    done = subprocess.run(
        command, cwd=tmp_path, env=os.environ | path, capture_output=True, text=True, check=False, timeout=1_700
    )
    assert [line for line in done.stdout.splitlines() if line.isdecimal()] == ["2", "0", "0"], done.stderr
    (said,) = [line for line in done.stderr.splitlines() if not line.startswith("report: ")]
    assert said.startswith(f"tidegate report: no space left on the disk of {disk}")
    again, anew = (json.loads((tmp_path / name / "report.json").read_text()) for name in ("again", "anew"))
    del again["made_at"], anew["made_at"]
    assert again == anew
