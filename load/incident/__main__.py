"""The command line: `python -m load.incident`."""

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from load.incident.play import Ended, play
from load.stack import SetupError, Stack, StackError
from load.terminal import command_line, interrupted_by_signals, say
from load.wire import WireError
from load.worker import WorkerError

EXAMPLES = """\
examples:
  python -m load.incident                 about two minutes; everything is kept below out/
  python -m load.incident --out DIR       ... in DIR, which must be new or empty

exit codes: 0 every event is accounted for; 1 one is not, or something failed; 2 the machine lacks something
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Play it, make the report of its metric log, hold the ledger against what was written; return the exit code."""
    parser = command_line("load.incident", "An incident on three replicas, and whoever is on duty.", EXAMPLES)
    parser.add_argument("--out", type=Path, metavar="DIR", help="where everything goes (default: out/incident-...)")
    options = parser.parse_args(arguments)
    interrupted_by_signals()
    out: Path = (options.out or Path("out") / time.strftime("incident-%Y%m%d-%H%M%S")).resolve()
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        say(f"{out} is not empty; --out takes a new or an empty folder")
        return 2
    out.mkdir(parents=True, exist_ok=True)
    try:
        with Stack.up() as stack:
            ended = asyncio.run(play(stack, out))
    except SetupError as error:
        say(str(error))
        return 2
    except (StackError, WorkerError, WireError) as error:
        say(str(error))
        return 1
    differences = [*ended.differences, *_ledger(ended, out)]
    told = {name: value for name, value in ended.told.items() if name != "top"}
    (out / "incident.json").write_text(json.dumps(ended.told | {"differences": differences}, indent=1) + "\n")
    print(json.dumps(told | {"differences": differences}, indent=1))
    return 1 if differences else 0


def _ledger(ended: Ended, out: Path) -> list[str]:
    """Return where the ledger of `tidegate report` differs from what was written and passed over."""
    from pyarrow import parquet

    from proxy.reports import command

    if code := command.main([str(out / "metrics"), "--out", str(out / "report")]):
        return [f"the report ended with {code}"]
    of: Counter[tuple[str, str]] = Counter()
    for row in parquet.read_table(out / "report" / "tables" / "ledger_by_topic").to_pylist():
        of[row["topic"], row["outcome"]] += row["positions"]
    wanted = Counter({(topic, "delivered"): count for topic, count in ended.written.items()})
    campaign = next(topic for topic in ended.written if topic.endswith(".campaign"))
    wanted[campaign, "delivered"] -= ended.skipped
    wanted[campaign, "skipped"] += ended.skipped
    return [] if of == wanted else [f"the ledger says {dict(of)}, what happened is {dict(wanted)}"]


if __name__ == "__main__":
    sys.exit(main())
