"""The command line: `python -m load.faults --json FILE`."""

import argparse
import json
import sys
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from load import machine
from load.faults import results
from load.faults.kept import Kept
from load.faults.plan import (
    CLUSTER_KINDS,
    KINDS,
    NAMES,
    OUTAGE_SECONDS,
    RAW_SECONDS,
    RECOVERY_SECONDS,
    TAKEOVER_SECONDS,
    named,
    order,
)
from load.faults.replicas import COUNT, IN_FLIGHT, UNCOMMITTED
from load.faults.results import Past
from load.faults.session import guarded, session
from load.faults.streams import FLOWING, PARTITIONS
from load.faults.verdicts import broken
from load.faults.world import LONGEST, SHORTEST
from load.terminal import command_line, run, say

CLUSTER_NODES = 3
RATE = sum(stream.rate for stream in FLOWING)
EXAMPLES = f"""\
what happens:
  {COUNT} Tidegate processes (policy class_budget) move {RATE:.0f} events a second, all the time, from {len(FLOWING)}
  topics of {PARTITIONS} partitions (every order, P1 and P3) to a queue each, with a queue for dead letters.
  A round breaks one thing for {SHORTEST:.0f} to {LONGEST:.0f} s, mends it, and waits until all that was sent has come.
  The faults come in an order drawn from the seed, each once before any comes twice; `--list` tells them.

what is counted:
  plain client  (--cluster) from a node's loss until clients made for one attempt each, with nothing of Tidegate in
                them, write to and read from what every node had led, and commit
  flows without (--cluster) from a node's loss, while it stays lost, until every partition has delivered an event that
                was sent after it
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
  without it    (--cluster) while a node stays lost, every partition flows within {RAW_SECONDS:.0f} s after a plain
                client gets through, {OUTAGE_SECONDS:.0f} s in all; if the node is silent, somebody says which it is
  truncated     what the log dropped under its readers (no gaps here) is counted exactly by the replicas

examples:
  python -m load.faults --json out/faults.json                         every fault once, about 6 minutes
  python -m load.faults --json out/faults.json --rounds 100            four of each, half an hour
  python -m load.faults --json out/one.json --only replica-killed --rounds 5
  python -m load.faults --json out/again.json --seed 7 --rounds 100    the same faults in another order
  python -m load.faults --json out/volume.json --volume 1000000 --only kafka-restart --only rabbitmq-restart
      --only replica-killed --rounds 3                                 while a million events go through
  python -m load.faults --json out/clusters.json --cluster             on three nodes of each broker: quorum queues,
      each topic on three nodes of which two must have an event; all faults, and nodes that are lost (20 minutes)
  python -m load.faults --json out/clusters.json --cluster --rounds 200 --resume
      goes on where an interrupted run with this file and the same seed has ended, on a fresh stack
  python -m load.faults --json out/faults.json --keep out/kept && python -m load.ledger_check out/kept
      what the report's ledger says of each position, made from the metric logs alone, held against what happened

exit codes: 0 every promise held; 1 one did not, or the test could not be ended; 2 the machine lacks something
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the faults and return the exit code."""
    options = _parser().parse_args(arguments)
    if options.list:
        print(results.what([*KINDS, *CLUSTER_KINDS]))
        return 0
    if options.json is None:
        say("--json FILE says where the figures go")
        return 2
    if not options.cluster and any(named(name).takes_cluster for name in options.only or ()):
        say("this fault takes clusters: add --cluster")
        return 2
    if options.keep is not None and options.keep.exists():
        say(f"{options.keep} is there already: --keep makes a folder for one run")
        return 2
    return guarded(lambda: _measure(options))


def _measure(options: argparse.Namespace) -> int:
    file: Path = options.json
    file.parent.mkdir(parents=True, exist_ok=True)
    past = _past(file) if options.resume else Past()
    chosen = [named(name) for name in options.only or _default(is_cluster=options.cluster)]
    nodes = CLUSTER_NODES if options.cluster else 1
    with session(file, options.seed, options.rabbitmq_sbin, nodes, past) as here:
        about = machine.describe(here.stack)
        kinds = here.possible(chosen)

        def keep() -> None:
            whole, returned = here.whole.plus(past.whole), here.returned + past.returned
            record = about | results.record(here.every, whole, returned, options.seed)
            fresh = file.with_suffix(".new")
            fresh.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
            fresh.replace(file)

        wanted = islice(order(kinds, options.seed), len(past.rounds), options.rounds or len(kinds))
        if options.keep is None:
            run(here.run(wanted, keep=keep, volume=options.volume))
        else:
            kept = Kept(options.keep)
            run(here.run(wanted, kept.watch, keep, options.volume, kept.last))
        keep()
    print(results.text(here.every, here.whole.plus(past.whole), here.returned + past.returned))
    say(f"everything is in {file}")
    return 1 if any(map(broken, here.every)) else 0


def _past(file: Path) -> Past:
    """Return what an interrupted session has left in its file; nothing if it never came to that."""
    return results.read(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else Past()


def _default(*, is_cluster: bool) -> list[str]:
    return [kind.name for kind in (*KINDS, *(CLUSTER_KINDS if is_cluster else ()))]


def _parser() -> argparse.ArgumentParser:
    parser = command_line(
        "load.faults",
        "Breaks a real Kafka, a real RabbitMQ, the network and Tidegate, and accounts for every event.",
        EXAMPLES,
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="where every figure goes")
    parser.add_argument("--rounds", type=int, metavar="N", help="faults in all (default: every kind once)")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="draws order, length and place (default: 1)")
    parser.add_argument("--only", action="append", choices=NAMES, metavar="FAULT", help="may be repeated")
    parser.add_argument("--cluster", action="store_true", help="on three nodes of each broker, with their faults, too")
    parser.add_argument("--resume", action="store_true", help="go on after the last round that stands in the file")
    parser.add_argument(
        "--volume", type=int, default=0, metavar="N", help="events in the log when the first round begins (default: 0)"
    )
    parser.add_argument(
        "--keep",
        type=Path,
        metavar="DIR",
        help="where the replicas' metric logs go, and what became of every position (load.ledger_check)",
    )
    parser.add_argument("--list", action="store_true", help="show the faults")
    parser.add_argument("--rabbitmq-sbin", type=Path, metavar="DIR", help="scripts of another RabbitMQ")
    return parser


if __name__ == "__main__":
    sys.exit(main())
