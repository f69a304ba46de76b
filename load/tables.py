"""Results as text for the terminal."""

from collections.abc import Sequence

from load.ratios import WORDS, Cell, Cells, Judged, What


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


def throughput_table(found: Cells) -> str:
    """Return one table per setting: medians of the rounds, the spread of the rate beside them."""
    head = [
        "",
        "events/s",
        "+/-",
        "CPU-s/100k",
        "RabbitMQ",
        "Kafka",
        "RSS MB",
        "delivered",
        "lost",
        "repeated",
        "order",
    ]
    parts = []
    for (queue_type, size), here in found.items():
        rows = [head, *([name, *_row(cell)] for name, cell in here.items())]
        rounds = max(len(cell.runs) for cell in here.values())
        parts.append(
            f"{queue_type} queue, {size} B, median of {rounds} round{'s' if rounds > 1 else ''}\n{aligned(rows)}\n"
        )
    return "\n".join(parts)


def _row(cell: Cell) -> list[str]:
    return [
        f"{cell.middle('rate'):,.0f}", f"{cell.spread():.0%}",
        *(f"{cell.middle(what):.2f}" for what in _CPU), f"{cell.peak_rss_mb:.0f}", f"{cell.delivered:,}",
        f"{cell.total('lost'):,}", f"{cell.total('duplicates'):,}", "lost" if cell.total("late") else "kept",
    ]  # fmt: skip


_CPU: tuple[What, ...] = ("cpu", "rabbitmq_cpu", "kafka_cpu")


def verdict_lines(judged: Sequence[Judged]) -> str:
    """Return one line per ratio, with what was wanted and whether it was reached."""
    rows = [["ratio of medians", "queue", "size", "", "+/-", "goal", ""]]
    verdicts = {True: "met", False: "MISSED", None: "not judged"}
    for one in judged:
        goal, (queue_type, size) = one.goal, one.setting
        bound = goal.bounds.get(queue_type)
        rows.append(
            [
                f"{goal.of} / {goal.over}, {WORDS[goal.what]}", queue_type, f"{size} B",
                "" if one.ratio is None else f"{one.ratio:.3g}", "" if one.ratio is None else f"{one.spread:.0%}",
                "" if bound is None else f"{'>=' if goal.at_least else '<='} {bound:g}",
                "not measured" if one.ratio is None else verdicts[one.met],
            ]
        )  # fmt: skip
    return aligned(rows)
