"""The tables of report.html: which columns, under which headings, written how."""

from proxy.reports.page_columns import Column, PageTable, counts, texts, times
from proxy.reports.page_tables_of_logs import OF_LOGS

_PLACE = texts("class", "run")
_TYPE: list[Column] = [("type", "event type", "text"), *_PLACE]
_SUMS = counts(
    "received", "confirmed", "dead_lettered", "nacked", "unknown", "resent", "possible_duplicates", "overtaken"
)
_MEASURED: list[Column] = [*texts("measure"), *counts("samples"), *times("")]

PROVEN: list[Column] = [
    *_PLACE,
    *counts("produced", "delivered", "lost", "duplicated", "dead_lettered", "left_in_log"),
    *times("bridge time", "bridge_"),
    *times("consumed time", "consumed_"),
]
"""Per class, where producers and consumers left records."""

UNPROVEN: list[Column] = [
    *_PLACE,
    *counts("received", "confirmed", "dead_lettered", "possible_duplicates", "overtaken"),
    *times("bridge time", "bridge_"),
]
"""Per class, where only the bridge did."""

PER_CLASS = "Per class"

EPISODE_VERDICTS = PageTable(
    "Verdicts",
    "episode_verdicts",
    [
        ("t_s", "at", "s"),
        ("instance", "process", "text"),
        *texts("congested", "cause"),
        ("p50_ms", "P50 publish latency", "ms"),
        ("errors", "publish errors", "count"),
        *counts("samples"),
        ("delay_ms", "queue delay", "ms"),
        ("drain_rate", "drain rate", "count"),
        *counts("depth", "cuts"),
        ("hot", "over their threshold", "text"),
        ("rates", "may send a second", "text"),
        ("ruled_by", "ruled by", "text"),
    ],
)
"""What opens below an episode."""

TABLES = (
    PageTable(
        "Traffic per class",
        "traffic_by_class",
        [*_PLACE, *_SUMS, *counts("old", "ahead_of_clock", "received_bytes", "confirmed_bytes")],
    ),
    PageTable("Dead letters", "dead_letters", [*_PLACE, *texts("reason"), *counts("dead_lettered")]),
    PageTable("Latency per class", "latency_by_class", [*_PLACE, *_MEASURED]),
    PageTable(
        "Congestion episodes",
        "episodes",
        [
            *texts("run", "route"),
            ("from_s", "from", "s"),
            ("to_s", "to", "s"),
            ("seconds", "lasted", "s"),
            ("congested_s", "of it congested", "s"),
            ("ended", "ended", "text"),
            *counts("stretches", "verdicts"),
            *texts("causes", "queues"),
            ("worst_p50_ms", "worst P50 publish latency", "ms"),
            ("worst_delay_ms", "longest queue delay", "ms"),
            ("errors", "publish errors", "count"),
            *counts("cuts"),
        ],
        "From the verdict that called a route congested to the one that took it back, in seconds of the run; "
        "such stretches at most three seconds apart are one episode. "
        "Latency is what per_type judges by; queue delay (an estimate), cuts and the queues "
        "that ruled, where they are judged one by one, are of class_budget.",
    ),
    PageTable(
        "Ledger per topic",
        "ledger_by_topic",
        [*texts("run", "group", "topic", "outcome", "reason"), *counts("positions")],
        "What became of every position of the log, from where records begin. Unrecorded: committed, and the record of "
        "it is missing; not lost. Where each stands: tables/ledger.",
    ),
    PageTable(
        "Findings of the ledger",
        "ledger_findings",
        [
            *texts("run", "group", "topic", "topic_id"),
            ("partition", "partition", "count"),
            *texts("finding"),
            *counts("first", "end", "positions"),
            ("instances", "processes", "text"),
        ],
        "Overlap and repeated: perhaps delivered twice. Went back: a group began before what was committed. "
        "Gap: nobody committed it, and reading went on behind it. Deleted: left when the topic was deleted.",
    ),
    PageTable(
        "In shadow",
        "shadow",
        [
            *texts("run", "route", "class"),
            ("from_s", "from", "s"),
            ("to_s", "to", "s"),
            *counts("sent", "held", "passed"),
            ("passed_rate", "would have gone a second", "count"),
            *counts("waiting"),
            ("longest_s", "longest wait", "s"),
        ],
        "What a policy in shadow would have held back; nothing was. Held: would have waited. Waiting: in the log at a "
        "time, at most, beyond what waited there anyway.",
    ),
    PageTable(
        "Blind time",
        "blind_time",
        [
            *texts("run", "route"),
            *counts("times"),
            ("seconds", "in all", "s"),
            ("longest_s", "longest", "s"),
            ("first_s", "first", "s"),
        ],
        "How long a route was judged without knowing its queues or what other replicas send: nothing grew meanwhile.",
    ),
    PageTable(
        "Incidents",
        "incidents",
        [
            *texts("run"),
            ("name", "incident", "text"),
            ("place", "where", "text"),
            *counts("times", "count"),
            ("first_s", "first", "s"),
            ("last_s", "last", "s"),
            ("last_detail", "last detail", "text"),
        ],
    ),
    PageTable(
        "From producer to consumer, per event type",
        "proof_by_type",
        [
            *_TYPE,
            *counts("produced", "delivered", "missing", "duplicated", "unexpected"),
            *times("consumed time", "consumed_"),
        ],
    ),
    PageTable("Traffic per event type", "traffic_by_type", [*_TYPE, *_SUMS]),
    PageTable("Latency per event type", "latency_by_type", [*_TYPE, *_MEASURED]),
    PageTable(
        "Replicas",
        "replicas",
        [
            *_PLACE,
            ("instance", "process", "text"),
            ("seconds", "recorded", "s"),
            *counts("received", "confirmed"),
            *texts("share"),
            *counts("lag", "worst_lag"),
            ("worst_age_s", "oldest waiting", "s"),
            ("least_bridge_ms", "least bridge time", "ms"),
            *counts("ahead_of_clock"),
        ],
        "Share: of what all confirmed. Where the least bridge time differs, so do the clocks of replicas, or of those "
        "who produced for them; it is 0 where events were confirmed before their own timestamp.",
    ),
    PageTable(
        "Clocks",
        "clocks",
        [
            *texts("run"),
            ("instance", "process", "text"),
            *texts("reference"),
            *counts("changes"),
            ("offset_ms", "ahead by", "ms"),
            ("least_ms", "at least", "ms"),
            ("greatest_ms", "at most", "ms"),
        ],
        "How much later than the reference's a process's clock stood when both saw the same queue become too long: the "
        "median of the changes that both saw. Nearer than a control tick and a look at the depth (0.1 to 0.2 s) nobody "
        "can tell, nor for clocks more than 3 s apart.",
    ),
    PageTable(
        "Stuck event types",
        "stuck",
        [
            ("type", "event type", "text"),
            *texts("class", "run", "route"),
            ("instance", "process", "text"),
            ("from_s", "from", "s"),
            ("to_s", "to", "s"),
            ("seconds", "lasted", "s"),
            *counts("intervals", "lag", "waiting"),
            *texts("ended"),
        ],
        "Events waited, and in three intervals or more none was confirmed or dead-lettered.",
    ),
    PageTable(
        "What control cost",
        "decisions",
        [
            *texts("run", "route", "policy"),
            *counts("slowed", "needed", "empty", "unseen"),
            ("least_delay_ms", "least delay at a cut", "ms"),
            *counts("stretches", "after_growth"),
            ("backlog_s", "with backlog", "s"),
            ("used", "of it used", "text"),
            ("held_s", "held back", "s"),
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
            *texts("run", "route"),
            ("at_s", "at", "s"),
            ("consumers_before", "consumers|before", "count"),
            ("consumers_after", "consumers|after", "count"),
            ("drain_before", "drain rate|before", "number"),
            ("drain_after", "drain rate|after", "number"),
            ("confirmed_before", "confirmed a second|before", "number"),
            ("confirmed_after", "confirmed a second|after", "number"),
            ("busy_before", "queue not empty|before", "number"),
            ("busy_after", "queue not empty|after", "number"),
            *texts("gain"),
        ],
        "Half a minute before and after. Gain: what each brought (or took) beside each of those before: 1 as much, "
        "0 nothing. Not known where the queue was mostly empty: then nobody sees what consumers could do.",
    ),
    PageTable(
        "Fairness",
        "fairness",
        [
            *_PLACE,
            ("backlog_s", "with backlog", "s"),
            *counts("types"),
            ("jain", "Jain's index", "number"),
            ("least_jain", "least", "number"),
            *texts("served"),
            ("of_done", "of all done", "number"),
            ("of_demand", "of all there was", "number"),
        ],
        "While events of the class waited. Served: which share of what was there was done with. Jain's index over the "
        "class's event types is 1 where each had the same share served, and 1/n where one of n had all.",
    ),
    PageTable(
        "What waited",
        "waiting",
        [
            *_TYPE,
            *texts("route"),
            ("worst_left", "most left", "count"),
            ("left", "left at the end", "count"),
            ("worst_age_s", "oldest ever", "s"),
            ("age_s", "oldest at the end", "s"),
            ("age_growth", "older by s/s", "number"),
            ("day_in_s", "a day old in", "s"),
        ],
        "Events not done with, and the age of the oldest that was read. At the rate of the last minute the oldest will "
        "be a day old after so many seconds; records do not tell how long a log keeps them.",
    ),
    PageTable(
        "Troubles per event type",
        "troubles",
        [*_TYPE, *texts("route", "what"), *counts("events"), ("per_thousand", "per 1,000 confirmed", "number")],
        "What RabbitMQ returned is dead-lettered as unroutable; before its timestamp: a clock is ahead.",
    ),
    PageTable(
        "Latency spectra",
        "spectra",
        [
            *texts("run", "level", "name", "measure", "percentile"),
            ("ms", "at most", "ms"),
            *counts("samples"),
        ],
        "For each class, event type and route; 100 is the largest. A percentile is given where a sample lies above it.",
    ),
    *OF_LOGS,
)
