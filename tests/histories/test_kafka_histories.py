"""The production bridge with the real client of Kafka inside, on a network and brokers that a seed turns against it."""

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.histories.kafka_plan import WIRE_KINDS, draw

SEEDS = 40
"""So many are lived by a quick check; more by `python -m tests.histories --kafka`."""
CHECKOUT = Path(__file__).resolve().parents[2]


def command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.histories", "--kafka", *arguments],
        env=os.environ | environment,
        cwd=CHECKOUT,
        check=False,
        capture_output=True,
        text=True,
        timeout=550,
    )


@pytest.mark.timeout(560)
def test_no_wire_history_shows_what_it_must_not_when_the_first_seeds_are_lived() -> None:
    ran = command("--seeds", f"0..{SEEDS - 1}")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert f"{SEEDS:,} histories" in ran.stdout


def test_every_kind_of_fault_strikes_when_a_thousand_wire_plans_are_drawn() -> None:
    drawn = Counter(fault.kind for seed in range(1_000) for fault in draw(seed).faults)
    assert set(drawn) == set(WIRE_KINDS)
    assert min(drawn.values()) > 10


def test_a_seed_leaves_out_kinds_of_faults_when_it_is_drawn() -> None:
    kinds = [len({fault.kind for fault in draw(seed).faults}) for seed in range(100)]
    assert max(kinds) < len(WIRE_KINDS) / 2


@pytest.mark.timeout(120)
def test_wire_history_is_the_same_to_the_byte_when_it_is_lived_again_and_only_the_hash_seed_differs() -> None:
    told = {command("--replay", "11", PYTHONHASHSEED=chance).stdout for chance in ("1", "2")}
    assert len(told) == 1
    assert re.search(r"seed 11: no violation, [0-9a-f]{16}$", told.pop(), re.MULTILINE)
