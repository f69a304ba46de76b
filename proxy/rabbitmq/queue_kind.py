"""Which kind of queue one is: a question that every kind refuses, each with its own name in the refusal.

A passive declare doesn't tell. A consumer with a priority and an offset in a stream is one that RabbitMQ gives to
nobody: classic and quorum queues know no offset, streams no priority, and the refusal names the kind. Nothing is
consumed, nothing declared; the question costs a channel and needs the right to read the queue.
"""

import re
import struct

from aiormq import Channel
from aiormq.abc import ChannelFrame
from pamqp.constants import FRAME_END_CHAR, FRAME_METHOD
from pamqp.encode import field_table

from proxy.bridge.broker import QueueKind

_BASIC_CONSUME = (60, 20)
_NO_FLAGS = b"\x00"
_ARGUMENTS = field_table({"x-priority": -1, "x-stream-offset": "next"})
_NAMED = re.compile(r"of queue type (?:rabbit_)?(classic|quorum|stream)")


async def ask_kind(channel: Channel, queue: str) -> None:
    """Write the question; the broker closes the channel over it, and `kind_in` reads why."""
    name = queue.encode()
    method = struct.pack(">HHHB", *_BASIC_CONSUME, 0, len(name)) + name + b"\x00" + _NO_FLAGS + _ARGUMENTS
    frame = struct.pack(">BHI", FRAME_METHOD, channel.number, len(method)) + method + FRAME_END_CHAR
    await channel.write_queue.put(ChannelFrame(payload=frame, should_close=False))


def kind_in(refusal: str) -> QueueKind | None:
    """Return the kind that a refusal names; None if it was refused for another reason (no right to read, no queue)."""
    named = _NAMED.search(refusal)
    return None if named is None else QueueKind(named[1])
