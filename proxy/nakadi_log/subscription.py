"""What is asked of one event type's subscription: that it be there, what is committed, a stream."""

from urllib.parse import urlencode

from proxy.errors import LogError
from proxy.nakadi_log.around import Around
from proxy.nakadi_log.offsets import cursors_in
from proxy.settings import NakadiSettings


async def subscribed(event_type: str, around: Around) -> str:
    """Return the id of the subscription, made if there is none. Raises `LogError`."""
    nakadi = around.nakadi
    is_whole = around.settings.start == "earliest" or event_type in around.new_topics
    asked = {
        "owning_application": nakadi.owning_application,
        "consumer_group": nakadi.consumer_group,
        "event_types": [event_type],
        "read_from": "begin" if is_whole else "end",
    }
    async with around.openings:
        _, told = await around.bus.ask("POST", "/subscriptions", asked, within=around.settings.answer_deadline)
    if not isinstance(told, dict) or not isinstance(told.get("id"), str):
        raise LogError("the answer names no subscription; is log.nakadi.url right?")
    return str(told["id"])


async def committed(subscription: str, around: Around) -> dict[int, int]:
    """Return before which place all is done with, by partition; what is not told is left out. Raises `LogError`."""
    path = f"/subscriptions/{subscription}/cursors"
    _, told = await around.bus.ask("GET", path, within=around.settings.answer_deadline)
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
