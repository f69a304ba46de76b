"""The bytes of a stream as they come, and when it is sure that all that was sent has been read."""

import asyncio

import aiohttp

from proxy.nakadi_log.session import Session

_EMPTY_AGAIN = 5.0
"""Seconds of silence after which it is noted anew that nothing waits."""
_TURNS = 3
"""Of the event loop, in which what waits in a connection shows."""


async def next_piece(content: aiohttp.StreamReader, session: Session) -> bytes | None:
    """Return what came next, empty if nothing did for seconds; None: nothing more comes."""
    if piece := content.read_nowait():
        return piece
    since = asyncio.get_running_loop().time()
    for _ in range(_TURNS):
        await asyncio.sleep(0)
    if piece := content.read_nowait():
        return piece
    session.on_empty(since)
    deadline = asyncio.timeout(_EMPTY_AGAIN)
    try:
        async with deadline:
            piece = await content.readany()
    except TimeoutError:
        if deadline.expired():
            return b""  # a stream without partitions says nothing; what comes late was not held as long
        raise
    return None if not piece and content.at_eof() else piece
