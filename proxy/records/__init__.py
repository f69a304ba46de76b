"""The records of the metric log, declared once: the recorder makes them, reports and docs/metric-log.md read them.

Each kind is a class; its fields, their types and their meaning stand there and nowhere else. From version 2 on they
only ever grow: a kind or a field may be added (`ADDED`), none is removed, renamed or given another type, and
`tests/records/version_2.json` holds them to it. Nothing here knows Spark, a client or the rest of the process.

`incidents` what went wrong · `control` verdicts · `traffic` intervals and processes · `ranges` of positions and
what became of them · `actions` what people did.
"""

from proxy.records.actions import Discard, Intervention, Redrive, Retention, Rewind, Scaling, Shadow, Skip
from proxy.records.control import Verdict
from proxy.records.declaration import (
    KINDS,
    READABLE,
    VERSION,
    Buckets,
    Envelope,
    Field,
    Part,
    Record,
    enveloped,
    fields_of,
)
from proxy.records.incidents import (
    Incident,
    IncidentName,
    assignment_lost,
    dead_letter_refused,
    truncated,
    type_stopped,
)
from proxy.records.ranges import Assigned, Committed, CommittedRange, LetterRange
from proxy.records.traffic import (
    BatchSizes,
    ClassInterval,
    Consumed,
    Drops,
    Layout,
    Produced,
    RouteInterval,
    RoutePlan,
    SettingsInForce,
    Slo,
    Start,
    Stop,
    TypeInterval,
)

__all__ = [
    "KINDS",
    "READABLE",
    "VERSION",
    "Assigned",
    "BatchSizes",
    "Buckets",
    "ClassInterval",
    "Committed",
    "CommittedRange",
    "Consumed",
    "Discard",
    "Drops",
    "Envelope",
    "Field",
    "Incident",
    "IncidentName",
    "Intervention",
    "Layout",
    "LetterRange",
    "Part",
    "Produced",
    "Record",
    "Redrive",
    "Retention",
    "Rewind",
    "RouteInterval",
    "RoutePlan",
    "Scaling",
    "SettingsInForce",
    "Shadow",
    "Skip",
    "Slo",
    "Start",
    "Stop",
    "TypeInterval",
    "Verdict",
    "assignment_lost",
    "dead_letter_refused",
    "enveloped",
    "fields_of",
    "truncated",
    "type_stopped",
]
