"""The demo's command line: `python -m load.demo`, or `make demo`."""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from load import machine, shop
from load.comparison import Seen, sentence, shortcomings, whereabouts_rows
from load.consumer import PREFETCHED
from load.demo_log import DemoLog, NakadiOfDemo
from load.demo_run import DemoRun, RunResult
from load.kafka import KafkaError
from load.metric_tail import records
from load.nakadi import NakadiError
from load.stack import SetupError, Stack, StackError
from load.tables import aligned
from load.terminal import command_line, interrupted_by_signals, run, say
from load.wire import WireError
from load.worker import WorkerError

SEED_POLICY = "per_type"
"""The loop of the seed, of which the sentence tells what it could do."""
POLICIES = ("static", SEED_POLICY, "class_budget")
REPORT_SECONDS = 400.0
WIDTH = 110
LATE_SECONDS = 1.0
"""A generator that handed events over later than this after their due instant could not keep its schedule."""

EXAMPLES = f"""\
what happens, three times, with the same events at the same instants:
  P1  order confirmations  {shop.STEADY:.0f}/s
  P2  brand alerts         {shop.STEADY:.0f}/s
  P3  a campaign           {shop.CAMPAIGN:,.0f}/s for {shop.CAMPAIGN_HOLD:.0f} s, from second {shop.CAMPAIGN_START:.0f}
go through Tidegate into one queue. The services behind it can take {shop.CAPACITY.rate:.0f}/s and together hold at most
{PREFETCHED:g} s of that ahead; the queue rejects what exceeds {shop.BOUND} messages, one second of their work.
First with control off (policy: static), then with the seed's loop (policy: per_type), then with a rate per class found
from the queue's depth (policy: class_budget, the default).
What can't be delivered by the end stays in the log: that is the point of it.

how to read it:
  bridge time    event's due instant to RabbitMQ's confirm
  consumed time  event's due instant to the end of its work downstream
  Both count delivered events only; those still in the log have waited longer, and are counted beside.

examples:
  python -m load.demo                  about five minutes; results in a new folder below out/
  python -m load.demo --log nakadi     with a scripted Nakadi as the log; no Kafka is started
  python -m load.demo --out DIR        results in DIR, which must be new or empty

exit codes: 0 done and nothing lost; 1 an event was lost, or something failed; 2 the machine lacks something
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo and return the exit code."""
    options = _parser().parse_args(arguments)
    interrupted_by_signals()
    out: Path = options.out or Path("out") / time.strftime("demo-%Y%m%d-%H%M%S")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        say(f"{out} is not empty; --out takes a new or an empty folder")
        return 2
    try:
        kafka_nodes = 1 if options.log == "kafka" else 0
        with ExitStack() as running:
            stack = running.enter_context(Stack.up(rabbitmq_sbin=options.rabbitmq_sbin, kafka_nodes=kafka_nodes))
            about = machine.describe(stack) | {"log": options.log}
            log: DemoLog | None = None
            if options.log == "nakadi":
                out.mkdir(parents=True, exist_ok=True)
                log = running.enter_context(NakadiOfDemo(out / "nakadi.txt"))
            runs = [run(DemoRun(stack, policy, (out / policy).resolve(), log).run()) for policy in POLICIES]
        table = _report(runs, out)
    except SetupError as error:
        say(str(error))
        return 2
    except (StackError, WorkerError, WireError, KafkaError, NakadiError, subprocess.SubprocessError) as error:
        say(str(error))
        return 1
    except KeyboardInterrupt as error:
        shutil.rmtree(out, ignore_errors=True)
        say("interrupted; everything is taken down, nothing is kept")
        return 128 + (error.args[0] if error.args else signal.SIGINT)
    return _conclude(about, runs, table, out)


def _report(runs: Sequence[RunResult], out: Path) -> str:
    """Let Spark read the logs of all runs; return the table it prints. Raises SubprocessError."""
    named = [argument for one in runs for argument in ("--run", f"{one.policy}={one.folder}")]
    command = [sys.executable, "-m", "proxy", "report", *named, "--out", str(out)]
    with tempfile.TemporaryDirectory(prefix="tidegate-demo-", ignore_cleanup_errors=True) as scratch:
        report = subprocess.Popen(
            command, env=os.environ | {"TMPDIR": scratch},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        try:
            table, _ = report.communicate(timeout=REPORT_SECONDS)
        except BaseException:
            os.killpg(report.pid, signal.SIGKILL)  # with Spark's Java, which writes into the folder that goes now
            report.communicate()
            raise
    if report.returncode:
        raise subprocess.CalledProcessError(report.returncode, command[2:4])
    return table.rstrip()


def _conclude(about: dict[str, Any], runs: Sequence[RunResult], table: str, out: Path) -> int:
    """Print and save what was found; return the exit code."""
    classes = {run.policy: run.classes for run in runs}
    seen = {run.policy: Seen.of(records(run.folder)) for run in runs}
    per_class = json.loads((out / "report.json").read_text(encoding="utf-8"))["per_class"]
    p99 = {row["run"]: row["consumed_p99_ms"] for row in per_class if row["class"] == shop.CLASSES[0]}
    words = sentence(
        seen, seed=SEED_POLICY, bound=shop.BOUND, capacity=shop.CAPACITY.rate, consumed_p99_ms=p99, classes=classes
    )
    lost = shortcomings(classes)
    late = {run.policy: run.produced.worst_lateness for run in runs}
    record = about | {
        "measured": "demo",
        "seed": shop.SEED,
        "classes": {
            policy: {name: asdict(at) for name, at in of_class.items()} for policy, of_class in classes.items()
        },
        "loop": {policy: asdict(one) for policy, one in seen.items()},
        "worst_lateness_s": late,
        "sentence": words,
        "lost": lost,
    }
    (out / "demo.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(f"{table}\n\n{aligned(whereabouts_rows(classes))}\n\n{textwrap.fill(words, WIDTH)}")
    for policy, worst in late.items():
        if worst > LATE_SECONDS:
            print(f"{policy}: the generator was up to {worst:.1f} s late; all times still count from the due instants")
    for line in lost:
        print(line)
    for name, what in (("report.html", "page"), ("report.png", "picture"), ("report.json, demo.json", "figures")):
        print(f"{what}: {out}/{name}")
    return 1 if lost else 0


def _parser() -> argparse.ArgumentParser:
    parser = command_line(
        "load.demo",
        "Shows Tidegate through a campaign ten times too large, on a Kafka and a RabbitMQ of its own.",
        EXAMPLES,
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="where everything goes (default: out/demo-DATE-TIME)")
    parser.add_argument(
        "--log", choices=("kafka", "nakadi"), default="kafka", help="a real Kafka, or a scripted Nakadi"
    )
    parser.add_argument("--rabbitmq-sbin", type=Path, metavar="DIR", help="scripts of another RabbitMQ")
    return parser


if __name__ == "__main__":
    sys.exit(main())
