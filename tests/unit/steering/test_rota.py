"""Whose turn it is to be asked for its depth: those in use every tick, idle ones in turn, never more than allowed."""

from collections import Counter

import pytest

from proxy.steering.rota import HOT_SECONDS, Rota

TICK = 0.05
QUEUES = [f"q{number}" for number in range(1000)]


def live(rota: Rota, seconds: float, *, deep: frozenset[str] = frozenset(), since: float = 0.0) -> Counter[str]:
    """Turn a rota tick by tick; return how often each queue was asked."""
    asked: Counter[str] = Counter()
    for tick in range(round(seconds / TICK)):
        now = since + tick * TICK
        due = rota.due(now)
        assert len(due) == len(set(due))
        asked.update(due)
        for queue in due:
            rota.tell(queue, now, is_deep=queue in deep)
    return asked


def test_every_queue_is_asked_every_tick_when_they_are_few() -> None:
    rota = Rota(QUEUES[:50], TICK, 1000)
    assert set(live(rota, 10).values()) == {200}
    assert rota.interval("q7") == TICK


def test_deep_queues_are_asked_every_tick_and_idle_ones_in_turn_when_they_are_many() -> None:
    rota, deep = Rota(QUEUES, TICK, 1000), frozenset(QUEUES[500:520])
    live(rota, 5, deep=deep)
    asked = live(rota, 10, deep=deep, since=5)
    assert {asked[queue] for queue in deep} == {200}
    assert sum(asked.values()) == pytest.approx(10_000, rel=0.01)
    assert {asked[queue] for queue in QUEUES if queue not in deep} <= {5, 6, 7}
    assert rota.interval("q500") == TICK
    assert rota.interval("q1") == pytest.approx(980 / 600)


def test_no_more_is_asked_than_allowed_when_even_the_deep_ones_are_too_many() -> None:
    rota, deep = Rota(QUEUES, TICK, 200), frozenset(QUEUES[:100])
    live(rota, 40, deep=deep)
    asked = live(rota, 60, deep=deep, since=40)
    assert sum(asked.values()) == pytest.approx(12_000, rel=0.01)
    often, rarely = ([asked[queue] for queue in QUEUES if (queue in deep) is hot] for hot in (True, False))
    assert max(often) - min(often) <= 1
    assert max(rarely) - min(rarely) <= 1
    assert sum(rarely) == pytest.approx(1_200, rel=0.02)
    assert 60 / rota.interval("q1") == pytest.approx(sum(often) / len(often), rel=0.02)
    assert 60 / rota.interval("q999") == pytest.approx(sum(rarely) / len(rarely), rel=0.02)


def test_a_queue_is_forgotten_only_some_seconds_after_it_ran_empty() -> None:
    rota = Rota(QUEUES, TICK, 100)
    live(rota, 20, deep=frozenset({"q3"}))
    assert live(rota, HOT_SECONDS - 1, since=20)["q3"] >= 100
    live(rota, 5, since=HOT_SECONDS + 19)
    assert live(rota, 5, since=HOT_SECONDS + 24)["q3"] <= 1


def test_what_was_not_asked_is_not_made_up_for_when_the_clock_has_stood_still() -> None:
    rota = Rota(QUEUES, TICK, 1000)
    assert len(rota.due(0.0)) == 1000
    assert len(rota.due(0.05)) == 50
    assert len(rota.due(60.0)) == 100


def test_one_queue_at_a_time_is_asked_when_hardly_any_poll_is_allowed() -> None:
    rota = Rota(QUEUES[:4], TICK, 1)
    asked = live(rota, 41, deep=frozenset({"q0"}))
    assert sum(asked.values()) == pytest.approx(44, abs=1)
    assert min(asked.values()) >= 1
