"""The settings that a process goes by now: frozen ones, replaced as a whole by a reload.

What a person asks for while it runs stands above what the files say: the policies of some routes.
"""

from collections.abc import Mapping, Sequence

from proxy.config.kinds import event_type_for
from proxy.settings import EventType, Policy, Settings

_TOPICS_KNOWN = 100_000
"""Of so many topics it is remembered whose they are; of more all is found anew."""


class InForce:
    """Asked by whoever needs the event types later than at the start."""

    def __init__(self, settings: Settings) -> None:
        self.said = self._settings = settings
        """What the files say."""
        self._policies: Mapping[str, Policy] = {}
        """By route."""
        self.refused: Sequence[str] = ()
        """Why what the files say now is not in force; empty: it is."""
        self._known: dict[str, EventType | None] = {}

    @property
    def settings(self) -> Settings:
        """What is in force now."""
        return self._settings

    def put(self, settings: Settings) -> Settings:
        """Put other settings into force: what the files say. Return what was in force."""
        self.said = settings
        return self._look()

    def steer(self, policies: Mapping[str, Policy]) -> Settings:
        """Put other policies of routes into force, whatever the files say; routes that do not exist have none.

        Return what was in force.
        """
        self._policies = policies
        return self._look()

    def _look(self) -> Settings:
        before = self._settings
        routes, said = self.said.routes, self._policies
        others = {name: one.steered_by(said[name]) for name, one in routes.items() if name in said}
        parts = {key: getattr(self.said, key) for key in Settings.model_fields}
        self._settings = Settings.model_construct(**parts | {"routes": routes | others}) if others else self.said
        self._known.clear()
        return before

    def event_type(self, topic: str) -> EventType | None:
        """Return the event type that a topic belongs to now, if any; asked for every partition of a group."""
        if topic not in self._known:
            if len(self._known) >= _TOPICS_KNOWN:
                self._known.clear()
            self._known[topic] = event_type_for(self._settings, topic)
        return self._known[topic]
