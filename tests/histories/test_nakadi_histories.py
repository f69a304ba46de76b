"""The production bridge with Nakadi as its log, aiohttp and aiormq inside, before scripted brokers."""

import gc
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from pamqp.commands import Basic

from tests.histories.nakadi.history import live
from tests.histories.nakadi.judge import REASON, Asked, Judge
from tests.histories.nakadi.plan import KINDS, NakadiPlan, draw
from tests.histories.plan import POLICIES
from tests.histories.test_fault_histories import command
from tests.wire.rabbit.cluster import Verdict
from tests.wire.rabbit.frames import Message

pytestmark = pytest.mark.filterwarnings("ignore:loop is closed:ResourceWarning", "ignore:Unclosed:ResourceWarning")
SEEDS = 100
ALL_SEEDS = 1_000


@pytest.fixture(autouse=True)
def nothing_is_left_to_other_tests() -> Iterator[None]:
    yield
    gc.collect()


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(SEEDS), id="first", marks=pytest.mark.series),
        pytest.param(range(SEEDS, ALL_SEEDS), id="others", marks=[pytest.mark.long, pytest.mark.timeout(4_000)]),
    ],
)
def test_no_history_with_nakadi_shows_what_it_must_not_when_seeds_are_lived(seeds: range) -> None:
    ran = command("--nakadi", "--seeds", f"{seeds[0]}..{seeds[-1]}", seconds=3_900 if len(seeds) > SEEDS else 850)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert f"{len(seeds):,} histories" in ran.stdout


@pytest.mark.timeout(300)
def test_every_kind_of_fault_and_every_policy_is_drawn_when_plans_are_drawn() -> None:
    plans = [draw(seed) for seed in range(300)]
    assert set(Counter(fault.kind for plan in plans for fault in plan.faults)) == set(KINDS)
    assert {route.policy for plan in plans for route in plan.settings.routes.values()} == set(POLICIES)
    assert 100 < sum(plan.has_calm_broker for plan in plans) < 200


@pytest.mark.series
@pytest.mark.timeout(300)
def test_a_history_with_nakadi_is_the_same_to_the_byte_when_only_the_hash_seed_differs() -> None:
    for seed in ("3", "7"):
        told = {command("--nakadi", "--replay", seed, PYTHONHASHSEED=chance).stdout for chance in ("1", "2")}
        assert len(told) == 1
        assert re.search(rf"seed {seed}: no violation, [0-9a-f]{{16}}$", told.pop(), re.MULTILINE)


@pytest.mark.timeout(300)
def test_a_history_with_nakadi_is_another_when_a_fault_is_left_out() -> None:
    plan = draw(1)
    assert live(plan).digest != live(plan.only(frozenset({0}))).digest


@pytest.mark.timeout(300)
def test_a_history_is_lived_to_its_end_when_nakadi_is_down_twice_at_a_time() -> None:
    plan = draw(726)
    assert [fault.kind for fault in plan.faults[:2]] == ["nakadi_down", "nakadi_down"]
    assert live(plan.only(frozenset({0, 1}))).violations == ()


def judged(seed: int) -> tuple[NakadiPlan, Judge, str]:
    """Return a judge who knows of three events of a type that is kept in order."""
    plan = next(draw(number) for number in range(seed, seed + 50) if draw(number).has_calm_broker)
    judge = Judge(plan, lambda: 0.0)
    judge.on_appended(("by-partition", "0"), [b"a", b"b", b"c"])
    return plan, judge, "by-partition"


def arrives(judge: Judge, body: bytes, verdict: Verdict = Verdict.ACKED, headers: dict[str, Any] | None = None) -> None:
    properties = Basic.Properties(headers=headers)
    message = Message("", "work", mandatory=True, properties=properties, body=body, process="replica-1")
    judge.on_published(message, verdict)


def test_the_judge_accuses_when_an_event_is_lost_changed_overtaken_or_committed_too_early() -> None:
    _, judge, name = judged(0)
    arrives(judge, b"a")
    assert not judge.violations
    arrives(judge, b"c")
    judge.on_committed((name, "0"), 3)
    assert "but 1 has not arrived" in judge.violations[-1]
    arrives(judge, b"changed")
    assert "no event" in judge.violations[-1]
    judge.judge_end()
    assert "[1] never arrived" in judge.violations[-1]
    arrives(judge, b"b")
    assert "2 comes before 1" in judge.violations[-1]


def test_the_judge_does_not_accuse_when_the_one_that_was_overtaken_becomes_a_letter() -> None:
    _, judge, _ = judged(0)
    for body, headers in ((b"a", {}), (b"c", {}), (b"b", {REASON: "unroutable"})):
        arrives(judge, body, headers=headers)
    judge.judge_end()
    assert not judge.violations


def test_the_judge_accuses_when_more_comes_again_than_may() -> None:
    plan, judge, name = judged(0)
    judge.interruptions[name] = 1
    most = plan.settings.limits.uncommitted_events + plan.batch_events
    for body in (b"a", b"b", b"c"):
        arrives(judge, body)
    for _ in range(most):
        arrives(judge, b"a")
    judge.judge_end()
    assert not judge.violations
    arrives(judge, b"a")
    judge.judge_end()
    assert f"{most + 1} came again, {most} may" in judge.violations[-1]


def test_the_judge_accuses_when_a_cursor_goes_where_nobody_asked_it_to() -> None:
    _, judge, name = judged(0)
    key = (name, "0")
    judge.ask(key, Asked(is_skip=True, first=0, to=2))
    judge.on_moved(key, 1, 2, was_held=True)
    assert not judge.violations
    assert judge.lines[key].passed == {1}
    judge.on_moved(key, 3, 2, was_held=False)
    assert not judge.violations, "what was not held may have gone on meanwhile"
    judge.on_moved(key, 3, 2, was_held=True)
    assert "goes back from 3 to 2" in judge.violations[-1]
    judge.on_moved(key, 0, 3, was_held=True)
    assert "passes over 0 to 3, which nobody has asked for" in judge.violations[-1]


def test_the_judge_accuses_when_a_command_tells_another_range_than_was_moved_while_held() -> None:
    _, judge, name = judged(0)
    key = (name, "0")
    judge.ask(key, Asked(is_skip=False, first=0, to=0))
    judge.on_moved(key, 3, 0, was_held=True)
    judge.on_told(key, 3, 0, jumps_before=0)
    assert not judge.violations
    judge.on_told(key, 2, 0, jumps_before=0)
    assert "is said to have gone from 2 to 0" in judge.violations[-1]
    judge.on_told(key, 3, 0, jumps_before=1)
    assert "but []" in judge.violations[-1]
