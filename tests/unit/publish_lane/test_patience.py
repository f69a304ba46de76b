"""How long a host and a confirm are waited for: through outages of any length."""

import pytest

from proxy.publish_lane.patience import QUICK_ATTEMPTS, STALLED, HostPatience, Patience

DAYS = 200_000
"""Attempts of some days."""


def limits(patience: HostPatience, attempts: int) -> list[float]:
    seen = []
    for _ in range(attempts):
        seen.append(patience.limit)
        patience.lose()
    return seen


def test_each_attempt_has_twice_as_long_when_no_host_has_let_in_before() -> None:
    assert limits(HostPatience(10.0), 5) == [2.0, 4.0, 8.0, 10.0, 10.0]


def test_two_rounds_are_short_when_a_host_has_let_in_before() -> None:
    patience = HostPatience(10.0)
    patience.saw(0.1)
    assert limits(patience, QUICK_ATTEMPTS + 1) == [2.0] * QUICK_ATTEMPTS + [10.0]


def test_a_host_has_five_times_what_the_slowest_took_when_hosts_are_slow() -> None:
    patience = HostPatience(10.0)
    patience.saw(1.5)
    assert limits(patience, 1) == [7.5]
    patience.saw(0.1)
    assert limits(patience, 1) == [3.75]


def test_an_outage_is_forgotten_when_confirms_are_quick_for_a_minute() -> None:
    patience = Patience(30.0)
    patience.saw(7.0, 100.0)
    assert patience.short == 5.0
    for second in range(60):
        patience.saw(0.01, 101.0 + second)
    assert patience.short == 2.0


def old(*, confirmed: float) -> Patience:
    """Return the patience with a channel that was opened at 0 s and confirmed something last at a time."""
    patience = Patience(30.0)
    patience.open(0.0)
    patience.saw(0.01, confirmed)
    return patience


def test_an_old_channel_is_given_up_early_when_it_confirms_nothing_any_more() -> None:
    patience = old(confirmed=100.1)  # of what was written just before
    assert patience.limit(100.0, 100.1 + STALLED) == 30.0
    assert patience.limit(100.0, 100.2 + STALLED) == STALLED


def test_an_old_channel_is_kept_for_the_whole_deadline_when_others_are_confirmed() -> None:
    patience = old(confirmed=100.0)
    for second in range(30):
        patience.saw(0.01, 100.0 + second)
        assert patience.limit(100.0, 101.0 + second) == 30.0


def test_an_old_channel_is_given_up_early_once_within_a_deadline() -> None:
    patience = old(confirmed=99.0)
    patience.lose(101.0)
    assert patience.limit(120.0, 130.9) == 30.0
    assert patience.limit(120.0, 131.0) == STALLED


@pytest.mark.parametrize(("slowest", "limit"), [(0.5, 5.0), (1.5, 7.5), (9.0, 10.0)])
def test_an_old_channel_has_longer_but_not_for_ever_when_confirms_were_slow(slowest: float, limit: float) -> None:
    patience = old(confirmed=99.0)
    patience.saw(slowest, 99.0)
    assert patience.limit(100.0, 100.0 + limit) == 30.0
    assert patience.limit(100.0, 100.1 + limit) == limit


def test_a_slow_login_is_forgotten_when_later_ones_are_quick() -> None:
    patience = HostPatience(10.0)
    for seconds in (8.0, 0.1, 0.1, 0.1, 0.1, 0.1):
        patience.saw(seconds)
    assert patience.limit == 2.0


def test_rounds_are_short_again_when_a_host_let_in_after_many_attempts() -> None:
    patience = HostPatience(10.0)
    patience.saw(0.1)
    limits(patience, 100)
    patience.saw(0.1)
    assert patience.limit == 2.0


@pytest.mark.parametrize("deadline", [0.1, 30.0, 600.0])
def test_the_deadline_is_never_exceeded_when_an_outage_lasts_for_days(deadline: float) -> None:
    hosts, confirms = HostPatience(deadline), Patience(deadline)
    for attempt in range(DAYS):
        hosts.lose()
        confirms.open(float(attempt))
        confirms.lose(float(attempt))
    assert (hosts.limit, confirms.limit(DAYS, DAYS)) == (deadline, deadline)
