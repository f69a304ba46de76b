"""Faults for hours, with memory, descriptors and tasks of every replica recorded and drawn: `python -m load.soak`."""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil

from load import machine
from load.admin_view import held
from load.faults import results
from load.faults.plan import NAMES, Kind, named, order
from load.faults.rounds import Rounds
from load.faults.session import Session, guarded, session
from load.faults.verdicts import broken
from load.faults.world import SURVIVOR
from load.growth import MOST_GROWTH, Growth, Sample, draw, growth
from load.terminal import command_line, run, say

SAMPLE_SECONDS = 2.0

EXAMPLES = f"""\
what happens: the rounds of `python -m load.faults`, one after another, for as long as is said.
Replica {SURVIVOR} is stopped and cut off as the others are, but never ended: from the second tenth of the time to
the last its memory must not grow by more than {MOST_GROWTH:.0%}, and it must not hold more descriptors or tasks.
Take an hour: the first long outage raises the memory once, by what waits then, and should lie in the first tenth.

examples:
  python -m load.soak --minutes 60 --json out/soak.json              figures, and a picture beside them
  python -m load.soak --minutes 5 --json out/soak.json --seed 3      shorter: the verdict on memory means little

exit codes: 0 every promise held and nothing grew; 1 not so, or the test could not be ended;
  2 the machine lacks something
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Soak and return the exit code."""
    options = _parser().parse_args(arguments)
    return guarded(lambda: _soak(options))


def _soak(options: argparse.Namespace) -> int:
    file: Path = options.json
    file.parent.mkdir(parents=True, exist_ok=True)
    recorder = _Recorder()
    with session(file, options.seed, options.rabbitmq_sbin) as here:
        about = machine.describe(here.stack)
        about |= {"measured": "soak", "minutes": options.minutes}
        kinds = _for(order(here.possible(map(named, NAMES)), options.seed), options.minutes * 60)
        try:
            run(here.run(kinds, recorder.look))
        except BaseException:  # what was seen until then is most wanted when something breaks it off
            _keep(file, here, about, recorder.samples, None)
            raise
    found = growth(recorder.samples, SURVIVOR)
    _keep(file, here, about, recorder.samples, found)
    print(results.text(here.rounds, here.whole, here.returned))
    print(found.words)
    return 1 if any(map(broken, here.rounds)) or found.is_broken else 0


def _keep(file: Path, here: Session, about: dict[str, Any], samples: Sequence[Sample], found: Growth | None) -> None:
    record = about | results.record(here.rounds, here.whole, here.returned, here.seed)
    record |= {"samples": samples, "growth": None if found is None else found._asdict()}
    file.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    draw(samples, file.with_suffix(".png"))
    say(f"everything is in {file}, the picture in {file.with_suffix('.png')}")


def _for(kinds: Iterator[Kind], seconds: float) -> Iterator[Kind]:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield next(kinds)


class _Recorder:
    """Looks at every replica's process now and then."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []

    async def look(self, rounds: Rounds) -> None:
        """Look until cancelled."""
        began = time.monotonic()
        while True:
            for replica in rounds.replicas.every:
                worker = replica.worker
                if worker is None:
                    continue
                try:
                    with worker.process.oneshot():
                        memory, files = worker.process.memory_info().rss, worker.process.num_fds()
                        threads = worker.process.num_threads()
                except psutil.NoSuchProcess:
                    continue
                at, pid = round(time.monotonic() - began, 1), worker.process.pid
                told = await asyncio.to_thread(held, replica.admin)
                self.samples.append(Sample(at, replica.number, pid, memory, files, threads, told.tasks, told.blocks))
            await asyncio.sleep(SAMPLE_SECONDS)


def _parser() -> argparse.ArgumentParser:
    parser = command_line(
        "load.soak",
        "Breaks things for hours and watches the memory and the descriptors of Tidegate meanwhile.",
        EXAMPLES,
    )
    parser.add_argument("--json", type=Path, required=True, metavar="FILE", help="where every figure goes")
    parser.add_argument("--minutes", type=float, default=60.0, metavar="M", help="how long (default: 60)")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="draws order, length and place (default: 1)")
    parser.add_argument("--rabbitmq-sbin", type=Path, metavar="DIR", help="scripts of another RabbitMQ")
    return parser


if __name__ == "__main__":
    sys.exit(main())
