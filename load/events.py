"""What the generators put into the log: realistic events of a shop, and bulk events that carry their own proof.

Both are repeatable: the same seed and number give the same bytes.
"""

import json
import random
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple


class Payload(NamedTuple):
    """One event before it has a place in the log."""

    key: bytes
    value: bytes


@dataclass(frozen=True)
class Kind:
    """One kind of event that a shop sends."""

    name: str
    """Of the event type."""
    priority: str
    """Name of its class."""
    topic: str
    partitions: int
    make: Callable[[int, int, random.Random], Payload]
    """Called with the event's number, its due instant (ms since 1970) and the chance to draw from."""


_NAMES = ("Amal", "Bo", "Chidi", "Daria", "Emre", "Fatou", "Goran", "Hanna", "Inés", "Jun", "Kofi", "Lena")
_STREETS = ("Quay Street", "Mill Lane", "Harbour Road", "Lock Terrace", "Sluice Close", "Weir Avenue")
_GOODS = ("rain jacket", "running shoe", "linen shirt", "wool scarf", "canvas bag", "denim skirt", "leather belt")
_BRANDS = ("Northquay", "Saltmarsh", "Ebb & Flow", "Dyke", "Estuary")
_SEGMENTS = ("returning", "lapsed", "new", "newsletter")
_TEASER = (
    "Until Sunday midnight: everything for the rainy season at a third less, with free returns for a hundred days. "
    "Your size is still there, but not for long. "
)


def order_confirmation(number: int, due_ms: int, chance: random.Random) -> Payload:
    """Return a confirmation of about 1 KB; keyed by customer."""
    customer = f"c{chance.randrange(500_000):06d}"
    items: list[dict[str, Any]] = [
        {
            "sku": f"{chance.randrange(16**8):08x}",
            "name": f"{chance.choice(_BRANDS)} {chance.choice(_GOODS)}",
            "size": chance.choice(("S", "M", "L", "XL")),
            "quantity": 1 + chance.randrange(2),
            "price": {"amount": chance.randrange(999, 19_999), "currency": "EUR"},
        }
        for _ in range(5 + chance.randrange(3))
    ]
    body = {
        "event": "order.confirmed",
        "order": f"o{number:010d}",
        "event_ms": due_ms,
        "customer": {"id": customer, "name": chance.choice(_NAMES), "locale": "en-IE"},
        "ship_to": {
            "street": f"{1 + chance.randrange(200)} {chance.choice(_STREETS)}",
            "postcode": f"D{chance.randrange(100_000):05d}",
            "city": "Dublin",
            "country": "IE",
        },
        "items": items,
        "payment": {"method": chance.choice(("card", "invoice", "wallet")), "authorised": True},
        "total": sum(item["quantity"] * item["price"]["amount"] for item in items),
    }
    return Payload(customer.encode(), _json(body))


def brand_alert(number: int, due_ms: int, chance: random.Random) -> Payload:
    """Return an alert of about 350 B that a followed brand has something new; keyed by brand."""
    brand = chance.choice(_BRANDS)
    body = {
        "event": "brand.alert",
        "alert": f"a{number:010d}",
        "event_ms": due_ms,
        "brand": brand,
        "followers": [f"c{chance.randrange(500_000):06d}" for _ in range(8)],
        "article": {"sku": f"{chance.randrange(16**8):08x}", "name": f"{brand} {chance.choice(_GOODS)}"},
        "reason": chance.choice(("new arrival", "back in stock", "price drop")),
    }
    return Payload(brand.encode(), _json(body))


def marketing(number: int, due_ms: int, chance: random.Random) -> Payload:
    """Return one recipient's share of a campaign, about 600 B; keyed by recipient."""
    customer = f"c{chance.randrange(500_000):06d}"
    body = {
        "event": "campaign.message",
        "message": f"m{number:010d}",
        "event_ms": due_ms,
        "campaign": "rainy-season",
        "segment": chance.choice(_SEGMENTS),
        "customer": customer,
        "subject": "A third off until Sunday",
        "text": _TEASER * 2,
        "voucher": f"{chance.randrange(16**10):010x}",
    }
    return Payload(customer.encode(), _json(body))


def _json(body: dict[str, object]) -> bytes:
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()


MARK = b"bulk:"
"""What every bulk value begins with."""
_PLACE = 24
"""Bytes at the front of a bulk value: `bulk:<partition, 3 digits>:<number, 14 digits>:`."""
_HEAD = _PLACE + 4
"""... followed by their checksum, or one changed digit would make it another's value."""
_FILLER_STEPS = 64


class Bulk:
    """Values of one size that say where they belong: partition and number within it, both from 0.

    The rest is filler chosen by seed and number, so that a value can be checked byte for byte and compresses badly.
    `size` is in bytes, at least 32.
    """

    def __init__(self, size: int, *, seed: int) -> None:
        if size < _HEAD + 4:
            raise ValueError(f"a bulk value takes at least {_HEAD + 4} bytes")
        noise = random.Random(seed).randbytes(size + _FILLER_STEPS)
        self._fillers = [noise[step : step + size - _HEAD] for step in range(_FILLER_STEPS)]
        self.size = size

    def value(self, partition: int, number: int) -> bytes:
        """Return the value of one event."""
        place = b"bulk:%03d:%014d:" % (partition, number)
        return place + zlib.crc32(place).to_bytes(4, "big") + self._fillers[number % _FILLER_STEPS]

    def read(self, value: bytes) -> tuple[int, int]:
        """Return partition and number of a value. Raises ValueError if any byte of it is not as it was produced."""
        try:
            partition, number = int(value[5:8]), int(value[9:23])
        except ValueError as error:
            raise ValueError(f"not a bulk value: {value[:_PLACE]!r}") from error
        if value != self.value(partition, number):
            raise ValueError(f"{value[:_PLACE]!r} arrived with other bytes than were produced")
        return partition, number
