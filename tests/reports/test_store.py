"""A store gives the report that reading everything anew gives, however it was fed, killed, merged and cleared."""

import gzip
import json
import random
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from proxy.reports import command
from proxy.reports import layers as layered
from proxy.reports.analysis import analyse
from proxy.reports.command import main
from proxy.reports.facts import by_grain, facts_of
from proxy.reports.files import ReportError, log_files
from proxy.reports.layers import Layers
from proxy.reports.retained import Keep, Window
from proxy.reports.store import merging, shelf
from proxy.reports.stored import Stored

Make = Callable[..., Any]
Rows = dict[str, list[str]]

HOUR_MS = 3_600_000
START_MS = 1_700_000_000_000 // HOUR_MS * HOUR_MS
HOURS = 6
"""So long that a point of a graph is minutes, and facts are used."""
STEP_MS = 30_000


def hour(record: Make, instance: str, number: int) -> list[dict[str, Any]]:
    """What one process wrote in one hour: congested for some minutes, with an incident and dead letters."""
    chance = random.Random(f"{instance} {number}")
    lines = [record("start", at_ms=START_MS, instance=instance)] if number == 0 else []
    for at_ms in range(START_MS + number * HOUR_MS, START_MS + (number + 1) * HOUR_MS, STEP_MS):
        when = {"at_ms": at_ms + STEP_MS, "instance": instance}
        buckets = {chance.randrange(300, 1500): chance.randrange(1, 9) for _ in range(4)}
        events = sum(buckets.values())
        for name in ("P1", "P3"):
            counts = {"received": events, "confirmed": events, "publish_us": buckets, "bridge_us": buckets}
            dead = {"expired": chance.randrange(2)}
            lines.append(record("class", class_=name, lag=chance.randrange(99), dead_lettered=dead, **counts, **when))
            lines.append(record("type", class_=name, type_=name.lower(), dead_lettered=dead, **counts, **when))
        lines.append(record("route", depth=chance.randrange(50), confirmed=2 * events, publish_us=buckets, **when))
        said = {"congested": chance.random() < 0.2, "drain_rate": 300.0 + chance.random(), "rates": {"P3": 90.0}}
        seen = {"queue_delay_us": chance.randrange(90_000), "cuts": 1, "cause": chance.choice(["depth", "blind"])}
        lines.append(record("verdict", **said, **seen, **when))
        if chance.random() < 0.05:
            lines.append(record("incident", route="main", detail=str(at_ms), **when))
    return lines


@pytest.fixture
def logs(tmp_path: Path, record: Make) -> dict[int, list[Path]]:
    """Files of each hour, not yet where the report looks for them."""
    found: dict[int, list[Path]] = {}
    for number in range(HOURS):
        for instance in ("one", "two"):
            path = tmp_path / "waiting" / f"{instance}-{number:06}.jsonl.gz"
            path.parent.mkdir(exist_ok=True)
            text = "".join(json.dumps(line) + "\n" for line in hour(record, instance, number))
            path.write_bytes(gzip.compress(text.encode()))
            found.setdefault(number, []).append(path)
    return found


@pytest.fixture
def report(spark: Any, tmp_path: Path) -> Callable[..., Rows]:
    """The tables of a report from the store, of the logs that have come so far."""

    def make(**changes: Any) -> Rows:
        stored = Stored(str(tmp_path / "store"), **changes)
        paths = {"run": [str(tmp_path / "logs")]}
        files = {run: log_files(some) for run, some in paths.items()}
        made = stored.analyse(spark, paths, files, str(tmp_path / "tables"), lambda _: None)
        return told(made.tables.rows)

    return make


@pytest.fixture
def facts(spark: Any, tmp_path: Path) -> Callable[..., Rows]:
    """What the store tells of each hour, of the logs that have come so far: less than a report, and sooner."""

    def make(**changes: Any) -> Rows:
        stored = Stored(str(tmp_path / "store"), **changes)
        paths = {"run": [str(tmp_path / "logs")]}
        files = {run: log_files(some) for run, some in paths.items()}
        layers = stored.layers(spark, paths, files, str(tmp_path / "scratch"), lambda _: None)
        return of_hours(layers.facts or {})

    return make


@pytest.fixture
def facts_anew(spark: Any, tmp_path: Path) -> Callable[[], Rows]:
    """What the logs tell of each hour when everything is read."""

    def make() -> Rows:
        shutil.rmtree(tmp_path / "read", ignore_errors=True)
        layers = read({"run": log_files([str(tmp_path / "logs")])}, spark, tmp_path / "read")
        return of_hours(facts_of(layers.records))

    return make


def read(files: Mapping[str, Sequence[str]], spark: Any, folder: Path) -> Layers:
    return layered.read(spark, files, str(folder), lambda _: None)


def of_hours(frames: Mapping[str, Any]) -> Rows:
    """Return all facts by hour, but for how pieces are cut by what the files are called."""
    rows = {name: by_grain(name, frame, HOUR_MS).collect() for name, frame in frames.items()}
    return told({name: [ordered(row.asDict(recursive=True)) for row in some] for name, some in rows.items()})


def ordered(row: dict[str, Any]) -> dict[str, Any]:
    return {key: sorted(value) if isinstance(value, list) else value for key, value in row.items()}


@pytest.fixture
def anew(spark: Any, tmp_path: Path) -> Callable[[], Rows]:
    """The tables of a report that reads everything."""

    def make() -> Rows:
        files = {"run": log_files([str(tmp_path / "logs")])}
        return told(analyse(spark, files, str(tmp_path / "anew"), lambda _: None).tables.rows)

    return make


def told(tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> Rows:
    """Return each table's rows in order, as text."""

    def plain(value: Any) -> Any:
        return round(value, 6) if isinstance(value, float) else value

    return {
        name: sorted(json.dumps({key: plain(row[key]) for key in sorted(row)}) for row in rows)
        for name, rows in tables.items()
    }


def come(tmp_path: Path, paths: Sequence[Path]) -> None:
    """Let files come to where the report looks."""
    (tmp_path / "logs").mkdir(exist_ok=True)
    for path in paths:
        shutil.copy(path, tmp_path / "logs" / path.name)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*.parquet")}


def test_tables_are_those_of_a_whole_reading_when_hours_came_late_one_by_one_and_were_merged(
    logs: dict[int, list[Path]],
    report: Make,
    facts: Make,
    anew: Make,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(merging, "TOGETHER", 2)
    for numbers in ((0, 3), (1,), (2,)):
        come(tmp_path, [logs[number][0] for number in numbers])
        facts()
    come(tmp_path, [*logs[4], *logs[5], *(path for paths in logs.values() for path in paths[1:])])
    found, wanted = report(), anew()
    assert found == wanted
    assert len(wanted["depth_over_time"]) > 100
    assert wanted["episodes"]
    levels = {json.loads(path.read_text())["level"] for path in (tmp_path / "store" / "batches").iterdir()}
    assert max(levels) >= 2


def test_nothing_changes_when_the_same_files_are_there_again_and_under_another_folder(
    logs: dict[int, list[Path]], facts: Make, tmp_path: Path
) -> None:
    come(tmp_path, [path for number in range(HOURS) for path in logs[number]])
    first = facts()
    before = contents(tmp_path / "store")
    (tmp_path / "logs" / "copies").mkdir()
    shutil.copy(logs[2][0], tmp_path / "logs" / "copies" / logs[2][0].name)
    assert facts() == first
    assert contents(tmp_path / "store") == before
    assert facts(rebuild=True) == first


class KilledError(Exception):
    """Stands for the end of the process."""


@pytest.mark.parametrize(
    "written",
    ["manifest", *(pytest.param(one, marks=pytest.mark.long) for one in ("records", "fact", "last fact", "merged"))],
)
def test_tables_are_those_of_a_whole_reading_when_a_report_was_killed_anywhere(
    logs: dict[int, list[Path]],
    facts: Make,
    facts_anew: Make,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    written: str,
) -> None:
    monkeypatch.setattr(merging, "TOGETHER", 2)
    come(tmp_path, logs[0])
    facts()
    come(tmp_path, [path for number in range(1, HOURS) for path in logs[number]])
    really_write, really_put = shelf.Shelf.write_fact, shelf.Shelf.put

    def write_fact(self: Any, rows: Any, batch: str, grain: str, fact: str) -> None:
        is_merged = batch.startswith("merged")
        if (written == "fact" and not is_merged) or (written == "merged" and is_merged and grain == "hour"):
            raise KilledError
        really_write(self, rows, batch, grain, fact)
        if written == "last fact" and fact == "incidents":
            raise KilledError

    def put(self: Any, batch: Any) -> None:
        if written == "records":
            shutil.rmtree(Path(self.records(batch.name)) / "class")
            raise KilledError
        really_put(self, batch)
        if written == "manifest":
            raise KilledError

    with monkeypatch.context() as killed:
        killed.setattr(shelf.Shelf, "write_fact", write_fact)
        killed.setattr(shelf.Shelf, "put", put)
        with pytest.raises(Exception, match=r"KilledError|^$"):
            facts()
    assert facts() == facts_anew()


def test_a_file_that_is_still_written_is_in_the_report_and_not_in_the_store(
    logs: dict[int, list[Path]], facts: Make, facts_anew: Make, tmp_path: Path
) -> None:
    come(tmp_path, [path for number in range(HOURS - 1) for path in logs[number]])
    text = gzip.decompress(logs[HOURS - 1][0].read_bytes())
    still = tmp_path / "logs" / logs[HOURS - 1][0].name.replace(".gz", ".open")
    still.write_bytes(text[: len(text) // 2].rpartition(b"\n")[0] + b"\n")
    assert facts() == facts_anew()
    still.unlink()
    come(tmp_path, logs[HOURS - 1])
    assert facts() == facts_anew()


def test_a_window_has_what_lies_in_it_when_the_store_holds_more(
    logs: dict[int, list[Path]], report: Make, anew: Make, tmp_path: Path
) -> None:
    come(tmp_path, [path for number in range(HOURS) for path in logs[number]])
    since, until = START_MS + HOUR_MS + STEP_MS, START_MS + 2 * HOUR_MS + STEP_MS
    found = report(window=Window(since, until))
    for path in (tmp_path / "logs").iterdir():
        lines = gzip.decompress(path.read_bytes()).splitlines()
        kept = [line for line in lines if since < (one := json.loads(line))["at_ms"] <= until or one["kind"] == "start"]
        path.write_bytes(gzip.compress(b"".join(line + b"\n" for line in kept)))
    wanted = anew()
    # The one says from where on it counts seconds by its window, the other by the first start.
    for name in ("traffic_by_class", "traffic_by_type", "latency_by_class", "dead_letters", "spectra", "cross_checks"):
        assert found[name] == wanted[name]
        assert found[name]


def test_facts_tell_what_records_told_when_the_records_are_too_old_to_be_kept(
    logs: dict[int, list[Path]], report: Make, tmp_path: Path
) -> None:
    for number in range(HOURS):
        come(tmp_path, logs[number])
        if number % 2:
            whole = report()
    kept = report(keep=Keep.of(["records=2h"]))
    for name in ("traffic_by_class", "latency_by_type", "episodes", "depth_over_time", "processes", "incidents"):
        assert kept[name] == whole[name]
    left = {path.parts[-3] for path in (tmp_path / "store" / "records").rglob("class/*.parquet")}
    assert len(left) == 2
    assert report() == kept
    old = report(keep=Keep.of(["facts=3h"]))
    assert len(old["depth_over_time"]) < len(kept["depth_over_time"])


def test_a_file_that_is_cut_short_is_named_and_the_others_are_taken(
    logs: dict[int, list[Path]], spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    come(tmp_path, [*logs[0], *logs[1]])
    cut = tmp_path / "logs" / logs[1][0].name
    cut.write_bytes(cut.read_bytes()[:-30])
    monkeypatch.setattr(command, "spark_session", lambda *_: nullcontext(spark))
    told = ["--store", str(tmp_path / "store"), "--out", str(tmp_path / "out")]
    for _ in range(2):
        assert main([str(tmp_path / "logs"), *told]) == 0
        document = json.loads((tmp_path / "out" / "report.json").read_text())
        assert "were left out: " in document["notices"][0]
        assert cut.name in document["notices"][0]
        assert document["runs"][0]["records"]["class"] == 3 * 2 * (HOUR_MS // STEP_MS)


def test_a_file_that_was_finished_after_the_report_had_looked_is_taken(
    logs: dict[int, list[Path]], spark: Any, tmp_path: Path
) -> None:
    come(tmp_path, logs[0][:1])
    paths = {"run": [str(tmp_path / "logs")]}
    files = {"run": log_files(paths["run"])}
    come(tmp_path, logs[0][1:])
    stored = Stored(str(tmp_path / "store"))
    layers = stored.layers(spark, paths, files, str(tmp_path / "scratch"), lambda _: None)
    counted = {row["kind"]: row["lines"] for row in layers.taken.kinds}
    assert counted["class"] == 2 * 2 * (HOUR_MS // STEP_MS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--keep", "records=7"], "--keep records=7: write records=7d or facts=1y (h, d, w, y)"),
        (["--since", "2026-01-02", "--until", "2026-01-01"], "--until must be later than --since"),
    ],
)
def test_one_line_says_what_is_wrong_when_a_store_s_options_are(
    logs: dict[int, list[Path]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    message: str,
) -> None:
    come(tmp_path, logs[0])
    folders = ["--store", str(tmp_path / "store"), "--out", str(tmp_path / "out")]
    assert main([str(tmp_path / "logs"), *folders, *options]) == 2
    assert capsys.readouterr().err == f"tidegate report: {message}\n"


def test_an_option_of_a_store_is_refused_when_there_is_none(
    logs: dict[int, list[Path]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    come(tmp_path, logs[0])
    assert main([str(tmp_path / "logs"), "--out", str(tmp_path / "out"), "--rebuild"]) == 2
    assert "give --store DIR" in capsys.readouterr().err


def test_a_folder_of_something_else_is_no_store(logs: dict[int, list[Path]], facts: Make, tmp_path: Path) -> None:
    come(tmp_path, [path for number in range(HOURS) for path in logs[number]])
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "precious").write_text("mine")
    for rebuild in (False, True):
        with pytest.raises(ReportError, match="is no store, and not empty"):
            facts(rebuild=rebuild)
    shutil.rmtree(tmp_path / "store")
    facts()
    (tmp_path / "store" / "store.json").write_text('{"v": 99}')
    with pytest.raises(ReportError, match="a store of version 99; --rebuild makes it anew"):
        facts()
    assert facts(rebuild=True)
