"""What differs between the logs that events may come from."""

from collections.abc import Iterator, Sequence

from proxy.config.items import listing
from proxy.errors import SettingsError
from proxy.settings import LogSettings, Settings

_NAMED = 5
_LEAST_OF_KAFKA = 6.0
_INSTEAD = {
    "pause": "take the event types out of the settings and reload: Nakadi keeps what comes, and where the group stood",
    "discard": "pass over events by tidegate skip, with replicas running; or give the event types a max_age",
    "cap": "give the route a cap in the settings and reload",
    "policy": "give the route another policy in the settings and reload",
    "resume": "nothing is held back by a command here",
    "interventions": "nothing is held back by a command here",
}
"""What people do where there is no board, by command."""


def log_lines(log: LogSettings) -> Iterator[str]:
    """Say where events come from, and what can't be done there."""
    nakadi = log.nakadi
    if nakadi is None:
        yield f"log      {listing(log.hosts, _NAMED)}, group {log.group}, from {log.start}"
        return
    who = f"application {nakadi.owning_application}, group {nakadi.consumer_group}"
    yield f"log      Nakadi at {nakadi.url}, {who}, from {log.start}"
    yield (
        f"nakadi   a subscription and a stream for each event type, batches of {nakadi.batch_events} at most; pause, "
        "resume, discard, cap, policy and interventions need a topic on Kafka: there are none; skip and rewind make "
        "what is being read stand still for some 15 s"
    )


def log_warnings(log: LogSettings, by_header: Sequence[str]) -> Iterator[str]:
    """Say what the log may refuse, or hasn't got; `by_header` are the event types routed by a header."""
    if log.nakadi is None and log.session_timeout < _LEAST_OF_KAFKA:
        yield "log.session_timeout: Kafka refuses less than 6s unless its brokers are set otherwise"
    if log.nakadi is not None and by_header:
        which = listing(by_header, _NAMED)
        yield f"event_types: events of Nakadi have no headers, so no routing_key of {which} is ever found"


def demand_board(settings: Settings, command: str) -> None:
    """Raise `SettingsError` if a command has no place to leave its wish for the replicas."""
    if settings.log.nakadi is not None:
        why = f"{command} needs a topic on Kafka, where replicas learn what people want, and this log is Nakadi"
        raise SettingsError([f"{why}; {_INSTEAD[command]}"])
