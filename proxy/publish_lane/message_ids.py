"""What a message is called: the place of its record in the log and, where nothing else tells it, the record's instant.

    origin    message id
    ------    ----------
    id        TOPIC-PARTITION-POSITION-MILLISECONDS, the last in base 36 (0-9a-z), empty if the record has no timestamp
    full      TOPIC-PARTITION-POSITION; the BLAKE2 digest of it if it is longer than 255 bytes

Read it from the right: a topic may hold hyphens. Pure.
"""

from hashlib import blake2b

from proxy.bridge.broker import Address
from proxy.model import Event, Origin, Partition
from proxy.publish_lane.headers import SHORT_STRING

_LONGEST_POSITION = 19
_LONGEST_STAMP = 13
"""Digits of 2**63 - 1, in base 10 and in base 36."""
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
PAIRS = [high + low for high in _DIGITS for low in _DIGITS]
"""Two digits of base 36, for 0 to 1,295."""
STAMPED_FROM = len(PAIRS)
"""Timestamps from here on have their last two digits in `PAIRS` behind the digits of the rest."""


def stamp(milliseconds: int) -> str:
    """Return a timestamp of 0 or more in base 36."""
    pairs = ""
    while milliseconds >= len(_DIGITS):
        milliseconds, low = divmod(milliseconds, len(PAIRS))
        pairs = PAIRS[low] + pairs
    return (_DIGITS[milliseconds] + pairs) if milliseconds or not pairs else pairs


def has_room(partition: Partition) -> bool:
    """Return whether each position of the partition fits into an id with its milliseconds."""
    name = f"{partition}-".encode(errors="replace")
    return len(name) + _LONGEST_POSITION + 1 + _LONGEST_STAMP <= SHORT_STRING


def tells_all(address: Address, partition: Partition, event: Event) -> bool:
    """Return whether the event's message id says where it comes from, so that no header has to."""
    return (
        address.origin is Origin.ID
        and has_room(partition)
        and (event.timestamp_ms is None or event.timestamp_ms >= 0)
        and (isinstance(event.position, int) or len(_with_stamp(partition, event)) <= SHORT_STRING)
    )


def message_id(address: Address, partition: Partition, event: Event) -> bytes:
    """Return the message id, the same at every attempt; a message that the broker returns is known by it."""
    if tells_all(address, partition, event):
        return _with_stamp(partition, event)
    full = f"{partition}-{event.position}".encode(errors="replace")
    return full if len(full) <= SHORT_STRING else blake2b(full, digest_size=16).hexdigest().encode()


def _with_stamp(partition: Partition, event: Event) -> bytes:
    instant = "" if event.timestamp_ms is None else stamp(event.timestamp_ms)
    return f"{partition}-{event.position}-{instant}".encode(errors="replace")
