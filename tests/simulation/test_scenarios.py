"""The scenarios that ship: all can be read; the quick ones keep what they promise, and fail with control off."""

import hashlib
import os
import signal
import subprocess
import sys
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest

from proxy.simulation import scenario_file
from proxy.simulation.command import main
from proxy.simulation.figures import Figures
from proxy.simulation.rivals import RIVALS
from proxy.simulation.scenario import Scenario
from proxy.simulation.scenario_run import simulate

QUICK = ("flash-campaign", "types-one-each", "top-class-start", "cost-p3", "catch-up", "consumers-late-unlimited")
"""One of each kind; each runs for some seconds."""
OTHERS = (
    "capacity-half",
    "queues-fan-out-min",
    "replicas-2-demand-60",
    "cost-p1",
    "cost-p3-swings",
    "cost-p1-swings",
    "catch-up-last",
    "retention-near",
)
"""The same kinds in other circumstances."""
LARGE = ("types-thousand", "types-ten-thousand", "routes-twenty", "replicas-16", "replicas-50")
"""Each runs for a minute or more."""


@cache
def judged(name: str, policy: str) -> dict[str, bool]:
    """Return whether each expectation of a scenario holds."""
    scenario = loaded(name)
    alone = scenario_file.unloaded(scenario)
    unloaded = Figures(alone, simulate(alone, "static"))
    figures = Figures(scenario, simulate(scenario, policy))
    return {one.figure: figures.judge(one, unloaded).holds for one in scenario.expect}


def loaded(name: str) -> Scenario:
    return scenario_file.load(scenario_file.shipped()[name])


@pytest.mark.parametrize("name", scenario_file.shipped())
def test_scenario_can_be_read_and_is_called_like_its_file_when_it_ships(name: str) -> None:
    assert loaded(name).name == name


@pytest.mark.parametrize(
    "name",
    [*QUICK, *(pytest.param(name, marks=[pytest.mark.long, pytest.mark.timeout(1_800)]) for name in (*OTHERS, *LARGE))],
)
def test_every_expectation_holds_when_the_default_policy_runs_it(name: str) -> None:
    missed = [figure for figure, holds in judged(name, "class_budget").items() if not holds]
    assert missed == []


def test_a_backlog_delays_what_is_live_of_its_class_when_the_tier_is_off() -> None:
    scenario = loaded("catch-up").model_copy(update={"settings": {"class_budget": {"catch_up": {"after": "off"}}}})
    figures = Figures(scenario, simulate(scenario, "class_budget"))
    assert [one.figure for one in scenario.expect if not figures.judge(one, figures).holds] == ["alerts.consumed_p99"]


@pytest.mark.long
def test_the_log_drops_unread_events_of_the_lowest_class_when_nobody_lifts_it() -> None:
    # A loss is noticed by the next read, which in one run of three comes after its end.
    missed = set()
    for seed in (1, 2, 3):
        scenario = loaded("retention-near").model_copy(
            update={"settings": {"class_budget": {"catch_up": {"after": "off"}}}, "seed": seed}
        )
        figures = Figures(scenario, simulate(scenario, "class_budget"))
        missed |= {one.figure for one in scenario.expect if not figures.judge(one, figures).holds}
    assert missed == {"truncated", "news.goodput"}


@pytest.mark.parametrize(
    "name",
    [
        *("flash-campaign", "types-one-each", "cost-p3"),
        *(pytest.param(name, marks=pytest.mark.long) for name in OTHERS if name.startswith(("cap", "cost", "queues"))),
    ],
)
def test_marked_figures_fail_when_control_is_off(name: str) -> None:
    marked = {one.figure for one in loaded(name).expect if one.fails_with_control_off}
    held = {figure for figure, holds in judged(name, "static").items() if holds}
    assert marked
    assert not marked & held


@pytest.mark.parametrize(
    ("name", "missed"),
    [
        ("cost-p3", {"use"}),
        pytest.param("cost-p3-swings", {"P1.consumed_p99", "use", "queue_delay_p99"}, marks=pytest.mark.long),
        pytest.param("cost-p1-swings", {"P1.consumed_p99", "use", "queue_delay_p99"}, marks=pytest.mark.long),
    ],
)
def test_figures_fail_when_tidegate_is_not_told_what_events_cost(name: str, missed: set[str]) -> None:
    scenario = loaded(name)
    untold = {f"{stream}-types": {"cost": 1} for stream in scenario.streams}
    alone = scenario_file.unloaded(scenario)
    unloaded = Figures(alone, simulate(alone, "static"))
    figures = Figures(
        scenario, simulate(scenario.model_copy(update={"settings": {"event_types": untold}}), "class_budget")
    )
    assert {one.figure for one in scenario.expect if not figures.judge(one, unloaded).holds} == missed


@pytest.mark.parametrize("rival", RIVALS)
def test_what_is_rejected_waits_in_the_log_and_important_events_pass_when_a_rival_runs_it(rival: str) -> None:
    scenario = loaded("flash-campaign").model_copy(update={"seconds": 30.0})
    figures = Figures(scenario, simulate(scenario, rival))
    found = {name: figures.value(name) or 0.0 for name in ("lost", "duplicates", "P1.goodput", "nack_ratio", "use")}
    assert (found["lost"], found["duplicates"]) == (0, 0)
    assert found["P1.goodput"] > 0.85, "with control off, 0.83"
    assert found["nack_ratio"] < 0.4, "with control off, 0.78"
    assert found["use"] > 0.85, "of six seeds 0.88 to 0.94"


def test_summary_and_exit_code_tell_when_an_expectation_is_missed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["consumers-stop", "--policy", "static"]) == 1
    told = capsys.readouterr().out
    assert "MISSED" in told
    assert "who stops does not try" in told


def test_every_shipped_scenario_is_listed_when_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert {line.split(" (")[0] for line in told if not line.startswith(" ")} == set(scenario_file.shipped())


def tidegate(*arguments: str) -> subprocess.Popen[str]:
    """Start the command as a shell would."""
    return subprocess.Popen(
        [sys.executable, "-m", "proxy", *arguments],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[2])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_nothing_is_complained_of_when_the_reader_of_the_output_has_enough() -> None:
    with tidegate("simulate", "--list") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert not process.stderr.read()
        assert process.wait(30) == 128 + signal.SIGPIPE


def test_no_run_is_made_when_its_results_could_not_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    for option, place, why in (
        ("--json", tmp_path, "is a directory"),
        ("--json", tmp_path / "file" / "x", "not a directory"),
        ("--json", tmp_path / "no" / "x", "no such file or directory"),
        ("--out", tmp_path / "file", "file exists"),
    ):
        assert main(["unloaded", option, str(place)]) == 2
        told = capsys.readouterr()
        assert not told.out, "no run was made for nothing"
        assert f"{option}: {place} can't be written: {why}; name another place" in told.err
    assert [one.name for one in tmp_path.iterdir()] == ["file"], "nothing was made"


_FINGERPRINT = """
from tests.simulation.test_scenarios import fingerprint
print(fingerprint("replicas-2-demand-60"))
"""


def fingerprint(name: str) -> str:
    """Return a digest of everything that was seen in the first seconds of a scenario."""
    scenario = loaded(name).model_copy(update={"seconds": 8.0})
    trace = simulate(scenario, "class_budget")
    seen = repr([getattr(trace, field.name) for field in fields(trace) if field.name in {"queues", "told", "lost"}])
    times = repr([(name, times.at, times.seconds) for name, times in trace.consumed.items()])
    return hashlib.sha256((seen + times).encode()).hexdigest()


def test_history_is_the_same_to_the_byte_when_only_the_hash_seed_differs() -> None:
    here = str(Path(__file__).resolve().parents[2])
    digests = {
        subprocess.run(
            [sys.executable, "-c", _FINGERPRINT],
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": here},
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
        ).stdout.splitlines()[-1]
        for seed in ("1", "2")
    }
    assert len(digests) == 1
