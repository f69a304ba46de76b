"""What the runs of the demo show beside each other, and what may honestly be said of the seed's loop. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any, Self

from load.checker import Whereabouts

RARE = 0.2
"""A cause that spoke at most this often, for each time the other did, is no part of the picture."""


@dataclass(frozen=True)
class Seen:
    """What one run's metric log says of the loop."""

    verdicts: int
    """Verdicts that said anything."""
    by_latency: int
    """... congested, P50 confirm latency above its threshold."""
    by_errors: int
    """... congested, nacks above theirs."""
    worst_p50_ms: float
    threshold_ms: float
    """0 where the policy has none."""
    nacked: int
    median_depth: float
    peak_depth: int

    @classmethod
    def of(cls, records: Iterable[Mapping[str, Any]]) -> Self:
        """Return what the records say; all of one run."""
        verdicts: list[Mapping[str, Any]] = []
        depths: list[int] = []
        nacked = 0
        for record in records:
            if record["kind"] == "verdict" and record["congested"] is not None:
                verdicts.append(record)
            elif record["kind"] == "route":
                nacked += record["nacked"]
                depths += [record["depth"]] if record["depth"] is not None else []
        return cls(
            verdicts=len(verdicts),
            by_latency=sum(record["cause"] in {"latency", "latency+errors"} for record in verdicts),
            by_errors=sum(record["cause"] in {"errors", "latency+errors"} for record in verdicts),
            worst_p50_ms=max(
                (record["p50_us"] / 1000 for record in verdicts if record["p50_us"] is not None), default=0.0
            ),
            threshold_ms=(verdicts[0].get("threshold_us") or 0) / 1000 if verdicts else 0.0,
            nacked=nacked,
            median_depth=median(depths) if depths else 0.0,
            peak_depth=max(depths, default=0),
        )


def sentence(
    runs: Mapping[str, Seen],
    *,
    seed: str,
    bound: int,
    capacity: float,
    consumed_p99_ms: Mapping[str, float | None],
    classes: Mapping[str, Mapping[str, Whereabouts]],
) -> str:
    """Return what the seed's loop did and could not do, and what others reached, from the figures of the runs alone.

    `seed` is the policy whose loop is the seed's; `consumed_p99_ms` is the top class's by policy, None where nothing
    was consumed; `capacity` is in events a second.
    """
    seen = runs[seed]
    effect = [
        f"{_duration(p99)} {'with control off' if policy == 'static' else f'under {policy}'}"
        f" ({next(iter(classes[policy].values())).in_log:,} not delivered yet)"
        for policy, p99 in consumed_p99_ms.items()
    ]
    speechless = (
        f"The loop acted on slow confirms in {seen.by_latency} of {seen.verdicts} verdicts: their P50 was"
        f" {seen.worst_p50_ms:.1f} ms at worst (threshold {seen.threshold_ms:.0f} ms) while up to {seen.peak_depth}"
        f" events, {seen.peak_depth / capacity:.1f} s of work, stood in the queue;"
    )
    belated = (
        f"it acted on refused publications in {seen.by_errors}, which come only once the queue is full ({bound}):"
        f" {seen.nacked:,} were refused, and half of the time at least {seen.median_depth:.0f} events"
        f" ({seen.median_depth / capacity:.1f} s of work) stood in front of a new order confirmation."
    )
    figures = f"From order to consumer, P99 of the order confirmations delivered: {', '.join(effect)}."
    others = [_short_queue(policy, one, capacity) for policy, one in runs.items() if policy not in {"static", seed}]
    return " ".join([_in_short(seen), figures, speechless, belated, *others])


def _short_queue(policy: str, seen: Seen, capacity: float) -> str:
    """Return what a policy that watches the depth made of the queue."""
    refused = "none was refused" if not seen.nacked else f"{seen.nacked:,} were refused"
    return (
        f"Under {policy} half of the time at most {seen.median_depth:.0f} events"
        f" ({seen.median_depth / capacity:.2f} s of work) stood in the queue, {seen.peak_depth} at most; {refused}."
    )


def _in_short(seen: Seen) -> str:
    """Return what the causes of the verdicts amount to."""
    if not seen.by_errors and not seen.by_latency:
        return "The queue never filled, and the seed's loop had nothing to act on."
    if seen.by_latency <= RARE * seen.by_errors:
        return (
            "The seed's loop holds the campaign back in the log, and can't keep the queue short: it learns of slow"
            " consumers only from a queue that is full, for RabbitMQ confirms at once whatever waits in it."
        )
    return (
        "The seed's loop holds the campaign back in the log, and can't keep the queue short: here it took slow confirms"
        " for a sign as well, but they are a sign of a busy machine, not of slow consumers."
    )


def shortcomings(classes: Mapping[str, Mapping[str, Whereabouts]]) -> list[str]:
    """Return, by policy and class, what was lost: committed by the bridge and finished by no service."""
    return [
        f"{policy}, {name}: {found.lost} events LOST"
        for policy, of_class in classes.items()
        for name, found in of_class.items()
        if found.lost
    ]


def whereabouts_rows(classes: Mapping[str, Mapping[str, Whereabouts]]) -> list[list[str]]:
    """Return the checker's count as rows: where every event is when the run ends."""
    rows = [["checked event by event", "produced", "delivered", "repeated", "still in the log", "lost"]]
    for policy, of_class in classes.items():
        for name, found in of_class.items():
            figures = (found.produced, found.delivered, found.duplicates, found.in_log, found.lost)
            rows.append([f"{policy} {name}", *(f"{figure:,}" for figure in figures)])
    return rows


def _duration(ms: float | None) -> str:
    if ms is None:
        return "none delivered"
    return f"{ms / 1000:.1f} s" if ms >= 1000 else f"{ms:.0f} ms"
