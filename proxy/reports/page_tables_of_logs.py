"""The tables of report.html that tell of people, and of the logs: processes, settings, what is no record."""

from proxy.reports.page_columns import PageTable, counts, texts

OF_LOGS = (
    PageTable(
        "What people did",
        "actions",
        [
            *texts("run"),
            ("from_s", "from", "s"),
            ("to_s", "to", "s"),
            *texts("action", "subject", "details", "by", "why"),
            ("until_s", "was to end", "s"),
            ("ended_by", "ended by", "text"),
            ("ended_why", "since", "text"),
            ("instances", "processes", "count"),
            *counts("ranges", "positions", "events"),
        ],
        "Pauses, caps, policies and discards, from the first replica that obeyed to the last; and what was skipped, "
        "sent again or discarded, by who asked for it and why. What became of the events: the ledger.",
    ),
    PageTable(
        "Processes",
        "processes",
        [
            *texts("run"),
            ("instance", "process", "text"),
            *texts("version"),
            ("started_s", "started", "s"),
            ("stopped_s", "stopped", "s"),
            *counts("unresolved", "dropped_records", "dropped_files"),
        ],
        "One that left no stop record was killed, or still runs.",
    ),
    PageTable(
        "Settings that came into force",
        "settings",
        [
            *texts("run"),
            ("at_s", "at", "s"),
            ("instance", "process", "text"),
            ("what", "setting", "text"),
            *texts("before", "after"),
        ],
        "By a reload, or by a policy that a person set for a time. Nothing: the default, or no such route.",
    ),
    PageTable(
        "Cross-checks",
        "cross_checks",
        [*texts("run", "check"), ("subject", "of", "text"), *counts("left", "right", "difference")],
        "Two kinds of records tell of the same events. A difference is shown, not explained away.",
    ),
    PageTable(
        "Lines that are no records",
        "rejected_lines",
        [*texts("run", "file", "reason"), *counts("lines"), ("sample", "one begins", "text")],
    ),
)
