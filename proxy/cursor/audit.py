"""What is recorded of the moves that a command makes itself, the group having no member: `skip` and `rewind`."""

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from proxy.bridge.move import Direction, Moved
from proxy.model import Partition
from proxy.recording.folder import MetricFolder
from proxy.records import Rewind, Skip, enveloped
from proxy.settings import MetricLogSettings


def records(moved: Iterable[Moved], types: Mapping[Partition, str], group: str) -> Iterator[Skip | Rewind]:
    """Yield a record for each move that changed something."""
    for one in moved:
        if one.done == one.to:
            continue
        first, end = sorted((one.done, one.to))
        move = one.move
        yield (Skip if move.direction is Direction.SKIP else Rewind)(
            by=move.by,
            why=move.why,
            type=types.get(one.partition, one.partition.topic),
            topic=one.partition.topic,
            topic_id=move.topic_id,
            partition=one.partition.number,
            first=first,
            end=end,
            group=group,
            count=None,
        )


def write(
    lines_of: Iterable[Skip | Rewind],
    settings: MetricLogSettings,
    *,
    wall: Callable[[], float],
    now: Callable[[], float],
    instance: str,
) -> bool:
    """Write into a metric log's folder, beside whoever writes there; return whether there is one. Raises `OSError`."""
    if settings.folder is None:
        return False
    at_ms = int(wall() * 1000)
    lines = deque(
        json.dumps(enveloped(one, at_ms=at_ms, instance=instance), separators=(",", ":")).encode() + b"\n"
        for one in lines_of
    )
    folder = MetricFolder(Path(settings.folder), settings, wall, instance)
    while lines:
        folder.append(lines, now())
    folder.rotate()
    folder.finish_leftovers(now())
    return True
