"""The command line: `python -m load.faults --json FILE`."""

import argparse
import json
import sys
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from load import machine
from load.faults import results
from load.faults.plan import KINDS, NAMES, RECOVERY_SECONDS, TAKEOVER_SECONDS, named, order
from load.faults.replicas import COUNT, IN_FLIGHT, UNCOMMITTED
from load.faults.session import guarded, session
from load.faults.streams import PARTITIONS, STREAMS
from load.faults.verdicts import broken
from load.faults.world import LONGEST, SHORTEST
from load.terminal import run, say

RATE = sum(stream.rate for stream in STREAMS)
EXAMPLES = f"""\
what happens:
  {COUNT} Tidegate processes (policy class_budget) move {RATE:.0f} events a second, all the time, from {len(STREAMS)}
  topics of {PARTITIONS} partitions (every order, P1 and P3) to a queue each, with a queue for dead letters.
  A round breaks one thing for {SHORTEST:.0f} to {LONGEST:.0f} s, mends it, and waits until all that was sent has come.
  The faults come in an order drawn from the seed, each once before any comes twice; `--list` tells them.

what is counted:
  flows after   from the fault's end until every partition has delivered an event that was sent after it
  ready after   ... until every replica reads a share; a killed one counts from its own new start
  caught up     ... until all that was sent by then has come (or 30 s after that have passed)
  duplicates    deliveries of an event that had come before, but not those that RabbitMQ gave out again because the
                checker's own connection had broken
  late          first arrivals after a later event of their partition
  dropped       not committed when the log was truncated or the topic deleted, or confirmed by RabbitMQ into a queue
                in the very instant of its deletion
  lost          all else that Kafka had and that came nowhere

what must hold in every round:
  lost          0
  duplicates    at most {UNCOMMITTED} in a partition (limits.uncommitted_events)
  order         strict: none late. partition: none but what the replicas counted as overtaken, by less than the
                {IN_FLIGHT} in flight. A replica stopped or cut off beyond its session may write one batch late; a
                topic created again at once may be read from the old position first
  flows, ready  within {RECOVERY_SECONDS:.0f} s; the flow within {TAKEOVER_SECONDS:.0f} s after a replica's kill -9
  truncated     what the log dropped under its readers (no gaps here) is counted exactly by the replicas

examples:
  python -m load.faults --json out/faults.json                         every fault once, about 6 minutes
  python -m load.faults --json out/faults.json --rounds 100            four of each, half an hour
  python -m load.faults --json out/one.json --only replica-killed --rounds 5
  python -m load.faults --json out/again.json --seed 7 --rounds 100    the same faults in another order

exit codes: 0 every promise held; 1 one did not, or the test could not be ended; 2 the machine lacks something
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the faults and return the exit code."""
    options = _parser().parse_args(arguments)
    if options.list:
        print(results.what(KINDS))
        return 0
    if options.json is None:
        say("--json FILE says where the figures go")
        return 2
    return guarded(lambda: _measure(options))


def _measure(options: argparse.Namespace) -> int:
    file: Path = options.json
    chosen = [named(name) for name in options.only or NAMES]
    with session(file, options.seed, options.rabbitmq_sbin) as here:
        about = machine.describe(here.stack)
        kinds = here.possible(chosen)
        run(here.run(islice(order(kinds, options.seed), options.rounds or len(kinds))))
    file.parent.mkdir(parents=True, exist_ok=True)
    record = about | results.record(here.rounds, here.whole, here.returned, options.seed)
    file.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(results.text(here.rounds, here.whole, here.returned))
    say(f"everything is in {file}")
    return 1 if any(map(broken, here.rounds)) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m load.faults",
        description="Breaks a real Kafka, a real RabbitMQ, the network and Tidegate, and accounts for every event.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="where every figure goes")
    parser.add_argument("--rounds", type=int, metavar="N", help="faults in all (default: every kind once)")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="draws order, length and place (default: 1)")
    parser.add_argument("--only", action="append", choices=NAMES, metavar="FAULT", help="may be repeated")
    parser.add_argument("--list", action="store_true", help="show the faults")
    parser.add_argument("--rabbitmq-sbin", type=Path, metavar="DIR", help="scripts of another RabbitMQ")
    return parser


if __name__ == "__main__":
    sys.exit(main())
