"""From runs to ratios: medians of each contender, goals judged on the right side and only where they hold."""

import pytest

from load.ratios import Goal, Judged, Run, What, cells, judge
from load.tables import throughput_table, verdict_lines

RAW = Goal("rate", "raw", {"classic": 0.5})
CHEAP = Goal("cpu", "raw", {"classic": 2.0})


def run(
    contender: str, rate: float, *, cpu: float = 1.0, size: int = 256, number: int = 1, rss: float = 50, late: int = 0
) -> Run:
    return Run(contender, "classic", size, number, rate, cpu, 5.0, 1.0, rss, 0.5, delivered=100, late=late)


def judged(runs: list[Run], *goals: Goal) -> list[Judged]:
    return judge(cells(runs), goals)


def test_a_cell_gives_the_median_and_half_the_span_when_rounds_differ() -> None:
    found = cells(
        [run("raw", rate, number=n, rss=rss) for n, (rate, rss) in enumerate([(90, 1), (100, 3), (150, 2)], 1)]
    )
    cell = found["classic", 256]["raw"]

    assert cell.middle("rate") == 100
    assert cell.spread() == pytest.approx(0.3)
    assert cell.peak_rss_mb == 3


def test_the_first_round_is_discarded_when_cells_are_made() -> None:
    found = cells([run("raw", 1, number=0), run("raw", 2, number=1)])

    assert [one.rate for one in found["classic", 256]["raw"].runs] == [2]


def test_settings_are_kept_apart() -> None:
    found = cells([run("raw", 1, size=256), run("raw", 2, size=1024)])

    assert list(found) == [("classic", 256), ("classic", 1024)]
    assert found["classic", 1024]["raw"].middle("rate") == 2


def test_ratios_are_of_medians_when_contenders_have_outliers() -> None:
    runs = [run("tidegate", rate) for rate in (20, 21, 90)] + [run("raw", rate) for rate in (1, 7, 8)]

    assert judged(runs, RAW)[0].ratio == pytest.approx(3)


@pytest.mark.parametrize(
    ("rate", "cpu", "expected"),
    [(5.0, 2.0, [True, True]), (4.9, 2.0, [False, True]), (5.0, 2.1, [True, False])],
)
def test_each_goal_is_missed_by_itself_when_its_ratio_is_on_the_wrong_side(
    rate: float, cpu: float, expected: list[bool]
) -> None:
    runs = [run("tidegate", rate, cpu=cpu), run("raw", 10.0)]

    assert [one.met for one in judged(runs, RAW, CHEAP)] == expected


@pytest.mark.parametrize(("goal", "size"), [(RAW, 1024), (Goal("rate", "raw", {"quorum": 0.5}), 256)])
def test_a_ratio_is_shown_and_not_judged_when_the_goal_is_of_another_setting(goal: Goal, size: int) -> None:
    (one,) = judged([run(name, 1.0, size=size) for name in ("tidegate", "raw")], goal)

    assert (one.ratio, one.met) == (1.0, None)


@pytest.mark.parametrize("what", ["rate", "cpu"])
def test_a_ratio_is_not_measured_when_a_contender_did_not_run(what: What) -> None:
    found = judged([run("tidegate", 1.0), run("raw", 1.0)], Goal(what, "mq-bridge", {"classic": 1.0}))

    assert found[0].ratio is None
    assert "not measured" in verdict_lines(found)


def test_a_ratio_is_as_sure_as_both_of_its_contenders_when_rounds_differ() -> None:
    runs = [run("tidegate", rate) for rate in (9, 10, 11)] + [run("raw", rate) for rate in (8, 10, 12)]

    assert judged(runs, RAW)[0].spread == pytest.approx(0.3)


def test_tables_say_what_was_measured_what_was_missed_and_who_lost_the_order() -> None:
    runs = [run("tidegate", 10_000.0, number=n) for n in (1, 2, 3)] + [run("raw", 90_000.0, late=3)]
    table = throughput_table(cells(runs)).splitlines()

    assert table[0] == "classic queue, 256 B, median of 3 rounds"
    assert "10,000" in table[3]
    assert [line.split()[-1] for line in table[3:]] == ["kept", "lost"]
    assert "MISSED" in verdict_lines(judged(runs, RAW))
