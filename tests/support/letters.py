"""Dead letters on a real RabbitMQ, as a lane writes them, and `tidegate redrive` as people run it."""

import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from load.stack import Stack
from proxy.bridge.broker import Address
from proxy.model import Event, Partition
from proxy.rabbitmq import RabbitBroker
from proxy.settings import BrokerSettings, Limits, RoutingKey
from tests.support.recipient import Recorder
from tests.support.tidegate import Ends

TOPIC_ID = "an-id"
STAMP = 1_700_000_000_000


def broker_of(stack: Stack) -> RabbitBroker:
    return RabbitBroker(BrokerSettings(hosts=[f"127.0.0.1:{stack.amqp_port}"]), {}, Limits())


async def written(
    stack: Stack,
    queue: str,
    name: str,
    positions: Sequence[int],
    *,
    partition: int = 0,
    reason: str = "unroutable",
    redriven: int = 0,
    body: bytes = b"v",
) -> None:
    """Put letters of one partition of a type into a queue; its topic is called like it."""
    lane = broker_of(stack).dead_letter_lane()
    running = asyncio.create_task(lane.run())
    notes = (("tidegate-type", name), ("tidegate-reason", reason), ("tidegate-topic-id", TOPIC_ID))
    address = Address("", RoutingKey(constant=queue), "", notes=notes, lenient=True, redriven=redriven)
    events = [Event(at, STAMP + at, b"k", body, (("trace", b"%d" % at),), len(body) + 10) for at in positions]
    recorder = Recorder(address, Partition(name, partition))
    try:
        await lane.publish([recorder.batch(events)])
        await recorder.ended(len(events))
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@dataclass
class Ended:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def told(self) -> dict[str, Any]:
        """What it says with --json of its only queue."""
        [queue] = json.loads(self.out)
        assert isinstance(queue, dict)
        return queue

    @property
    def stays(self) -> dict[str, int]:
        """Letters that stayed, by why."""
        found: dict[str, int] = {}
        for one in self.told["stay"]:
            found[one["why"]] = found.get(one["why"], 0) + one["count"]
        return found


def redrive_settings(ends: Ends, folder: Path, dead: str, types: dict[str, Any], **changes: Any) -> Path:
    """Write settings whose dead letters go to a queue; return the file."""
    defaults = {"route": "main", "class": "P1", "dead_letter": {"routing_key": dead}}
    settings = ends.settings(types, defaults=defaults, metric_log={"folder": str(folder / "records")}, **changes)
    file = folder / "redrive.yaml"
    file.write_text(yaml.safe_dump(settings))
    return file


async def started(file: Path, *arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "proxy", "redrive", "-c", str(file), "--json", *arguments),
        cwd=file.parent,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def ended(process: asyncio.subprocess.Process) -> Ended:
    out, err = await asyncio.wait_for(process.communicate(), 90)
    assert process.returncode is not None
    return Ended(process.returncode, out.decode(), err.decode())


async def redriven(file: Path, *arguments: str) -> Ended:
    """Run the command to its end."""
    return await ended(await started(file, "--yes", *arguments))
