"""The production bridge with aiokafka and aiormq inside, on a network in memory before scripted brokers."""

import gc
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.histories import kept, wire_messages
from tests.histories.history import live
from tests.histories.plan import AWAY, REFILL, TOPICS
from tests.histories.test_fault_histories import command
from tests.histories.wire_plan import KINDS, draw

# A process that was killed, and a history that was cut off, have not closed their connections.
pytestmark = pytest.mark.filterwarnings("ignore:loop is closed:ResourceWarning")
SEEDS = 200
"""In `make test`."""
QUICK_SEEDS = 60
"""Of these, before every commit."""
ALL_SEEDS = 1_000


@pytest.fixture(autouse=True)
def nothing_is_left_to_other_tests() -> Iterator[None]:
    yield
    gc.collect()


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(QUICK_SEEDS), id="first"),
        pytest.param(range(QUICK_SEEDS, SEEDS), id="usual", marks=pytest.mark.series),
        pytest.param(range(SEEDS, ALL_SEEDS), id="others", marks=[pytest.mark.long, pytest.mark.timeout(3600)]),
    ],
)
def test_no_wire_history_shows_what_it_must_not_when_a_thousand_seeds_are_lived(seeds: range) -> None:
    ran = command("--wire", "--seeds", f"{seeds[0]}..{seeds[-1]}", seconds=3_500 if len(seeds) > SEEDS else 850)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert f"{len(seeds):,} histories" in ran.stdout


@pytest.mark.series
@pytest.mark.timeout(300)
def test_no_wire_history_shows_what_it_must_not_when_the_kept_seeds_are_lived() -> None:
    ran = command("--wire", "--kept")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert f"{len(kept.seeds()):,} histories" in ran.stdout


def test_seeds_that_reach_most_are_kept_when_they_reach_what_none_has_reached(tmp_path: Path) -> None:
    file = tmp_path / "kept.txt"
    kept.write(kept.extended({}, {3: ["idle/nack"], 201: ["idle/nack"], 202: ["a/x"], 203: ["a/x", "b/x"]}), file)
    assert kept.read(file) == {"first": ["idle/nack"], "203": ["a/x", "b/x"]}
    kept.write(kept.extended(kept.read(file), {9: ["b/x"], 207: ["full/block"]}), file)
    assert kept.read(file) == {"first": ["b/x", "idle/nack"], "203": ["a/x"], "207": ["full/block"]}
    assert kept.seeds(file) == [203, 207]
    many = {seed: [f"idle/{seed}"] for seed in range(kept.FIRST, kept.FIRST + 2 * kept.MOST)}
    assert len(kept.extended({}, many)) == kept.MOST + 1


@pytest.mark.timeout(180)
def test_every_kind_of_fault_strikes_often_and_each_seed_leaves_some_out_when_plans_are_drawn() -> None:
    plans = [draw(seed) for seed in range(1_000)]
    drawn = Counter(fault.kind for plan in plans for fault in plan.faults)
    assert set(drawn) == set(KINDS)
    assert min(drawn.values()) > 30
    for plan in plans:
        assert plan.wire is not None
        assert {fault.kind for fault in plan.faults} <= {*plan.wire.kinds, REFILL, *AWAY}
        assert len(plan.wire.kinds) < len(KINDS)


def test_routes_share_lanes_queues_and_classes_or_have_their_own_when_plans_are_drawn() -> None:
    plans = [draw(seed) for seed in range(200)]
    for count in (
        sum(len(set(plan.lanes.values())) < len(plan.lanes) for plan in plans),
        sum(len(plan.lanes) == len(set(plan.lanes.values())) == 3 for plan in plans),
        sum(len({route.queue_names for route in plan.settings.routes.values()}) > 1 for plan in plans),
        sum(len({kind.priority for kind in plan.settings.event_types.values()}) < len(TOPICS) for plan in plans),
    ):
        assert 10 < count < 190


@pytest.mark.series
@pytest.mark.timeout(300)
def test_wire_history_is_the_same_to_the_byte_when_only_the_hash_seed_differs() -> None:
    for seed in ("3", "7", "21"):
        told = {command("--wire", "--replay", seed, PYTHONHASHSEED=chance).stdout for chance in ("1", "2")}
        assert len(told) == 1
        assert re.search(rf"seed {seed}: no violation, [0-9a-f]{{16}}$", told.pop(), re.MULTILINE)


@pytest.mark.timeout(180)
def test_wire_history_is_another_when_a_fault_is_left_out() -> None:
    plan = draw(3)
    assert live(plan).digest == live(plan).digest
    assert live(plan).digest != live(plan.only(frozenset({0}))).digest


@pytest.mark.timeout(180)
def test_the_history_ends_with_its_first_violation_when_no_more_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire_messages, "wrong", lambda *_: ("nothing is right",))
    whole, cut = live(draw(3)), live(draw(3), ends_at_first=True)
    gc.collect()  # whatever it has left unclosed is complained of now
    assert len(whole.violations) > 1
    assert cut.violations == whole.violations[:1]
    assert len(cut.steps) < len(whole.steps)
