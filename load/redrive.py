"""What a redrive costs those who are live: the demo's campaign twice, once with 100,000 letters sent again beside it.

The letters go to a queue of their own, whose consumer takes all at once: their way into RabbitMQ, the broker and the
processor are shared with P1, its queue is not. Where they share a queue the command waits as long as it is congested.
"""

import asyncio
import contextlib
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from load import machine
from load.demo_run import DemoRun
from load.drain import Drain
from load.events import MARK
from load.stack import SetupError, Stack, StackError
from load.terminal import command_line, interrupted_by_signals, say
from load.wire import Wire, WireError
from load.worker import WorkerError
from proxy.bridge.broker import Address, Batch
from proxy.model import Event, Outcome, Partition, Reason
from proxy.rabbitmq import RabbitBroker
from proxy.settings import BrokerSettings, Limits, RoutingKey

EXAMPLES = """
examples:
  python -m load.redrive                          100,000 letters at 4,000/s beside a campaign of a minute
  python -m load.redrive --letters 20000 --queue-type quorum
"""
POLICY = "class_budget"
DEAD, TARGET, TOPIC = "letters", "mended", "mended"
PARTITIONS = 6
BODY = 300
BEGIN_SECONDS = 12.0
"""After the beginning: the campaign has risen."""
LOOK_SECONDS, LAST_SECONDS = 0.02, 30.0
"""Between two looks at what has come; and until the last must have come, once the command has ended."""
QUANTILES = (0.5, 0.9, 0.99)


class _Counting:
    """Counts what is confirmed."""

    def __init__(self) -> None:
        self.confirmed = 0

    def may_send(self) -> bool:
        """Return True."""
        return True

    def on_outcome(
        self,
        _batch: Batch,
        start: int,
        end: int,
        outcome: Outcome,
        *,
        seconds: float | None = None,  # noqa: ARG002
        reason: Reason | None = None,  # noqa: ARG002
        detail: str = "",  # noqa: ARG002
    ) -> None:
        """Count."""
        assert outcome is Outcome.CONFIRMED, outcome
        self.confirmed += end - start


async def _fill(stack: Stack, count: int) -> None:
    """Write the letters, as a bridge would."""
    broker = RabbitBroker(BrokerSettings(hosts=[f"127.0.0.1:{stack.amqp_port}"]), {}, Limits())
    lane = broker.dead_letter_lane()
    running = asyncio.create_task(lane.run())
    notes = (("tidegate-type", TOPIC), ("tidegate-reason", "unroutable"), ("tidegate-topic-id", "id"))
    address = Address("", RoutingKey(constant=DEAD), "application/octet-stream", notes=notes, lenient=True)
    counting = _Counting()
    now_ms = time.time_ns() // 1_000_000
    for number in range(PARTITIONS):
        events = [
            Event(at, now_ms, b"key-%d" % at, _body(number, at), (("trace", b"t-%d" % at),), BODY + 20)
            for at in range(count // PARTITIONS)
        ]
        await lane.publish([Batch(Partition(TOPIC, number), events, 0, address, 0, counting)])
    while counting.confirmed < count // PARTITIONS * PARTITIONS:  # noqa: ASYNC110 - a second or two, once
        await asyncio.sleep(0.05)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def _body(partition: int, offset: int) -> bytes:
    """Return what tells a letter from all others, and is counted as it comes."""
    return (MARK + b"%d-%d " % (partition, offset)).ljust(BODY, b"x")


async def _redrive(stack: Stack, folder: Path, rate: int) -> dict[str, Any]:
    """Run the command beside the campaign; return what it said, and what came."""
    settings = {
        "log": {"hosts": [stack.kafka], "group": "redriven"},
        "broker": {"hosts": [f"127.0.0.1:{stack.amqp_port}"]},
        "routes": {"mended": {"exchange": "", "queues": [TARGET]}},
        "defaults": {"route": "mended", "class": "P3", "dead_letter": {"routing_key": DEAD}},
        "event_types": {TOPIC: {"routing_key": TARGET}},
        "metric_log": {"folder": str(folder / "redrive")},
    }
    file = folder / "redrive.yaml"
    file.write_text(yaml.safe_dump(settings), encoding="utf-8")
    await asyncio.sleep(BEGIN_SECONDS)
    # In a thread that looks at nothing: the loop has the campaign's generator and its services to do.
    with Drain(stack.amqp_port, TARGET) as drain:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "proxy", "redrive", "-c", str(file), "--yes", "--json", "--rate", str(rate)),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        ending = asyncio.create_task(process.communicate())
        began = await _first(drain, ending)
        out, _ = await ending
        [told] = json.loads(out)
        seconds = await _all(drain, told["redriven"]) - began
        came = Counter(delivery.body for delivery in drain.end())
    return {
        "exit": process.returncode,
        "waiting": told["waiting"],
        "redriven": told["redriven"],
        "stay": told["stay"],
        "came": sum(came.values()),
        "different": len(came),
        "is_accounted": told["waiting"] == told["redriven"] == len(came) == sum(came.values()),
        "seconds": round(seconds, 1),
        "rate": round(sum(came.values()) / seconds) if seconds > 0 else 0,
    }


async def _first(drain: Drain, ending: "asyncio.Task[Any]") -> float:
    """Return when the first letter came, or the command had ended without any; on the monotonic clock."""
    while not drain.count and not ending.done():  # noqa: ASYNC110 - the count is a thread's
        await asyncio.sleep(LOOK_SECONDS)
    return time.monotonic()


async def _all(drain: Drain, count: int) -> float:
    """Return when so many had come, or were given up; on the monotonic clock."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LAST_SECONDS):
            while drain.count < count:  # noqa: ASYNC110 - as above
                await asyncio.sleep(LOOK_SECONDS)
    return time.monotonic()


def _quantiles(folder: Path, since_ms: float, until_ms: float) -> dict[str, dict[str, int]]:
    """Return what each class' consumed times were between two instants, in milliseconds."""
    found: dict[str, list[int]] = {}
    for file in folder.glob("proof-*.jsonl"):
        for line in file.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            if record["kind"] == "consumed" and since_ms <= record["event_ms"] < until_ms:
                found.setdefault(record["class"], []).append(record["at_ms"] - record["event_ms"])
    told = {}
    for name, times in sorted(found.items()):
        times.sort()
        told[name] = {f"p{100 * share:g}": times[int(share * (len(times) - 1))] for share in QUANTILES} | {
            "events": len(times)
        }
    return told


async def _run(stack: Stack, folder: Path, letters: int, rate: int) -> dict[str, Any]:
    """Live the campaign once, with letters if there are any."""
    began = time.time() * 1000
    run = asyncio.create_task(DemoRun(stack, POLICY, folder).run())
    redriven: dict[str, Any] | None = None
    if letters:
        redriven = await _redrive(stack, folder, rate)
    await run
    middle = began + 1000 * BEGIN_SECONDS
    return {"redrive": redriven, "classes": _quantiles(folder, middle, middle + 25_000)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure both; return the exit code."""
    parser = command_line("load.redrive", "What a redrive costs those who are live.", EXAMPLES)
    parser.add_argument("--letters", type=int, default=100_000, metavar="N", help="dead letters (%(default)s)")
    parser.add_argument("--rate", type=int, default=4_000, metavar="N", help="letters a second (%(default)s)")
    parser.add_argument("--queue-type", choices=("classic", "quorum"), default="classic", help="of both queues")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="where everything goes (default: out/redrive-DATE-TIME)"
    )
    options = parser.parse_args(arguments)
    interrupted_by_signals()
    out: Path = (options.out or Path("out") / time.strftime("redrive-%Y%m%d-%H%M%S")).resolve()
    result: dict[str, Any] = {"measured": "redrive", "queue_type": options.queue_type, "load_before": os.getloadavg()}
    try:
        for name, letters in (("alone", 0), ("beside", options.letters)):
            with Stack.up() as stack:
                result |= machine.describe(stack)
                with Wire(stack.amqp_port) as wire:
                    for queue in (DEAD, TARGET):
                        wire.declare(queue, {"x-queue-type": options.queue_type})
                if letters:
                    asyncio.run(_fill(stack, letters))
                result[name] = asyncio.run(_run(stack, out / name, letters, options.rate))
    except (SetupError, StackError, WorkerError, WireError) as error:
        say(str(error))
        return 1
    (out / "redrive.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({name: result[name] for name in ("load_before", "alone", "beside")}, indent=1))
    return 0 if result["beside"]["redrive"]["is_accounted"] else 1


if __name__ == "__main__":
    sys.exit(main())
