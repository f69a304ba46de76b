"""What no single part can see: settings that contradict each other, and the cron expression."""

import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from datetime import UTC, datetime

from croniter import croniter

from proxy.config.items import Item, Mistakes, find, listing, quoted
from proxy.config.words import nearest
from proxy.congestion import laws
from proxy.errors import RateLawError
from proxy.settings import Detector, Limits, LogSettings, NoticeSettings, Part, Route, Statistics
from proxy.settings.parts import duration_text, size_text

_CRON_FIELDS = 6
_CRON_CHANCE = re.compile(r"(?:^|\s)[hr](?:[(/\s]|$)", re.IGNORECASE)
"""Croniter's own letters for a hashed or a random value, neither of which can be foretold."""
_SOME_DAY = datetime(2024, 1, 1, tzinfo=UTC)
_LEAP_YEARS_APART = 8
_CRON_FORM = "six fields, seconds first (second minute hour day month weekday), like */5 * * * * *"


def check(
    root: Item,
    parts: Mapping[str, Part],
    routes: Mapping[str, Route],
    classes: Collection[str],
    mistakes: Mistakes,
) -> None:
    """Note what contradicts between parts; where one lacks a setting that is wrong itself, that can't be judged."""
    for name, route in routes.items():
        with suppress(AttributeError):
            _check_priorities(root, name, route, classes, mistakes)
        with suppress(AttributeError):
            _check_law(root, name, route, mistakes)
    statistics, detector, limits = parts.get("statistics"), parts.get("detector"), parts.get("limits")
    assert isinstance(statistics, Statistics)
    assert isinstance(detector, Detector)
    assert isinstance(limits, Limits)
    log, notices = parts.get("log"), parts.get("notices")
    with suppress(AttributeError):
        if isinstance(log, LogSettings) and isinstance(notices, NoticeSettings) and log.nakadi and notices.topic:
            mistakes.add(_place(root, "notices", "topic"), "is a topic on Kafka, and this log is Nakadi; give webhook")
    with suppress(AttributeError):
        if statistics.cron is not None and not is_cron(statistics.cron):
            mistakes.add(
                _place(root, "statistics", "cron"), f"is no cron expression that ever comes true; allowed: {_CRON_FORM}"
            )
    with suppress(AttributeError):
        if detector.publish_latency_p50 >= limits.confirm_deadline:
            deadline = duration_text(limits.confirm_deadline)
            mistakes.add(
                _place(root, "detector", "publish_latency_p50"),
                f"could never be exceeded; allowed: less than limits.confirm_deadline, which is {deadline}",
            )
    for name, route in routes.items():
        with suppress(AttributeError):
            if route.in_flight_bytes < limits.event_bytes:
                mistakes.add(
                    _place(root, "routes", name, "in_flight_bytes"),
                    f"the largest event allowed could never be sent; allowed: at least limits.event_bytes, "
                    f"which is {size_text(limits.event_bytes)}",
                )


def _check_priorities(root: Item, name: str, route: Route, classes: Collection[str], mistakes: Mistakes) -> None:
    for unknown in sorted(route.priorities.keys() - classes) if classes else ():  # without any that was said already
        mistakes.add(
            _place(root, "routes", name, "message_priority", unknown),
            f"class {quoted(unknown)} does not exist{nearest(unknown, classes)} allowed: {listing(classes)}",
        )


def _check_law(root: Item, name: str, route: Route, mistakes: Mistakes) -> None:
    try:
        laws.find(route.law)
    except RateLawError as error:
        known = [law for law in laws.names() if law != route.law]
        near = "; repair the package;" if route.law in laws.names() else nearest(route.law, known)
        mistakes.add(
            _place(root, "routes", name, "law"), f"{quoted(route.law)} {error}{near} allowed: {listing(known)}"
        )


def check_topics(parts: Mapping[str, Part], topics: Mapping[str, Item], mistakes: Mistakes) -> None:
    """Note event types whose topic Tidegate writes itself."""
    log, notices = parts.get("log"), parts.get("notices")
    with suppress(AttributeError):
        if isinstance(log, LogSettings) and (place := topics.get(log.board_topic)) is not None:
            mistakes.add(place, f"its topic {quoted(log.board_topic)} holds what people ask of the group: no events")
    with suppress(AttributeError):
        if isinstance(notices, NoticeSettings) and notices.topic and (place := topics.get(notices.topic)) is not None:
            mistakes.add(place, f"its topic {quoted(notices.topic)} is notices.topic: no events")


def is_cron(text: str) -> bool:
    """Tell whether the text is a cron expression of six fields, seconds first, that comes true within eight years."""
    if len(text.split()) != _CRON_FIELDS or _CRON_CHANCE.search(text):
        return False
    try:
        croniter(text, _SOME_DAY, second_at_beginning=True, max_years_between_matches=_LEAP_YEARS_APART).get_next(float)
    except ValueError:
        return False
    return True


def _place(root: Item, *path: str) -> Item:
    return find(root, path)[0]
