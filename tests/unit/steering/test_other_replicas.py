"""How fast other replicas are, from what the group has committed: no spikes, no waste, no guess when it is unknown."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from structlog.testing import capture_logs

from proxy.congestion.collector import Way
from proxy.errors import LogError
from proxy.model import Partition
from proxy.simulation import virtual_time
from proxy.steering.other_replicas import IDLE_PAUSE, PAUSE, STALE_AFTER, Lead, OtherReplicas, Others, OthersRate
from tests.support.bridge_fakes import ScriptedLog

A, B, ALERTS = Partition("orders", 0), Partition("orders", 1), Partition("alerts", 0)
LEADS: dict[str, Lead] = {"orders": ("shop", Way(("quick", "slow"))), "alerts": ("mail", Way())}


def events(rates: OthersRate, route: str, now: float, queue: str | None = None) -> float | None:
    told = rates.rate(route, now, queue)
    return None if told is None else told.rate


def shops(others: OtherReplicas) -> float | None:
    told = others.rate("shop")
    return None if told is None else told.rate


@pytest.fixture
def rates() -> OthersRate:
    return OthersRate(LEADS.get)


def test_the_rate_is_not_known_when_there_is_only_one_sample(rates: OthersRate) -> None:
    assert events(rates, "shop", 0.0) is None
    rates.add(0.0, {A: 100})
    assert events(rates, "shop", 0.0) is None


def test_rates_go_by_route_when_others_commit(rates: OthersRate) -> None:
    for second in range(4):
        rates.add(second, {A: 100 + 50 * second, B: 7, ALERTS: 20 * second, Partition("elsewhere", 0): 900 * second})
    assert (events(rates, "shop", 3.0), events(rates, "mail", 3.0), events(rates, "none", 3.0)) == (50.0, 20.0, 0.0)


def test_a_partition_makes_no_spike_when_it_changes_hands(rates: OthersRate) -> None:
    rates.add(0.0, {A: 100, B: 5_000})
    rates.add(1.0, {A: 110})
    rates.add(2.0, {A: 120, B: 90_000})
    rates.add(3.0, {A: 130, B: 90_010})
    assert events(rates, "shop", 3.0) == pytest.approx(40 / 3)


def test_nothing_is_subtracted_when_a_topic_was_made_anew(rates: OthersRate) -> None:
    rates.add(0.0, {A: 10_000, B: 100})
    rates.add(1.0, {A: 3, B: 130})
    assert events(rates, "shop", 1.0) == 30.0


def test_lumps_of_commits_even_out_when_a_few_samples_are_there(rates: OthersRate) -> None:
    for second, count in enumerate((0, 100, 250, 300, 400, 550, 600)):
        rates.add(second, {A: count})
        if second >= 3:
            assert events(rates, "shop", second) == pytest.approx(100)


def test_an_old_rate_is_forgotten_when_samples_stop(rates: OthersRate) -> None:
    rates.add(0.0, {A: 0})
    rates.add(1.0, {A: 10})
    assert events(rates, "shop", 1.0 + STALE_AFTER) == 10.0
    assert events(rates, "shop", 1.1 + STALE_AFTER) is None


def test_what_was_before_a_long_gap_is_left_out_when_samples_come_again(rates: OthersRate) -> None:
    rates.add(0.0, {A: 0})
    rates.add(60.0, {A: 60})
    rates.add(61.0, {A: 160})
    assert events(rates, "shop", 61.0) == 100.0


def test_questions_are_rare_when_nobody_else_has_moved_for_a_minute(rates: OthersRate) -> None:
    for second in range(62):
        rates.add(second, {A: 100})
        assert rates.pause(second) == (PAUSE if second <= 60 else IDLE_PAUSE)
    rates.add(66.0, {A: 101})
    assert rates.pause(66.0) == PAUSE


def test_questions_are_rare_at_once_when_nobody_else_was_ever_there(rates: OthersRate) -> None:
    rates.add(0.0, {})
    assert rates.pause(0.0) == PAUSE
    rates.add(1.0, {})
    assert rates.pause(1.0) == IDLE_PAUSE


def test_questions_are_frequent_when_a_partition_has_just_changed_hands(rates: OthersRate) -> None:
    rates.add(0.0, {})
    rates.add(1.0, {})
    rates.add(6.0, {A: 100})
    assert rates.pause(6.0) == PAUSE


def watched(story: Callable[[ScriptedLog, OtherReplicas], Awaitable[None]]) -> list[str]:
    """Watch the others of a scripted log while a story is lived; return what was said."""

    async def live() -> None:
        log = ScriptedLog()
        log.others = {A: 0}
        others = OtherReplicas(log, LEADS.get)
        running = asyncio.create_task(others.run())
        await story(log, others)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    with capture_logs() as said:
        virtual_time.run(live())
    return [entry["event"] for entry in said]


async def _grow(log: ScriptedLog, seconds: int) -> None:
    for _ in range(seconds):
        log.others = {A: log.others[A] + 200}
        await asyncio.sleep(1.0)


def test_the_log_is_asked_once_a_second_when_another_replica_works() -> None:
    async def story(log: ScriptedLog, others: OtherReplicas) -> None:
        assert others.rate("shop") is None
        await _grow(log, 10)
        assert shops(others) == pytest.approx(200, rel=0.05)
        assert log.asked_for_progress <= 11

    assert watched(story) == []


def test_the_rate_is_unknown_and_it_is_said_once_when_the_log_does_not_tell() -> None:
    async def story(log: ScriptedLog, others: OtherReplicas) -> None:
        await _grow(log, 5)
        log.failure = LogError("no coordinator")
        await asyncio.sleep(5)
        assert others.rate("shop") is not None
        await asyncio.sleep(STALE_AFTER)
        assert others.rate("shop") is None
        log.failure = None
        await _grow(log, 5)
        assert shops(others) == pytest.approx(200, rel=0.05)

    assert watched(story) == ["others_unknown"]


def test_only_what_goes_to_a_queue_counts_when_that_queue_is_asked_for(rates: OthersRate) -> None:
    rates = OthersRate({"orders": ("shop", Way(("quick",))), "alerts": ("shop", Way(("quick", "slow")))}.get)
    rates.add(0.0, {A: 0, ALERTS: 0})
    rates.add(1.0, {A: 300, ALERTS: 30})
    assert [events(rates, "shop", 1.0, queue) for queue in (None, "quick", "slow", "none")] == [330.0, 330.0, 30.0, 0.0]


def test_what_the_others_send_costs_the_mean_of_its_types_when_these_differ() -> None:
    rates = OthersRate({"orders": ("shop", Way(("quick",))), "alerts": ("shop", Way(("quick", "slow"), 10.0))}.get)
    rates.add(0.0, {A: 0, ALERTS: 0})
    rates.add(1.0, {A: 60, ALERTS: 30})
    assert rates.rate("shop", 1.0) == Others(90.0, 4.0)
    assert rates.rate("shop", 1.0, "slow") == Others(30.0, 10.0)
    assert rates.rate("none", 1.0) == Others(0.0, 1.0)
