"""Several event types, good and bad, on one lane while it is cancelled, withdrawn, blocked and cut off."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from random import Random

from proxy.model import Event, Outcome, Reason
from proxy.publish_lane import PublishLane
from tests.contract.lane_adapters import Bench
from tests.support.recipient import Recorder

WINDOW = 40
ROUNDS = 25


@dataclass(frozen=True, slots=True)
class Aftermath:
    """What a storm came to; by kind of event type the numbers of its events, in order."""

    written: Mapping[str, list[int]]
    ended: Mapping[str, list[object]]
    untrue: list[str]
    """Outcomes that tell of something else than what happened."""


async def storm(bench: Bench, chance: Random) -> Aftermath:
    """Let several event types publish in bad weather, until all that was written has ended."""
    good, full = await bench.world.queue(), await bench.world.queue(bound=30)
    targets = {
        "good": (good, ""),
        "other": (good, ""),
        "full": (full, ""),
        "lost": (f"{good}.none", ""),
        "refused": ("x", "no-such-exchange"),
    }
    kinds = {
        kind: bench.recorder(queue, exchange=exchange, topic=f"{kind}.{good}", rank=chance.randrange(3))
        for kind, (queue, exchange) in targets.items()
    }
    async with bench.lane(alone=False, in_flight_events=WINDOW, in_flight_bytes=300_000) as lane:
        for recorder in kinds.values():
            recorder.on_end = lambda *_: _check_window(lane)
        over = asyncio.Event()
        shaking = asyncio.create_task(_shake(bench, full, chance, over))
        await asyncio.gather(*(_write(lane, recorder, chance) for recorder in kinds.values()))
        over.set()  # not cancelled: a tool at work would still close connections, the test's own among them
        await shaking
        await bench.world.unblock()
        for recorder in kinds.values():
            await recorder.all_ended(deadline=60)
    return Aftermath(
        {kind: [event.position for event in recorder.sent] for kind, recorder in kinds.items()},
        {kind: sorted(end.position for end in recorder.ends) for kind, recorder in kinds.items()},
        [*_unexpected(kinds), *_unstored(kinds, await bench.world.ids(good))],
    )


def _check_window(lane: PublishLane) -> None:
    assert 0 <= lane.in_flight <= WINDOW


def _unexpected(kinds: dict[str, Recorder]) -> list[str]:
    expected = {
        "good": {(Outcome.CONFIRMED, None)},
        "other": {(Outcome.CONFIRMED, None)},
        "full": {(Outcome.CONFIRMED, None), (Outcome.NACKED, None)},
        "lost": {(Outcome.UNDELIVERABLE, Reason.UNROUTABLE)},
        "refused": {(Outcome.UNDELIVERABLE, Reason.REFUSED)},
    }
    always = {(Outcome.UNKNOWN, None), (Outcome.UNKNOWN, Reason.REFUSED)}
    return [
        f"{kind}: {outcome} {reason}"
        for kind, recorder in kinds.items()
        for outcome, reason in {(end.outcome, end.reason) for end in recorder.ends} - expected[kind] - always
    ]


def _unstored(kinds: dict[str, Recorder], stored: list[str]) -> list[str]:
    wrong = []
    for kind in ("good", "other"):
        prefix = f"{kinds[kind].partition}-"
        numbers = [int(name.removeprefix(prefix)) for name in stored if name.startswith(prefix)]
        if numbers != sorted(set(numbers)):
            wrong.append(f"{kind}: order, or an event twice that was sent once")
        missing = set(kinds[kind].positions(Outcome.CONFIRMED)) - set(numbers)
        wrong += [f"{kind}: {number} confirmed but missing" for number in missing]
    return wrong


async def _write(lane: PublishLane, recorder: Recorder, chance: Random) -> None:
    number = 0
    for _ in range(ROUNDS):
        events = []
        for _ in range(chance.randint(1, 80)):
            size = 70_000 if chance.random() < 0.02 else chance.randint(1, 300)
            events.append(Event(number, 1_700_000_000_000, None, bytes(size), (), size))
            number += 1
        middle = chance.randrange(len(events))
        batches = [recorder.batch(part) for part in (events[:middle], events[middle:]) if part]
        publishing = asyncio.create_task(lane.publish(batches))
        fate = chance.random()
        if fate < 0.5:
            for _ in range(chance.randrange(30)):
                await asyncio.sleep(0)
            if fate < 0.25:
                publishing.cancel()
            else:
                lane.withdraw([chance.choice(batches)])
        with suppress(asyncio.CancelledError):
            await publishing


async def _shake(bench: Bench, full: str, chance: Random, over: asyncio.Event) -> None:
    while not over.is_set():
        await asyncio.sleep(chance.uniform(0.005, 0.1))
        match chance.randrange(4):
            case 0:
                await bench.world.drop_connections()
            case 1:
                await bench.world.block()
                await asyncio.sleep(chance.uniform(0.01, 0.2))
                await bench.world.unblock()
            case _:
                await bench.world.ids(full)
