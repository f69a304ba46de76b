"""The command: what it writes, what it says, and how it fails."""

import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyarrow import parquet

from proxy.reports import session
from proxy.reports.command import main, write_report
from proxy.reports.files import ReportError, log_files
from proxy.reports.findings import _notices
from proxy.reports.overview import CUT_SHORT
from proxy.reports.places import Places, looked_up

Make = Callable[..., Any]


def quiet(text: str) -> None:
    """Take progress lines and drop them."""


def lines_of(
    record: Make, seconds: int, *, slow: int = 1, budget: dict[str, Any] | None = None, **started: Any
) -> list[Any]:
    """A short run: P1 and P3, one event a second each, P3 bridged `slow` doublings later, congestion in the middle."""
    lines = [record("start", at_ms=1_000_000, **started)]
    for second in range(seconds):
        at_ms = 1_000_000 + 1_000 * (second + 1)
        for name, bucket in (("P1", 1_400), ("P3", 1_400 + 128 * slow)):
            counts = {"received": 1, "confirmed": 1, "publish_us": {600: 1}, "bridge_us": {bucket: 1}}
            event = {"type_": name.lower(), "class_": name, "id": f"{name}-0-{second}"}
            lines += [
                record("produced", at_ms=at_ms - 900, **event),
                record("consumed", at_ms=at_ms - 500, event_ms=at_ms - 900, **event),
                record("class", at_ms=at_ms, class_=name, lag=seconds - 1 - second, **counts),
                record("type", at_ms=at_ms, class_=name, type_=name.lower(), **counts),
            ]
        lines.append(record("route", at_ms=at_ms, depth=5 * second, confirmed=2))
        lines.append(record("verdict", at_ms=at_ms, congested=5 <= second < 9) | (budget or {}))
    return [*lines, record("stop", at_ms=1_000_000 + 1_000 * seconds, confirmed=2 * seconds)]


@pytest.fixture
def logs(write: Make, record: Make) -> Path:
    """A folder with a log of one record."""
    path: Path = write("logs/one.jsonl", [record("class")]).parent
    return path


@pytest.fixture
def fake_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str | None], None]:
    """Make a shell script the only Java there is, or leave none."""

    def install(script: str | None) -> None:
        java = tmp_path / "bin" / "java"
        java.parent.mkdir()
        if script is not None:
            java.write_text(f"#!/bin/sh\n{script}\n")
            java.chmod(0o755)
        monkeypatch.setenv("PATH", str(java.parent))
        monkeypatch.delenv("JAVA_HOME", raising=False)

    return install


@dataclass(frozen=True)
class Made:
    """A report that was made in this process."""

    logs: Path
    """A folder for each run."""
    out: Path
    said: str
    document: dict[str, Any]

    @property
    def page(self) -> str:
        return (self.out / "report.html").read_text()

    def of(self, table: str, run: str) -> list[dict[str, Any]]:
        return [row for row in self.document["tables"][table]["rows"] if row["run"] == run]

    def notices(self, run: str) -> list[str]:
        return [text for text in self.document["notices"] if text.startswith(f"{run}: ")]


def made(spark: Any, folder: Path, runs: Mapping[str, Sequence[Any]]) -> Made:
    """Make one report of runs, given by their lines."""
    out = folder / "out"
    (out / "tables" / "slo").mkdir(parents=True)  # an earlier report's
    for run, lines in runs.items():
        (folder / run).mkdir()
        text = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        (folder / run / "one.jsonl").write_text("".join(f"{line}\n" for line in text))
    files = {run: log_files([str(folder / run)]) for run in runs}
    with contextlib.redirect_stdout(io.StringIO()) as said:
        write_report(spark, files, str(out), folder / "copy.json", quiet)
    document = json.loads((out / "report.json").read_text())
    assert json.loads((folder / "copy.json").read_text()) == document
    return Made(folder, out, said.getvalue(), document)


@pytest.fixture(scope="module")
def steered(spark: Any, record: Make, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A report of two runs, one with targets and one under class_budget."""
    slos = {
        "P1": {"within_s": 0.2, "share": 0.9, "judges": "bridge"},
        "P3": {"within_s": 0.3, "share": 0.9, "judges": "consumed"},
    }
    found = {"queue_delay_us": 30_000, "drain_rate": 300.0, "cuts": 1, "hot": [], "depth": 9, "rates": {"P3": 250.5}}
    runs = {"static": lines_of(record, 20, slow=6, slos=slos), "per_type": lines_of(record, 12, budget=found)}
    return made(spark, tmp_path_factory.mktemp("steered"), runs)


HOSTILE = "<script>alert('x')</script>$_{\\frac\x1b[2J\u202e"


@pytest.fixture(scope="module")
def little(spark: Any, record: Make, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A report of runs that tell little: of positions, of next to nothing, of names that are markup. No targets."""
    letter = {"first": 3, "end": 4, "count": 1, "reason": "refused"}
    counts = {"commits": 1, "delivered": 8, "dead_lettered": {"refused": 1}, "letters": [letter]}
    part = {"partition": 0, "epoch": 1, "topic_id": "id", "first": 0, "end": 10, **counts}
    positions = [record("class"), record("assigned", end=30), record("committed", ranges=[part])]
    positions.append(record("assigned", instance="two", first=25, committed=20, end=30))
    positions.append(record("intervention", id="beef", why="flood"))
    positions.append(record("rewind", first=0, end=3, count=3, type="order", by="bob"))
    scanty = [record("start", at_ms=0), record("class", received=3, confirmed=2, publish_us={5: 1})]
    scanty += [record("drops", records=7, files=2), '{"v":1,"ki']
    hostile = [record("class", class_=HOSTILE, received=1), record("route", route=HOSTILE, depth=3), "<b>no record"]
    hostile.append(record("verdict", route=HOSTILE, congested=True))
    killed = [record("start", at_ms=0), record("class", received=3), record("type", at_ms=900, received=2)]
    runs = {"positions": positions, "scanty": scanty, "hostile": hostile, "killed": killed}
    return made(spark, tmp_path_factory.mktemp("little"), runs)


def test_two_runs_stand_side_by_side_in_every_output(steered: Made) -> None:
    document = steered.document
    assert document["classes"] == ["P1", "P3"]
    assert [run["name"] for run in document["runs"]] == ["static", "per_type"]
    rows = [(row["class"], row["run"]) for row in document["per_class"]]
    assert rows == [("P1", "static"), ("P1", "per_type"), ("P3", "static"), ("P3", "per_type")]
    first = document["per_class"][0]
    counts = ("produced", "delivered", "lost", "duplicated", "received", "confirmed")
    assert [first[name] for name in counts] == [20, 20, 0, 0, 20, 20]
    assert (first["consumed_p50_ms"], first["consumed_max_ms"]) == (400.0, 400.0)
    assert [(row["run"], row["from_s"], row["to_s"]) for row in document["tables"]["episodes"]["rows"]] == [
        ("per_type", 5.9, 9.9),
        ("static", 5.9, 9.9),
    ]
    assert document["notices"] == []
    assert {row["difference"] for row in document["tables"]["cross_checks"]["rows"]} == {0}

    for title in (
        "Consumed time P99",
        "Bridge time P99",
        "Queue delay",
        "Queue depth",
        "Log backlog",
        "Events a second",
        "Rates of route main",
        "In flight",
    ):
        assert f'"title":"{title}' in steered.page
    assert [row["of"] for row in document["tables"]["episode_verdicts"]["rows"][:1]] == [6]
    assert (steered.out / "report.png").read_bytes().startswith(b"\x89PNG")
    assert re.search(r"^P3 +per_type +12 +12 +0 +0", steered.said, re.MULTILINE)
    assert "bridge time (event timestamp → confirm)" in steered.said
    for name, content in document["tables"].items():
        assert parquet.read_table(steered.out / "tables" / name).num_rows == content["total"]


def test_a_target_is_told_in_every_output_when_there_is_one(steered: Made) -> None:
    rows = {(row["run"], row["class"], row["scope"]): row for row in steered.document["tables"]["slo"]["rows"]}
    # The episode, 00:16:46 to 00:16:50, touches the only minute there is.
    assert [(*key, row["judged"], row["missed"], row["burn"]) for key, row in rows.items()] == [
        ("static", "P1", "all", 20, 0, 0.0),
        ("static", "P1", "inside", 20, 0, 0.0),
        ("static", "P3", "all", 20, 20, 10.0),
        ("static", "P3", "inside", 20, 20, 10.0),
    ]
    first, second = steered.document["sentences"]
    assert first.startswith("static: P1 held its 200 ms of bridge time: 100 % of 20 events (target 90 %")
    assert second.startswith("static: P3 did not hold its 300 ms of consumed time: only 0.00 % of 20 events")
    for sentence in steered.document["sentences"]:
        assert sentence in steered.said
        assert f"<li>{sentence}</li>" in steered.page


def test_nothing_is_said_of_targets_when_nothing_is_promised(little: Made) -> None:
    assert little.document["sentences"] == []
    assert "slo" not in little.document["tables"]
    assert not (little.out / "tables" / "slo").exists()
    assert "Targets" not in little.page
    assert little.said.startswith("class ")


def test_the_ledger_stands_in_every_output_when_positions_are_told(little: Made) -> None:
    place = {"run": "positions", "group": "g", "topic": "order", "topic_id": "id", "partition": 0}
    of_letter = {"outcome": "dead_lettered", "reason": "refused"}
    assert little.document["tables"]["ledger"]["rows"] == [
        {**place, "first": 0, "end": 10, "outcome": "absent", "reason": None, "positions": 1},
        {**place, "first": 0, "end": 10, "outcome": "delivered", "reason": None, "positions": 8},
        {**place, "first": 3, "end": 4, **of_letter, "positions": 1},
        {**place, "first": 10, "end": 20, "outcome": "unrecorded", "reason": None, "positions": 10},
        {**place, "first": 20, "end": 25, "outcome": "passed_over", "reason": None, "positions": 5},
        {**place, "first": 25, "end": 30, "outcome": "in_log", "reason": None, "positions": 5},
    ]
    (found,) = little.document["tables"]["ledger_findings"]["rows"]
    assert (found["finding"], found["first"], found["end"]) == ("gap", 20, 25)
    of_topic = {"run": "positions", "group": "g", "topic": "order", **of_letter, "positions": 1}
    assert of_topic in little.document["tables"]["ledger_by_topic"]["rows"]
    said = "ledger: 5 positions passed over: 10 positions accounted for, 10 unrecorded, 5 still in the log; 1 findings"
    assert f"positions: {said}" in little.said
    assert f"<b>ledger</b>: {said.removeprefix('ledger: ')}" in little.page
    assert "Ledger per topic" in little.page


def test_what_people_did_stands_in_every_output(little: Made) -> None:
    rows = little.of("actions", "positions")
    assert [(row["action"], row["by"], row["why"], row["events"]) for row in rows] == [
        ("pause", "ann", "flood", None),
        ("rewind", "bob", None, 3),
    ]
    said = "what people did: 2 (pause of classes: P3 by ann (flood); rewind of types: order, 3 events by bob; "
    assert said in " | ".join(little.notices("positions"))
    assert said in little.said
    assert "What people did" in little.page


def test_what_is_not_known_is_said_and_not_shown_as_nought(little: Made) -> None:
    (row,) = (row for row in little.document["per_class"] if row["run"] == "scanty" and row["class"] == "P1")
    assert (row["received"], row["produced"], row["lost"], row["consumed_p50_ms"]) == (3, None, None, None)
    said = " | ".join(little.notices("scanty"))
    for fact in ("1 lines are no records", "dropped 7 records", "dropped 2 finished files", "no stop record"):
        assert fact in said
    assert "lost, duplicated and consumed time are not known" in said
    assert "Rates of" not in little.page, "nothing was under class_budget"
    assert "1 cross-checks differ (confirmed = samples of publish latency, of P1: 2, 1)" in said
    assert "lost " not in little.said.partition("\n")[0]


def test_sums_that_differ_are_explained_when_a_process_was_killed_before_its_last_records_of_types(
    little: Made,
) -> None:
    said = " | ".join(little.notices("killed"))
    assert "cross-checks differ, as records of types tell of longer intervals, and some last ones are missing (" in said
    assert "longer intervals" not in " | ".join(little.notices("scanty"))


def test_names_from_a_log_can_not_break_the_page_when_they_hold_markup(little: Made) -> None:
    assert little.page.count("<script") == 3
    assert "<b>no" not in little.page
    assert any(row["class"] == HOSTILE for row in little.of("traffic_by_class", "hostile"))


def test_names_from_a_log_can_not_steer_the_terminal_when_they_hold_control_characters(little: Made) -> None:
    assert "</script>" in little.said
    assert all(line.isprintable() for line in little.said.split("\n"))


def test_the_message_says_so_when_no_line_is_a_record(spark: Any, record: Make, tmp_path: Path) -> None:
    with pytest.raises(ReportError, match=r"one\.jsonl: no metric records \(3 lines are none\)"):
        made(spark, tmp_path, {"good": [record("class")], "bad": ["nothing", "to", "see"]})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give the folder of a metric log, or --run NAME=LOGS"),
        (["/no/such/folder"], "/no/such/folder: no such file or folder"),
        (["--run", "name"], "--run name: write NAME=LOGS"),
        (["--run", "a=/no/such/file"], "/no/such/file: no such file or folder"),
        ([__file__, "--json", "/no/such/copy.json"], "/no/such/copy.json: No such file or directory"),
        ([__file__, "--json", "/"], "/: Is a directory"),
        ([__file__, "--store", ""], "--out and --store take a folder or an address, not an empty name"),
        ([__file__, "--conf", "fs.s3a.endpoint=here"], "--conf fs.s3a.endpoint=here: write spark.NAME=VALUE"),
        ([__file__, "--conf", "spark.ui.enabled"], "--conf spark.ui.enabled: write spark.NAME=VALUE"),
    ],
)
def test_one_message_and_exit_code_2_when_the_arguments_lead_nowhere(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err == f"tidegate report: {message}\n"


def test_one_message_says_so_when_the_place_of_the_report_has_no_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([__file__, "--out", ""]) == 2
    assert "take a folder or an address, not an empty name" in capsys.readouterr().err


@pytest.mark.parametrize("below", [(), ("deeper",)])
def test_one_message_says_so_when_a_file_is_where_the_report_should_go(
    below: Sequence[str], logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    taken = tmp_path / "taken"
    taken.write_text("mine")
    out = taken.joinpath(*below)
    assert main([str(logs), "--out", str(out)]) == 2
    assert capsys.readouterr().err == f"tidegate report: --out {out}: there is a file in its place\n"
    assert taken.read_text() == "mine"


def test_the_extra_is_named_when_pyspark_is_not_installed(
    logs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(session, "find_spec", {}.get)
    assert main([str(logs), "--out", str(logs.parent / "out")]) == 2
    assert capsys.readouterr().err == (
        "tidegate report: a report needs pyspark and pyarrow and matplotlib: pip install 'tidegate[reports]'\n"
    )


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (None, "no Java found"),
        ("echo 'openjdk version \"11.0.2\" 2019-01-15' >&2", "is version 11: a report needs JDK 17 or newer"),
        ("echo 'java version \"1.8.0_292\"' >&2", "is version 8: a report needs JDK 17 or newer"),
        ("exit 1", "does not run"),
    ],
)
def test_the_jdk_is_named_when_java_is_missing_broken_or_too_old(
    script: str | None, message: str, logs: Path, fake_java: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_java(script)
    assert main([str(logs), "--out", str(logs.parent / "out")]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def own_process(folder: Path, *arguments: object) -> subprocess.Popen[str]:
    code = "import sys; from proxy.reports.command import main; sys.exit(main(sys.argv[1:]))"
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_one_line_says_so_and_java_ends_when_the_command_is_interrupted(logs: Path, tmp_path: Path) -> None:
    with own_process(tmp_path, logs, "--out", tmp_path / "out") as process:
        assert process.stderr is not None
        # The first table: from the last ones a quick machine has come to the end before it is told.
        while not process.stderr.readline().startswith("report: table "):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        said = [line for line in process.stderr if not line.startswith("report: ")]  # ends when Java lets go of it
    assert said == ["tidegate report: interrupted\n"]
    assert process.returncode == 130


def test_the_terminal_shows_progress_and_result_only_when_the_command_runs_on_its_own(
    write: Make, record: Make, tmp_path: Path
) -> None:
    write("logs/one.jsonl", lines_of(record, 3))
    out = tmp_path / "deep" / "out"
    before = set(tmp_path.iterdir())
    with own_process(tmp_path, tmp_path / "logs", "--out", out) as process:
        result, progress = process.communicate()
    assert process.returncode == 0
    assert all(line.startswith("report: ") for line in progress.splitlines())
    assert result.startswith("class  run")
    assert sorted(path.name for path in out.iterdir()) == ["report.html", "report.json", "report.png", "tables"]
    assert set(tmp_path.iterdir()) == before | {tmp_path / "deep"}


def test_the_report_is_the_same_when_logs_and_report_are_named_by_addresses(
    little: Made, spark: Any, tmp_path: Path
) -> None:
    places = Places(spark)
    runs = [run["name"] for run in little.document["runs"]]
    files = {run: looked_up([f"file://{little.logs}/{run}"], places) for run in runs}
    write_report(spark, files, f"file://{tmp_path}/deep/out", None, quiet)
    document = json.loads((tmp_path / "deep" / "out" / "report.json").read_text())
    assert document.pop("made_at") >= little.document["made_at"]
    assert document == {name: value for name, value in little.document.items() if name != "made_at"}
    for folder in (tmp_path / "deep" / "out", little.out):
        assert sorted(path.name for path in folder.iterdir()) == ["report.html", "report.json", "report.png", "tables"]
        assert {path.name for path in (folder / "tables").iterdir()} == set(document["tables"])


def test_a_file_that_is_cut_short_is_named_once_when_a_store_has_noted_it_just_now() -> None:
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    rows["rejected_lines"] = [
        {"run": "run", "file": file, "reason": CUT_SHORT, "lines": 0} for file in ("before.gz", "now.gz")
    ]
    analysis: Any = SimpleNamespace(tables=SimpleNamespace(rows=rows), lines={"run": Counter()}, going_on=frozenset())
    told = _notices(analysis, "run", ["/logs/now.gz"])
    assert told[0] == "run: could not be read to the end and were left out: /logs/now.gz, before.gz"
