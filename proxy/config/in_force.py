"""The settings that a process goes by now: frozen ones, replaced as a whole by a reload."""

from proxy.config.kinds import event_type_for
from proxy.settings import EventType, Settings

_TOPICS_KNOWN = 100_000
"""Of so many topics it is remembered whose they are; of more all is found anew."""


class InForce:
    """Asked by whoever needs the event types later than at the start."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._known: dict[str, EventType | None] = {}

    @property
    def settings(self) -> Settings:
        """What is in force now."""
        return self._settings

    def put(self, settings: Settings) -> None:
        """Put other settings into force."""
        self._settings = settings
        self._known.clear()

    def event_type(self, topic: str) -> EventType | None:
        """Return the event type that a topic belongs to now, if any; asked for every partition of a group."""
        if topic not in self._known:
            if len(self._known) >= _TOPICS_KNOWN:
                self._known.clear()
            self._known[topic] = event_type_for(self._settings, topic)
        return self._known[topic]
