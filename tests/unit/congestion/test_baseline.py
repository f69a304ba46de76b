"""When the broker itself is slow."""

from proxy.congestion.baseline import Baseline


def after(*stretches: tuple[float, float, int]) -> bool:
    """Return whether the broker counts as slow after stretches of (seconds, latency in s, in flight)."""
    baseline, now = Baseline(), 0.0
    for seconds, latency, in_flight in stretches:
        for _ in range(round(seconds / 0.05)):
            now += 0.05
            baseline.add(now, latency, in_flight)
    return baseline.is_slow


def test_it_is_slow_when_even_the_quickest_confirm_takes_many_times_as_long_as_usual() -> None:
    assert after((5, 0.002, 10), (1.1, 0.2, 10))


def test_it_is_not_slow_when_it_has_always_been_so() -> None:
    assert not after((10, 0.2, 10))


def test_it_is_not_slow_when_only_the_window_is_fuller_than_it_was() -> None:
    assert not after((5, 0.002, 4), (2, 0.2, 200))


def test_it_is_not_slow_when_many_times_as_long_is_still_short() -> None:
    assert not after((5, 0.001, 10), (2, 0.04, 10))


def test_one_quick_confirm_proves_the_contrary_when_the_others_are_slow() -> None:
    baseline, now = Baseline(), 0.0
    for step in range(200):
        now += 0.05
        baseline.add(now, 0.002 if step < 100 or step % 8 == 0 else 0.3, 10)
    assert not baseline.is_slow


def test_it_is_not_slow_any_more_when_nothing_is_confirmed() -> None:
    baseline, now = Baseline(), 0.0
    for step in range(160):
        now += 0.05
        baseline.add(now, 0.002 if step < 100 else 0.3, 10)
    assert baseline.is_slow
    for _ in range(24):
        now += 0.05
        baseline.add(now, None, 0)
    assert not baseline.is_slow
