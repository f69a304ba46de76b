"""The endurance test's command line: `python -m load.endurance --json FILE`."""

import argparse
import json
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from load import machine
from load.endurance_run import FAULTS, KINDS, PARTITIONS, UNCOMMITTED, Endurance, Result
from load.kafka import KafkaError
from load.stack import SetupError, Stack, StackError
from load.tables import aligned
from load.terminal import interrupted_by_signals, run, say
from load.wire import WireError
from load.worker import WorkerError

CAUSES = "\n".join(f"    {name} at {share:.0%}" for name, share in FAULTS)
EXAMPLES = f"""\
what happens:
  {len(KINDS)} event types of {PARTITIONS} partitions each, one of every `order`, each into a queue of its own,
  through two replicas with control off. Meanwhile, each when the flow is back from the one before:
{CAUSES}
  A killed replica (kill -9) is started again at once. Then every queue is read in its order, and every event
  compared with what was produced, byte by byte.
  strict has one unresolved event per partition and is slow: it gets the fewest events.

what must hold, for every partition:
  lost        0, always
  duplicates  at most {UNCOMMITTED:,} (limits.uncommitted_events) per fault
  late        first arrivals after a later event of their partition. order strict: none. order partition: none but those
              that the bridges counted as overtaken, and by less than the events in flight. order none: any

examples:
  python -m load.endurance --json out/endurance.json                     a million events, about 5 minutes
  python -m load.endurance --json out/endurance.json --events 100000     the same, shorter

exit codes: 0 all of it holds; 1 something does not, or the test could not be ended; 2 the machine lacks something
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the test and return the exit code."""
    options = _parser().parse_args(arguments)
    interrupted_by_signals()
    try:
        with Stack.up(rabbitmq_sbin=options.rabbitmq_sbin) as stack:
            about = machine.describe(stack)
            with tempfile.TemporaryDirectory(prefix="tidegate-endurance-") as folder:
                result = run(Endurance(stack, options.events, Path(folder)).run())
                if any(one.broken for one in result.types):
                    logs = options.json.with_suffix(".logs")
                    shutil.copytree(folder, logs, dirs_exist_ok=True)
                    say(f"settings, output and metric logs of the replicas are in {logs}")
    except SetupError as error:
        say(str(error))
        return 2
    except (StackError, WorkerError, WireError, KafkaError) as error:
        say(f"the test could not be ended: {error}")
        return 1
    except KeyboardInterrupt as error:
        say("interrupted; everything is taken down")
        return 128 + (error.args[0] if error.args else signal.SIGINT)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(about | _record(result), indent=1) + "\n", encoding="utf-8")
    print(_text(result))
    say(f"everything is in {options.json}")
    return 1 if any(one.broken for one in result.types) else 0


def _text(result: Result) -> str:
    types = [["event type", "produced", "lost", "duplicates", "worst partition", "bound", "late", "reach", "replays"]]
    for one in result.types:
        whole, worst = one.whole, max(partition.duplicates for partition in one.partitions)
        figures = (whole.produced, whole.lost, whole.duplicates, worst, one.promise.duplicates, whole.late, whole.reach)
        types.append([one.kind.name, *(f"{figure:,}" for figure in figures), f"{whole.replays:,}"])
    faults = [["fault", "mended after", "first event after", "every partition after"]]
    faults += [
        [fault.name, f"{fault.mended - fault.began:.1f} s", _seconds(back.first), _seconds(back.everywhere)]
        for fault, back in result.faults
    ]
    produced = sum(one.whole.produced for one in result.types)
    verdicts = [f"{one.kind.name}: {words}" for one in result.types for words in one.broken]
    return "\n".join(
        [
            aligned(types),
            "",
            aligned(faults),
            "",
            f"{produced:,} events in {result.seconds:.0f} s, faults included: {produced / result.seconds:,.0f}/s.",
            *(verdicts or ["Every event arrived, order and duplicates are as promised."]),
        ]
    )


def _seconds(value: float | None) -> str:
    return "not seen" if value is None else f"{value:.1f} s"


def _record(result: Result) -> dict[str, Any]:
    return {
        "measured": "endurance",
        "seconds": result.seconds,
        "types": [
            {
                "type": one.kind.name,
                "order": one.kind.order.value,
                "partitions": [asdict(partition) | {"lost": partition.lost} for partition in one.partitions],
                "whole": asdict(one.whole) | {"lost": one.whole.lost},
                "promise": asdict(one.promise),
                "reported_by_the_bridges": dict(one.reported),
                "broken": one.broken,
            }
            for one in result.types
        ],
        "faults": [asdict(fault) | {"flow_back": asdict(back)} for fault, back in result.faults],
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m load.endurance",
        description="Checks that nothing is lost and order is kept, whatever is restarted or killed meanwhile.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", type=Path, required=True, metavar="FILE", help="where every count goes")
    parser.add_argument("--events", type=int, default=1_000_000, metavar="N", help="in all (default: 1000000)")
    parser.add_argument("--rabbitmq-sbin", type=Path, metavar="DIR", help="scripts of another RabbitMQ")
    return parser


if __name__ == "__main__":
    sys.exit(main())
