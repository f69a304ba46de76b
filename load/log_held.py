"""What event types cost that are held back on Nakadi: `python -m load.log_held [seconds] [types]`.

The adapter alone against the scripted Nakadi, a process of its own. Every type has five events waiting; nothing is
committed until the end, when all that is held then is: told are the share of a core, the streams with a connection,
and how many of the commits Nakadi refuses, as it would where a stream was ended by time-out.
"""

import argparse
import asyncio
import time
from collections.abc import Collection, Mapping

import uvloop

from load.logs import Owner, scripted_nakadi
from proxy.model import Partition, Position
from proxy.nakadi_log import NakadiLog
from proxy.settings import Limits, LogSettings

SECONDS = 600.0
TYPES = 1_000
SETTLE_SECONDS = 70.0
"""Until each type has had its first stream, and has lost it."""
SAMPLE_SECONDS = 5.0


class Holding(Owner):
    """Has nothing done with."""

    async def on_revoked(self, partitions: Collection[Partition]) -> Mapping[Partition, Position]:
        """Have nothing committed."""
        del partitions
        return {}

    on_moving = on_revoked


async def held(url: str, seconds: float, types: int) -> None:
    """Hold back all types for so many seconds, after those in which they settle."""
    settings = {"nakadi": {"url": url, "owning_application": "load", "consumer_group": "held"}}
    log = NakadiLog(LogSettings.model_validate(settings), Limits())
    owner = Holding()
    await log.start(owner)
    await log.subscribe(frozenset(f"type-{number}" for number in range(types)))
    begun, cpu, counts = time.monotonic(), 0.0, list[int]()
    looked = begun
    while time.monotonic() < begun + SETTLE_SECONDS + seconds:
        for at, found in (await log.poll(0.2)).items():
            owner.done[at] = found[-1].position
        if not cpu and time.monotonic() >= begun + SETTLE_SECONDS:
            cpu = time.process_time()
        if cpu and time.monotonic() >= looked + SAMPLE_SECONDS:
            looked = time.monotonic()
            counts.append(sum(task.get_name().startswith("nakadi-stream") for task in asyncio.all_tasks()))
    share = (time.process_time() - cpu) / seconds
    owned = {at: owner.done[at] for at in log._owned if at in owner.done}  # noqa: SLF001  # what is held just now
    await asyncio.sleep(2)  # commits may be asked for that often only
    taken: set[object] = set()
    for _ in range(20):
        taken |= set(await log.commit({at: owned[at] for at in owned.keys() - taken}))
        await asyncio.sleep(0.5)
    lost = sum(session.is_lost for session, _ in log._owned.values())  # noqa: SLF001
    print(
        f"{types} types held back for {seconds:.0f} s: {share:.1%} of a core, "
        f"{max(counts)} streams with a connection at most, {sum(counts) / len(counts):.1f} on average; "
        f"{len(owned)} held at the end, {len(taken)} of them committed, {lost} streams lost",
        flush=True,
    )
    await log.stop()


def main() -> None:
    """Measure once."""
    parser = argparse.ArgumentParser(prog="python -m load.log_held", description=__doc__)
    parser.add_argument("seconds", type=float, nargs="?", default=SECONDS, help=f"how long to look ({SECONDS:.0f})")
    parser.add_argument("types", type=int, nargs="?", default=TYPES, help=f"event types ({TYPES})")
    asked = parser.parse_args()
    seconds, types = asked.seconds, asked.types
    with scripted_nakadi("--event-types", str(types), "--preload", str(5 * types)) as url:
        uvloop.run(held(url, seconds, types))


if __name__ == "__main__":
    main()
