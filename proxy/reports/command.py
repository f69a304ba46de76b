"""`tidegate report`: from metric logs to tables, a page, a picture and figures."""

import argparse
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from proxy.reports.files import ReportError, SparkError, log_files, text_bytes
from proxy.reports.no_space import is_no_space, said
from proxy.reports.places import Places, is_address, join, looked_up
from proxy.reports.session import SUBMITTED, check_installed, raise_interrupt, said_by_spark, spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from proxy.reports.analysis import Analysis
    from proxy.reports.stored import Stored

    Make = Callable[[Mapping[str, Sequence[str]], str], Analysis]

Say = Callable[[str], None]


def main(argv: Sequence[str]) -> int:
    """Make a report; return the exit code: 0 made, 2 it can't be, 130 interrupted; the last two with one message."""
    options = _parser().parse_args(argv)
    try:
        runs = _runs(options)
        check_installed()
        _report(runs, _stored(options), options)
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
    parser.add_argument("logs", nargs="*", metavar="LOGS", help="folders, files or addresses of one run's metric logs")
    parser.add_argument(
        "--run",
        action="append",
        default=[],
        metavar="NAME=LOGS",
        help="a named run; give several to see them side by side, the same name again to add files to it",
    )
    parser.add_argument(
        "--out",
        required=True,
        metavar="DIR",
        help="where the report goes: a folder or an address (s3a://bucket/report)",
    )
    parser.add_argument(
        "--master",
        default="local[*]",
        metavar="URL",
        help="a Spark cluster; LOGS and DIR must be addresses, or folders that it shares (default: here)",
    )
    parser.add_argument(
        "--conf",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting of Spark's, such as spark.hadoop.fs.s3a.endpoint; under spark-submit it takes these",
    )
    parser.add_argument(
        "--store",
        metavar="DIR",
        help="a folder or an address that keeps what was read: the next report from it reads only files that are new",
    )
    parser.add_argument("--rebuild", action="store_true", help="with --store: forget what it has, read everything anew")
    parser.add_argument(
        "--keep",
        action="append",
        default=[],
        metavar="LAYER=TIME",
        help="with --store: remove what is so much older than the newest record: records=7d, facts=1y (h, d, w, y)",
    )
    for name, what in (("since", "what came after"), ("until", "what came up to")):
        parser.add_argument(
            f"--{name}",
            type=_instant,
            metavar="TIME",
            help=f"with --store: only {what} this instant, as 2026-11-22T14:00 (UTC unless it says otherwise)",
        )
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the figures to this file as well")
    return parser


def _instant(text: str) -> int:
    """Return an instant in milliseconds since 1970."""
    try:
        told = datetime.fromisoformat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text}: write an instant as 2026-11-22T14:00") from error
    return round((told if told.tzinfo else told.replace(tzinfo=UTC)).timestamp() * 1000)


def _stored(options: argparse.Namespace) -> "Stored | None":
    """Return what is to be done with a store; null without one. Raises `ReportError` for what needs one."""
    from proxy.reports.stored import Stored

    told = Stored.of(options.store or "", options.keep, options.since, options.until, rebuild=options.rebuild)
    if options.store is None:
        if told != Stored(""):
            raise ReportError("--rebuild, --keep, --since and --until are of a store: give --store DIR")
        return None
    return told


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
    if not options.out or options.store == "":
        raise ReportError("--out and --store take a folder or an address, not an empty name")
    if not runs:
        raise ReportError("give the folder of a metric log, or --run NAME=LOGS")
    return runs


def _report(runs: Mapping[str, Sequence[str]], stored: "Stored | None", options: argparse.Namespace) -> None:
    files = {run: log_files(paths) for run, paths in runs.items()}
    settings = _settings(options.conf)
    out = options.out if is_address(options.out) else str(Path(options.out).absolute())
    try:
        if options.json is not None:
            with options.json.open("a"):  # told now, not when all is made
                pass
        noise = _noise(out)
        _say("Spark was started by spark-submit" if SUBMITTED in os.environ else f"starting Spark ({options.master})")
        size = sum(text_bytes(path) for paths in files.values() for path in paths)
        with spark_session(options.master, noise, size, settings) as spark:
            places = Places(spark)
            found = {run: looked_up(paths, places) for run, paths in files.items()}
            try:
                make = None if stored is None else partial(stored.analyse, spark, runs, say=_say)
                write_report(spark, found, out, options.json, _say, make)
            except SparkError as error:
                is_damaged = stored is not None and stored.store in str(error)
                remedy = "; --rebuild makes the store anew" if is_damaged else ""
                raise ReportError(f"{error}{remedy} (more in {noise})") from error
        noise.unlink(missing_ok=True)
    except (ReportError, OSError) as error:
        if is_no_space(error):
            raise ReportError(said(error, [out, *([] if stored is None else [stored.store])])) from error
        if isinstance(error, ReportError):
            raise
        raise ReportError(f"{error.filename}: {error.strerror}" if error.filename else str(error)) from error
    _say(f"written to {options.out}: report.html, report.png, report.json, tables/")


def write_report(
    spark: "SparkSession",
    files: Mapping[str, Sequence[str]],
    out: str,
    copy: Path | None,
    say: Say,
    make: "Make | None" = None,
) -> None:
    """Write everything to the place `out`, the figures to `copy` too, and print the result table.

    `make` analyses files and leaves the tables in a folder; without it everything is read anew.
    Raises `ReportError` if there is nothing to report or Spark fails.
    """
    from proxy.reports.analysis import analyse
    from proxy.reports.charts import Charts
    from proxy.reports.findings import findings
    from proxy.reports.page import page
    from proxy.reports.terminal import result_table

    make = make or partial(analyse, spark, say=say)
    analysis, unreadable = _analysis(spark, make, files, join(out, "tables"), say)
    found = findings(analysis, unreadable, datetime.now(UTC))
    say("page and picture")
    document = json.dumps(found.as_document(), indent=1)
    places = Places(spark)
    if copy is not None:
        copy.write_text(document + "\n")
    places.write_text(join(out, "report.json"), document + "\n")
    places.write_text(join(out, "report.html"), page(found))
    with tempfile.TemporaryDirectory(prefix="tidegate-report-") as folder:
        Charts(found).write_png(Path(folder, "report.png"))
        places.upload(Path(folder, "report.png"), join(out, "report.png"))
    print(result_table(found))  # noqa: T201 - the command's answer


def _analysis(
    spark: "SparkSession", make: "Make", files: Mapping[str, Sequence[str]], tables: str, say: Say
) -> "tuple[Analysis, dict[str, list[str]]]":
    """Analyse; if Spark stumbles over files cut short or removed meanwhile, once more without them."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        return make(files, tables), {}
    except (PySparkException, Py4JError) as error:
        raise_interrupt(error)
        failure = error
    if is_no_space(failure):
        raise SparkError(said_by_spark(failure)) from failure
    whole = Places(spark).is_readable
    unreadable = {run: [path for path in paths if not whole(path)] for run, paths in files.items()}
    left = {run: [path for path in paths if path not in unreadable[run]] for run, paths in files.items()}
    if not any(unreadable.values()):
        raise SparkError(said_by_spark(failure)) from failure
    if empty := [run for run, paths in left.items() if not paths]:
        raise ReportError(f"no file can be read to its end: {', '.join(unreadable[empty[0]])}")
    say("once more without files that can't be read to their end")
    try:
        return make(left, tables), unreadable
    except (PySparkException, Py4JError) as error:
        raise_interrupt(error)
        raise SparkError(said_by_spark(error)) from error


def _noise(out: str) -> Path:
    """Return the file for what Java says: in the folder of the report, which is made, or else a temporary one."""
    if is_address(out):
        return Path(tempfile.gettempdir(), f"tidegate-report-{os.getpid()}.log")
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise ReportError(f"--out {out}: there is a file in its place") from error
    return folder / "spark.log"


def _settings(told: Sequence[str]) -> list[tuple[str, str]]:
    """Return the settings of `--conf` as pairs. Raises `ReportError`."""
    settings = []
    for one in told:
        name, equals, value = one.partition("=")
        if not (name.startswith("spark.") and equals):
            raise ReportError(f"--conf {one}: write spark.NAME=VALUE")
        settings.append((name, value))
    return settings


def _say(text: str) -> None:
    # Whole with its end: threads speak side by side.
    print(f"report: {text}\n", end="", file=sys.stderr, flush=True)  # noqa: T201 - progress is for the terminal
