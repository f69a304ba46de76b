"""The tables of report.html: which columns, under which headings, written how."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from proxy.reports.figures import count, milliseconds, plain, seconds

Column = tuple[str, str, Callable[[Any], str]]
"""Field, heading (`group|heading` under a common one), and how its value is written."""


@dataclass(frozen=True)
class PageTable:
    """One of the report's tables as the page shows it."""

    title: str
    name: str
    columns: Sequence[Column]
    note: str = ""


def _counts(*names: str) -> list[Column]:
    return [(name, name.replace("_", " "), count) for name in names]


def _texts(*names: str) -> list[Column]:
    return [(name, name, plain) for name in names]


def _times(title: str, prefix: str = "") -> list[Column]:
    figures = (("p50_ms", "P50"), ("p99_ms", "P99"), ("p999_ms", "P99.9"), ("max_ms", "max"))
    return [(f"{prefix}{field}", f"{title}|{name}", milliseconds) for field, name in figures]


_PLACE = _texts("class", "run")
_TYPE: list[Column] = [("type", "event type", plain), *_PLACE]
_SUMS = _counts(
    "received", "confirmed", "dead_lettered", "nacked", "unknown", "resent", "possible_duplicates", "overtaken"
)
_MEASURED: list[Column] = [*_texts("measure"), *_counts("samples"), *_times("")]

PROVEN: list[Column] = [
    *_PLACE,
    *_counts("produced", "delivered", "lost", "duplicated", "dead_lettered", "left_in_log"),
    *_times("bridge time", "bridge_"),
    *_times("consumed time", "consumed_"),
]
"""Per class, where producers and consumers left records."""

UNPROVEN: list[Column] = [
    *_PLACE,
    *_counts("received", "confirmed", "dead_lettered", "possible_duplicates", "overtaken"),
    *_times("bridge time", "bridge_"),
]
"""Per class, where only the bridge did."""

TABLES = (
    PageTable(
        "Traffic per class",
        "traffic_by_class",
        [*_PLACE, *_SUMS, *_counts("old", "ahead_of_clock", "received_bytes", "confirmed_bytes")],
    ),
    PageTable("Dead letters", "dead_letters", [*_PLACE, *_texts("reason"), *_counts("dead_lettered")]),
    PageTable("Latency per class", "latency_by_class", [*_PLACE, *_MEASURED]),
    PageTable(
        "Congestion episodes",
        "episodes",
        [
            *_texts("run", "route"),
            ("from_s", "from", seconds),
            ("to_s", "to", seconds),
            ("seconds", "lasted", seconds),
            ("congested_s", "of it congested", seconds),
            ("ended", "ended", plain),
            *_counts("stretches", "verdicts"),
            *_texts("causes", "queues"),
            ("worst_p50_ms", "worst P50 publish latency", milliseconds),
            ("worst_delay_ms", "longest queue delay", milliseconds),
            ("errors", "publish errors", count),
            *_counts("cuts"),
        ],
        "From the verdict that called a route congested to the one that took it back, in seconds of the run; "
        "such stretches at most three seconds apart are one episode. "
        "Latency is what per_type judges by; queue delay (an estimate), cuts and the queues "
        "that ruled, where they are judged one by one, are of class_budget.",
    ),
    PageTable(
        "Ledger per topic",
        "ledger_by_topic",
        [*_texts("run", "group", "topic", "outcome", "reason"), *_counts("positions")],
        "What became of every position of the log, from where records begin. Unrecorded: committed, and the record of "
        "it is missing; not lost. Where each stands: tables/ledger.",
    ),
    PageTable(
        "Findings of the ledger",
        "ledger_findings",
        [
            *_texts("run", "group", "topic", "topic_id"),
            ("partition", "partition", count),
            *_texts("finding"),
            *_counts("first", "end", "positions"),
            ("instances", "processes", plain),
        ],
        "Overlap and repeated: perhaps delivered twice. Went back: a group began before what was committed. "
        "Gap: nobody committed it, and reading went on behind it. Deleted: left when the topic was deleted.",
    ),
    PageTable(
        "Blind time",
        "blind_time",
        [
            *_texts("run", "route"),
            *_counts("times"),
            ("seconds", "in all", seconds),
            ("longest_s", "longest", seconds),
            ("first_s", "first", seconds),
        ],
        "How long a route was judged without knowing its queues or what other replicas send: nothing grew meanwhile.",
    ),
    PageTable(
        "Incidents",
        "incidents",
        [
            *_texts("run"),
            ("name", "incident", plain),
            ("place", "where", plain),
            *_counts("times", "count"),
            ("first_s", "first", seconds),
            ("last_s", "last", seconds),
            ("last_detail", "last detail", plain),
        ],
    ),
    PageTable(
        "From producer to consumer, per event type",
        "proof_by_type",
        [
            *_TYPE,
            *_counts("produced", "delivered", "missing", "duplicated", "unexpected"),
            *_times("consumed time", "consumed_"),
        ],
    ),
    PageTable("Traffic per event type", "traffic_by_type", [*_TYPE, *_SUMS]),
    PageTable("Latency per event type", "latency_by_type", [*_TYPE, *_MEASURED]),
    PageTable(
        "Replicas",
        "replicas",
        [
            *_PLACE,
            ("instance", "process", plain),
            ("seconds", "recorded", seconds),
            *_counts("received", "confirmed"),
            *_texts("share"),
            *_counts("lag", "worst_lag"),
            ("worst_age_s", "oldest waiting", seconds),
            ("least_bridge_ms", "least bridge time", milliseconds),
            *_counts("ahead_of_clock"),
        ],
        "Share: of what all confirmed. Where the least bridge time differs, so do the clocks of replicas, or of those "
        "who produced for them; it is 0 where events were confirmed before their own timestamp.",
    ),
    PageTable(
        "Clocks",
        "clocks",
        [
            *_texts("run"),
            ("instance", "process", plain),
            *_texts("reference"),
            *_counts("changes"),
            ("offset_ms", "ahead by", milliseconds),
            ("least_ms", "at least", milliseconds),
            ("greatest_ms", "at most", milliseconds),
        ],
        "How much later than the reference's a process's clock stood when both saw the same queue become too long: the "
        "median of the changes that both saw. Nearer than a control tick and a look at the depth (0.1 to 0.2 s) nobody "
        "can tell, nor for clocks more than 3 s apart.",
    ),
    PageTable(
        "Stuck event types",
        "stuck",
        [
            ("type", "event type", plain),
            *_texts("class", "run", "route"),
            ("instance", "process", plain),
            ("from_s", "from", seconds),
            ("to_s", "to", seconds),
            ("seconds", "lasted", seconds),
            *_counts("intervals", "lag", "waiting"),
            *_texts("ended"),
        ],
        "Events waited, and in three intervals or more none was confirmed or dead-lettered.",
    ),
    PageTable(
        "What control cost",
        "decisions",
        [
            *_texts("run", "route", "policy"),
            *_counts("slowed", "needed", "empty", "unseen"),
            ("least_delay_ms", "least delay at a cut", milliseconds),
            *_counts("stretches", "after_growth"),
            ("backlog_s", "with backlog", seconds),
            ("used", "of it used", plain),
            ("held_s", "held back", seconds),
        ],
        "Slowed: how often it was decided to slow down; needed where messages were in the queue or events refused, "
        "empty in front of an empty queue. "
        "Stretches of congestion, and those that began when a rate had just grown. With backlog: seconds in which "
        "events waited, and the share of the drain rate (an estimate) that was used then. Held back: events waited, "
        "the rate was used up, and the queue was empty.",
    ),
    PageTable(
        "Consumers added and removed",
        "scaling",
        [
            *_texts("run", "route"),
            ("at_s", "at", seconds),
            ("consumers_before", "consumers|before", count),
            ("consumers_after", "consumers|after", count),
            ("drain_before", "drain rate|before", plain),
            ("drain_after", "drain rate|after", plain),
            ("confirmed_before", "confirmed a second|before", plain),
            ("confirmed_after", "confirmed a second|after", plain),
            ("busy_before", "queue not empty|before", plain),
            ("busy_after", "queue not empty|after", plain),
            *_texts("gain"),
        ],
        "Half a minute before and after. Gain: what each brought (or took) beside each of those before: 1 as much, "
        "0 nothing. Not known where the queue was mostly empty: then nobody sees what consumers could do.",
    ),
    PageTable(
        "Fairness",
        "fairness",
        [
            *_PLACE,
            ("backlog_s", "with backlog", seconds),
            *_counts("types"),
            ("jain", "Jain's index", plain),
            ("least_jain", "least", plain),
            *_texts("served"),
            ("of_done", "of all done", plain),
            ("of_demand", "of all there was", plain),
        ],
        "While events of the class waited. Served: which share of what was there was done with. Jain's index over the "
        "class's event types is 1 where each had the same share served, and 1/n where one of n had all.",
    ),
    PageTable(
        "What waited",
        "waiting",
        [
            *_TYPE,
            *_texts("route"),
            ("worst_left", "most left", count),
            ("left", "left at the end", count),
            ("worst_age_s", "oldest ever", seconds),
            ("age_s", "oldest at the end", seconds),
            ("age_growth", "older by s/s", plain),
            ("day_in_s", "a day old in", seconds),
        ],
        "Events not done with, and the age of the oldest that was read. At the rate of the last minute the oldest will "
        "be a day old after so many seconds; records do not tell how long a log keeps them.",
    ),
    PageTable(
        "Troubles per event type",
        "troubles",
        [*_TYPE, *_texts("route", "what"), *_counts("events"), ("per_thousand", "per 1,000 confirmed", plain)],
        "What RabbitMQ returned is dead-lettered as unroutable; before its timestamp: a clock is ahead.",
    ),
    PageTable(
        "Latency spectra",
        "spectra",
        [
            *_texts("run", "level", "name", "measure", "percentile"),
            ("ms", "at most", milliseconds),
            *_counts("samples"),
        ],
        "For each class, event type and route; 100 is the largest. A percentile is given where a sample lies above it.",
    ),
    PageTable(
        "Processes",
        "processes",
        [
            *_texts("run"),
            ("instance", "process", plain),
            *_texts("version"),
            ("started_s", "started", seconds),
            ("stopped_s", "stopped", seconds),
            *_counts("unresolved", "dropped_records", "dropped_files"),
        ],
        "One that left no stop record was killed, or still runs.",
    ),
    PageTable(
        "Cross-checks",
        "cross_checks",
        [*_texts("run", "check"), ("subject", "of", plain), *_counts("left", "right", "difference")],
        "Two kinds of records tell of the same events. A difference is shown, not explained away.",
    ),
    PageTable(
        "Lines that are no records",
        "rejected_lines",
        [*_texts("run", "file", "reason"), *_counts("lines"), ("sample", "one begins", plain)],
    ),
)
