"""How long a host and a confirm are waited for: through outages of any length."""

import pytest

from proxy.publish_lane.patience import QUICK_ATTEMPTS, HostPatience, Patience

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
    patience.saw(0.1)
    assert limits(patience, 1) == [7.5]


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
