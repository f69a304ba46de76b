"""Which event type a topic belongs to."""

from proxy.settings import EventType, Settings


def event_type_for(settings: Settings, topic: str) -> EventType | None:
    """Return the event type that a topic of the log belongs to, if any.

    A type that names the topic wins over every pattern, the first pattern that matches over later ones; a pattern's
    event type is called like the topic. What Tidegate writes itself belongs to none.
    """
    if topic in settings.own_topics:
        return None
    if topic in settings.by_topic:
        return settings.by_topic[topic]
    return next((pattern.event_type(topic) for pattern in settings.patterns if pattern.matches(topic)), None)
