"""What watching many queues costs: the production monitor alone in this process, against a real RabbitMQ."""

import asyncio
import json
import time
from pathlib import Path

import uvloop

from load import machine
from load.stack import Stack
from load.terminal import say
from load.wire import Wire
from proxy.rabbitmq import RabbitBroker
from proxy.settings import BrokerSettings, Limits
from proxy.steering.depths import Depths

QUEUES = 1_000
IN_USE = 20
GOAL = 0.03
"""Share of one core."""
WARM_SECONDS, SECONDS = 5.0, 10.0


def measure(stack: Stack, rounds: int, file: Path) -> int:
    """Measure, print and save; return 0 if the median of the rounds meets the goal, else 1."""
    about = machine.describe(stack)
    names = [f"watched.{number}" for number in range(QUEUES)]
    with Wire(stack.amqp_port) as wire:
        for name in names:
            wire.declare(name)
        for name in names[:IN_USE]:
            wire.publish(name, [b"one"])
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        shares = [runner.run(_share(stack, names)) for _ in range(rounds)]
    median = sorted(shares)[len(shares) // 2]
    record = about | {"measured": "monitor", "queues": QUEUES, "in_use": IN_USE, "shares": shares, "goal": GOAL}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    spread = ", ".join(f"{share:.2%}" for share in shares)
    met = "met" if median <= GOAL else "MISSED"
    print(f"{QUEUES} queues watched, {IN_USE} in use: {median:.2%} of a core ({spread}), goal {GOAL:.0%}: {met}")
    return 0 if median <= GOAL else 1


async def _share(stack: Stack, names: list[str]) -> float:
    settings = BrokerSettings(hosts=[f"127.0.0.1:{stack.amqp_port}"])
    depths = Depths(
        RabbitBroker(settings, {}, Limits()).monitor(), names, settings.depth_interval, settings.depth_polls
    )
    running = asyncio.create_task(depths.run())
    try:
        say(f"watching {len(names)} queues for {WARM_SECONDS + SECONDS:.0f} s")
        await asyncio.sleep(WARM_SECONDS)
        used, began = time.process_time(), time.monotonic()
        await asyncio.sleep(SECONDS)
        return (time.process_time() - used) / (time.monotonic() - began)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
