"""Whether a process takes more and more, on made-up samples."""

import pytest

from load.growth import Sample, growth, lives, steadiness

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


def calm(*, bytes_a_look: int = 0, blocks_a_look: int = 0, files: int = 0, warm: int = 0) -> list[Sample]:
    """An hour of looks, one each 10 s; within the first ten minutes `warm` bytes come at each."""
    return [
        Sample(
            10.0 * at, 0, 7, 80 * MB + bytes_a_look * at + warm * min(at, 60), 40 + files * (at > 200), 3, 30,
            500_000 + blocks_a_look * at,
        )
        for at in range(361)
    ]  # fmt: skip


def test_nothing_has_grown_when_only_the_warm_up_took_memory() -> None:
    found = steadiness(calm(warm=100_000), 0)

    assert not found.is_broken
    assert abs(found.slope) < 1


def test_memory_is_told_when_it_rises_by_two_megabytes_an_hour() -> None:
    found = steadiness(calm(bytes_a_look=2 * MB // 360), 0)

    assert found.is_broken
    assert "+2.00 MB an hour" in found.words


@pytest.mark.parametrize("grown", [calm(blocks_a_look=20), calm(files=1)])
def test_blocks_and_descriptors_are_told_when_they_grow(grown: list[Sample]) -> None:
    assert steadiness(grown, 0).is_broken


def test_no_verdict_is_given_when_there_are_few_looks() -> None:
    with pytest.raises(ValueError, match="looks at replica 0"):
        steadiness(calm()[:15], 0)
