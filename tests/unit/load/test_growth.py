"""Whether a process takes more and more, on made-up samples."""

import pytest

from load.growth import Sample, growth, lives

MB = 1_000_000


def samples(first: int, last: int, *, more_files: int = 0, more_tasks: int = 0) -> list[Sample]:
    """A hundred looks; memory in MB rises evenly between two values, the rest by as many as are told at half-time."""
    return [
        Sample(
            at, 0, 7, MB * (first + (last - first) * at // 100), 40 + more_files * (at > 50), 3,
            None if at % 7 == 0 else 30 + more_tasks * (at > 50),
        )
        for at in range(101)
    ]  # fmt: skip


def test_what_stays_as_it_is_has_not_grown() -> None:
    found = growth(samples(80, 80), 0)

    assert not found.is_broken
    assert found.share == 0


def test_memory_that_rises_all_the_time_is_told() -> None:
    found = growth(samples(80, 90), 0)

    assert found.is_broken
    assert "+9.9%" in found.words


def test_the_warm_up_does_not_count() -> None:
    warm = [one._replace(memory=40 * MB) if one.at < 10 else one for one in samples(80, 80)]

    assert not growth(warm, 0).is_broken


def test_a_descriptor_that_is_not_given_back_is_told() -> None:
    assert growth(samples(80, 80, more_files=1), 0).is_broken


def test_a_task_that_never_ends_is_told() -> None:
    found = growth(samples(80, 80, more_tasks=1), 0)

    assert found.is_broken
    assert "30 tasks, 31 at the end" in found.words


def test_nobody_is_judged_when_no_process_told_its_tasks() -> None:
    silent = [one._replace(tasks=None) for one in samples(80, 80)]

    with pytest.raises(ValueError, match="tasks"):
        growth(silent, 0)


def test_a_new_process_is_a_new_life() -> None:
    first, second = Sample(0, 1, 7, 1, 1, 1), Sample(2, 1, 8, 1, 1, 1)

    assert lives([first, second]) == {(1, 7): [first], (1, 8): [second]}
