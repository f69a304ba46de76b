"""`python -m tests.mutations`: puts each bug into a copy of the sources and lets its proof find it.

That proof is fault histories, lived until one fails, or the tests that the bug names. Prints what catches each and what
it says; with `--table`, writes it there, beside what the table says of bugs that were not tried.
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
"""Seconds for the proof of one bug."""
_LONGEST = 160
_WIDTH = 400
"""Columns that pytest has to say why a test fails."""
_TOLD = re.compile(r"^seed (\d+): FAILED: (.*)", re.MULTILINE)
_FAILED = re.compile(r"^(?:FAILED|ERROR) \S+?::(?:Test\w+::)?(\w+)\S*(?: - (.*))?", re.MULTILINE)
_ROW = re.compile(r"^\| ([^|]+) \| `[^|]+` \| ([^|]+) \| [^|]* \|$", re.MULTILINE)
_PARTS = {False: ("proxy", "tests/histories", "tests/wire"), True: ("proxy", "tests", "load", "pyproject.toml")}
"""What a proof needs: histories, and tests."""


@dataclass(frozen=True, slots=True)
class Catch:
    """How a bug ended."""

    mutation: Mutation
    place: str | None
    """The seed, and of which histories, or the test; None: it survived, or no longer applies."""
    said: str


async def catch(mutation: Mutation, seeds: int = SEEDS) -> Catch:
    """Let its proof look for the bug; cancelled, leave nothing behind."""
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        tree = Path(folder)
        for part in _PARTS[bool(mutation.tests)]:
            _copy(CHECKOUT / part, tree / part)
        place = tree / mutation.file
        try:
            place.write_text(mutation.applied(place.read_text(encoding="utf-8")), encoding="utf-8")
        except ValueError as error:
            return Catch(mutation, None, str(error))
        try:
            async with asyncio.timeout(DEADLINE):
                if mutation.tests:
                    return await catch_by_tests(mutation, tree)
                return await catch_by_histories(mutation, tree, seeds)
        except TimeoutError:
            return Catch(mutation, None, f"no result within {DEADLINE:g} s")


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, target)


async def catch_by_histories(mutation: Mutation, tree: Path, seeds: int) -> Catch:
    """Live histories one after another until one fails."""
    wire = ["--wire"] if mutation.histories == "wire" else []
    code, out, err = await _ran(tree, "tests.histories", *wire, "--first", "--seeds", f"0..{seeds - 1}")
    told = _TOLD.search(out)
    if told is None:
        return Catch(mutation, None, "survived" if code == 0 else err[-_LONGEST:])
    return Catch(mutation, f"{told[1]} wire" if wire else told[1], told[2].split("; ")[0])


async def catch_by_tests(mutation: Mutation, tree: Path) -> Catch:
    """Run its tests, in their order, up to the first that fails."""
    profile = ("-ptests.mutations.once", "--hypothesis-profile=once")
    plugins = (*profile, "-pno:cacheprovider", "-pno:randomly", "-pno:xdist")
    code, out, err = await _ran(tree, "pytest", "-q", "-x", "--tb=line", "-m", "not long", *plugins, *mutation.tests)
    told = _FAILED.search(out)
    if told is None or code != 1:
        return Catch(mutation, None, "survived" if code == 0 else (out + err)[-_LONGEST:])
    return Catch(mutation, f"`{told[1]}`", told[2] or "")


async def _ran(tree: Path, module: str, *arguments: str) -> tuple[int | None, str, str]:
    """Run a module on the sources with the bug in; return exit code, output and errors."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    running = await asyncio.create_subprocess_exec(
        sys.executable, "-m", module, *arguments,
        cwd=tree, env=environment | {"PYTHONPATH": str(tree), "COLUMNS": str(_WIDTH)}, stdout=PIPE, stderr=PIPE,
    )  # fmt: skip
    try:
        out, err = await running.communicate()
    finally:
        if running.returncode is None:
            running.kill()
            await running.wait()
    return running.returncode, out.decode(), err.decode()


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
            print(f"{one.mutation.name:<62} {one.place or 'SURVIVES':>10}  {_short(one.said)}", flush=True)
    return ended


def table(ended: Sequence[Catch], before: str = "") -> str:
    """Return the document; of bugs that were not tried it says what it said `before`."""
    rows = {found[1]: found[0] for found in _ROW.finditer(before)} | {one.mutation.name: _row(one) for one in ended}
    kept = [rows[one.name] for one in MUTATIONS if one.name in rows]
    caught = sum("| **none** |" not in row for row in kept)
    lines = "\n".join(kept)
    return f"""# Deliberate bugs, and what catches each

Made by `python -m tests.mutations --table docs/guarantees-mutations.md`; do not edit.
Each bug is put alone into a copy of the sources. Then its proof looks for it: `python -m tests.histories` lives one
history after another (`wire` stands with seeds of histories that have the real clients inside, `--wire`), or the named
tests run.
`tests/unit/test_mutations.py` sees to it that every bug still applies to the sources.

{caught} of {len(kept)} are caught, by histories within {SEEDS:,} of them.

| bug | in | first seed that fails, or test | what it says (virtual seconds first, where it is a history) |
|---|---|---|---|
{lines}
"""


def _row(one: Catch) -> str:
    file = one.mutation.file.removeprefix("proxy/")
    return f"| {one.mutation.name} | `{file}` | {one.place or '**none**'} | {_short(one.said)} |"


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
        before = options.table.read_text(encoding="utf-8") if options.table.exists() else ""
        options.table.write_text(table(ended, before), encoding="utf-8")
    return 1 if any(one.place is None for one in ended) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
