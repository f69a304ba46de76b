"""What the consumers of a queue take of one that is never empty: the measure of every use."""

import asyncio
import time

from load.control.services import Services
from load.stack import Stack
from load.wire import Wire
from proxy.simulation.scenario import Queue

SECONDS = 10.0
FIRST_SECOND = 1.0
"""Passed before it counts."""
MARGIN = 1.5
"""The queue is filled with so many times what they should take."""
BYTES = 256


def share_at(share: float, cost: float) -> float:
    """Return the busy share with events of a mean cost, given that with events of cost 1.

    What passes between two events takes as long whatever they cost, so the dearer they are, the less it matters.
    """
    return cost / (cost + 1.0 / share - 1.0) if share else 0.0


async def busy_share(stack: Stack, queue: Queue, *, seed: int) -> float:
    """Return the share of their time that the consumers work while their queue is full; near 1.

    It lacks what RabbitMQ needs to give them the next event. Counted in seconds of work begun: counted in events,
    chance alone would move it by 2 % where service times are exponential.
    """
    name = f"full.{time.time_ns()}"
    kind = {"x-queue-type": "quorum"} if queue.kind == "quorum" else {}
    with await asyncio.to_thread(Wire, stack.amqp_port) as wire:
        wire.declare(name, kind)
        count = round(queue.capacity * (SECONDS + FIRST_SECOND) * MARGIN) + queue.consumers * queue.prefetch_each
        await asyncio.to_thread(wire.publish, name, [bytes(BYTES)] * count)
        services = Services(
            stack.amqp_port, name, queue, seed=seed, on_stored=lambda _: None, on_begun=lambda *_: None
        )  # fmt: skip
        try:
            await services.connect()
            await asyncio.sleep(FIRST_SECOND)
            before, began = services.drawn, time.monotonic()
            await asyncio.sleep(SECONDS)
            return (services.drawn - before) / (time.monotonic() - began) / queue.consumers
        finally:
            services.close()
            wire.delete(name)
