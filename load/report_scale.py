"""How long a report takes beside the plainest job over the same logs, how that grows, and what memory it needs.

    python -m load.report_scale FLEET [FLEET ...] --json FILE

Each FLEET is a folder of metric logs, from small to large, as `python -m load.metric_fleet` makes them, or a number of
records: such a fleet of 1,000 event types is made under `--in` if it is not there. The plain job
reads every column with the whole schema and adds up what is a number, by kind, minute, class and type. Each job has a
process and a Spark of its own; times begin when Spark has started. What FILE has already is not measured again, so that
a long series can be made in pieces.
"""

import argparse
import contextlib
import io
import json
import math
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from load.machine import commit
from load.tables import aligned
from load.terminal import command_line, say
from proxy.reports.command import write_report
from proxy.reports.files import log_files, text_bytes
from proxy.reports.schema import ENVELOPE, KINDS
from proxy.reports.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    Job = Callable[[SparkSession, list[str], Path], None]

Figures = dict[str, float]
"""Of one job: records, seconds, cpu_seconds, java_mb (the most that Java had in memory), load_before."""
FLEET = ("--replicas", "4", "--types", "1000", "--active", "1000")
"""What a fleet is made with."""
DEADLINE = 4 * 3600.0
"""Seconds for one job."""
MOST_TIMES_PLAIN = 3.0
MOST_STEEP = 1.15
"""Exponent of time by records: 1 is linear, less means that a start weighs more than the records."""
EXAMPLES = """\
examples:
  python -m load.report_scale 3000000 --json out/report-scale.json             one size beside a plain job
  python -m load.report_scale 3000000 30000000 --json out/report-scale.json    ... and how it grows, an hour or more
  python -m load.report_scale my/logs --json out/report-scale.json

exit codes: 0 both goals are met; 1 one is not, or a job failed
"""


def report(spark: "SparkSession", files: list[str], out: Path) -> None:
    """Make the whole report, page included."""
    with contextlib.redirect_stdout(io.StringIO()):
        write_report(spark, {"run": files}, str(out), None, lambda _text: None)


def plain(spark: "SparkSession", files: list[str], out: Path) -> None:
    """Read all columns by one schema, add up every number, write the sums."""
    from pyspark.sql import functions as fn
    from pyspark.sql.types import NumericType, StructType

    fields = {field.name: field for schema in (ENVELOPE, *KINDS.values()) for field in schema.fields}
    lines = spark.read.schema(StructType(list(fields.values()))).json(files)
    numbers = [name for name, field in fields.items() if isinstance(field.dataType, NumericType)]
    maps = [name for name, field in fields.items() if field.dataType.typeName() == "map"]
    minute = (fn.col("at_ms") / 60_000).cast("long").alias("minute")
    sums = lines.groupBy("kind", "class", "type", minute).agg(
        fn.count("*"),
        *(fn.sum(name).alias(name) for name in numbers),
        *(fn.sum(fn.size(name)).alias(name) for name in maps),
    )
    sums.write.parquet(str(out / "sums"))


JOBS: dict[str, "Job"] = {"plain": plain, "report": report}


def _job(name: str, fleet: str) -> Figures:
    """Run one job in this process and return its figures."""
    files = [str(file) for file in log_files([fleet])]
    before = os.getloadavg()[0]
    with (
        tempfile.TemporaryDirectory(prefix="tidegate-scale-") as folder,
        spark_session("local[*]", Path(folder, "spark.log"), sum(map(text_bytes, files))) as spark,
    ):
        ours = psutil.Process().children(recursive=True)
        java = next(one for one in ours if "SparkSubmit" in " ".join(one.cmdline()))
        began, used = time.monotonic(), _used(java)
        JOBS[name](spark, files, Path(folder, "out"))
        seconds, cpu_seconds = time.monotonic() - began, _used(java) - used
        most = Path(f"/proc/{java.pid}/status").read_text(encoding="ascii").partition("VmHWM:")[2].split()[0]
        return {
            "records": spark.read.text(files).count(),
            "seconds": seconds,
            "cpu_seconds": cpu_seconds,
            "java_mb": int(most) / 1024,
            "load_before": before,
        }


def _used(java: psutil.Process) -> float:
    return sum(sum(one.cpu_times()[:2]) for one in (java, psutil.Process()))


def _measured(name: str, fleet: str) -> Figures:
    say(f"{name}: {fleet}")
    command = [sys.executable, "-m", "load.report_scale", fleet, "--job", name]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, check=False)
    if answer.returncode:
        raise SystemExit(f"{name} of {fleet} failed:\n{answer.stderr}")
    found: Figures = json.loads(answer.stdout)
    return found


def _measure(fleets: Sequence[str], file: Path) -> dict[str, dict[str, Figures]]:
    """Return the figures of each fleet's jobs, and keep them in the file as they come."""
    about: dict[str, Any] = {"measured": "report-scale", "cores": os.cpu_count(), "python": platform.python_version()}
    told = json.loads(file.read_text("utf-8")) if file.exists() else about | {"tidegate": commit(), "fleets": {}}
    found: dict[str, dict[str, Figures]] = told["fleets"]
    file.parent.mkdir(parents=True, exist_ok=True)
    for fleet in fleets:
        jobs = found.setdefault(fleet, {})
        for name in JOBS:
            if name not in jobs:
                jobs[name] = _measured(name, fleet)
                file.write_text(json.dumps(told, indent=1) + "\n", "utf-8")
    return {fleet: found[fleet] for fleet in fleets}


def _logs(fleet: str, folder: Path) -> str:
    """Return the folder of a fleet's logs, which is made if only a number of records is given."""
    if not fleet.isdecimal():
        return fleet
    out = folder / fleet
    if not (out / "truth.json").exists():  # it is written last
        shutil.rmtree(out, ignore_errors=True)
        say(f"{out}: making {int(fleet):,} records")
        subprocess.run(
            [sys.executable, "-m", "load.metric_fleet", str(out), *FLEET, "--records", fleet],
            stdout=subprocess.DEVNULL,
            check=True,
        )
    return str(out / "logs")


def main() -> int:
    """Run the command line; return 0 if every report takes at most three plain jobs and none grows too fast, else 1."""
    options = _parser().parse_args()
    if options.job:
        print(json.dumps(_job(options.job, options.fleets[0])))
        return 0
    if options.json is None:
        raise SystemExit("report_scale: --json FILE is needed")
    fleets = [_logs(fleet, options.folder) for fleet in options.fleets]
    found = list(_measure(fleets, options.json).values())
    rows = [["records", *(f"{name} {what}" for name in JOBS for what in ("s", "CPU-s", "MB")), "of plain", "CPU"]]
    ratios = {of: [jobs["report"][of] / jobs["plain"][of] for jobs in found] for of in ("seconds", "cpu_seconds")}
    for at, jobs in enumerate(found):
        figures = [f"{jobs[name][what]:,.0f}" for name in JOBS for what in ("seconds", "cpu_seconds", "java_mb")]
        rows.append([f"{jobs['report']['records']:,.0f}", *figures, *(f"{some[at]:.1f}" for some in ratios.values())])
    print(aligned(rows))
    exponents = [_exponent(*two) for two in pairwise(jobs["report"] for jobs in found)]
    each = [_each(*two) for two in pairwise(jobs["report"] for jobs in found)]
    if exponents:
        told = ", ".join(f"{one:.2f} ({micros:.0f} us each)" for one, micros in zip(exponents, each, strict=True))
        print(f"exponent of the report's time by records, and what each more record took: {told}")
    most = max(ratios["seconds"])
    print(f"{most:.1f} plain jobs at most (goal {MOST_TIMES_PLAIN:.0f}); exponents at most {MOST_STEEP}")
    return 1 if most > MOST_TIMES_PLAIN or max(exponents, default=0.0) > MOST_STEEP else 0


def _exponent(less: Figures, more: Figures) -> float:
    return math.log(more["seconds"] / less["seconds"]) / math.log(more["records"] / less["records"])


def _each(less: Figures, more: Figures) -> float:
    return (more["seconds"] - less["seconds"]) / (more["records"] - less["records"]) * 1e6


def _parser() -> argparse.ArgumentParser:
    parser = command_line("load.report_scale", (__doc__ or "").splitlines()[0], EXAMPLES)
    parser.add_argument("fleets", nargs="+", metavar="FLEET", help="a folder of metric logs, or how many records")
    parser.add_argument(
        "--in", type=Path, default=Path("out", "fleets"), dest="folder", metavar="DIR", help="of fleets (out/fleets)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the figures go")
    parser.add_argument("--job", choices=sorted(JOBS), help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
