"""Damages what brokers answer, frame by frame: no broker says such things, and whoever listens must outlive them.

Whole frames come twice, late, never or changed, with lengths that fit, so that they are read and not just refused.
"""

import struct
from collections.abc import Sequence
from random import Random

from tests.wire.transport import Link

WHOLE = ("twice", "never", "late", "instead", "bit", "noise")
WITHIN = ("byte", "number", "code", "short", "long", "gap", "channel")
KINDS = (*WHOLE, *WITHIN)
_KEPT = 200
"""Frames that may come again."""
_NUMBERS = (-(2**31), -2, -1, 0, 1, 1_000, 65_536, 2**31 - 1)
_CODES = (-1, 0, 1, 2, 3, 5, 6, 7, 14, 15, 16, 22, 25, 27, 36, 41, 76, 100)
_MOST = 40


class Garbage:
    """One history's: each frame of what comes from `at` is damaged with that chance, as one of the kinds."""

    def __init__(self, chance: Random, share: float, kinds: Sequence[str] = KINDS) -> None:
        self.is_on = False
        self._chance, self._share, self._kinds = chance, share, kinds
        self._rest: dict[Link, bytes] = {}
        """What has come of a frame that is not whole."""
        self._seen: list[bytes] = []

    def __call__(self, link: Link, data: bytes) -> bytes:
        """Return what becomes of bytes that a broker has sent."""
        data = self._rest.pop(link, b"") + data
        if not self.is_on:
            return data
        is_kafka = link.at.startswith("kafka")
        out = b""
        while (size := _size(data, is_kafka=is_kafka)) and size <= len(data):
            out += self._damaged(data[:size], 4 if is_kafka else 7, b"" if is_kafka else data[size - 1 : size])
            data = data[size:]
        if data:
            self._rest[link] = data
        return out

    def _damaged(self, frame: bytes, head: int, tail: bytes) -> bytes:
        chance = self._chance
        if len(self._seen) < _KEPT:
            self._seen.append(frame)
        else:
            self._seen[chance.randrange(_KEPT)] = frame
        if chance.random() >= self._share:
            return frame
        kind = chance.choice(self._kinds)
        return self._another(kind, frame) if kind in WHOLE else self._changed(kind, frame, head, tail)

    def _another(self, kind: str, frame: bytes) -> bytes:
        """Return what comes in place of a frame."""
        chance = self._chance
        if kind == "bit":
            bits = bytearray(frame)
            bits[chance.randrange(len(bits))] ^= 1 << chance.randrange(8)
            return bytes(bits)
        others = {
            "twice": frame + frame,
            "never": b"",
            "late": frame + chance.choice(self._seen),
            "instead": chance.choice(self._seen),
            "noise": frame + chance.randbytes(chance.randrange(1, _MOST)),
        }
        return others[kind]

    def _changed(self, kind: str, frame: bytes, head: int, tail: bytes) -> bytes:
        """Return a frame with something else in it, as long as it says."""
        chance = self._chance
        body = bytearray(frame[head : len(frame) - len(tail)])
        at = chance.randrange(len(body) + 1)
        match kind:
            case "byte":
                body[at : at + 1] = bytes([chance.choice((0, 1, 127, 128, 255, chance.randrange(256)))])
            case "number":
                body[at : at + 4] = struct.pack(">i", chance.choice(_NUMBERS))
            case "code":
                body[at : at + 2] = struct.pack(">h", chance.choice(_CODES))
            case "short":
                del body[at:]
            case "long":
                body[at:at] = chance.randbytes(chance.randrange(1, 9))
            case "gap":
                del body[at : at + chance.randrange(1, 9)]
            case "channel" if tail:
                frame = frame[:1] + struct.pack(">H", chance.choice((0, 1, 2, 3, 65_535))) + frame[3:]
        size = struct.pack(">i", len(body)) if not tail else frame[:3] + struct.pack(">I", len(body))
        return size + bytes(body) + tail


def _size(data: bytes, *, is_kafka: bool) -> int:
    """Return how long the frame is that begins here; 0 if that is not known yet."""
    if is_kafka:
        return 4 + struct.unpack_from(">I", data)[0] if len(data) >= 4 else 0
    return 8 + struct.unpack_from(">I", data, 3)[0] if len(data) >= 7 else 0
