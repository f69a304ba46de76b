"""The benchmark's command line: `python -m load.control`, or `make control`."""

import argparse
import json
import signal
import sys
import textwrap
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from load import machine
from load.control.comparison import DECISIVE, Compared, Comparison, document
from load.control.happenings import impossible, needs_management
from load.control.page import page
from load.control.results import conclusion, text
from load.kafka import KafkaError
from load.stack import SetupError, Stack, StackError
from load.terminal import command_line, interrupted_by_signals, run, say
from load.wire import WireError
from load.worker import WorkerError
from proxy.errors import SettingsError
from proxy.simulation import scenario_file
from proxy.simulation.curves import draw
from proxy.simulation.scenario import Scenario

POLICIES = ("static", "per_type", "class_budget")
CORE = (
    "flash-campaign",
    "exponential-service",
    "own-queue",
    "capacity-half",
    "capacity-double",
    "capacity-twentieth",
    "saw",
    "sine",
    "consumers-late",
    "consumers-away",
    "types-many-low",
    "replicas-2-demand-60",
    "nacks-only",
    "memory-alarm",
    "no-congestion",
)
"""What is run when no scenario is named."""
WIDTH = 110

EXAMPLES = f"""\
what happens: each scenario is run with Tidegate as a process (or several) under each policy, on a Kafka and a RabbitMQ
of its own, with consumers that take the time that the scenario says. The scenarios are those of `tidegate simulate`,
and so are the figures; each scenario says itself what is expected. The misses of {DECISIVE} count.

how:
  event to consumer  from an event's due instant on an open schedule to the begin of a consumer's work on it
  use                what the consumers did, as a share of what the same consumers took, before, of a full queue
  unloaded           the top class alone at a fifth of the capacity, before the other runs of its scenario
  lost               committed by Tidegate, and neither consumed nor left in a queue

examples:
  python -m load.control --json out/control.json              the core set, an hour
  python -m load.control --policy class_budget --json ...     without the others beside it, 25 minutes
  python -m load.control flash-campaign --json out/flash.json one scenario, 4 minutes
  python -m load.control mine.yaml --policy static --policy class_budget --json out/mine.json
  python -m load.control --all --json out/control.json        all that can be done for real, hours

exit codes: 0 every goal of {DECISIVE} met and nothing lost; 1 one missed, or something failed;
  2 the machine lacks something, or a mistake in the arguments or a scenario
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line says and return the exit code."""
    options = _parser().parse_args(arguments)
    interrupted_by_signals()
    try:
        if options.list:
            _list()
            return 0
        if options.json is None:
            raise SettingsError(["--json FILE says where the figures go"])
        folder: Path = options.out or Path("out") / time.strftime("control-%Y%m%d-%H%M%S")
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise SettingsError([f"{folder} is not empty; --out takes a new or an empty folder"])
        scenarios = [scenario_file.load(_path(name)) for name in _named(options)]
        with Stack.up(rabbitmq_sbin=options.rabbitmq_sbin, management=needs_management(scenarios)) as stack:
            return _measure(stack, scenarios, tuple(dict.fromkeys(options.policy or POLICIES)), options.json, folder)
    except (SetupError, SettingsError) as error:
        say(str(error))
        return 2
    except (StackError, WorkerError, WireError, KafkaError) as error:
        say(str(error))
        return 1
    except KeyboardInterrupt as error:
        say("interrupted; everything is taken down")
        return 128 + (error.args[0] if error.args else signal.SIGINT)


def _measure(stack: Stack, scenarios: Sequence[Scenario], policies: Sequence[str], file: Path, folder: Path) -> int:
    """Run every scenario, print its table at once, write JSON, pictures and page anew after each."""
    folder.mkdir(parents=True, exist_ok=True)
    file.parent.mkdir(parents=True, exist_ok=True)
    about = machine.describe(stack)
    if about["warning"]:
        say(f"Warning: {about['warning']}.")
    every: list[Compared] = []
    pictures: dict[str, Path] = {}
    comparison = Comparison(stack, policies, folder / "runs")
    for scenario in scenarios:
        compared = run(comparison.compare(scenario))
        every.append(compared)
        print(text(compared), flush=True)
        if compared.results:
            traces = {policy: result.trace for policy, result in compared.results.items()}
            pictures[scenario.name] = Path(f"{scenario.name}.png")
            draw(scenario, traces, folder / pictures[scenario.name], where="real Kafka and RabbitMQ")
        file.write_text(json.dumps(_record(about, every), indent=1) + "\n", encoding="utf-8")
        (folder / "control.html").write_text(page(about, every, pictures), encoding="utf-8")
    print(f"{conclusion(every)}\n\npage: {folder}/control.html\nfigures: {file}")
    return 1 if any(compared.missed() or compared.faults() for compared in every) else 0


def _record(about: dict[str, Any], every: Sequence[Compared]) -> dict[str, Any]:
    return about | {
        "measured": "control",
        "decisive": DECISIVE,
        "scenarios": {compared.scenario.name: document(compared) for compared in every},
    }


def _named(options: argparse.Namespace) -> Sequence[str]:
    if options.all and options.scenario:
        raise SettingsError(["name scenarios or say --all, not both"])
    if options.all:
        return list(scenario_file.shipped())
    return options.scenario or CORE


def _path(given: str) -> Path:
    """Return the file of a shipped scenario, or the file itself."""
    path = scenario_file.shipped().get(given, Path(given))
    if not path.is_file():
        raise SettingsError([f"{given} is no file and no scenario that ships; --list shows those"])
    return path


def _list() -> None:
    for name, path in scenario_file.shipped().items():
        scenario = scenario_file.load(path)
        why = impossible(scenario)
        core = " (core)" if name in CORE else ""
        print(f"{name}{core}, {scenario.seconds:g} s{'' if why is None else f'; skipped: {why}'}")
        print(textwrap.fill(scenario.why, WIDTH, initial_indent="    ", subsequent_indent="    "))


def _parser() -> argparse.ArgumentParser:
    parser = command_line(
        "load.control", "Compares policies in scenarios on a real Kafka and a real RabbitMQ.", EXAMPLES
    )
    parser.add_argument("scenario", nargs="*", metavar="SCENARIO", help="a YAML file, or the name of one that ships")
    parser.add_argument("--all", action="store_true", help="every scenario that ships")
    parser.add_argument("--list", action="store_true", help="show the scenarios that ship")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where every figure goes")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="page, pictures, logs; new or empty (default: out/control-DATE-TIME)"
    )
    parser.add_argument(
        "--policy",
        action="append",
        choices=scenario_file.policies(),
        help=f"or a rate law; may be repeated (default: {', '.join(POLICIES)})",
    )
    parser.add_argument("--rabbitmq-sbin", type=Path, metavar="DIR", help="scripts of another RabbitMQ")
    return parser


if __name__ == "__main__":
    sys.exit(main())
