"""The comparison's command line: `python -m load.compare`, or `make control`."""

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from load import machine
from load.compare import page, pictures, real, simulated
from load.compare.book import Book
from load.compare.tables import overview
from load.kafka import KafkaError
from load.stack import SetupError, StackError
from load.terminal import command_line, interrupted_by_signals, say
from load.wire import WireError
from load.worker import WorkerError
from proxy.errors import SettingsError
from proxy.simulation import scenario_file

PARTS = ("real", "simulated", "page")
SHOWN = "flash-campaign"
"""The scenario of the README's picture."""

MOST_PROCESSES = 256
"""More are a typing mistake."""

EXAMPLES = """\
what happens: a few scenarios are run on a Kafka and a RabbitMQ of its own (ten minutes), then every scenario that ships
is simulated under every policy and every rate law, installed ones included, at the lowest priority of the machine (half
an hour of two cores, if nothing else runs). DIR/comparison.json has the figures, DIR/comparison.md the page.
What stands in the JSON already is not done again: interrupted, the same command goes on. Remove the file to begin anew.

examples:
  python -m load.compare                               everything, below out/comparison
  python -m load.compare --only simulated saw sine     two scenarios, without brokers
  python -m load.compare --only real                   the ten minutes on real brokers again
  python -m load.compare --only page --out docs        the page and the pictures of the repository from their JSON
  python -m load.control ...                           any scenario on real brokers, with its curves

exit codes: 0 done; 1 an event was lost, or something failed; 2 the machine lacks something, or a mistake
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says and return the exit code."""
    options = _parser().parse_args(arguments)
    interrupted_by_signals()
    out: Path = options.out
    try:
        book = Book(out / "comparison.json")
        names = _named(options.scenario)
        policies = tuple(dict.fromkeys(options.policy or simulated.compared()))
        scenario_file.try_laws(policies)
        if options.only == "real" or (options.only is None and not book.content["real"]):
            real.measure(book, out / "runs")
        if options.only in {None, "simulated"}:
            jobs = list(simulated.missing(book, names, policies))
            simulated.run_all(book, jobs, processes=options.processes, code=machine.commit())
        _write(book, out)
    except (SetupError, SettingsError, OSError) as error:
        say(str(error))
        return 2
    except BrokenProcessPool:
        say("a process died, for want of memory perhaps; the same command goes on, with --processes 1 in less of it")
        return 1
    except (StackError, WorkerError, WireError, KafkaError) as error:
        say(str(error))
        return 1
    except KeyboardInterrupt as error:
        say(f"interrupted; the same command goes on from {out}/comparison.json")
        return 128 + (error.args[0] if error.args else signal.SIGINT)
    return _conclude(book, out)


def _write(book: Book, out: Path) -> None:
    """Write the page and its pictures."""
    folder = out / "pictures"
    folder.mkdir(parents=True, exist_ok=True)
    for family in page.pictures(book.content):
        (folder / f"compare-{family}.svg").write_bytes(pictures.of_family(book.content, family))
    if SHOWN in book.content["real"]:
        for name, theme in (("light", pictures.LIGHT), ("dark", pictures.DARK)):
            (folder / f"p1-{name}.svg").write_bytes(pictures.of_p1(book.content, SHOWN, theme))
    template = page.TEMPLATE.read_text(encoding="utf-8")
    (out / "comparison.md").write_text(page.page(book.content, template), encoding="utf-8")


def _conclude(book: Book, out: Path) -> int:
    lost = [
        f"{scenario}, {policy}: {run['lost']} events LOST"
        for found in (book.content["simulated"], book.content["real"])
        for scenario, one in found.items()
        for policy, run in one["runs"].items()
        if run.get("lost")
    ]
    print("\n".join([*overview(book.content["simulated"]), *lost, "", f"page: {out}/comparison.md"]))
    return 1 if lost else 0


def _named(given: Sequence[str]) -> Sequence[str]:
    shipped = scenario_file.shipped()
    unknown = [name for name in given if name not in shipped]
    if unknown:
        raise SettingsError(
            [f"{name} is no scenario that ships; `tidegate simulate --list` shows those" for name in unknown]
        )
    return given or list(shipped)


def _parser() -> argparse.ArgumentParser:
    parser = command_line(
        "load.compare",
        "Compares all policies and rate laws in all scenarios, simulated, and in a few on real brokers.",
        EXAMPLES,
    )
    parser.add_argument("scenario", nargs="*", metavar="SCENARIO", help="simulate these only (default: all that ship)")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", default=Path("out/comparison"),
        help="JSON, page, pictures; what is there is gone on with (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--only", choices=PARTS, help="one part of it; the page is always written")
    parser.add_argument(
        "--policy", action="append", choices=simulated.compared(),
        help="simulate under this one only; may be repeated (default: all)",
    )  # fmt: skip
    parser.add_argument(
        "--processes", type=_count, metavar="N", default=os.cpu_count() or 1,
        help=f"scenarios simulated at a time, 1 to {MOST_PROCESSES} (default: one a core)",
    )  # fmt: skip
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MOST_PROCESSES:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 1 to {MOST_PROCESSES}")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
