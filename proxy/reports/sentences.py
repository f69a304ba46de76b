"""What a class did with what is promised of it, in one sentence; no figure in it is rounded to the better side."""

from collections.abc import Sequence
from datetime import datetime
from math import ceil

from proxy.reports.figures import tick
from proxy.reports.tables import Row


def of_targets(rows: Sequence[Row], runs: Sequence[Row]) -> list[str]:
    """Return a sentence for each class and run with a target; the run is named if there are several.

    `rows` are of the table `slo`, `runs` those of the findings. A minute has its day where a run has more than one.
    """
    told = []
    for row in rows:
        if row["scope"] != "all":
            continue
        run = next(one for one in runs if one["name"] == row["run"])
        inside = [
            one for one in rows if (one["run"], one["class"], one["scope"]) == (row["run"], row["class"], "inside")
        ]
        missed_inside = sum(one["missed"] for one in inside)
        is_one_day = len({datetime.fromisoformat(run[name]).date() for name in ("started_at", "ended_at")}) == 1
        prefix = f"{row['run']}: " if len(runs) > 1 else ""
        told.append(f"{prefix}{_sentence(row, missed_inside, is_one_day=is_one_day)}")
    return told


def percent(part: int, whole: int, digits: int) -> str:
    """Write the share with so many digits behind the point, cut off: `100 %` is all of it."""
    if part == whole:
        return "100 %"
    cut = 100 * 10**digits * part // whole
    return f"{cut // 10**digits}.{cut % 10**digits:0{digits}d} %"


def _sentence(row: Row, missed_inside: int, *, is_one_day: bool) -> str:
    promise = f"{tick(row['within_s'] * 1000)} of {row['judges']} time"
    target = f"{row['share'] * 100:.8g}"
    if not row["judged"]:
        return f"{row['class']}: no {row['judges']} time is recorded to hold {promise} for {target} % against"
    digits = max(2, len(target.partition(".")[2]) + 1)
    kept = percent(row["judged"] - row["missed"], row["judged"], digits)
    did = "held its" if row["holds"] else "did not hold its"
    only = "" if row["holds"] else "only "
    used = f"{ceil(100 * row['missed'] / row['allowed']):,} % of its error budget used"
    parts = [f"{row['class']} {did} {promise}: {only}{kept} of {row['judged']:,} events (target {target} %, {used})"]
    if row["worst_minute"]:
        at = row["worst_minute"][-5:] if is_one_day else row["worst_minute"]
        of_minute = f"{row['worst_minute_missed']:,} of {row['worst_minute_judged']:,} late"
        parts += [f"worst minute {at} UTC ({of_minute})"]
        parts += [f"{missed_inside:,} of {row['missed']:,} late ones in minutes with congestion"]
    if not row["holds"] and row["missed"] - row["unsure"] <= row["allowed"]:
        parts.append(f"perhaps it held: {row['unsure']:,} of them are as late as buckets can't tell")
    if row["targets"] > 1:
        parts.append(f"its processes had {row['targets']} different targets, the last one counts")
    return "; ".join(parts)
