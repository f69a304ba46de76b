"""The command line: `python -m load.ledger_check DIR`."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from pyarrow import parquet

from load.faults.kept import TRUTH
from load.ledger_check.compare import Found, compare
from load.tables import aligned
from load.terminal import command_line, say
from proxy.reports import command

MOST_SAID = 40
"""Differences that are printed."""
EXAMPLES = """\
what is compared:
  truth     which position every event stands at (Kafka's answers, and the log itself, read at the end), whether it came
            out of its queue or that of dead letters, what the log had dropped; what the group had committed, asked for
            all the time
  ledger    the table of `tidegate report`, made from the metric logs of all processes alone
what must hold:
  positions are contiguous from the first to the last committed; what is delivered came, what is a dead letter came as
  one, what is truncated was dropped; `unrecorded` was committed, came, and stands where a process was killed, a disk
  was full or Kafka's answers were lost; nothing is a conflict where no commit ever went back

examples:
  python -m load.faults --json out/faults.json --keep out/kept --rounds 20
  python -m load.ledger_check out/kept        the report itself is in out/kept/report then

exit codes: 0 equal; 1 not so; 2 there is nothing to compare
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the report and compare; return the exit code."""
    parser = command_line("load.ledger_check", "Holds the ledger of a run of real faults against the truth.", EXAMPLES)
    parser.add_argument("folder", type=Path, metavar="DIR", help="what `python -m load.faults --keep DIR` has left")
    folder: Path = parser.parse_args(arguments).folder
    try:
        truth = json.loads((folder / TRUTH).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        say(f"{folder / TRUTH}: {error}")
        return 2
    report = folder / "report"
    if code := command.main([str(folder), "--out", str(report)]):
        return code
    tables = [parquet.read_table(report / "tables" / name).to_pylist() for name in ("ledger", "ledger_findings")]
    found = compare(truth, *tables)
    print(text(found))
    return 1 if found.differences else 0


def text(found: Found) -> str:
    """Return what was found, in words."""
    table = [["outcome", "positions"], *([name, f"{count:,}"] for name, count in sorted(found.outcomes.items()))]
    lines = [aligned(table), ""]
    lines += [f"{count:,} positions unrecorded: {why}" for why, count in found.unrecorded.most_common()]
    lines += [f"{count} findings {name}" for name, count in sorted(found.findings.items())]
    if found.untold:
        lines.append(f"{found.untold:,} positions in no row: they came last, and were not committed")
    if found.unknown:
        lines.append(f"of {found.unknown:,} positions nobody knows which event stood there")
    lines += found.differences[:MOST_SAID]
    if len(found.differences) > MOST_SAID:
        lines.append(f"and {len(found.differences) - MOST_SAID} more differences")
    return "\n".join([*lines, "Ledger and truth differ." if found.differences else "Ledger and truth are equal."])


if __name__ == "__main__":
    sys.exit(main())
