"""The files of a fleet, as its processes and whoever copied them left them.

`logs` holds what is there at once, `late` what comes later, `again` copies of files of `logs`, name and all.
"""

import gzip
import json
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any, BinaryIO

from load.metric_fleet.group import Ending, Life
from load.metric_fleet.life import Known, Part, parts
from load.metric_fleet.plan import START_MS, Fault, Plan
from proxy.records import KINDS, Record, enveloped, fields_of

GZIP_LEVEL = 4
"""As the bridge compresses."""
FOLDERS = ("logs", "late", "again")
WRONG: tuple[tuple[str, str], ...] = (
    ('{"v":2,"kind":"class","at_ms":17', "cut off"),
    ("\x00\x00\x00", "malformed"),
    ("plain text", "malformed"),
    ("[1, 2]", "malformed"),
    ('{"v":2,"at_ms":1}', "malformed"),
    ('{"v":2,"kind":"stop","at_ms":-1}', "malformed"),
    ('{"v":2,"kind":"stop","at_ms":1}', "malformed"),
    ('{"v":7,"kind":"stop","at_ms":1}', "another version"),
)
"""Lines that are no records, and why."""
WRONG_SHARE = 0.1
"""Of intervals that have one of them; the first of a file has all."""
UNKNOWN = "unknown kind"
_ADDED = {
    kind: frozenset(field.name for field in fields_of(record) if field.is_added) for kind, record in KINDS.items()
}  # fmt: skip
encode = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


@dataclass
class Written:
    """A file, and what is in it."""

    name: str
    folders: list[str]
    known: Known
    lines: int = 0
    """Records among its lines."""
    rejected: Counter[str] = field(default_factory=Counter)
    """Lines that are none, by reason."""


def line(record: Record, at_ms: int, life: Life) -> str:
    """Return a record as its process writes it, by its own clock and in its own version."""
    written = enveloped(record, at_ms=START_MS + at_ms + life.skew_ms, instance=life.instance)
    return encode(as_version_1(written) if life.is_old else written)


def as_version_1(written: dict[str, Any]) -> dict[str, Any]:
    """Return a record as version 1 had it."""
    return {name: value for name, value in written.items() if name not in _ADDED[written["kind"]]} | {"v": 1}


def write(out: Path, plan: Plan, part: Part, number: int) -> Written:
    """Write a part of a life into its file, and where else it lies; return what it holds."""
    life = part.life
    is_last = number == parts(life) - 1
    is_open = is_last and life.ending in {Ending.KILLED, Ending.RUNNING}
    stamp = datetime.fromtimestamp((START_MS + part.start_ms + life.skew_ms) / 1000, UTC).strftime("%Y%m%dT%H%M%SZ")
    name = f"{stamp}-{life.instance}-{number + 1:06d}.jsonl.{'open' if is_open else 'gz'}"
    folder = "late" if plan.has(Fault.LATE) and (life.number + number) % 4 == 1 and not is_open else "logs"
    found = Written(name, [folder], part.known)
    chance = plan.chance("lines", life.number, number)
    path = out / folder / name
    with path.open("wb") as raw:
        if is_open:
            _fill(raw, plan, part, found, chance)
        else:
            with gzip.GzipFile("", "wb", GZIP_LEVEL, raw, mtime=0) as packed:
                _fill(packed, plan, part, found, chance)
    if plan.has(Fault.TWICE) and (life.number + number) % 4 == 2 and not is_open:
        shutil.copyfile(path, out / "again" / name)
        found.folders.append("again")
    return found


def _fill(file: "BinaryIO | gzip.GzipFile", plan: Plan, part: Part, found: Written, chance: Random) -> None:
    is_torn = part.life.ending is Ending.KILLED
    for number, told in enumerate(part.told()):
        lines = [line(record, at, part.life) for at, record in told]
        found.lines += len(lines)
        for text, reason in _strange(plan, part, number, chance):
            lines.insert(chance.randrange(len(lines) + 1), text)
            found.rejected[reason] += 1
        if plan.has(Fault.SHUFFLED):
            chance.shuffle(lines)
        file.write(("\n".join(lines) + "\n").encode())
    if is_torn:
        file.write(b'{"v":2,"kind":"class","at_ms":17')
        found.rejected["cut off"] += 1


def _strange(plan: Plan, part: Part, number: int, chance: Random) -> Iterator[tuple[str, str]]:
    """Yield lines of an interval that no report can make anything of, and why."""
    is_chosen = number == 1 or chance.random() < WRONG_SHARE
    if plan.has(Fault.LINES) and is_chosen:
        yield from WRONG if number == 1 else [chance.choice(WRONG)]
    if plan.has(Fault.KINDS) and is_chosen:
        at_ms = START_MS + part.start_ms
        yield encode({"v": 2, "kind": "dream", "at_ms": at_ms, "instance": part.life.instance, "of": "sheep"}), UNKNOWN
