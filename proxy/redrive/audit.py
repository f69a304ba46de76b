"""What is recorded of a redrive, before the letters are taken off their queue: `redrive`, for the ledger.

A range holds nothing but positions that the broker has confirmed, each of them: so whatever else lay between two
letters, the ledger takes no other for delivered. A record may come twice, after a kill between record and
acknowledgement; a letter whose record could not be written stays in its queue.
"""

import json
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

from proxy.errors import SettingsError
from proxy.recording.folder import MetricFolder
from proxy.records import Redrive, enveloped
from proxy.redrive.choice import Going
from proxy.settings import MetricLogSettings

_TRIED_BYTES = 64 * 1024


class Asked(NamedTuple):
    """Who wants it, and why."""

    by: str
    why: str | None
    group: str


class Audit(Protocol):
    """Keeps what was confirmed."""

    async def write(self, confirmed: Iterable[Going]) -> None:
        """Return when it is on disk. Raises `OSError`."""
        ...


def records(confirmed: Iterable[Going], asked: Asked) -> Iterator[Redrive]:
    """Yield a record for each run of neighbouring positions of one type, topic, reason and attempt."""
    keyed = sorted(
        {
            (
                (
                    going.event_type.name,
                    going.letter.partition,
                    going.letter.topic_id,
                    going.letter.reason,
                    going.attempt,
                ),
                _place(going),
            )
            for going in confirmed
        }
    )
    start = 0
    for index, (key, place) in enumerate(keyed):
        if index + 1 < len(keyed) and keyed[index + 1] == (key, place + 1):
            continue
        first = keyed[start][1]
        name, partition, topic_id, reason, attempt = key
        yield Redrive(
            by=asked.by,
            why=asked.why,
            type=name,
            topic=partition.topic,
            topic_id=topic_id,
            partition=partition.number,
            first=first,
            end=place + 1,
            group=asked.group,
            reason=reason,
            count=place + 1 - first,
            attempt=attempt,
        )
        start = index + 1


def _place(going: Going) -> int:
    position = going.letter.event.position
    assert isinstance(position, int)
    return position


class FolderAudit:
    """Writes into a metric log's folder, beside whoever writes there; `offload` does what may block."""

    def __init__(
        self,
        settings: MetricLogSettings,
        asked: Asked,
        *,
        wall: Callable[[], float],
        instance: str,
        now: Callable[[], float],
    ) -> None:
        self._asked = asked
        self._wall = wall
        self._now = now
        self._instance = instance
        self._folder = (
            None if settings.folder is None else MetricFolder(Path(settings.folder), settings, wall, instance)
        )
        self.written = 0
        """Records."""

    @property
    def keeps(self) -> bool:
        """Whether there is a folder to write to."""
        return self._folder is not None

    def try_out(self) -> None:
        """Write something that is gone at once, before anything is sent. Raises `SettingsError`."""
        if self._folder is None:
            return
        try:
            self._folder.path.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self._folder.path) as file:
                file.write(bytes(_TRIED_BYTES))
        except OSError as error:
            raise SettingsError(
                [f"metric_log.folder: no record can be kept there, so nothing was sent: {error}"]
            ) from error

    async def write(self, confirmed: Iterable[Going]) -> None:
        """See `Audit.write`; a few lines a tenth of a second, so the disk is waited for where it is."""
        if self._folder is None:
            return
        at_ms = int(self._wall() * 1000)
        lines = deque(
            json.dumps(enveloped(one, at_ms=at_ms, instance=self._instance), separators=(",", ":")).encode() + b"\n"
            for one in records(confirmed, self._asked)
        )
        count = len(lines)
        while lines:
            self._folder.append(lines, self._now())
        self.written += count

    def close(self) -> None:
        """Finish the file. Raises `OSError`."""
        if self._folder is not None:
            self._folder.rotate()
            self._folder.finish_leftovers(self._now())
