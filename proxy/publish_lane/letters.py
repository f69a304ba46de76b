"""From a dead letter back to the event that it was: the inverse of `envelope` at a lenient address. Pure.

What is read is what RabbitMQ's client decodes: S as text, x as bytes, V as None, A as a list, integers as int.

A copy that was sent again and then died in a queue (rejected, expired there) comes back by the queue's own dead-letter
exchange, without the headers of a letter. It is known by its `tidegate-redriven`; its message id, or the headers of
`origin: full`, say where it comes from.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from proxy.bridge.letter_queue import OF_QUEUE, Illegible, ReadLetter
from proxy.model import Event, Partition
from proxy.publish_lane.headers import carried_name

_FOREIGN_PREFIX = "log."
_BASE_36 = 36
_ID_PARTS = 4


class IllegibleError(Exception):
    """The message is no letter that can be sent again."""

    def __init__(self, kind: Illegible, why: str) -> None:
        super().__init__(why)
        self.kind = kind


def read_letter(
    headers: Mapping[str, Any], *, message_id: str | None, content_type: str | None, body: bytes
) -> ReadLetter:
    """Return what a letter says. Raises `IllegibleError`."""
    name, redriven = headers.get("tidegate-type"), headers.get("tidegate-redriven", 0)
    if name is None and not redriven:
        raise IllegibleError(Illegible.FOREIGN, "it has no header tidegate-type")
    for lost in ("tidegate-omitted", "tidegate-original-size"):
        if lost in headers:
            raise IllegibleError(Illegible.INCOMPLETE, f"{lost} says that it does not hold the whole event")
    if not isinstance(redriven, int) or redriven < 0 or not isinstance(name, str | None):
        raise IllegibleError(Illegible.UNREADABLE, "tidegate-type or tidegate-redriven is not as it should be")
    partition, position, timestamp = _origin(headers, message_id)
    key = headers.get("tidegate-key")
    if not isinstance(key, bytes | bytearray | None):
        raise IllegibleError(Illegible.UNREADABLE, "tidegate-key is no bytes")
    kept = None if key is None else bytes(key)
    value = None if headers.get("tidegate-tombstone") is True and not body else body
    own = tuple(_own(headers))
    size = len(kept or b"") + len(body) + sum(len(each.encode()) + len(data or b"") for each, data in own)
    event = Event(position, timestamp, kept, value, own, size)
    topic_id = headers.get("tidegate-topic-id", "")
    return ReadLetter(name, _reason(headers), partition, str(topic_id or ""), event, content_type, redriven)


def _origin(headers: Mapping[str, Any], message_id: str | None) -> tuple[Partition, int, int | None]:
    """Return partition, position and timestamp: what headers say, else the message id."""
    topic, number = headers.get("tidegate-topic"), headers.get("tidegate-partition")
    position, timestamp = headers.get("tidegate-position"), headers.get("tidegate-timestamp")
    if topic is None:
        return _by_id(message_id or "")
    if not isinstance(topic, str) or not _is_count(number) or not isinstance(position, str) or not _is_place(position):
        raise IllegibleError(Illegible.UNREADABLE, "its headers name no place in the log")
    if not isinstance(timestamp, int | None) or isinstance(timestamp, bool):
        raise IllegibleError(Illegible.UNREADABLE, "tidegate-timestamp is no number")
    return Partition(topic, number), int(position), timestamp


def _by_id(message_id: str) -> tuple[Partition, int, int | None]:
    parts = message_id.rsplit("-", _ID_PARTS - 1)
    if len(parts) == _ID_PARTS and parts[0] and _is_place(parts[1]) and _is_place(parts[2]):
        stamp = parts[3]
        if not stamp or (stamp.isascii() and stamp.isalnum()):
            return Partition(parts[0], int(parts[1])), int(parts[2]), int(stamp, _BASE_36) if stamp else None
    raise IllegibleError(Illegible.UNREADABLE, "its message id names no place in the log")


def _is_count(number: Any) -> TypeGuard[int]:
    return isinstance(number, int) and not isinstance(number, bool) and number >= 0


def _is_place(digits: str) -> bool:
    return digits.isascii() and digits.isdigit()


def _reason(headers: Mapping[str, Any]) -> str:
    """Return why it is here: Tidegate's reason, or after `queue_` what the queue says it died of."""
    reason = headers.get("tidegate-reason")
    if isinstance(reason, str):
        return reason
    deaths = headers.get("x-death")
    last = deaths[0] if isinstance(deaths, list) and deaths and isinstance(deaths[0], Mapping) else {}
    return f"{OF_QUEUE}{last.get('reason', 'unknown')}"


def _own(headers: Mapping[str, Any]) -> Sequence[tuple[str, bytes | None]]:
    """Return the record's own headers, under the names that they had; a name with several values comes several times.

    What the broker adds (`x-death`, `x-delivery-count`) is none of them: a record's `x-...` came as `log.x-...`.
    """
    found: list[tuple[str, bytes | None]] = []
    for name, value in headers.items():
        if name in {"CC", "BCC"} or name.startswith(("x-", "tidegate-")):
            continue
        bare = name.removeprefix(_FOREIGN_PREFIX)
        original = bare if bare != name and carried_name(bare) == name else name
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, str):
                found.append((original, one.encode()))
            elif isinstance(one, bytes | bytearray | None):
                found.append((original, None if one is None else bytes(one)))
            else:
                raise IllegibleError(
                    Illegible.UNREADABLE, f"header {name[:80]!a} has a value that no record can have: {one!a:.80}"
                )
    return found
