"""AMQP 0-9-1 frames, without a client: pure functions of bytes."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

PIECE_BYTES = 64 * 1024
"""What is written at once; bodies are split into frames that fit."""
METHOD, HEADER, BODY = 1, 2, 3
END = b"\xce"
FRAME_OVERHEAD = 8
FRAME_START = struct.Struct(">BHI")
"""Kind, channel, bytes of the payload."""


def frame(kind: int, channel: int, payload: bytes | memoryview) -> bytes:
    """Return one frame."""
    return b"".join((FRAME_START.pack(kind, channel, len(payload)), payload, END))


@dataclass(slots=True)
class Long:
    """A message whose body takes more than one frame. Only what is written next is copied: not the whole body.

    A copy of a megabyte costs twenty times what copying its bytes does: the kernel gives the memory page by page.
    """

    begin: bytes
    """Its frames up to the first of the body."""
    channel: int
    rest: memoryview
    """What of the body comes after that."""
    most: int
    """Bytes of the body in one frame."""

    def next(self) -> bytes:
        """Return the next frame of the rest, which is shorter by it then."""
        part, self.rest = self.rest[: self.most], self.rest[self.most :]
        return frame(BODY, self.channel, part)


def cut(frames: bytes, limit: int) -> Iterator[bytes]:
    """Yield `frames` in pieces of at most `limit` bytes that end where frames end; a longer frame is a piece alone."""
    begin = end = 0
    while end < len(frames):
        after = end + FRAME_OVERHEAD + FRAME_START.unpack_from(frames, end)[2]
        if after - begin > limit and end > begin:
            yield frames[begin:end]
            begin = end
        end = after
    if begin < len(frames):
        yield frames[begin:]


def each(frames: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield of each frame its kind, its channel, and all its bytes."""
    begin = 0
    while begin < len(frames):
        kind, channel, size = FRAME_START.unpack_from(frames, begin)
        end = begin + FRAME_OVERHEAD + size
        yield kind, channel, frames[begin:end]
        begin = end
