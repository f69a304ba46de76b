"""The comparison of policies: what counts of a run, what is gone on with, and a page that says what its JSON says."""

import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from load.compare import page, pictures, simulated, tables
from load.compare.__main__ import SHOWN, main
from load.compare.book import Book, digest, dumped
from load.compare.families import FAMILIES, REST, by_family, family_of
from load.compare.outcome import outcome
from load.compare.real import curve, overload
from load.compare.simulated import Job
from load.control.results import worded
from proxy.simulation import scenario_file
from proxy.simulation.figures import Figures
from proxy.simulation.scenario import Autoscale, Expectation, Queue, Scenario, Stream
from proxy.simulation.trace import QueueSample, Trace
from tests.support.process_group import START_SECONDS, process_group
from tests.support.scenarios import ORDERS, plain

CHECKOUT = Path(__file__).resolve().parents[3]
DOCS = CHECKOUT / "docs"
END_SECONDS = 20.0
SCENARIO = plain(
    Expectation(figure="P1.consumed_p99", at_most=0.15, since=2, until=4, why="for a test"),
    Expectation(figure="orders.consumed_p99", at_most=0.15, since=6, until=8, why="for a test"),
    Expectation(figure="use", at_least=0.9, since=2, until=6, why="for a test", fails_with_control_off=True),
    streams={"orders": ORDERS, "rest": Stream(priority="P3", rate=80.0)},
)


def trace(wait: float = 0.05, late: float = 0.05) -> Trace:
    """Return a run in which orders wait, from second 5 on another time."""
    seen = Trace(SCENARIO.seconds)
    for tick in range(200):
        at = tick * 0.05
        seen.queues["work"].append(QueueSample(at, 5, 0, 100.0, 0.0, work=5))
        seen.consumed["orders"].add(at, wait if at < 5 else late)
        seen.offered["orders"].add(at)
        seen.worked["work"].add(at, 4)
    return seen


def found(seen: Trace, scenario: Scenario = SCENARIO) -> dict[str, Any]:
    figures = Figures(scenario, seen)
    return outcome(scenario, seen, [figures.judge(one) for one in scenario.expect])


def run(p1_p99: float = 0.1, use: float = 1.0, **others: Any) -> dict[str, Any]:
    return {
        "p1_p99": p1_p99, "p1_goodput": 1.0, "use": use, "p3_share": 0.5, "queue_delay_p99": 0.1, "nack_ratio": 0.0,
        "settled": {}, "lost": 0, "expected": 3, "missed": [], "took": 1.0, "code": "abc",
    } | others  # fmt: skip


def content(**runs: Any) -> dict[str, Any]:
    one = {"digest": "d", "seconds": 10, "classes": ["P1", "P3"], "runs": runs}
    return {"measured": "comparison", "simulated": {"saw": one}, "real": {}}


# -- what counts of a run


def test_the_worst_window_counts_when_a_scenario_judges_several() -> None:
    assert found(trace(0.05, 0.3))["p1_p99"] == pytest.approx(0.3)
    assert found(trace(0.4, 0.3))["p1_p99"] == pytest.approx(0.4)
    assert [name for name, _ in found(trace(0.05, 0.3))["missed"]] == ["orders.consumed_p99", "use"]


def test_all_after_the_warm_up_counts_when_a_scenario_judges_none() -> None:
    unjudged = SCENARIO.model_copy(update={"expect": SCENARIO.expect[2:]})
    assert found(trace(0.05, 0.3), unjudged)["p1_p99"] == pytest.approx(0.3)


def test_no_share_of_the_last_class_is_told_when_there_is_one_class_only() -> None:
    alone = SCENARIO.model_copy(update={"streams": {"orders": SCENARIO.streams["orders"]}})
    assert found(trace())["p3_share"] == 0
    assert found(trace(), alone)["p3_share"] is None


def test_the_curve_has_the_longest_wait_of_each_second_when_there_was_one() -> None:
    assert curve(SCENARIO, trace(0.05, 0.3)) == [0.05] * 5 + [0.3] * 5
    assert curve(SCENARIO, Trace(SCENARIO.seconds)) == [None] * 10


def test_an_overload_lasts_while_more_is_due_than_consumers_take() -> None:
    seen = trace()
    assert overload(SCENARIO, seen) is None
    seen.offered["rest"].add(4.5, 90)
    seen.offered["rest"].add(6.5, 90)
    assert overload(SCENARIO, seen) == [4, 7]


@pytest.mark.parametrize(
    ("policy", "queue", "is_unfit"),
    [
        ("per_type", Queue(capacity=100, bound=None), True),
        ("per_type", Queue(capacity=100, sheds=True), True),
        ("per_type", Queue(capacity=100), False),
        ("aimd", Queue(capacity=100, bound=None), False),
        ("static", Queue(capacity=100, autoscale=Autoscale(by="wanted", most=8)), True),
        ("cubic", Queue(capacity=100, autoscale=Autoscale(by="wanted", most=8)), False),
        ("static", Queue(capacity=100, autoscale=Autoscale(by="lag", most=8)), False),
    ],
)
def test_it_is_said_when_a_policy_can_show_nothing(policy: str, queue: Queue, *, is_unfit: bool) -> None:
    scenario = SCENARIO.model_copy(update={"queues": {"work": queue}})
    assert (simulated.unfit(scenario, policy) is not None) is is_unfit


# -- what is there already


def test_only_what_is_not_known_is_done_when_it_goes_on(tmp_path: Path) -> None:
    book = Book(tmp_path / "book.json")
    its = digest(scenario_file.shipped()["saw"])
    book.simulated("saw", {"digest": its}, "aimd", run())

    again = Book(tmp_path / "book.json")
    assert list(simulated.missing(again, ["saw"], ["aimd", "cubic"])) == [Job("saw", "cubic")]
    again.simulated("saw", {"digest": "of an older text"}, "aimd", run())
    assert list(simulated.missing(again, ["saw"], ["aimd"])) == [Job("saw", "aimd")]


def test_runs_of_an_older_text_go_when_a_newer_one_was_run(tmp_path: Path) -> None:
    book = Book(tmp_path / "book.json")
    book.simulated("saw", {"digest": "old"}, "aimd", run())
    book.simulated("saw", {"digest": "new"}, "cubic", run())
    assert list(book.content["simulated"]["saw"]["runs"]) == ["cubic"]


def test_every_policy_and_law_is_compared_and_the_default_once() -> None:
    policies = simulated.compared()
    assert {"static", "per_type", "aimd", "cubic", "vegas", "vegas_capped"} <= set(policies)
    assert not {"class_budget", "shadow"} & set(policies)


@pytest.mark.series
def test_a_short_scenario_is_simulated_and_written_when_it_is_asked_for(tmp_path: Path) -> None:
    arguments = ["unloaded", "--only", "simulated", "--policy", "aimd", "--processes", "1", "--out", str(tmp_path)]
    assert main(arguments) == 0
    known = Book(tmp_path / "comparison.json").content["simulated"]["unloaded"]["runs"]["aimd"]
    assert known["missed"] == []
    assert known["p1_p99"] < 0.05
    assert "| unloaded | " in (tmp_path / "comparison.md").read_text()
    assert (
        pictures.digest(Book(tmp_path / "comparison.json").content, "steady")
        in (tmp_path / "pictures" / "compare-steady.svg").read_text()
    )


@pytest.mark.series
@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_book_is_whole_and_no_process_left_when_it_is_interrupted(signum: int, code: int, tmp_path: Path) -> None:
    several = ("unloaded", "hour-of-types", "--policy", "aimd", "--policy", "static", "--processes", "2")
    command = ("-m", "load.compare", *several, "--only", "simulated", "--out", str(tmp_path))
    with process_group(*command, cwd=CHECKOUT) as group:
        group.until((tmp_path / "comparison.json").exists, deadline=START_SECONDS)
        group.process.send_signal(signum)
        assert group.process.wait(END_SECONDS) == code
        group.until(lambda: not group.living, deadline=END_SECONDS)
        assert group.process.stdout is not None
        *_, last = group.process.stdout.read().splitlines()
        assert last.startswith("interrupted; the same command goes on")
    assert [path.name for path in tmp_path.iterdir()] == ["comparison.json"]
    assert Book(tmp_path / "comparison.json").content["simulated"]


@pytest.mark.parametrize("text", ["", "[]", '{"measured": "control"}'])
def test_the_mistake_is_said_when_the_file_is_no_comparison(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "comparison.json").write_text(text)
    assert main(["--only", "page", "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"{tmp_path}/comparison.json is no comparison; name another, or remove it\n"
    assert (tmp_path / "comparison.json").read_text() == text


def test_every_unknown_scenario_is_named_when_there_are_some(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "simulated", "saww", "saw", "sin"]) == 2
    assert [line.split()[0] for line in capsys.readouterr().err.splitlines()] == ["saww", "sin"]


# -- the tables


def test_a_law_is_better_only_when_nothing_is_paid_for_it() -> None:
    better = content(aimd=run(0.2), cubic=run(0.1), vegas=run(0.1, use=0.9), static=run(0.1, p1_goodput=0.5))
    lines = tables.better(better["simulated"])[2:]
    assert [line.split(" | ")[1] for line in lines] == ["`cubic`"]
    for own, other in ((0.2, 0.19), (0.008, 0.004)):
        assert tables.better(content(aimd=run(own), cubic=run(other))["simulated"])[2:] == []


def test_policies_share_a_column_when_their_figures_are_the_same() -> None:
    heading, _, row = tables.compact(content(aimd=run(), vegas=run(), cubic=run(0.3))["simulated"], ["saw"])
    assert heading == "| P1 P99, use | aimd, vegas | cubic |"
    assert row == "| saw | 100 ms, 100.0 % | 300 ms, 100.0 % |"


def test_misses_and_losses_stand_in_the_table_when_there_are_some() -> None:
    bad = run(lost=2, missed=[["use", 0.5]])
    assert tables.cell(bad) == "100 ms, 100.0 %, **2 LOST**, **1 of 3 missed**"
    assert tables.cell({"refused": "no such key", "took": 0.0}) == "-"
    assert tables.notes(content(aimd={"refused": "no such key"})["simulated"], ["saw"]) == [
        "`aimd` in saw: no such key."
    ]


def test_every_shipped_scenario_has_one_family_when_its_name_says_which() -> None:
    named = [name for its in by_family(scenario_file.shipped()).values() for name in its]
    assert sorted(named) == sorted(scenario_file.shipped())
    assert family_of("something-else") is REST
    assert {family_of(name).name for name in ("saw", "cost-p1", "replicas-16", "types-10000")} == {
        "steps", "cost", "replicas", "types",
    }  # fmt: skip


def test_a_place_that_nobody_knows_is_refused_when_the_template_names_it() -> None:
    with pytest.raises(ValueError, match=r"nobody knows what stands at \{\{familly steady\}\}"):
        page.page(content(), "{{familly steady}}")


def test_a_figure_stands_where_the_words_name_it() -> None:
    words = "{{p1_p99 saw aimd}}, {{use saw aimd}}, {{use saw nobody}}, {{real use saw aimd}}"
    assert page.page(content(aimd=run(0.123, 0.987)), words) == "123 ms, 98.7 %, -, -"


def test_what_was_not_run_is_said_when_the_others_were() -> None:
    some = content(aimd=run(), cubic=run())
    some["simulated"]["sine"] = {"runs": {"aimd": run()}}
    assert page.page(some, "{{about}}").endswith("Tidegate abc. Not run: sine under cubic.")
    del some["simulated"]["sine"]
    assert page.page(some, "{{about}}").endswith("Tidegate abc.")


# -- the page in the repository


def test_the_page_says_what_its_figures_say() -> None:
    book = json.loads((DOCS / "comparison.json").read_text(encoding="utf-8"))
    template = page.TEMPLATE.read_text(encoding="utf-8")
    assert (DOCS / "comparison.md").read_text(encoding="utf-8") == page.page(book, template), (
        "make it anew: python -m load.compare --only page --out docs"
    )
    assert (DOCS / "comparison.json").read_text(encoding="utf-8") == dumped(book)


def test_the_pictures_show_what_the_figures_say() -> None:
    book = json.loads((DOCS / "comparison.json").read_text(encoding="utf-8"))
    shown = {f"compare-{family}": family for family in page.pictures(book)}
    shown |= {f"p1-{theme}": SHOWN for theme in ("light", "dark")}
    there = {path.stem for path in (DOCS / "pictures").glob("*.svg")}
    assert {name for name in there if name.startswith(("compare-", "p1-"))} == set(shown)
    for name, of in shown.items():
        assert pictures.digest(book, of) in (DOCS / "pictures" / f"{name}.svg").read_text(encoding="utf-8"), name


def test_no_place_of_the_page_is_empty_and_every_family_with_runs_has_its_chapter() -> None:
    book = json.loads((DOCS / "comparison.json").read_text(encoding="utf-8"))
    template = page.TEMPLATE.read_text(encoding="utf-8")
    for place in re.findall(r"\{\{(?:real )?\w+ [\w-]+ \w+\}\}", template):
        assert page.page(book, place) != "-", place
    chapters = re.findall(r"^## (.+)\n(?:(?!## ).*\n)*?\{\{family (\w+)\}\}", template, re.MULTILINE)
    titles = {one.name: one.title for one in (*FAMILIES, REST)}
    assert all(titles[family] == title for title, family in chapters)
    assert set(page.pictures(book)) <= {family for _, family in chapters}


def test_the_readme_tells_the_figures_of_its_picture() -> None:
    book = json.loads((DOCS / "comparison.json").read_text(encoding="utf-8"))
    readme = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    figures = [page.page(book, f"{{{{real p1_p99 {SHOWN} {policy}}}}}") for policy in ("static", "per_type", "aimd")]
    figures.append(worded("consumed", book["real"][SHOWN]["unloaded_p1_p99"]))
    told = (
        r"P99: (.+?) with control off, (.+?) under the seed's loop.*?, ([\d.,]+ m?s) under `class_budget`"
        r".*?it is (.+?) without any campaign"
    )
    assert re.findall(told, readme) == [tuple(figures)]
