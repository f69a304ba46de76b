"""Which partitions a fetch leaves out."""

from collections import Counter

import pytest

from proxy.kafka_log.resting import AWAKE, BUSY, MOST, TURN, Rests
from proxy.model import Partition
from proxy.positions.share import Share


class Fetched:
    """Remembers what is paused."""

    def __init__(self) -> None:
        self.paused: set[Partition] = set()

    def pause(self, at: Partition) -> None:
        self.paused.add(at)

    def seek(self, _: Partition, __: int) -> None: ...

    def resume(self, at: Partition) -> None:
        self.paused.discard(at)


class World:
    """Some partitions, the first `urgent` of them urgent."""

    def __init__(self, partitions: int, urgent: int = 0) -> None:
        self.now = 100.0
        self.fetches = Fetched()
        self.rests = Rests(self.fetches, lambda: self.now)
        ats = [Partition(f"t{number}", 0) for number in range(partitions)]
        self.shares = {
            at: Share(at, is_paused=False, is_urgent=place < urgent, is_placed=True) for place, at in enumerate(ats)
        }

    def turn(self) -> list[Partition]:
        """Let a turn pass; return what the next fetch names."""
        self.now += TURN
        self.rests.turn(self.shares)
        return [at for at in self.shares if at not in self.fetches.paused]


def test_nothing_rests_when_there_are_few() -> None:
    world = World(MOST)
    assert len(world.turn()) == MOST


def test_every_idle_partition_is_looked_at_once_in_a_round_and_so_many_at_a_time_when_there_are_many() -> None:
    world = World(1000, urgent=10)
    seen = Counter[Partition]()
    for _ in range(100):
        named = world.turn()
        assert len(named) <= 10 + AWAKE
        seen.update(named)
    ats = list(world.shares)
    assert {seen[at] for at in ats[:10]} == {100}
    assert {seen[at] for at in ats[10:]} == {10}


def test_a_partition_is_read_all_the_time_when_it_has_something() -> None:
    world = World(1000)
    at = list(world.shares)[700]
    while at not in world.turn():
        pass
    for _ in range(50):
        world.shares[at].fed_at = world.now
        assert at in world.turn()
    world.now += BUSY
    assert sum(at in world.turn() for _ in range(10)) == 1


def test_what_the_owner_paused_stays_paused_when_it_is_its_turn() -> None:
    world = World(1000)
    for share in world.shares.values():
        share.is_paused = True
        world.fetches.pause(share.partition)
    for _ in range(20):
        assert world.turn() == []


def test_everything_is_awake_again_when_few_are_left() -> None:
    world = World(1000)
    world.turn()
    world.shares = dict(list(world.shares.items())[:MOST])
    assert len(world.turn()) == MOST


def test_a_turn_lasts_when_it_is_asked_for_again_at_once() -> None:
    world = World(1000)
    first = world.turn()
    world.rests.turn(world.shares)
    assert [at for at in world.shares if at not in world.fetches.paused] == first


@pytest.mark.parametrize("is_placed", [True, False])
def test_the_library_is_not_told_of_a_partition_when_it_is_not_placed(*, is_placed: bool) -> None:
    world = World(1000)
    for share in world.shares.values():
        share.is_placed = is_placed
    world.turn()
    assert bool(world.fetches.paused) is is_placed
