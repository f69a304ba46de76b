"""What `tidegate check` says of how long the log must keep topics, and of classes to be lifted in time."""

from collections.abc import Iterator

from proxy.settings import Settings
from proxy.settings.parts import duration_text


def keep(settings: Settings) -> str:
    """Say how long the log must keep topics, as far as that follows from the settings."""
    lifted = [one.lift_before_loss for one in settings.classes.values() if one.lift_before_loss is not None]
    least = duration_text(max([settings.retention.alarm, *lifted]))
    ages = [stream.max_age for stream in (*settings.event_types.values(), *settings.patterns)]
    known = [age for age in ages if age is not None]
    most = (
        f"; more than {duration_text(max(known))} (max_age) is of no use" if known and len(known) == len(ages) else ""
    )
    if settings.log.nakadi is not None:
        return f"event types for at least the longest stop to be borne + {least}{most}"
    return f"topics for at least the longest stop to be borne + {least}{most}; segments of a tenth of that at most"


def lifts(settings: Settings) -> Iterator[str]:
    """Yield a warning for each class whose `lift_before_loss` does nothing."""
    streams = (*settings.event_types.values(), *settings.patterns)
    for rank, (name, one) in enumerate(settings.classes.items()):
        routes = {stream.route for stream in streams if stream.priority == name}
        if one.lift_before_loss is None:
            continue
        if rank == 0:
            yield f"classes.{name}: `lift_before_loss` does nothing: there is no class above"
        elif routes and not any(map(settings.tells_classes_apart, routes)):
            yield f"classes.{name}: `lift_before_loss` does nothing on a route without `policy: class_budget` and cap"
