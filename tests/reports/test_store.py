"""A store gives the report that reading everything anew gives, however it was fed, killed, merged and cleared."""

import gzip
import json
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from proxy.reports import command
from proxy.reports import layers as layered
from proxy.reports.analysis import analyse, tabled
from proxy.reports.command import main
from proxy.reports.facts import by_grain, facts_of
from proxy.reports.files import ReportError, log_files
from proxy.reports.layers import Layers, Span
from proxy.reports.places import Places
from proxy.reports.retained import Keep, Window
from proxy.reports.store import Shelf, merging, retention, shelf
from proxy.reports.stored import Stored

Make = Callable[..., Any]
Rows = dict[str, list[str]]

HOUR_MS = 3_600_000
START_MS = 1_700_000_000_000 // HOUR_MS * HOUR_MS
HOURS = 6
"""So long that a point of a graph is minutes, and facts are used."""
STEP_MS = 30_000
OLD_HOURS = 3
"""So many hours long one of the processes wrote records of version 1; then it was replaced by a newer one."""
SINCE_2 = {"slos", "settings", "uncommitted", "ahead_of_clock", "old", "catching_up", "ahead"}


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
    if instance == "one" and number < OLD_HOURS:
        return [{name: value for name, value in line.items() if name not in SINCE_2} | {"v": 1} for line in lines]
    return lines


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory, record: Make) -> dict[int, list[Path]]:
    """Files of each hour, not where a report looks for them."""
    folder = tmp_path_factory.mktemp("waiting")
    found: dict[int, list[Path]] = {}
    for number in range(HOURS):
        for instance in ("one", "two"):
            path = folder / f"{instance}-{number:06}.jsonl.gz"
            text = "".join(json.dumps(line) + "\n" for line in hour(record, instance, number))
            path.write_bytes(gzip.compress(text.encode()))
            found.setdefault(number, []).append(path)
    return found


@dataclass(frozen=True)
class Home:
    """A folder with logs and, when it is asked for, a store of them."""

    spark: Any
    folder: Path
    logs: Path

    @property
    def store(self) -> Path:
        return self.folder / "store"

    def copy(self, folder: Path) -> "Home":
        """Return one with the same logs, which must stay as they are, and a store of its own with the same in it."""
        shutil.copytree(self.store, folder / "store")
        return Home(self.spark, folder, self.logs)

    def come(self, paths: Sequence[Path]) -> None:
        """Let files come to where the report looks."""
        self.logs.mkdir(exist_ok=True)
        for path in paths:
            shutil.copy(path, self.logs / path.name)

    def layers(self, **changes: Any) -> Layers:
        """Take what has come into the store."""
        _, paths, files = self._asked()
        return self.taken(paths, files, **changes)

    def taken(self, paths: Mapping[str, Sequence[str]], files: Mapping[str, Sequence[str]], **changes: Any) -> Layers:
        """Take in what lies in paths, of which a report saw these files."""
        stored, shelf = Stored(str(self.store), **changes), Shelf(self.spark, str(self.store))
        with shelf.prepared(rebuild=stored.rebuild):
            return stored.layers(shelf, paths, files, str(self.folder / "scratch"), quiet)

    def facts(self, **changes: Any) -> Rows:
        """What the store tells of each hour: less than a report, and sooner."""
        return of_hours(self.layers(**changes).facts or {})

    def report(self, **changes: Any) -> Rows:
        """The tables of a report from the store."""
        made = Stored(str(self.store), **changes).analyse(*self._asked(), str(self.folder / "tables"), quiet)
        return told(made.tables.rows)

    def read(self) -> Layers:
        """The layers when everything is read anew; they last as long as they are the last ones."""
        shutil.rmtree(self.folder / "read", ignore_errors=True)
        _, _, files = self._asked()
        return layered.read(self.spark, files, str(self.folder / "read"), quiet)

    def facts_anew(self) -> Rows:
        """What the logs tell of each hour when everything is read."""
        return of_hours(facts_of(self.spark, self.read().records))

    def report_anew(self) -> Rows:
        """The tables of a report that reads everything."""
        _, _, files = self._asked()
        return told(analyse(self.spark, files, str(self.folder / "anew"), quiet).tables.rows)

    def _asked(self) -> tuple[Any, dict[str, list[str]], dict[str, list[str]]]:
        paths = {"run": [str(self.logs)]}
        return self.spark, paths, {run: log_files(some) for run, some in paths.items()}


def quiet(text: str) -> None:
    """Take progress lines and drop them."""


@pytest.fixture
def home(spark: Any, tmp_path: Path) -> Home:
    """A folder in which nothing is yet."""
    return Home(spark, tmp_path, tmp_path / "logs")


@dataclass(frozen=True)
class Whole:
    """All hours, with a store into which they came two at a time; whoever changes it takes a copy."""

    home: Home
    facts: Rows
    """What their logs tell, read anew."""
    tables: Rows
    """Of a report that reads them anew."""


@pytest.fixture(scope="module")
def whole(spark: Any, logs: dict[int, list[Path]], tmp_path_factory: pytest.TempPathFactory) -> Whole:
    folder = tmp_path_factory.mktemp("whole")
    home = Home(spark, folder, folder / "logs")
    for number in range(0, HOURS, 2):
        home.come([*logs[number], *logs[number + 1]])
        home.layers()
    return Whole(home, home.facts_anew(), home.report_anew())


def of_hours(frames: Mapping[str, Any]) -> Rows:
    """Return all facts by hour, but for how pieces are cut by what the files are called."""
    rows = {name: by_grain(name, frame, HOUR_MS).collect() for name, frame in frames.items()}
    return told({name: [ordered(row.asDict(recursive=True)) for row in some] for name, some in rows.items()})


def ordered(row: dict[str, Any]) -> dict[str, Any]:
    return {key: sorted(value) if isinstance(value, list) else value for key, value in row.items()}


def told(tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> Rows:
    """Return each table's rows in order, as text."""

    def plain(value: Any) -> Any:
        return round(value, 6) if isinstance(value, float) else value

    return {
        name: sorted(json.dumps({key: plain(row[key]) for key in sorted(row)}) for row in rows)
        for name, rows in tables.items()
    }


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*.parquet")}


@pytest.mark.long
def test_tables_are_those_of_a_whole_reading_when_hours_came_late_one_by_one_and_were_merged(
    logs: dict[int, list[Path]], home: Home, whole: Whole, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merging, "TOGETHER", 2)
    for numbers in ((0, 3), (1,), (2,)):
        home.come([logs[number][0] for number in numbers])
        home.layers()
    home.come([*logs[4], *logs[5], *(path for paths in logs.values() for path in paths[1:])])
    assert home.report() == whole.tables
    assert len(whole.tables["depth_over_time"]) > 100
    assert whole.tables["episodes"]
    levels = {json.loads(path.read_text())["level"] for path in (home.store / "batches").iterdir()}
    assert max(levels) >= 2


def test_records_of_both_versions_count_when_a_store_has_both(whole: Whole) -> None:
    lines = [
        json.loads(line)
        for path in whole.home.logs.iterdir()
        for line in gzip.decompress(path.read_bytes()).splitlines()
    ]
    assert {line["v"] for line in lines} == {1, 2}
    layers = whole.home.layers()
    assert {row["kind"]: row["lines"] for row in layers.taken.kinds} == Counter(line["kind"] for line in lines)
    assert layers.taken.rejected == []
    assert of_hours(layers.facts or {}) == whole.facts
    told = {(row["class"], row["confirmed"]) for row in map(json.loads, whole.tables["traffic_by_class"])}
    sums = Counter[str]()
    for line in lines:
        sums[line.get("class", "")] += line["confirmed"] if line["kind"] == "class" else 0
    assert told == {(name, sums[name]) for name in ("P1", "P3")}


def test_nothing_changes_when_the_same_files_are_there_again_or_all_is_made_anew_from_another_version(
    logs: dict[int, list[Path]], home: Home
) -> None:
    home.come([*logs[0], *logs[1]])
    first = home.facts()
    before = contents(home.store)
    (home.logs / "copies").mkdir()
    shutil.copy(logs[1][0], home.logs / "copies" / logs[1][0].name)
    assert home.facts() == first
    assert contents(home.store) == before

    (home.store / "store.json").write_text('{"v": 99}')
    with pytest.raises(ReportError, match="a store of version 99; --rebuild makes it anew"):
        home.layers()
    assert home.facts(rebuild=True) == first


class KilledError(Exception):
    """Stands for the end of the process."""


@pytest.mark.parametrize(
    "written",
    ["manifest", *(pytest.param(one, marks=pytest.mark.long) for one in ("records", "fact", "last fact", "merged"))],
)
def test_tables_are_those_of_a_whole_reading_when_a_report_was_killed_anywhere(
    logs: dict[int, list[Path]], home: Home, whole: Whole, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    monkeypatch.setattr(merging, "TOGETHER", 2)
    home.come(logs[0])
    home.layers()
    home.come([path for number in range(1, HOURS) for path in logs[number]])
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
            home.layers()
    assert home.facts() == whole.facts


@pytest.mark.long
def test_a_file_that_is_still_written_is_in_the_report_and_not_in_the_store(
    logs: dict[int, list[Path]], home: Home, whole: Whole
) -> None:
    home.come([path for number in range(HOURS - 1) for path in logs[number]])
    text = gzip.decompress(logs[HOURS - 1][0].read_bytes())
    still = home.logs / logs[HOURS - 1][0].name.replace(".gz", ".open")
    still.write_bytes(text[: len(text) // 2].rpartition(b"\n")[0] + b"\n")
    assert home.facts() == home.facts_anew()
    still.unlink()
    home.come(logs[HOURS - 1])
    assert home.facts() == whole.facts


def test_a_window_has_what_lies_in_it_when_the_store_holds_more(whole: Whole, home: Home) -> None:
    since, until = START_MS + HOUR_MS + STEP_MS, START_MS + 2 * HOUR_MS + STEP_MS
    layers = whole.home.copy(home.folder).layers(window=Window(since, until))
    home.logs.mkdir()
    for path in whole.home.logs.iterdir():
        lines = gzip.decompress(path.read_bytes()).splitlines()
        kept = [line for line in lines if since < (one := json.loads(line))["at_ms"] <= until or one["kind"] == "start"]
        (home.logs / path.name).write_bytes(gzip.compress(b"".join(line + b"\n" for line in kept)))
    assert layers.facts is None, "a point of a graph is less than a minute"
    wanted = home.read()
    found = of_hours(facts_of(home.spark, layers.records))
    assert found == of_hours(facts_of(home.spark, wanted.records))
    assert {"traffic", "latencies", "pieces", "letters"} <= {name for name, rows in found.items() if rows}
    assert {kind: rows.count() for kind, rows in layers.records.items()} == {
        row["kind"]: row["lines"] for row in wanted.taken.kinds
    }
    assert layers.spans == {"run": Span(since, until)}
    assert layers.going_on == {"run"}
    checked = {
        row["check"]
        for row in tabled(home.spark, layers, str(home.folder / "tables"), quiet).tables.rows["cross_checks"]
    }
    assert checked == {"confirmed = samples of publish latency", "route records = class records"}, "written together"
    assert "class records = sum of type records" in {json.loads(row)["check"] for row in whole.tables["cross_checks"]}


def test_the_message_names_the_window_when_nothing_lies_in_it(whole: Whole, home: Home) -> None:
    with pytest.raises(ReportError, match=r"logs: no metric records in this time \(--since, --until\)"):
        whole.home.copy(home.folder).layers(window=Window(START_MS + 2 * HOURS * HOUR_MS, None))


def test_facts_tell_what_records_told_when_the_records_are_too_old_to_be_kept(whole: Whole, home: Home) -> None:
    home = whole.home.copy(home.folder)
    kept = home.report(keep=Keep.of(["records=2h"]))
    for name in ("traffic_by_class", "latency_by_type", "episodes", "depth_over_time", "processes", "incidents"):
        assert kept[name] == whole.tables[name]
    left = {path.parts[-3] for path in (home.store / "records").rglob("class/*.parquet")}
    assert len(left) == 2
    facts = home.facts()
    assert facts == whole.facts
    old = home.facts(keep=Keep.of(["facts=3h"]))
    assert 0 < len(old["routes"]) < len(facts["routes"])


def test_records_are_kept_when_one_came_from_the_future(
    logs: dict[int, list[Path]], home: Home, record: Make, write: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.come([*logs[0], *logs[1]])
    home.layers()
    monkeypatch.setattr(retention.time, "time", lambda: (START_MS + 2 * HOUR_MS) / 1000)
    write("logs/ahead.jsonl", [record("class", at_ms=START_MS + 1000 * HOUR_MS, instance="ahead")])
    layers = home.layers(keep=Keep.of(["records=2h", "facts=2h"]))
    assert layers.records["class"].count() == 2 * 2 * 2 * (HOUR_MS // STEP_MS) + 1


def test_a_file_that_is_cut_short_is_left_out_for_good_and_each_report_says_so(
    logs: dict[int, list[Path]], home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.come([*logs[0], *logs[1]])
    cut = home.logs / logs[1][0].name
    cut.write_bytes(cut.read_bytes()[:-30])
    paths = {"run": [str(home.logs)]}

    def take(files: Mapping[str, Sequence[str]], scratch: str) -> Any:
        return home.taken(paths, files)

    files = {"run": log_files(paths["run"])}
    _, unreadable = command._analysis(home.spark, take, files, str(home.folder / "scratch"), quiet)
    assert unreadable == {"run": [str(cut)]}
    monkeypatch.setattr(command, "spark_session", lambda *_: nullcontext(home.spark))
    assert main([str(home.logs), "--store", str(home.store), "--out", str(home.folder / "out")]) == 0
    document = json.loads((home.folder / "out" / "report.json").read_text())
    assert "were left out: " in document["notices"][0]
    assert cut.name in document["notices"][0]
    assert document["runs"][0]["records"]["class"] == 3 * 2 * (HOUR_MS // STEP_MS)


def test_a_file_that_was_finished_after_the_report_had_looked_is_taken(logs: dict[int, list[Path]], home: Home) -> None:
    home.come(logs[0][:1])
    paths = {"run": [str(home.logs)]}
    files = {"run": log_files(paths["run"])}
    home.come(logs[0][1:])
    layers = home.taken(paths, files)
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
    write: Make,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    message: str,
) -> None:
    write("logs/one.jsonl", ["{}"])
    folders = ["--store", str(tmp_path / "store"), "--out", str(tmp_path / "out")]
    assert main([str(tmp_path / "logs"), *folders, *options]) == 2
    assert capsys.readouterr().err == f"tidegate report: {message}\n"


def test_an_option_of_a_store_is_refused_when_there_is_none(
    write: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write("logs/one.jsonl", ["{}"])
    assert main([str(tmp_path / "logs"), "--out", str(tmp_path / "out"), "--rebuild"]) == 2
    assert "give --store DIR" in capsys.readouterr().err


def test_a_folder_of_something_else_is_no_store(logs: dict[int, list[Path]], home: Home) -> None:
    home.come(logs[0])
    home.store.mkdir()
    (home.store / "precious").write_text("mine")
    for rebuild in (False, True):
        with pytest.raises(ReportError, match="is no store, and not empty"):
            home.layers(rebuild=rebuild)
    assert (home.store / "precious").read_text() == "mine"


def test_what_others_have_in_a_folder_stays_when_a_store_there_is_made_anew(
    logs: dict[int, list[Path]], home: Home
) -> None:
    home.come(logs[0])
    home.store.mkdir()
    for told in ('{"v": 1, "shop": "mine"}', "[]", "", "a list"):
        (home.store / "store.json").write_text(told)
        with pytest.raises(ReportError, match="is no store, and not empty"):
            home.layers(rebuild=True)
        assert [path.name for path in home.store.iterdir()] == ["store.json"]
    (home.store / "store.json").unlink()
    home.layers()
    (home.store / "report.html").write_text("mine")
    home.layers(rebuild=True)
    assert (home.store / "report.html").read_text() == "mine"


def test_all_is_read_anew_when_a_rebuild_was_killed_halfway(whole: Whole, home: Home) -> None:
    home = whole.home.copy(home.folder)

    class KilledError(Exception):
        """Instead of `kill -9`."""

    def gone(places: Places, place: str) -> None:
        delete(places, place)
        if place.endswith("batches"):
            raise KilledError

    delete = Places.delete
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Places, "delete", gone)
        with pytest.raises(KilledError):
            home.layers(rebuild=True)
    assert home.facts() == whole.facts


def test_the_second_of_two_reports_is_refused_when_they_share_a_store(logs: dict[int, list[Path]], home: Home) -> None:
    home.come(logs[0])
    with Shelf(home.spark, str(home.store)).prepared(rebuild=False):
        for rebuild in (False, True):
            with pytest.raises(ReportError, match=rf"another report has this store \(process {os.getpid()} on .+\);"):
                home.layers(rebuild=rebuild)
    home.layers()


def test_a_store_is_free_again_when_the_report_that_had_it_was_killed(logs: dict[int, list[Path]], home: Home) -> None:
    home.come(logs[0])
    code = (
        "import sys\nfrom proxy.reports.store.lock import held\n"
        "with held(None, sys.argv[1], None): print(1, flush=True), input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(home.store)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"1\n"
        with pytest.raises(ReportError, match=f"process {other.pid} "):
            home.layers()
        other.kill()
    home.layers()


def test_one_line_names_what_is_damaged_when_a_batch_s_manifest_is(logs: dict[int, list[Path]], home: Home) -> None:
    home.come(logs[0])
    home.layers()
    manifest = next((home.store / "batches").iterdir())
    manifest.write_text(manifest.read_text()[:-20])
    with pytest.raises(ReportError, match=rf"{manifest.name}: is damaged; --rebuild makes the store anew"):
        home.layers()


def test_one_line_names_what_is_damaged_and_the_remedy_when_records_of_a_store_are(
    logs: dict[int, list[Path]], home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home.come(logs[0])
    home.layers()
    damaged = next((home.store / "records").rglob("class/*.parquet"))
    damaged.write_bytes(b"rubbish")
    monkeypatch.setattr(command, "spark_session", lambda *_: nullcontext(home.spark))
    assert main([str(home.logs), "--store", str(home.store), "--out", str(home.folder / "out")]) == 2
    (said,) = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("report: ")]
    assert f"{damaged} is not a Parquet file" in said
    assert "; --rebuild makes the store anew (more in " in said


def test_an_address_with_wildcards_is_taken_as_without_a_store(logs: dict[int, list[Path]], home: Home) -> None:
    home.come([*logs[0], *logs[1]])
    for _ in range(2):
        home.taken({"run": [f"file://{home.folder}/lo?s/one-*"]}, {"run": []})
        taken = [json.loads(path.read_text())["files"] for path in (home.store / "batches").iterdir()]
        assert taken == [[path.name for path in (logs[0][0], logs[1][0])]]
