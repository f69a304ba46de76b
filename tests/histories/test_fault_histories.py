"""The production bridge under virtual time: one seed is one reproducible history of faults, judged at every step."""

import os
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.histories.history import live
from tests.histories.plan import KINDS, LAWS, draw
from tests.histories.shrink import smallest
from tests.support.process_group import process_group

SEEDS = 1_000
USUAL_SEEDS = 300
"""Of them, in `make test`."""
QUICK_SEEDS = 100
"""Of these, before every commit."""
CHECKOUT = Path(__file__).resolve().parents[2]


def command(*arguments: str, seconds: float = 550, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.histories", *arguments],
        env=os.environ | environment,
        cwd=CHECKOUT,
        check=False,
        capture_output=True,
        text=True,
        timeout=seconds,
    )


@pytest.mark.timeout(1_260)
@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(QUICK_SEEDS), id="first"),
        pytest.param(range(QUICK_SEEDS, USUAL_SEEDS), id="usual", marks=pytest.mark.series),
        pytest.param(range(USUAL_SEEDS, SEEDS), id="others", marks=pytest.mark.long),
    ],
)
def test_no_history_shows_what_it_must_not_when_a_thousand_seeds_are_lived(seeds: range) -> None:
    ran = command("--seeds", f"{seeds[0]}..{seeds[-1]}", seconds=1_250)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert f"{len(seeds):,} histories" in ran.stdout


def test_every_kind_of_fault_strikes_often_when_a_thousand_plans_are_drawn() -> None:
    drawn = Counter(fault.kind for seed in range(SEEDS) for fault in draw(seed).faults)
    assert set(drawn) == set(KINDS)
    assert min(drawn.values()) > 50


def test_every_order_policy_and_cap_occurs_when_plans_are_drawn() -> None:
    settings = [draw(seed).settings for seed in range(100)]
    routes = [settings_of.routes["r"] for settings_of in settings]
    assert {route.policy for route in routes} == {"static", "per_type", "class_budget"}
    assert {route.law for route in routes if route.policy == "class_budget"} == set(LAWS)
    assert {(route.policy, route.shadow) for route in routes} == {
        ("static", False),
        *((policy, shadow) for policy in ("per_type", "class_budget") for shadow in (True, False)),
    }
    assert {route.cap is not None and route.cap.strict for route in routes} == {True, False}
    assert {kind.order.value for one in settings for kind in one.event_types.values()} == {
        "partition",
        "strict",
        "none",
    }


@pytest.mark.series
def test_history_is_the_same_to_the_byte_when_only_the_hash_seed_differs() -> None:
    for seed in ("3", "11", "148"):
        told = {command("--replay", seed, PYTHONHASHSEED=chance).stdout for chance in ("1", "2")}
        assert len(told) == 1
        assert re.search(rf"seed {seed}: no violation, [0-9a-f]{{16}}$", told.pop(), re.MULTILINE)


_ELSEWHERE = """
import random, runpy, sys
chance = random.Random(int(sys.argv.pop(1)))
kept = [chance.choice((bytearray, Exception))(*[chance.randrange(1, 600)]) for _ in range(chance.randrange(60_000))]
del kept[::3]
sys.argv[0] = "histories"
runpy.run_module("tests.histories", run_name="__main__", alter_sys=True)
"""
"""Makes holes in the memory first: what asks an object for its address then gets another answer in every process."""


@pytest.mark.series
def test_history_is_the_same_to_the_byte_when_objects_lie_elsewhere() -> None:
    for seed in ("3", "11"):
        told = {
            subprocess.run(
                [sys.executable, "-c", _ELSEWHERE, chance, "--replay", seed], capture_output=True, text=True, check=True
            ).stdout
            for chance in ("1", "2", "3", "4")
        }
        assert len(told) == 1


def test_history_is_another_when_a_fault_is_left_out() -> None:
    plan = draw(0)
    assert live(plan).digest == live(plan).digest
    assert live(plan).digest != live(plan.only(frozenset({0}))).digest


def test_a_mistake_in_the_arguments_is_told_when_the_range_is_empty() -> None:
    assert command("--seeds", "5..1").returncode == 2


@pytest.mark.parametrize("needed", [{3}, {0, 7}, {1, 2, 5}, set()])
def test_only_what_is_needed_is_left_when_a_failing_history_is_shrunk(needed: set[int]) -> None:
    assert smallest(range(8), lambda numbers: needed <= numbers) == needed


def test_a_removed_replica_publishes_on_for_a_moment_when_it_was_removed_by_force() -> None:
    # Since what comes alone goes at once, one of some three hundred histories in which a replica is removed shows it.
    results = [live(draw(seed)) for seed in (8_837, 11_821, 16_788)]
    assert not any(result.violations for result in results)
    assert any("not knowing that it was removed" in step for result in results for _, step in result.steps)


END_SECONDS = 10.0
"""A moment; on a machine that does much else it is longer."""
TELLING = """
import sys
from tests.histories import command
draw = command.memory_plan.draw
command.memory_plan.draw = lambda seed: (print(seed, flush=True), draw(seed))[1]
sys.exit(command.main(sys.argv[1:]))
"""
"""The command, but it tells each seed: before its history if it lives that itself, else when it has ended."""


@pytest.mark.series
@pytest.mark.parametrize(
    "how",
    [["--jobs", "3"], *(pytest.param(how, marks=pytest.mark.long) for how in (["--first"], ["--jobs", "1"]))],
    ids=" ".join,
)
@pytest.mark.parametrize(
    ("signum", "code", "said"),
    [
        (signal.SIGINT, 130, ["interrupted\n"]),
        (signal.SIGTERM, 143, ["interrupted\n"]),
        (signal.SIGKILL, -signal.SIGKILL, []),
    ],
)
def test_no_process_is_left_and_nothing_else_is_told_when_the_command_is_interrupted(
    signum: int, code: int, said: list[str], how: list[str]
) -> None:
    with process_group("-c", TELLING, "--seeds", "0..99999", *how, cwd=CHECKOUT) as group:
        assert group.process.stdout is not None
        assert group.process.stdout.readline().strip().isdigit()
        group.process.send_signal(signum)
        assert group.process.wait(END_SECONDS) == code
        group.until(lambda: not group.living, deadline=END_SECONDS)
        told = group.process.stdout.readlines()
        progress = [line for line in told if line.strip().isdigit() or line.endswith(" failed\n")]
        assert [line for line in told if line not in progress] == said
