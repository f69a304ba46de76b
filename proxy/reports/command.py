"""`tidegate report`: from metric logs to tables, a page, a picture and figures."""

import argparse
import json
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from proxy.reports.files import ReportError, is_readable, log_files, text_bytes
from proxy.reports.session import check_installed, raise_interrupt, said_by_spark, spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from proxy.reports.analysis import Analysis

Say = Callable[[str], None]


def main(argv: Sequence[str]) -> int:
    """Make a report; return the exit code: 0 made, 2 it can't be, 130 interrupted; the last two with one message."""
    options = _parser().parse_args(argv)
    try:
        runs = _runs(options)
        check_installed()
        _report(runs, options)
    except ReportError as error:
        print(f"tidegate report: {error}", file=sys.stderr)  # noqa: T201 - the command's answer
        return 2
    except KeyboardInterrupt:
        print("tidegate report: interrupted", file=sys.stderr)  # noqa: T201 - likewise
        return 128 + signal.SIGINT
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tidegate report",
        description="Analyses metric logs: traffic, latency, congestion, and what became of every event.",
    )
    parser.add_argument("logs", nargs="*", metavar="LOGS", help="folders or files of one run's metric logs")
    parser.add_argument(
        "--run",
        action="append",
        default=[],
        metavar="NAME=LOGS",
        help="a named run; give several to see them side by side, the same name again to add files to it",
    )
    parser.add_argument("--out", required=True, metavar="DIR", type=Path, help="where the report goes")
    parser.add_argument(
        "--master", default="local[*]", metavar="URL", help="a Spark cluster; it must see LOGS and DIR (default: here)"
    )
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the figures to this file as well")
    return parser


def _runs(options: argparse.Namespace) -> dict[str, list[str]]:
    """Return each run's paths as given. Raises `ReportError` if there are none."""
    runs: dict[str, list[str]] = {}
    if options.logs:
        runs["run"] = list(options.logs)
    for named in options.run:
        name, equals, path = named.partition("=")
        if not (name and equals and path):
            raise ReportError(f"--run {named}: write NAME=LOGS")
        runs.setdefault(name, []).append(path)
    if not runs:
        raise ReportError("give the folder of a metric log, or --run NAME=LOGS")
    return runs


def _report(runs: Mapping[str, Sequence[str]], options: argparse.Namespace) -> None:
    files = {run: log_files(paths) for run, paths in runs.items()}
    try:
        options.out.mkdir(parents=True, exist_ok=True)
        _say(f"starting Spark ({options.master})")
        noise = options.out / "spark.log"
        size = sum(text_bytes(path) for paths in files.values() for path in paths)
        with spark_session(options.master, noise, size) as spark:
            write_report(spark, files, options.out.absolute(), options.json, _say)
        noise.unlink(missing_ok=True)
    except OSError as error:
        raise ReportError(str(error)) from error
    _say(f"written to {options.out}: report.html, report.png, report.json, tables/")


def write_report(
    spark: "SparkSession", files: Mapping[str, Sequence[str]], out: Path, copy: Path | None, say: Say
) -> None:
    """Write everything into the folder `out`, the figures to `copy` too, and print the result table.

    Raises `ReportError` if there is nothing to report or Spark fails.
    """
    from proxy.reports.charts import Charts
    from proxy.reports.findings import findings
    from proxy.reports.page import page
    from proxy.reports.terminal import result_table

    analysis, unreadable = _analysis(spark, files, out / "tables", say)
    found = findings(analysis, unreadable, datetime.now(UTC))
    say("page and picture")
    document = json.dumps(found.as_document(), indent=1)
    for path in filter(None, (out / "report.json", copy)):
        path.write_text(document + "\n")
    charts = Charts(found)
    (out / "report.html").write_text(page(found, charts))
    charts.write_png(out / "report.png")
    print(result_table(found))  # noqa: T201 - the command's answer


def _analysis(
    spark: "SparkSession", files: Mapping[str, Sequence[str]], tables: Path, say: Say
) -> "tuple[Analysis, dict[str, list[str]]]":
    """Analyse; if Spark stumbles over files cut short or removed meanwhile, once more without them."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    from proxy.reports.analysis import analyse

    try:
        return analyse(spark, files, tables, say), {}
    except (PySparkException, Py4JError) as error:
        raise_interrupt(error)
        failure = error
    unreadable = {run: [path for path in paths if not is_readable(path)] for run, paths in files.items()}
    left = {run: [path for path in paths if path not in unreadable[run]] for run, paths in files.items()}
    if not any(unreadable.values()):
        raise ReportError(_of_spark(failure)) from failure
    if empty := [run for run, paths in left.items() if not paths]:
        raise ReportError(f"no file can be read to its end: {', '.join(unreadable[empty[0]])}")
    say("once more without files that can't be read to their end")
    try:
        return analyse(spark, left, tables, say), unreadable
    except (PySparkException, Py4JError) as error:
        raise_interrupt(error)
        raise ReportError(_of_spark(error)) from error


def _of_spark(error: Exception) -> str:
    return f"{said_by_spark(error)} (more in spark.log beside the report)"


def _say(text: str) -> None:
    # Whole with its end: threads speak side by side.
    print(f"report: {text}\n", end="", file=sys.stderr, flush=True)  # noqa: T201 - progress is for the terminal
