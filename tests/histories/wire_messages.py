"""Judges every message that reaches a scripted broker against the record that it was made from, value by value.

The rules are those that the docstring of `proxy/publish_lane/envelope.py` promises; the decoder is pamqp's.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from proxy.model import Origin
from proxy.settings import EventType, Settings
from tests.histories.facts import Fact
from tests.histories.plan import DEAD_QUEUE
from tests.wire.rabbit.frames import Message

REASON = "tidegate-reason"
OCTETS = "application/octet-stream"
"""The default of `content_type`."""
_OWN = ("CC", "BCC")


def is_letter(message: Message) -> bool:
    """Tell whether it is a dead letter."""
    return REASON in message.headers


def wrong(message: Message, fact: Fact, settings: Settings) -> Iterator[str]:
    """Yield what of a message is not as the record says."""
    kind = settings.by_topic[fact.partition.topic]
    event, found, properties = fact.event, message.headers, message.properties
    assert event.timestamp_ms is not None
    route = settings.routes[kind.route]
    is_lean = route.origin is Origin.ID and not is_letter(message)
    expected: dict[str, Any] = {
        "tidegate-topic": fact.partition.topic,
        "tidegate-partition": fact.partition.number,
        "tidegate-position": str(fact.offset),
        "tidegate-timestamp": event.timestamp_ms,
    }
    if is_letter(message):
        yield from _differences({name: found.get(name) for name in expected}, expected)
        yield from _wrong_letter(message, fact, kind)
    else:
        if is_lean:
            expected = {}
        if event.key is not None and route.key == "header":
            expected["tidegate-key"] = event.key
        yield from _differences(found, expected | _carried(fact))
        if message.body != (event.value or b""):
            yield f"its body has {len(message.body)} bytes and is not the record's"
        if message.exchange != route.exchange:
            yield f"it goes to exchange {message.exchange!r}"
        if message.key != _routing_key(kind, fact):
            yield f"its routing key is {message.key!r}"
        mime = _content_type(kind, fact)
        meant_mime = None if is_lean and mime == OCTETS else mime
        yield from _differences({"content type": properties.content_type}, {"content type": meant_mime})
    told = {
        "message id": properties.message_id,
        "delivery mode": properties.delivery_mode,
        "timestamp": properties.timestamp,
        "mandatory": message.mandatory,
    }
    place, instant = f"{fact.partition}-{fact.offset}", _in_base_36(event.timestamp_ms)
    meant = {
        "message id": f"{place}-{instant}" if is_lean else place,
        "delivery mode": 2,
        "timestamp": None if is_lean else datetime.fromtimestamp(event.timestamp_ms // 1000, UTC),
        "mandatory": True,
    }
    yield from _differences(told, meant)


def _in_base_36(number: int) -> str:
    digits = ""
    while number or not digits:
        number, digit = divmod(number, 36)
        digits = f"{digit}" + digits if digit < 10 else chr(ord("a") + digit - 10) + digits
    return digits


def _wrong_letter(message: Message, fact: Fact, kind: EventType) -> Iterator[str]:
    value, found = fact.event.value or b"", message.headers
    assert kind.dead_letter is not None
    if message.exchange != kind.dead_letter.exchange or message.key != DEAD_QUEUE:
        yield f"the letter goes to {message.exchange!r}, {message.key!r}"
    if message.body != value[: len(message.body)]:
        yield "the letter's body is not the record's"
    elif len(message.body) < len(value) and found.get("tidegate-original-size") != len(value):
        yield f"the letter's body is cut, and it says {found.get('tidegate-original-size')}"
    elif len(message.body) == len(value) and "tidegate-original-size" in found:
        yield "the letter says that its body is cut, and it is not"
    carried = _carried(fact)
    missing = [name for name in carried if name not in found]
    if missing and "tidegate-omitted" not in found:
        yield f"the letter lacks {missing} and does not say so"
    for name, value in carried.items():
        # Of a name that came more often, some may be missing.
        if name in found and found[name] != value and "tidegate-omitted" not in found:
            yield f"the letter's header {name} is {found[name]!r}, not {value!r}"


def _carried(fact: Fact) -> dict[str, Any]:
    """Return the record's headers as they must travel."""
    values: dict[str, list[Any]] = {}
    for name, data in fact.event.headers:
        if name.lower() == "content-type":
            continue
        has_meaning = name in _OWN or name.startswith(("x-", "tidegate-"))
        values.setdefault(f"log.{name}" if has_meaning else name, []).append(_value(data))
    return {name: several if len(several) > 1 else several[0] for name, several in values.items()}


def _value(data: bytes | None) -> Any:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _routing_key(kind: EventType, fact: Fact) -> str:
    if kind.routing_key.constant is not None:
        return kind.routing_key.constant
    found = [data for name, data in fact.event.headers if name == kind.routing_key.header]
    return (found[-1] or b"").decode() if found else ""


def _content_type(kind: EventType, fact: Fact) -> str:
    own = [data for name, data in fact.event.headers if name.lower() == "content-type" and data is not None]
    return own[-1].decode() if own else kind.content_type


def _differences(found: dict[str, Any], expected: dict[str, Any]) -> Iterator[str]:
    for name in dict.fromkeys((*expected, *found)):
        if found.get(name) != expected.get(name) or (name in found) != (name in expected):
            yield f"its {name} is {found.get(name)!r}, not {expected.get(name)!r}"
