"""Faults of RabbitMQ. Each returns when it began and when it ended, on the monotonic clock."""

import asyncio
import time
from functools import partial

from load.faults.replicas import USER
from load.faults.streams import DEAD, EXCHANGE, STREAMS
from load.faults.world import Span, World, queue_arguments
from load.wire import Wire, WireError

HIGH_WATERMARK, NO_MEMORY = 0.4, 0.0001
"""Shares of the machine's memory: RabbitMQ's default, and one that is always exceeded."""
FREE_BYTES, TOO_MANY_BYTES = 200_000_000, 10**18
_CLOSE = f'(catch rabbit_networking:close_all_user_connections(<<"{USER}">>, <<"closed on purpose">>))'
CLOSE_ALL = f"{_CLOSE}, {_CLOSE}"
"""Twice: one that ends by itself meanwhile ends the call, and leaves those behind it open."""
EMPTY_SECONDS = 20.0
"""A queue in use is empty at some moment within so long."""


async def restart(world: World) -> Span:
    """Stop RabbitMQ in order, start it again."""
    return await world.away(world.stack.stop_rabbitmq, world.stack.start_rabbitmq)


async def kill(world: World) -> Span:
    """Kill RabbitMQ, start it again."""
    return await world.away(partial(world.stack.stop_rabbitmq, kill=True), world.stack.start_rabbitmq)


async def memory_alarm(world: World) -> Span:
    """Let RabbitMQ believe that it has no memory left."""
    call = "vm_memory_monitor:set_vm_memory_high_watermark({})"
    return await _for_a_while(world, call.format(NO_MEMORY), call.format(HIGH_WATERMARK))


async def disk_alarm(world: World) -> Span:
    """Let RabbitMQ believe that its disk is full."""
    call = "rabbit_disk_monitor:set_disk_free_limit({})"
    return await _for_a_while(world, call.format(TOO_MANY_BYTES), call.format(FREE_BYTES))


async def close_connections(world: World) -> Span:
    """Let RabbitMQ close every connection of Tidegate."""
    now = await world.erlang(CLOSE_ALL)
    return now, now


async def delete_queue(world: World) -> Span:
    """Delete a queue when it is empty: what it had taken has come out, so that nothing confirmed goes with it."""
    _, stream = world.stream()

    is_quorum = bool(queue_arguments(world.stack))
    delete = partial(_delete_when_empty, is_quorum=is_quorum)
    began = await asyncio.to_thread(delete, world.stack.amqp_port, stream.name)
    await asyncio.sleep(world.seconds())
    await world.declare(stream)
    return began, time.monotonic()


def _delete_when_empty(port: int, queue: str, *, is_quorum: bool) -> float:
    deadline = time.monotonic() + EMPTY_SECONDS
    while True:
        try:
            with Wire(port) as wire:
                if not wire.count(queue).ready:  # of a quorum queue RabbitMQ takes no `if-empty`
                    wire.delete(queue, if_empty=not is_quorum)
                    return time.monotonic()
        except WireError:  # filled in between
            pass
        if time.monotonic() > deadline:
            raise WireError(f"{queue} is never empty")


async def delete_exchange(world: World) -> Span:
    """Delete the exchange, declare it again."""

    def work() -> float:
        with Wire(world.stack.amqp_port) as wire:
            wire.delete_exchange(EXCHANGE)
            return time.monotonic()

    def mend() -> None:
        with Wire(world.stack.amqp_port) as wire:
            wire.exchange(EXCHANGE)
            for stream in STREAMS:
                wire.bind(stream.name, EXCHANGE, stream.name)

    began = await asyncio.to_thread(work)
    await asyncio.sleep(world.seconds())
    await asyncio.to_thread(mend)
    return began, time.monotonic()


async def forbid_exchange(world: World) -> Span:
    """Take the right to write to the exchange; dead letters may be written."""
    return await _forbid(world, "^amq[.]default$")


async def forbid_all(world: World) -> Span:
    """Take every right to write."""
    return await _forbid(world, "^$")


async def _forbid(world: World, write: str) -> Span:
    """Let Tidegate write to what matches only, and connect anew: a channel goes on with what it was allowed before."""
    return await _for_a_while(world, f"{_permissions(write)}, {CLOSE_ALL}", _permissions(".*"))


def _permissions(write: str) -> str:
    args = f'<<"{USER}">>, <<"/">>, <<"">>, <<"{write}">>, <<".*">>, <<"load.faults">>'
    return f"rabbit_auth_backend_internal:set_permissions({args})"


async def _for_a_while(world: World, cause: str, mend: str) -> Span:
    began = await world.erlang(cause)
    await asyncio.sleep(world.seconds())
    return began, await world.erlang(mend)


def prepare(wire: Wire, arguments: dict[str, str]) -> None:
    """Declare exchange and queues."""
    wire.exchange(EXCHANGE)
    for stream in STREAMS:
        wire.declare(stream.name, arguments)
        wire.bind(stream.name, EXCHANGE, stream.name)
    wire.declare(DEAD, arguments)
