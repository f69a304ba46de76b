"""How far partitions are known to be committed, in Nakadi's own words: for a subscription that is made anew. Pure."""

from typing import Any


class Heard:
    """The last that was told, by event type: an older one that comes late makes events come again, and loses none."""

    def __init__(self) -> None:
        self._offsets: dict[str, dict[str, str]] = {}

    def committed(self, event_type: str, partition: str, offset: str) -> None:
        """Note a commit that was taken."""
        self._offsets.setdefault(event_type, {})[partition] = offset

    def cursors(self, event_type: str, told: Any) -> None:
        """Note an answer with cursors."""
        items = told.get("items") if isinstance(told, dict) else None
        for item in items if isinstance(items, list) else []:
            if isinstance(item, dict):
                partition, offset = item.get("partition"), item.get("offset")
                if isinstance(partition, str) and isinstance(offset, str):
                    self.committed(event_type, partition, offset)

    def offsets(self, event_type: str) -> dict[str, str]:
        """Return the offset of the last event that is done with, by partition."""
        return dict(self._offsets.get(event_type, {}))

    def forget(self, event_type: str) -> None:
        """Let go of an event type that is not read any more."""
        self._offsets.pop(event_type, None)
