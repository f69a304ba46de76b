"""Records of a run, sorted by the partition that they tell of."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Record = Mapping[str, Any]
Key = tuple[str, str, str, str, int]
"""Run, group, topic, topic id, partition."""
PEOPLE = ("skip", "rewind", "discard", "redrive")


@dataclass
class Partition:
    """All that is told of one, as it is written."""

    ranges: list[Record] = field(default_factory=list)
    assigned: list[Record] = field(default_factory=list)
    of: dict[str, list[Record]] = field(default_factory=lambda: defaultdict(list))
    """The rest, by kind."""
    is_current: bool = True


def partitions(run: str, records: Sequence[Record]) -> dict[Key, Partition]:
    """Sort the records of a run by the partition that they tell of."""
    found: dict[Key, Partition] = defaultdict(Partition)

    def at(record: Record, topic_id: str, partition: int) -> Partition:
        return found[run, record.get("group") or "", record["topic"], topic_id, partition]

    for record in records:
        kind = record["kind"]
        if kind == "assigned":
            at(record, record["topic_id"], record["partition"]).assigned.append(record)
        elif kind == "committed":
            for one in record["ranges"]:
                told = {**one, "instance": record["instance"], "at_ms": record["at_ms"]}
                at(record, one["topic_id"], one["partition"]).ranges += [told] if one["first"] < one["end"] else []
        elif kind in PEOPLE or record.get("name") == "truncated":
            is_incident = kind == "incident"
            if record["first"] >= record["end"]:
                continue
            topic_id = _topic_id(record, records) if is_incident else record["topic_id"]
            at(record, topic_id, record["partition"]).of["truncated" if is_incident else kind].append(record)
    for key, told in found.items():
        if told.assigned:
            told.is_current = _current(found, key) == key[3]
    return found


def _current(found: Mapping[Key, Partition], key: Key) -> str:
    """Return the latest id of a topic: what a process was given last, of several the last by the clock."""
    same = [
        one
        for other, partition in found.items()
        if (*other[:3], other[4]) == (*key[:3], key[4])
        for one in partition.assigned
    ]
    names = {one["instance"] for one in same}
    last = [max((one for one in same if one["instance"] == name), key=_epoch) for name in names]
    return str(max(last, key=lambda one: (one["at_ms"], one["topic_id"]))["topic_id"])


def _epoch(record: Record) -> int:
    number: int = record["epoch"]
    return number


def _topic_id(incident: Record, records: Sequence[Record]) -> str:
    if incident.get("topic_id") is not None:
        return str(incident["topic_id"])
    same = ("instance", "topic", "partition")
    before = [
        one
        for one in records
        if (one["kind"] == "assigned" or (one.get("name") == "truncated" and one.get("topic_id") is not None))
        and all(one[name] == incident[name] for name in same)
        and (one.get("group") or "") == (incident.get("group") or "")
        and one["at_ms"] <= incident["at_ms"]
    ]
    return str(max(before, key=lambda one: one["at_ms"])["topic_id"]) if before else ""
