"""Queries side by side, without a query."""

import threading

import pytest

from proxy.reports.together import SIDE_BY_SIDE, together

SURE_S = 60.0
"""No wait of these tests comes near."""


def test_so_many_run_at_a_time_and_no_more_when_there_are_more() -> None:
    full = threading.Barrier(SIDE_BY_SIDE)
    lock, running, most = threading.Lock(), [0], [0]

    def task() -> None:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        full.wait(SURE_S)
        with lock:
            running[0] -= 1

    together([task] * (3 * SIDE_BY_SIDE))
    assert most == [SIDE_BY_SIDE]


def test_the_failure_is_raised_when_what_runs_has_ended() -> None:
    failed, ended = threading.Event(), threading.Event()

    def fail() -> None:
        failed.set()
        raise ValueError("told")

    def outlast() -> None:
        failed.wait(SURE_S)
        sum(range(1_000_000))
        ended.set()

    with pytest.raises(ValueError, match="told"):
        together([outlast, fail])
    assert ended.is_set()
