"""What a broker reads of the frames it gets, by a decoder that is not ours, and what the mapping promises it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pamqp import commands, frame

from proxy.model import Event
from proxy.publish_lane.frames import Long


@dataclass
class Message:
    """What a broker reads."""

    publish: Any
    properties: Any
    headers: dict[str, Any]
    body: bytes
    frames: list[bytes]


def frames_of(data: bytes) -> Iterator[tuple[bytes, int, Any]]:
    while data:
        size, channel, value = frame.unmarshal(data)
        yield data[:size], channel, value
        data = data[size:]


def written(message: bytes | Long) -> bytes:
    """Return all frames of a message, as they are written one after the other."""
    if isinstance(message, bytes):
        return message
    parts = [message.begin]
    while message.rest:
        parts.append(message.next())
    return b"".join(parts)


def read(message: bytes | Long, channel: int = 7) -> Message:
    parts = list(frames_of(written(message)))
    assert {number for _, number, _ in parts} == {channel}
    publish, header = parts[0][2], parts[1][2]
    assert isinstance(publish, commands.Basic.Publish)
    body = b"".join(part.value for _, _, part in parts[2:])
    assert header.body_size == len(body)
    assert (publish.mandatory, header.properties.delivery_mode) == (True, 2)
    return Message(publish, header.properties, header.properties.headers or {}, body, [raw for raw, _, _ in parts])


def origin_of(message: Message) -> tuple[str, int, str, int | None]:
    """Return topic, partition, position and timestamp as a message tells them, by whichever `origin`."""
    own = message.headers
    if "tidegate-topic" in own:
        place = own["tidegate-topic"], own["tidegate-partition"], own["tidegate-position"]
        return *place, own.get("tidegate-timestamp")
    topic, number, position, stamp = message.properties.message_id.rsplit("-", 3)
    return topic, int(number), position, int(stamp, 36) if stamp else None


def without_origin(headers: dict[str, Any]) -> dict[str, Any]:
    """Return headers but those that say where the record comes from."""
    origin = {f"tidegate-{name}" for name in ("topic", "partition", "position", "timestamp")}
    return {name: value for name, value in headers.items() if name not in origin}


def as_field(value: bytes | None) -> Any:
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return bytearray(value)


def expected_headers(record: Event) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for name, value in record.headers:
        if name.lower() == "content-type":
            continue
        special = name in {"CC", "BCC"} or name.startswith(("x-", "tidegate-"))
        found.setdefault(f"log.{name}" if special else name, []).append(as_field(value))
    return found
