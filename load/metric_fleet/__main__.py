"""The command line of the generator: `python -m load.metric_fleet OUT`."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from load.metric_fleet.make import make, records_a_minute
from load.metric_fleet.plan import WORDS, FleetError, Plan, faults
from load.terminal import command_line, interrupted_by_signals, say

EXAMPLES = """\
OUT gets logs/ (what is there at once), late/ (files that come later), again/ (copies of some of logs/, name and all)
and truth.json. `tidegate report OUT/logs OUT/late --out DIR` reports on it; what it should say is in truth.json,
which the docstring of the package explains: python -c 'import load.metric_fleet; help(load.metric_fleet)'
The same options make the same bytes. Nothing of Tidegate but the declaration of its records is asked: the fleet is a
model of its own.

examples:
  python -m load.metric_fleet out/fleet --faults all --events           3 replicas, ten minutes, everything goes wrong
  python -m load.metric_fleet out/calm --faults none                    ... and nothing does
  python -m load.metric_fleet out/fleet --faults crash,lossy,gaps       some of it
  python -m load.metric_fleet out/big --replicas 4 --types 1000 --active 1000 --records 3000000
                                                                        as many minutes as that takes

exit codes: 0 made; 2 not as asked for, with one message

faults:
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Make what the command line says and return the exit code."""
    options = _parser().parse_args(arguments)
    interrupted_by_signals()
    try:
        plan = _plan(options)
        say(f"fleet: {plan.minutes:,.1f} minutes, about {records_a_minute(plan) * plan.minutes:,.0f} records")
        found = make(options.out, plan)
    except (FleetError, OSError) as error:
        say(f"metric_fleet: {error}")
        return 2
    except KeyboardInterrupt:
        say(f"metric_fleet: interrupted; {options.out} is not whole")
        return 130
    print(f"{sum(found['records'].values()):,} records in {len(found['files']):,} files, truth in {options.out}")
    return 0


def _plan(options: argparse.Namespace) -> Plan:
    usual = Plan()
    active = min(options.types, usual.active) if options.active is None else options.active
    plan = Plan(
        replicas=options.replicas,
        types=options.types,
        active=active,
        minutes=usual.minutes if options.minutes is None else options.minutes,
        seed=options.seed,
        rate=options.rate,
        faults=faults(options.faults.split(",")),
        events=options.events,
    )
    if options.records is None:
        return plan
    return replace(plan, minutes=options.records / records_a_minute(plan))


def _parser() -> argparse.ArgumentParser:
    usual = Plan()
    words = "\n".join(f"  {fault:<12}{text}" for fault, text in WORDS.items())
    parser = command_line(
        "load.metric_fleet", "Makes the metric logs of a whole fleet, and the truth about it.", EXAMPLES + words
    )
    parser.add_argument("out", type=Path, metavar="OUT", help="a folder that is not there yet, or empty")
    parser.add_argument("--replicas", type=int, default=usual.replicas, metavar="N", help="(default: %(default)s)")
    parser.add_argument(
        "--types", type=int, default=usual.types, metavar="N", help="event types (default: %(default)s)"
    )
    parser.add_argument("--active", type=int, metavar="N", help=f"of these with traffic (default: {usual.active})")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--minutes", type=float, metavar="N", help=f"that the fleet runs (default: {usual.minutes:g})")
    size.add_argument("--records", type=int, metavar="N", help="about so many records; the minutes follow")
    parser.add_argument(
        "--rate", type=float, default=usual.rate, metavar="N",
        help="events a second of a partition, on average (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--seed", type=int, default=usual.seed, metavar="N", help="of all chance (default: %(default)s)"
    )
    parser.add_argument(
        "--faults", default="none", metavar="NAMES", help="none, all, or names with commas, see below (default: none)"
    )
    parser.add_argument(
        "--events", action="store_true", help="producers and consumers tell of each event, too: for small fleets"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
