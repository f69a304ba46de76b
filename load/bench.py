"""The benchmark's command line: `python -m load.bench throughput --json FILE`."""

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from load import bench_check, cost, latency, logs, memory, monitor_cost, scale, windows
from load.contenders.starting import ALL
from load.stack import SetupError, Stack, StackError
from load.terminal import command_line, interrupted_by_signals, say
from load.throughput import QUEUE_TYPES, Plan, measure
from load.wire import WireError
from load.worker import WorkerError

EXAMPLES = """\
throughput: in turn in every round, over the same events, each into a fresh durable queue:
  tidegate            `tidegate run` as a process, control off (policy: static), a window of 1,000
  raw, raw-bare       no Kafka: frames made by hand over one socket, a window of 1,000; with content headers as long as
                      Tidegate's, and with nothing but a message id
  mq-bridge, -tuned   if it is installed: one task, which keeps the order, and four, which lose it
  naive               aiokafka + aio-pika: poll 500, gather 500 publishes, await their confirms, commit
  tidegate-defaults   nothing set, so it steers by the queue: a consumer takes what comes; only worth comparing with
  tidegate-static     the same with policy: static, the same consumer
how: the first round is discarded, as everything is still warming up. The rate counts from the first poll that sees an
  event in the queue (or at the consumer) to the one that sees all, for everybody alike; CPU is user + system of the
  contender, of RabbitMQ and of Kafka over the same span; then every event is checked byte by byte. What others lose,
  repeat or displace is told; of Tidegate it makes the exit code 1. Figures of a shared machine are worth only their
  ratios, and those only together with the spread beside them.

examples:
  python -m load.bench throughput --json out/throughput.json          about 25 minutes
  python -m load.bench throughput --quick --json out/quick.json       about 2 minutes; shows the way, judges no goal
  python -m load.bench windows --json out/windows.json                 about 15 minutes, the window that adapts
  python -m load.bench cost --json out/cost.json                       about 10 minutes; mq-bridge too, if installed
  python -m load.bench latency --json out/latency.json                 about 20 minutes, spectra in out/latency
  python -m load.bench scale --json out/scale.json                     about 5 minutes, 1,000 event types
  python -m load.bench memory --json out/memory.json                   about 4 minutes
  python -m load.bench logs --json out/logs.json                       about 2 minutes, Kafka's adapter and Nakadi's
  python -m load.bench monitor --json out/monitor.json                 about a minute

  python -m load.bench check load/results out/throughput.json          what became slower, beyond what is chance

exit codes: 0 every goal met (or none judged); 1 a goal missed, or Tidegate lost, repeated or displaced an event, or
  something became slower; 2 the machine lacks something, or a file is none
"""


_PLAIN = {"monitor": monitor_cost.measure, "cost": cost.measure, "logs": logs.measure}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line says and return the exit code."""
    options = _parser().parse_args(arguments)
    interrupted_by_signals()
    try:
        if options.what == "check":
            return bench_check.check(options.baseline, options.new)
        return _measured(options)
    except (SetupError, bench_check.CheckError) as error:
        say(str(error))
        return 2
    except (StackError, WorkerError, WireError) as error:
        say(str(error))
        return 1
    except KeyboardInterrupt as error:
        say("interrupted; everything is taken down")
        return 128 + (error.args[0] if error.args else signal.SIGINT)


def _measured(options: argparse.Namespace) -> int:
    with Stack.up(rabbitmq_sbin=options.rabbitmq_sbin) as stack:
        if options.what in _PLAIN:
            return _PLAIN[options.what](stack, options.rounds, options.json)
        if options.what == "latency":
            return latency.measure(stack, options.rounds, options.load, options.json)
        if options.what == "scale":
            shape = scale.Shape(options.types, options.partitions, options.rate, options.processes)
            return scale.measure(stack, shape, options.json)
        if options.what == "memory":
            return memory.measure(stack, options.gigabytes, options.json)
        if options.what == "windows":
            return windows.measure(stack, options.rounds, options.size, options.events, options.json)
        return measure(stack, Plan.quick() if options.quick else _plan(options), options.json)


def _plan(options: argparse.Namespace) -> Plan:
    return Plan(options.rounds, options.events, tuple(options.size), tuple(options.queue), tuple(options.without))


def _parser() -> argparse.ArgumentParser:
    parser = command_line(
        "load.bench", "Measures Tidegate against others, in one run, on a Kafka and a RabbitMQ of its own.", EXAMPLES
    )
    actions = parser.add_subparsers(metavar="WHAT", dest="what", required=True)
    throughput = actions.add_parser(
        "throughput", help="events a second and CPU per event, as fast as it goes",
        epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    sweep = actions.add_parser("windows", help="the window that adapts beside fixed ones, at several distances")
    costs = actions.add_parser("cost", help="CPU and response times at everyday rates, by an open schedule")
    spectra = actions.add_parser("latency", help="spectra of response times under open schedules")
    spectra.add_argument(
        "--load", nargs="+", choices=list(latency.OFFERS), default=list(latency.OFFERS), metavar="NAME",
        help=f"{', '.join(latency.OFFERS)} (default: all)",
    )  # fmt: skip
    monitor = actions.add_parser("monitor", help="what watching 1,000 queues costs, as a share of a core")
    either = actions.add_parser("logs", help="what an event costs on its way out of Kafka, and of a scripted Nakadi")
    checked = actions.add_parser("check", help="says what became slower or dearer since results that were kept")
    checked.add_argument("baseline", type=Path, metavar="BASELINE", help="a JSON of `throughput`, or a folder of such")
    checked.add_argument("new", type=Path, metavar="NEW", help="the same, newer")
    many = actions.add_parser(
        "scale", help="thousands of event types: start, idle, steady, hot, held back, come and go"
    )
    backlog = actions.add_parser("memory", help="the most memory that a backlog of large and small events takes")
    for action in (throughput, sweep, costs, spectra, monitor, either, many, backlog):
        action.add_argument("--json", type=Path, required=True, metavar="FILE", help="where every figure goes")
        action.add_argument("--rabbitmq-sbin", type=Path, metavar="DIR", help="scripts of another RabbitMQ")
    for action in (throughput, sweep, costs, spectra, monitor, either):
        rounds = 5 if action is throughput else 3
        action.add_argument(
            "--rounds", type=int, default=rounds, metavar="N", help=f"rounds kept, interleaved (default: {rounds})"
        )
    throughput.add_argument(
        "--events", type=int, default=100_000, metavar="N",
        help="events of each size, a multiple of 4; fewer flatter classic queues (default: 100000)",
    )  # fmt: skip
    throughput.add_argument(
        "--size", type=int, nargs="+", default=Plan.sizes, metavar="BYTES", help="of one value (default: 256 1024)"
    )
    throughput.add_argument(
        "--queue", nargs="+", choices=list(QUEUE_TYPES), default=Plan.queue_types, metavar="TYPE",
        help="classic, quorum (default: both)",
    )  # fmt: skip
    throughput.add_argument(
        "--without", nargs="+", choices=[name for name in ALL if name != "tidegate"], default=(), metavar="NAME",
        help="contenders left out; their ratios are not measured",
    )  # fmt: skip
    sweep.add_argument(
        "--events", type=int, default=240_000, metavar="N", help="events of the log, a multiple of 4 (default: 240000)"
    )
    sweep.add_argument("--size", type=int, default=1024, metavar="BYTES", help="bytes of one value (default: 1024)")
    many.add_argument("--types", type=int, default=1_000, metavar="N", help="event types (default: 1,000)")
    many.add_argument("--partitions", type=int, default=1, metavar="P", help="partitions of each (default: 1)")
    many.add_argument("--rate", type=float, default=2_000.0, metavar="R", help="events a second (default: 2,000)")
    many.add_argument("--processes", type=int, default=1, metavar="N", help="of Tidegate, in one group (default: 1)")
    backlog.add_argument("--gigabytes", type=float, default=1.0, metavar="GB", help="of the backlog (default: 1)")
    throughput.add_argument("--quick", action="store_true", help="one round of 20,000 events of 256 B")
    return parser


if __name__ == "__main__":
    sys.exit(main())
