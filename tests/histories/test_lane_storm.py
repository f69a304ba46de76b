"""The lane on the broker in memory under virtual time: one history of trouble for every seed."""

from random import Random

import pytest

from proxy.simulation import virtual_time
from tests.contract.lane_adapters import Bench, MemoryWorld
from tests.contract.lane_storm import Aftermath, storm


@pytest.mark.parametrize("seed", [*range(20), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(20, 60))])
def test_each_event_ends_once_and_truly_when_everything_happens_at_once(seed: int) -> None:
    async def history() -> Aftermath:
        return await storm(Bench(MemoryWorld(seed)), Random(seed))

    aftermath = virtual_time.run(history())
    assert all(aftermath.written.values())
    assert aftermath.ended == aftermath.written
    assert aftermath.untrue == []


def test_the_same_seed_is_the_same_history() -> None:
    async def history() -> list[tuple[object, ...]]:
        bench = Bench(MemoryWorld(7))
        told: list[tuple[object, ...]] = []
        make = bench.recorder

        def recorder(*arguments: object, **named: object) -> object:
            made = make(*arguments, **named)  # type: ignore[arg-type]
            tell = made.on_outcome

            def on_outcome(*what: object, **how: object) -> None:
                told.append((made.partition, *what[1:], how["seconds"], how["reason"]))
                tell(*what, **how)  # type: ignore[arg-type]

            made.on_outcome = on_outcome  # type: ignore[method-assign]
            return made

        bench.recorder = recorder  # type: ignore[method-assign, assignment]
        await storm(bench, Random(7))
        return told

    first = virtual_time.run(history())
    assert len(first) > 100
    assert virtual_time.run(history()) == first
