"""From runs to ratios: medians of each contender, goals judged on the right side and only where they hold."""

import pytest

from load.ratios import GOALS, Goal, Run, cells, judge
from load.tables import throughput_table, verdict_lines


def run(contender: str, rate: float, *, cpu: float = 1.0, size: int = 256, number: int = 0, rss: float = 50) -> Run:
    return Run(contender, "classic", size, number, rate=rate, cpu=cpu, rabbitmq_cpu=5.0, peak_rss_mb=rss, start_cpu=0.5)


def test_a_cell_gives_the_median_and_half_the_span_when_rounds_differ() -> None:
    found = cells([run("raw", rate, number=n, rss=rss) for n, (rate, rss) in enumerate([(90, 1), (100, 3), (150, 2)])])
    cell = found["classic", 256]["raw"]

    assert cell.rate == 100
    assert cell.spread == pytest.approx(0.3)
    assert cell.peak_rss_mb == 3


def test_settings_are_kept_apart() -> None:
    found = cells([run("raw", 1, size=256), run("raw", 2, size=1024)])

    assert list(found) == [("classic", 256), ("classic", 1024)]
    assert found["classic", 1024]["raw"].rate == 2


def test_ratios_are_of_medians_when_contenders_have_outliers() -> None:
    runs = [run("tidegate", rate) for rate in (20, 21, 90)] + [run("naive", rate) for rate in (1, 7, 8)]

    assert judge(cells(runs), [Goal("rate", "naive", 2.5, at_least=True)])[0].ratio == pytest.approx(3)


@pytest.mark.parametrize(
    ("tidegate", "naive", "raw", "expected"),
    [
        ((25.0, 0.2), (10.0, 1.0), 35.0, [True, True, True]),
        ((24.9, 0.2), (10.0, 1.0), 35.0, [False, True, True]),
        ((25.0, 0.2), (10.0, 1.0), 36.0, [True, False, True]),
        ((25.0, 0.21), (10.0, 1.0), 35.0, [True, True, False]),
    ],
)
def test_each_goal_is_missed_by_itself_when_its_ratio_is_on_the_wrong_side(
    tidegate: tuple[float, float], naive: tuple[float, float], raw: float, expected: list[bool]
) -> None:
    runs = [
        run("tidegate", tidegate[0], cpu=tidegate[1]),
        run("naive", naive[0], cpu=naive[1]),
        run("raw", raw),
    ]  # fmt: skip

    assert [one.met for one in judge(cells(runs))] == expected


def test_a_goal_is_shown_and_not_judged_when_the_size_is_another() -> None:
    runs = [run(name, 1.0, size=1024) for name in ("tidegate", "naive", "raw")]

    assert [one.met for one in judge(cells(runs))] == [None] * len(GOALS)


def test_a_ratio_is_left_out_when_a_contender_did_not_run() -> None:
    assert judge(cells([run("tidegate", 1.0), run("raw", 1.0)]))[0].goal.over == "raw"
    assert judge(cells([run("naive", 1.0), run("raw", 1.0)])) == []


def test_tables_say_what_was_measured_and_what_was_missed() -> None:
    found = cells([run("tidegate", 10_000.0, number=n) for n in range(3)] + [run("naive", 9_000.0)])

    assert "classic queue, 256 B, median of 3 rounds" in throughput_table(found)
    assert "10,000" in throughput_table(found)
    assert "MISSED" in verdict_lines(judge(found))
