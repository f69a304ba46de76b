"""`python -m tests.mutations`: puts each bug into a copy of the sources and lives fault histories until one fails.

Prints and, with `--table`, writes which seed catches which bug, and what it says.
Exit code 1 if a bug survives, 130 or 143 if interrupted.
"""

import argparse
import asyncio
import os
import re
import shutil
import signal
import sys
import tempfile
from asyncio.subprocess import PIPE
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.mutations.mutations import CHECKOUT, MUTATIONS, Mutation

SEEDS = 1_000
"""A bug that so many histories do not show survives."""
DEADLINE = 900.0
"""Seconds for all histories of one bug; one that hangs is caught, too."""
_LONGEST = 160
_TOLD = re.compile(r"^seed (\d+): FAILED: (.*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Catch:
    """How a bug ended."""

    mutation: Mutation
    seed: int | None
    """None: it survived, or no longer applies."""
    said: str

    @property
    def place(self) -> str:
        """The seed, and of which histories."""
        return f"{self.seed} wire" if self.mutation.histories == "wire" else str(self.seed)


async def catch(mutation: Mutation, seeds: int = SEEDS) -> Catch:
    """Run histories with the bug in until one fails; cancelled, leave nothing behind."""
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        tree = Path(folder)
        for part in ("proxy", "tests/histories", "tests/wire"):
            shutil.copytree(CHECKOUT / part, tree / part, ignore=shutil.ignore_patterns("__pycache__"))
        place = tree / mutation.file
        try:
            place.write_text(mutation.applied(place.read_text(encoding="utf-8")), encoding="utf-8")
        except ValueError as error:
            return Catch(mutation, None, str(error))
        wire = ["--wire"] if mutation.histories == "wire" else []
        command = [sys.executable, "-m", "tests.histories", *wire, "--first", "--seeds", f"0..{seeds - 1}"]
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
        living = await asyncio.create_subprocess_exec(
            *command, cwd=tree, env=environment | {"PYTHONPATH": str(tree)}, stdout=PIPE, stderr=PIPE
        )
        try:
            async with asyncio.timeout(DEADLINE):
                out, err = await living.communicate()
        except TimeoutError:
            return Catch(mutation, None, f"no result within {DEADLINE:g} s")
        finally:
            if living.returncode is None:
                living.kill()
                await living.wait()
    told = _TOLD.search(out.decode())
    if told is not None:
        return Catch(mutation, int(told[1]), told[2].split("; ")[0])
    return Catch(mutation, None, "survived" if living.returncode == 0 else err.decode()[-_LONGEST:])


async def catches(chosen: Sequence[Mutation], jobs: int) -> list[Catch]:
    """Try each bug, so many at a time, and print how each ends; in their order."""
    places = asyncio.Semaphore(jobs)

    async def one_of_many(mutation: Mutation) -> Catch:
        async with places:
            return await catch(mutation)

    ended = []
    async with asyncio.TaskGroup() as tasks:
        for trying in [tasks.create_task(one_of_many(mutation)) for mutation in chosen]:
            one = await trying
            ended.append(one)
            seed = "SURVIVES" if one.seed is None else f"seed {one.place}"
            print(f"{one.mutation.name:<62} {seed:>10}  {_short(one.said)}", flush=True)
    return ended


def table(ended: Sequence[Catch]) -> str:
    """Return the document."""
    caught = sum(one.seed is not None for one in ended)
    rows = "\n".join(
        f"| {one.mutation.name} | `{one.mutation.file.removeprefix('proxy/')}` | "
        f"{'**none**' if one.seed is None else one.place} | {_short(one.said)} |"
        for one in ended
    )
    return f"""# Deliberate bugs, and the fault history that catches each

Made by `python -m tests.mutations --table docs/guarantees-mutations.md`; do not edit.
Each bug is put alone into a copy of the sources, then `python -m tests.histories` lives one history after another;
`wire` stands with seeds of histories that have the real clients inside (`--wire`).
`tests/unit/test_mutations.py` sees to it that every bug still applies to the sources.

{caught} of {len(ended)} are caught within {SEEDS:,} histories.

| bug | in | first seed that fails | what it says (virtual seconds first) |
|---|---|---|---|
{rows}
"""


def _short(text: str) -> str:
    text = text.replace("|", "/").replace("\n", " ")
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def main(arguments: Sequence[str]) -> int:
    """Run the command; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of the names of the bugs to try; all if none is given")
    parser.add_argument("--table", type=Path, metavar="FILE", help="write the table there")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args(arguments)
    return asyncio.run(_run(options))


async def _run(options: argparse.Namespace) -> int:
    heard: list[int] = []
    chosen = [one for one in MUTATIONS if not options.names or any(name in one.name for name in options.names)]
    trying = asyncio.create_task(catches(chosen, options.jobs))

    def interrupt(signum: int) -> None:
        heard.append(signum)
        trying.cancel()

    for signum in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(signum, interrupt, signum)
    try:
        ended = await trying
    except asyncio.CancelledError:
        print("interrupted", flush=True)
        return 128 + heard[0]
    if options.table is not None:
        options.table.write_text(table(ended), encoding="utf-8")
    return 1 if any(one.seed is None for one in ended) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
