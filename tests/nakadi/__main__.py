"""`python -m tests.nakadi`: the scripted Nakadi as a process. See README.md beside it."""

import argparse
import asyncio
import signal
import time
from collections.abc import Sequence
from random import Random

from tests.nakadi.bus import Bus
from tests.nakadi.face import Face, serve
from tests.nakadi.load import Generator, Load
from tests.nakadi.mischief import KINDS, Kind, Mischief
from tests.nakadi.streaming import Manners


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT, and return 0."""
    options = _parser().parse_args(arguments)
    asyncio.run(_serve(options))
    return 0


async def _serve(options: argparse.Namespace) -> None:
    chance = Random(options.seed)
    bus = Bus(chance)
    if options.token:
        bus.tokens = {token: time.time() + seconds for token, seconds in options.token}
    for name, partitions in options.event_type:
        bus.create(name, partitions, created_at=time.time())
    for number in range(options.event_types):
        bus.create(f"type-{number}", options.partitions, created_at=time.time())
    generator = Generator(bus, time.time, options.size)
    names = list(bus.event_types)
    if options.preload:
        generator.publish(names, options.preload)
    mischief = Mischief(chance, dict(options.fault))
    face = Face(bus, time.time, mischief, Manners(not options.drops_closing, options.notices_after))
    runner, (host, port) = await serve(face, options.host, options.port)
    print(f"Nakadi at http://{host}:{port}", flush=True)  # noqa: T201 -- what whoever started it waits for
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with asyncio.TaskGroup() as group:
        if options.rate:
            work = group.create_task(generator.run(Load(names, options.rate, options.size, options.seconds)))
        expiry = group.create_task(_expire(bus))
        await stop.wait()
        expiry.cancel()
        if options.rate:
            work.cancel()
    await runner.cleanup()


async def _expire(bus: Bus) -> None:
    while True:
        bus.expire(time.time())
        await asyncio.sleep(10.0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.nakadi", description="A scripted Nakadi by HTTP.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one; the address is printed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--event-type", type=_event_type, action="append", default=[], metavar="NAME[:PARTITIONS]")
    parser.add_argument("--event-types", type=int, default=0, metavar="N", help="type-0 .. type-<N-1>")
    parser.add_argument("--partitions", type=int, default=1, help="of each of --event-types")
    parser.add_argument("--preload", type=int, default=0, metavar="EVENTS", help="in the log before it serves")
    parser.add_argument("--rate", type=float, default=0.0, help="events a second over all event types")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="that --rate lasts")
    parser.add_argument("--size", type=int, default=256, help="bytes of an event")
    parser.add_argument(
        "--token", type=_token, action="append", default=[], metavar="TOKEN[:SECONDS]", help="is asked for"
    )
    parser.add_argument("--fault", type=_fault, action="append", default=[], metavar="KIND=RATE", help=", ".join(KINDS))
    parser.add_argument("--drops-closing", action="store_true", help="a stream that ends drops its connection at once")
    parser.add_argument(
        "--notices-after", type=float, default=0.0, metavar="SECONDS", help="that a connection has closed"
    )
    return parser


def _event_type(told: str) -> tuple[str, int]:
    name, _, partitions = told.partition(":")
    return name, int(partitions or 1)


def _token(told: str) -> tuple[str, float]:
    token, _, seconds = told.partition(":")
    return token, float(seconds or "inf")


def _fault(told: str) -> tuple[Kind, float]:
    name, _, rate = told.partition("=")
    for kind in KINDS:
        if kind == name:
            return kind, float(rate)
    raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(KINDS)}")


if __name__ == "__main__":
    raise SystemExit(main())
