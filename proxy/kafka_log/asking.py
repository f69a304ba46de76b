"""Whom to ask: any of several nodes, one after the other; and one that holds back its answer, watched meanwhile."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any

from aiokafka import errors

ASK_ANOTHER = 1.0
"""Seconds after which another node is asked, too; and between two questions to one that holds back a join."""


async def ask_in_turn(
    nodes: Sequence[object], ask: Callable[[object], Coroutine[Any, Any, Any]], on_late: Callable[[object], None]
) -> Any:
    """Return the first answer; the next node is asked when the one before fails, or is late. Raises `KafkaError`."""
    waiting = list(nodes)
    failure: errors.KafkaError = errors.NodeNotReadyError("no node is known")
    asked: set[asyncio.Task[Any]] = set()
    try:
        while waiting or asked:
            if waiting:
                node = waiting.pop(0)
                asked.add(asyncio.create_task(ask(node), name="kafka-question"))
            done, asked = await asyncio.wait(
                asked, timeout=ASK_ANOTHER if waiting else None, return_when=asyncio.FIRST_COMPLETED
            )
            for question in done:
                try:
                    return question.result()
                except errors.KafkaError as error:
                    failure = error
            if not done:
                on_late(node)
        raise failure
    finally:
        for question in asked:
            question.cancel()


@asynccontextmanager
async def watched(
    knock: Callable[[], Awaitable[object]], give_up: Callable[[errors.KafkaError], None]
) -> AsyncIterator[None]:
    """Knock every second as long as the block lasts; give up once there is no answer."""
    watch = asyncio.create_task(_watch(knock, give_up), name="kafka-watch")
    try:
        yield
    finally:
        watch.cancel()


async def _watch(knock: Callable[[], Awaitable[object]], give_up: Callable[[errors.KafkaError], None]) -> None:
    while True:
        await asyncio.sleep(ASK_ANOTHER)
        try:
            await knock()
        except errors.KafkaError as error:
            give_up(error)
            return
