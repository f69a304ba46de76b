"""Passes of a redrive under virtual time, with kills at any step, lost connections, nacks, returns and full disks."""

import asyncio
from collections.abc import Coroutine
from random import Random
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from proxy.errors import BrokerError
from proxy.redrive.choice import Stay
from proxy.redrive.run import BLIND_SECONDS, RETURNS, STALL_SECONDS
from proxy.simulation.virtual_time import VirtualTimeLoop
from tests.support.redrive_world import TIMES, World, letter, lived, name_of

SEEDS = 400

T = TypeVar("T")


def live(history: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=lambda: VirtualTimeLoop(3_000_000)) as runner:
        return runner.run(history)


def filled(seed: int) -> World:
    chance = Random(seed)
    world = World(chance, dies_again=chance.choice([0.0, 0.1, 1.0]))
    for _ in range(chance.randint(1, 120)):
        draw = chance.random()
        if draw < 0.1:
            world.put(None)
        else:
            kind = chance.choice(["orders", "orders", "news", "lost", "unknown"])
            world.put(
                letter(kind, chance.randint(0, 2), chance.randint(0, 60), redriven=chance.choice([0, 0, 0, 1, TIMES]))
            )
    return world


def may_go(world: World) -> list[Any]:
    """Return the letters that a pass without faults would send."""
    return [
        one.letter
        for one in world.stored
        if one.letter is not None and one.letter.event_type in {"orders", "news"} and one.letter.redriven < TIMES
    ]


async def wrongs(seed: int, kill_at: int | None) -> list[str]:
    """Live a history of passes, the last without a fault; return what is wrong in it."""
    world, wrong = filled(seed), list[str]()
    first = {name_of(one.letter) for one in world.stored if one.letter is not None}
    _, ends = await lived(world, kill_at)
    if ends.killed.is_set():
        held = {name_of(one.letter) for one in world.stored if one.letter is not None}
        wrong += [f"{name} was taken off unsaid" for name in ends.recorded - ends.acked - held]
    for _ in range(world.chance.randint(0, 2)):
        await lived(world, world.chance.choice([None, world.chance.randint(1, 60)]))
    held = {name_of(one.letter) for one in world.stored if one.letter is not None}
    wrong += [f"{name} is lost" for name in first - held - set(world.confirmed)]
    world.faulty, world.dies_again = False, 0.0
    redrive, _ = await lived(world)
    wrong += [f"{letter} stays" for letter in may_go(world)]
    wrong += [f"{name} is recorded and not delivered" for name in world.recorded if not world.delivered[name]]
    if redrive.count.failed != redrive.count.stays(Stay.NO_EXCHANGE):
        wrong.append(f"{redrive.count.failed} have failed for other reasons than a missing exchange")
    return wrong + [str(one) for one in world.wrong]


@pytest.mark.parametrize("start", range(0, SEEDS, 100))
def test_no_letter_is_lost_and_each_is_told_when_anything_fails_at_any_step(start: int) -> None:
    seeds = range(start, start + 100)
    kills = {seed: Random(-seed - 1).choice([None, *range(1, 120)]) for seed in seeds}
    assert {seed: wrong for seed in seeds if (wrong := live(wrongs(seed, kills[seed])))} == {}


@hypothesis_settings(max_examples=100)
@given(st.integers(0, 10**9), st.none() | st.integers(1, 300))
def test_no_letter_is_lost_and_each_is_told_when_hypothesis_looks_for_it(seed: int, kill_at: int | None) -> None:
    assert live(wrongs(seed, kill_at)) == []


def test_a_pass_ends_when_every_letter_dies_again_at_once() -> None:
    async def story() -> None:
        world = World(Random(1), faulty=False, dies_again=1.0)
        for position in range(50):
            world.put(letter("orders", 0, position))
        for attempt in range(1, TIMES + 1):
            redrive, _ = await lived(world)
            assert redrive.count.done == 50
            assert {one.letter.redriven for one in world.stored if one.letter} == {attempt}
        redrive, _ = await lived(world)
        assert (redrive.count.done, redrive.count.stays(Stay.TOO_OFTEN)) == (0, 50)
        assert not world.wrong

    live(story())


def test_each_partition_goes_in_its_order_when_the_queue_is_mixed() -> None:
    async def story() -> None:
        world = World(Random(2), faulty=False)
        for position in (3, 1, 2, 0):
            world.put(letter("orders", 0, position))
            world.put(letter("orders", 1, position))
        world.chance.randint = lambda _least, most: most  # type: ignore[method-assign]  # all in hand together
        _, ends = await lived(world)
        assert list(ends.sent) == [("orders", part, position) for part in (0, 1) for position in range(4)]

    live(story())


def test_a_letter_that_came_back_often_is_laid_anew_when_it_stays() -> None:
    async def story() -> None:
        world = World(Random(3), faulty=False)
        world.put(letter("unknown", 0, 0))
        world.put(letter("unknown", 0, 1))
        world.stored[0].returned = RETURNS
        redrive, _ = await lived(world)
        assert [(one.letter and name_of(one.letter)[2], one.returned) for one in world.stored] == [(1, 1), (0, 0)]
        assert redrive.count.anew == 1

    live(story())


def test_the_pass_ends_with_the_reason_when_the_queue_says_that_letters_wait_and_gives_none() -> None:
    async def story() -> None:
        world = World(Random(3), faulty=False)
        world.put(letter("orders", 0, 0))
        world.gives_none = True
        began = asyncio.get_running_loop().time()
        _, ends = await lived(world)
        assert isinstance(ends.error, BrokerError)
        assert "1 letters wait, and gives none: a stream never does" in str(ends.error)
        assert STALL_SECONDS < asyncio.get_running_loop().time() - began < 2 * STALL_SECONDS

    live(story())


def test_only_what_is_asked_for_goes_when_reason_type_and_time_are_named() -> None:
    async def story() -> None:
        world = World(Random(4), faulty=False)
        for kind in ("orders", "news"):
            for position in range(10):
                world.put(letter(kind, 0, position, reason="expired" if position % 2 else "unroutable"))
        asked = {"reasons": frozenset({"expired"}), "types": frozenset({"news"}), "since_ms": 1_003, "until_ms": 1_008}
        redrive, ends = await lived(world, **asked)
        assert list(ends.sent) == [("news", 0, 3), ("news", 0, 5), ("news", 0, 7)]
        assert redrive.count.stays(Stay.NOT_CHOSEN) == 17

    live(story())


def test_a_queue_that_is_missing_is_waited_for_once_however_many_letters_there_are() -> None:
    async def story() -> None:
        world = World(Random(6), faulty=False)
        for position in range(1_600):
            world.put(letter("orders", 0, position))
        world.missing = frozenset({"q"})
        redrive, _ = await lived(world)
        assert redrive.count.stays(Stay.BLIND) == 1_600
        assert asyncio.get_running_loop().time() < 2 * BLIND_SECONDS

    live(story())


def test_a_dry_run_tells_what_a_real_one_would_do_when_the_queue_of_some_letters_is_missing() -> None:
    async def story() -> None:
        world = World(Random(6), faulty=False)
        for position in range(20):
            world.put(letter("orders", 0, position))
        dry, _ = await lived(world, is_dry=True)
        assert (dry.count.done, dry.count.stayed) == (20, {})
        world.missing = frozenset({"q"})
        dry, _ = await lived(world, is_dry=True)
        real, _ = await lived(world)
        for told in (dry, real):
            assert (told.count.done, told.count.stays(Stay.BLIND)) == (0, 20)
            assert told.count.examples[Stay.BLIND][0].endswith(": nothing is known of q")
        assert len(world.stored) == 20

    live(story())


def test_a_copy_is_taken_off_unsent_when_a_letter_of_the_same_event_was_confirmed() -> None:
    async def story() -> None:
        world = World(Random(5), faulty=False)
        for _ in range(3):
            world.put(letter("orders", 0, 7))
        redrive, ends = await lived(world)
        assert (list(ends.sent.values()), redrive.count.done, redrive.count.copies, world.stored) == ([1], 1, 2, [])

    live(story())
