"""Somebody who skips or rewinds an event type while replicas run, as `tidegate skip` and `rewind` do."""

from proxy.bridge.move import Direction, Moved
from proxy.cursor.carrying import make
from proxy.cursor.choice import Chosen, Plans, Wanted, choose, planned
from proxy.errors import LogError, SettingsError
from proxy.model import Partition
from proxy.nakadi_log.cursors import NakadiCursors
from proxy.nakadi_log.offsets import place
from proxy.operations.plan import LIFE_MS, Plan
from proxy.operations.scope import Scope
from proxy.positions.port import EARLIEST, LATEST
from tests.histories.nakadi.judge import Asked
from tests.histories.nakadi.world import World
from tests.histories.plan import TOPICS, Fault
from tests.nakadi.event_types import PartitionLog
from tests.nakadi.reading import Key


async def move(world: World, fault: Fault, direction: Direction) -> None:
    """Move what the fault says: a whole type to an end of the log, or one partition to somewhere in it."""
    topic = TOPICS[fault.who % len(TOPICS)]
    settings = world.plan.settings
    cursors = NakadiCursors(settings.log, lambda name: name == topic)
    try:
        await cursors.open()
        wanted = _wanted(world, fault, direction, topic)
        chosen, _ = await choose(wanted, settings, cursors, Plans(), 0)
        moving = [one for one in chosen if one.is_moved]
        if not moving:
            world.judge.note("nothing is to be moved")
            return
        before = _asked(world, moving, direction)
        plan = Plan("1-a", direction, "somebody", None, 0, LIFE_MS, planned(moving))
        carried = await make(plan, cursors, cursors.held)
    except (LogError, SettingsError) as error:
        world.judge.note(f"somebody is told: {error}")
        return
    finally:
        await cursors.close()
    for moved in carried.moved:
        _told(world, moved, before)


def _wanted(world: World, fault: Fault, direction: Direction, topic: str) -> Wanted:
    scope = Scope((topic,), ())
    if fault.who >= len(TOPICS):
        return Wanted(direction, scope, LATEST if direction is Direction.SKIP else EARLIEST, None, None)
    log = world.nakadi.bus.event_types[topic].partitions[0]
    index = log.first + round(fault.amount * (log.end - log.first))
    return Wanted(direction, scope, None, max(0, place(log.offset(index - 1)) + 1), 0)


def _asked(world: World, moving: list[Chosen], direction: Direction) -> dict[Key, int]:
    """Tell the judge what is wanted; return how often each cursor was moved before."""
    found = {}
    for one in moving:
        key, log = (one.partition.topic, str(one.partition.number)), _log(world, one.partition)
        asked = Asked(direction is Direction.SKIP, _index(log, one.first), _index(log, one.to))
        world.judge.ask(key, asked)
        world.judge.note(f"{key[0]}/{key[1]}: {direction} {asked.first} to {asked.to} is asked for")
        found[key] = len(world.judge.lines[key].jumps)
    return found


def _told(world: World, moved: Moved, before: dict[Key, int]) -> None:
    key, log = (moved.partition.topic, str(moved.partition.number)), _log(world, moved.partition)
    done, to = _index(log, moved.done), _index(log, moved.to)
    world.judge.note(f"{key[0]}/{key[1]} is told to have gone from {done} to {to}")
    if done != to:
        world.judge.on_told(key, done, to, before[key])


def _log(world: World, at: Partition) -> PartitionLog:
    return world.nakadi.bus.event_types[at.topic].partitions[at.number]


def _index(log: PartitionLog, where: int) -> int:
    """Return the index that a place stands for."""
    for index in range(log.end + 1):
        if where in {place(log.offset(index)), max(0, place(log.offset(index - 1)) + 1)}:
            return index
    raise AssertionError(f"{where} is no place")
