"""What is asked of one event type's subscription: that it be there, what is committed, a stream."""

from urllib.parse import urlencode

import structlog

from proxy.errors import LogError
from proxy.nakadi_log.around import Around
from proxy.nakadi_log.bus import CREATED, UNPROCESSABLE, RefusedError, quoted
from proxy.nakadi_log.offsets import BEGIN, cursors_in
from proxy.settings import NakadiSettings

_say = structlog.get_logger("tidegate.nakadi")


async def subscribed(event_type: str, around: Around) -> str:
    """Return the id of the subscription, made if there is none. Raises `LogError`."""
    is_whole = around.settings.start == "earliest" or event_type in around.new_topics
    return (await _subscribe(event_type, around, {"read_from": "begin" if is_whole else "end"}))[0]


async def subscribed_anew(event_type: str, created_at: str | None, around: Around) -> str:
    """Return the id of a subscription in place of one that is gone, made if no other replica was quicker.

    It begins where the last one is known to have been, an unknown partition at its beginning: whatever `start` says,
    nothing is passed over. So does everything if the event type is not the one that was created at that time, or
    Nakadi takes no such cursors. Raises `LogError`.
    """
    cursors = await _cursors(event_type, created_at, around)
    if cursors:
        try:
            made = await _subscribe(event_type, around, {"read_from": "cursors", "initial_cursors": cursors})
        except RefusedError as error:
            if error.status != UNPROCESSABLE:
                raise
        else:
            return _told(event_type, *made, effect="made anew where it is known to have been")
    around.heard.forget(event_type)  # of another event type, perhaps, of the same name
    made = await _subscribe(event_type, around, {"read_from": "begin"})
    return _told(event_type, *made, effect="made anew from the beginning: all that is kept comes again")


async def _cursors(event_type: str, created_at: str | None, around: Around) -> list[dict[str, str]]:
    """Return where each partition is known to have been; none if nothing is known of this event type."""
    known, within = around.heard.offsets(event_type), around.settings.answer_deadline
    path = f"/event-types/{quoted(event_type)}"
    async with around.openings:
        _, told = await around.bus.ask("GET", path, within=within)
        if not known or created_at is None or not isinstance(told, dict) or told.get("created_at") != created_at:
            return []
        _, partitions = await around.bus.ask("GET", f"{path}/partitions", within=within)
    names = [one.get("partition") for one in partitions or [] if isinstance(one, dict)]
    return [
        {"event_type": event_type, "partition": name, "offset": known.get(name, BEGIN)}
        for name in names
        if isinstance(name, str)
    ]


def _told(event_type: str, name: str, is_made: bool, *, effect: str) -> str:
    if is_made:
        _say.error("subscription_gone", event_type=event_type, effect=effect)
    return name


async def _subscribe(event_type: str, around: Around, start: dict[str, object]) -> tuple[str, bool]:
    """Return the id, and whether it was made now."""
    nakadi = around.nakadi
    asked = {
        "owning_application": nakadi.owning_application,
        "consumer_group": nakadi.consumer_group,
        "event_types": [event_type],
        **start,
    }
    async with around.openings:
        status, told = await around.bus.ask("POST", "/subscriptions", asked, within=around.settings.answer_deadline)
    if not isinstance(told, dict) or not isinstance(told.get("id"), str):
        raise LogError("the answer names no subscription; is log.nakadi.url right?")
    return str(told["id"]), status == CREATED


async def committed(subscription: str, event_type: str, around: Around) -> dict[int, int]:
    """Return before which place all is done with, by partition; what is not told is left out. Raises `LogError`."""
    path = f"/subscriptions/{subscription}/cursors"
    _, told = await around.bus.ask("GET", path, within=around.settings.answer_deadline)
    around.heard.cursors(event_type, told)
    return cursors_in(told)


def stream_path(subscription: str, nakadi: NakadiSettings, batch_events: int, window: int, limit: int | None) -> str:
    """Return what a stream is asked for by; after `limit` events it ends."""
    asked = {
        "batch_limit": batch_events,
        "batch_flush_timeout": int(nakadi.batch_wait),
        "max_uncommitted_events": window,
        "commit_timeout": int(nakadi.commit_timeout),
    }
    if limit is not None:
        asked["stream_limit"] = limit
    return f"/subscriptions/{subscription}/events?{urlencode(asked)}"
