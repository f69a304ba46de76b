"""Results as text for the terminal."""

from collections.abc import Mapping, Sequence

from load.ratios import Cell, Judged, Setting


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as columns: the first column flush left, the others flush right; the first row is the heading."""
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = [
        "  ".join(
            text.ljust(width) if at == 0 else text.rjust(width)
            for at, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def throughput_table(found: Mapping[Setting, Mapping[str, Cell]]) -> str:
    """Return one table per setting: medians of the rounds, the spread of the rate beside them."""
    parts = []
    for (queue_type, size), here in found.items():
        rows = [["", "events/s", "+/-", "CPU-s/100k", "RabbitMQ CPU-s/100k", "peak RSS MB"]]
        rows += [
            [
                name,
                f"{cell.rate:,.0f}",
                f"{cell.spread:.0%}",
                f"{cell.cpu:.2f}",
                f"{cell.rabbitmq_cpu:.2f}",
                f"{cell.peak_rss_mb:.0f}",
            ]
            for name, cell in here.items()
        ]
        rounds = max(len(cell.runs) for cell in here.values())
        parts.append(
            f"{queue_type} queue, {size} B, median of {rounds} round{'s' if rounds > 1 else ''}\n{aligned(rows)}\n"
        )
    return "\n".join(parts)


def verdict_lines(judged: Sequence[Judged]) -> str:
    """Return one line per ratio, with what was wanted and whether it was reached."""
    rows = [["ratio of medians", "queue", "size", "", ""]]
    verdicts = {True: "met", False: "MISSED", None: "not judged"}
    rows += [
        [str(one.goal), one.setting[0], f"{one.setting[1]} B", f"{one.ratio:.3g}", verdicts[one.met]] for one in judged
    ]
    return aligned(rows)
