"""What keeps events from being read, what the log may soon drop, why files are refused: for whoever looks."""

from collections import Counter

from proxy.bridge.catalog import Catalog
from proxy.bridge.standstill import Standstill
from proxy.config import InForce
from proxy.config.items import listing
from proxy.operations.questions import duration
from proxy.steering.retention_guard import RetentionGuard

_NAMED = 3


class Troubles:
    """Reads the parts; changes nothing. Each answer is some sentences without an end."""

    def __init__(
        self,
        catalog: Catalog,
        standstill: Standstill,
        retention: RetentionGuard,
        in_force: InForce,
    ) -> None:
        self._catalog = catalog
        self._standstill = standstill
        self._retention = retention
        self._in_force = in_force

    def refused(self) -> list[str]:
        """Return why what the files say is not in force; empty: it is."""
        why = self._in_force.refused
        return [*why[:_NAMED], *([f"{len(why) - _NAMED} more mistakes"] if len(why) > _NAMED else [])]

    def unread(self) -> list[str]:
        """Return why some event types, or partitions, are not read."""
        if not self._catalog.has_looked:
            return ["the log has not answered yet, so nothing is read"]
        told = []
        if unread := self._catalog.unread:
            verb = "is not read: its topic is" if len(unread) == 1 else "are not read: their topics are"
            told.append(
                f"{listing(unread, _NAMED)} {verb} missing, or not looked at yet, or this login may not read it"
            )
        if (outside := self._standstill.outside()) is not None:
            told.append(f"this replica gets no partitions: {outside}")
        reasons = Counter(one.why for one in self._standstill.standing().values())
        told += [
            f"{count} {'partition stands' if count == 1 else 'partitions stand'} still: {why}"
            for why, count in reasons.most_common(_NAMED)
        ]
        return told

    def nearly_lost(self) -> list[str]:
        """Return what the log may soon drop unsent, and when."""
        spans = self._retention.spans
        near = sorted((spans[name].left, name) for name in self._retention.near if name in spans)
        told = [f"{name}: the log may drop it in {duration(left)}, unsent" for left, name in near[:_NAMED]]
        return told + ([f"{len(near) - _NAMED} more event types likewise"] if len(near) > _NAMED else [])
