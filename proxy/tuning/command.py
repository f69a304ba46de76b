"""`tidegate tune`: which policy, law and settings would have served the recorded load best."""

import argparse
import json
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from proxy.congestion import laws
from proxy.errors import SettingsError
from proxy.reports.files import ReportError, log_files, text_bytes
from proxy.reports.places import Places, looked_up
from proxy.reports.session import check_installed, raise_interrupt, said_by_spark, spark_session
from proxy.settings.parts import Part, Seconds
from proxy.tuning.findings import Findings, rank_lines, replay_lines
from proxy.tuning.goals import ranked
from proxy.tuning.grid import Candidate, candidates, check_names
from proxy.tuning.measured import compared, is_believed, measured
from proxy.tuning.rebuilt import WARM_UP, Rebuilt, rebuilt
from proxy.tuning.runs import Outcome, Run

if TYPE_CHECKING:
    from pyspark import SparkContext

    from proxy.tuning.recording import Recording

Simulate = Callable[[Rebuilt, Sequence[Run]], list[Outcome]]
"""Makes runs and returns what came of them, in their order."""

EXIT_MISTAKE = 2
DEFAULT_GOAL = "500ms"
DEFAULT_SEEDS = 5
MOST_SEEDS = 100

_EPILOG = f"""\
examples:
  tidegate tune /var/lib/tidegate              replay what was recorded: does the model reproduce it?
  tidegate tune /var/lib/tidegate --law cubic --law vegas
                                               ... and would another rate law have done better?
  tidegate tune LOGS --try lowest_queue_delay=60ms,80ms --try growth=0.08,0.12
                                               every combination of these values
  tidegate tune LOGS --since 2026-01-31T14:00Z --until 2026-01-31T14:20Z --policy per_type --json tune.json
                                               one episode of a long log, under another policy

The recorded load (what came of each class, what the consumers could take) runs through the production bridge against a
model of log and broker, under virtual time. First as it was steered: bridge time and queue delay of the replay stand
beside the recorded ones, and what the log does not tell is listed. Then as it might have been: every combination of
--policy and --law with all --try values, each with several seeds of chance, spread by Spark over the cores.

ranks: the most important class's goal first (--goal), then how much of what the consumers could take was used, then
how much of the other classes came through. A difference counts if it is there in every seed; else there is none.

policies: static, per_type, class_budget; laws: {", ".join(laws.names())}
exit codes: 0 done, 2 a mistake in the arguments, or logs that tell too little; one message
"""


def main(argv: Sequence[str]) -> int:
    """Replay and compare; return the exit code: 0 done, 2 it can't be, 130 interrupted; the last two with messages."""
    told = options(argv)
    try:
        _tune(told)
    except (ReportError, SettingsError, OSError) as error:
        lines = error.mistakes if isinstance(error, SettingsError) else [str(error)]
        for line in lines:
            print(f"tidegate tune: {line}", file=sys.stderr)  # noqa: T201 - the command's answer
        return EXIT_MISTAKE
    except KeyboardInterrupt:
        print("tidegate tune: interrupted", file=sys.stderr)  # noqa: T201 - likewise
        return 128 + signal.SIGINT
    return 0


def options(argv: Sequence[str]) -> argparse.Namespace:
    """Return the arguments, understood. Raises `SystemExit` as argparse does."""
    parser = argparse.ArgumentParser(
        prog="tidegate tune",
        description="Says which policy, rate law and settings would have served the recorded load best.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("logs", nargs="+", metavar="LOGS", help="folders or files of metric logs, of all replicas")
    parser.add_argument("--since", metavar="TIME", type=_instant, help="from here on, like 2026-01-31T14:00Z")
    parser.add_argument("--until", metavar="TIME", type=_instant, help="up to here; one hour at most is replayed")
    parser.add_argument(
        "--goal",
        metavar="DURATION",
        type=_duration,
        default=DEFAULT_GOAL,
        help=f"what the most important class's P99 from event to consumer may be (default: {DEFAULT_GOAL})",
    )
    parser.add_argument("--policy", action="append", default=[], metavar="NAME", help="try this policy on all routes")
    parser.add_argument(
        "--law", action="append", default=[], metavar="NAME", help="try class_budget with this rate law"
    )
    parser.add_argument(
        "--try",
        action="append",
        default=[],
        dest="tried",
        metavar="SETTING=VALUES",
        help="try these values, commas between them: of class_budget by name, of other parts by their path",
    )
    parser.add_argument(
        "--seeds", type=_seeds, default=DEFAULT_SEEDS, metavar="N", help=f"runs of each (default: {DEFAULT_SEEDS})"
    )
    parser.add_argument(
        "--master", default="local[*]", metavar="URL", help="a Spark cluster with Tidegate on it (default: here)"
    )
    parser.add_argument("--json", metavar="FILE", type=Path, help="write everything to this file as well")
    return parser.parse_args(argv)


def _tune(told: argparse.Namespace) -> None:
    check_names([*told.policy, *told.law], told.tried)
    if told.since is not None and told.until is not None and told.since >= told.until:
        raise ReportError("--until must be later than --since")
    files = log_files(told.logs)
    check_installed()
    if told.json is not None:
        told.json.parent.mkdir(parents=True, exist_ok=True)
        with told.json.open("a"):
            pass
    found = _by_spark(files, told)
    if told.json is not None:
        told.json.write_text(json.dumps(found.as_document(), indent=1) + "\n", encoding="utf-8")


def _by_spark(files: Sequence[str], told: argparse.Namespace) -> Findings:
    """Start Spark, read and compare. Raises `ReportError` and `SettingsError`, whatever Spark says."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    from proxy.tuning.recorded import read

    with tempfile.TemporaryDirectory(prefix="tidegate-tune-") as folder:
        _say(f"starting Spark ({told.master})")
        noise = Path(folder, "spark.log")
        with spark_session(told.master, noise, sum(text_bytes(path) for path in files)) as spark:
            places = Places(spark)
            files = looked_up(files, places)
            try:
                recording = read(spark, files, told.since, told.until)
                return tuned(recording, told, _spreading(spark.sparkContext))
            except (PySparkException, Py4JError) as error:
                raise_interrupt(error)
                if cut := [path for path in files if not places.is_readable(path)]:
                    raise ReportError(f"can't be read to the end: {', '.join(cut)}; leave them out") from error
                raise ReportError(said_by_spark(error)) from error


def tuned(recording: "Recording", told: argparse.Namespace, simulate: Simulate) -> Findings:
    """Replay and compare, and print both. Raises `ReportError` and `SettingsError`."""
    load = rebuilt(recording, told.goal)
    tried = candidates(load.scenario, [*told.policy, *told.law], told.tried, told.seeds)
    for words in load.assumed:
        print(f"assumed: {words}")  # noqa: T201 - the command's answer
    seeds = range(1, told.seeds + 1)
    _say(f"replaying {load.scenario.seconds:g} s as recorded, {len(seeds)} runs")
    outcomes = [simulate(load, [Run(Candidate(), seed) for seed in seeds])]
    top = load.classes[0]
    replay = compared(measured(recording, top, WARM_UP), [one.measured for one in outcomes[0]])
    print("", *replay_lines(replay), "", sep="\n")  # noqa: T201 - likewise
    if not is_believed(replay):
        print("The model does not reproduce what happened: do not trust the ranks.\n")  # noqa: T201 - likewise
    if tried[1:]:
        tasks = [Run(candidate, seed) for candidate in tried[1:] for seed in seeds]
        _say(f"ways to steer: {len(tried) - 1}, seeds: {len(seeds)}, so {len(tasks)} runs")
        every = simulate(load, tasks)
        outcomes += [every[first : first + len(seeds)] for first in range(0, len(every), len(seeds))]
    ranks = ranked([[one.figures for one in of] for of in outcomes], load.classes, told.goal)
    found = Findings(load, told.goal, len(seeds), replay, tried, outcomes, ranks)
    if tried[1:]:
        print(*rank_lines(found), sep="\n")  # noqa: T201 - likewise
    else:
        _say("name what to try by --policy, --law or --try; see --help")
    return found


def _spreading(context: "SparkContext") -> Simulate:
    from proxy.tuning.spread import spread

    return lambda told, tasks: spread(context, told.scenario, told.classes, tasks, _say)


class _Duration(Part):
    value: Seconds


def _duration(text: str) -> float:
    try:
        return _Duration(value=text).value  # type: ignore[arg-type]  # it is read as the settings' are
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is no duration; write 500ms or 2s") from None


def _instant(text: str) -> datetime:
    try:
        told = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is no time; write 2026-01-31T14:00Z") from None
    return told if told.tzinfo else told.replace(tzinfo=UTC)


def _seeds(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MOST_SEEDS:
        raise argparse.ArgumentTypeError(f"{text} is no number from 1 to {MOST_SEEDS}")
    return int(text)


def _say(text: str) -> None:
    print(f"tune: {text}", file=sys.stderr, flush=True)  # noqa: T201 - progress is for the terminal
