"""Whatever stands in a file, every line is a record or is counted with its reason."""

import gzip
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from proxy import records as declared
from proxy.reports.files import ReportError, is_readable, log_files
from proxy.reports.intake import take_in
from proxy.reports.places import Places, looked_up
from proxy.reports.records import Records, by_kind, read_lines, with_kind
from proxy.reports.schema import BUCKETS, CORRUPT, KINDS, MOST, is_sound
from proxy.reports.traffic import traffic


@pytest.fixture
def read(spark: SparkSession, write: Callable[[str, Sequence[Any]], Path]) -> Iterator[Callable[..., Records]]:
    """Records as the report reads them, each run from a file of its own; 0 s is 1970."""
    kept: list[DataFrame] = []

    def from_lines(lines: Sequence[Any] = (), **runs: Sequence[Any]) -> Records:
        named: Mapping[str, Sequence[Any]] = {"run": lines} if lines else runs
        files = {run: [str(write(f"{run}.jsonl", some))] for run, some in named.items()}
        kept.append(with_kind(read_lines(spark, files)).persist())
        return Records(by_kind(kept[-1]), dict.fromkeys(files, 0))

    yield from_lines
    for lines in kept:
        lines.unpersist()


WRONG: list[tuple[str, str]] = [
    ('{"v":1,"kind":"class","at_ms":17', "cut off"),
    ("\x00\x00\x00", "malformed"),
    ("plain text", "malformed"),
    ("[1, 2]", "malformed"),
    ("null", "malformed"),
    ("5", "malformed"),
    ("{}", "malformed"),
    ("{]}", "malformed"),
    ('{"a":' * 5_000 + "1" + "}" * 5_000, "malformed"),
    ('{"v":1,"at_ms":1}', "malformed"),
    ('{"v":1,"kind":"stop"}', "malformed"),
    ('{"v":"one","kind":"stop","at_ms":1}', "malformed"),
    ('{"v":1,"kind":"stop","at_ms":-1}', "malformed"),
    ('{"v":1,"kind":"stop","at_ms":1e400}', "malformed"),
    ('{"v":1,"kind":"stop","at_ms":99999999999999999999}', "malformed"),
    ('{"v":3,"kind":"stop","at_ms":1}', "another version"),
    ('{"v":1,"kind":"surprise","at_ms":1}', "unknown kind"),
    ('{"v":1,"kind":"stop","at_ms":1}', "malformed"),
]


def test_a_record_of_every_kind_is_taken_whole_when_every_field_is_there(
    record: Callable[..., Any], read: Callable[..., Any], rows: Callable[..., Any]
) -> None:
    written = {kind: record(kind, at_ms=1_500) for kind in KINDS}
    records = read(list(written.values()))
    for kind in KINDS:
        (found,) = rows(records.of(kind))
        assert (found.pop("run"), found.pop("file"), found.pop("at_s")) == ("run", "run.jsonl", 1.5)
        assert {name: value for name, value in found.items() if value is not None} == {
            name: value for name, value in written[kind].items() if name not in {"v", "kind"} and value is not None
        }


def test_each_wrong_line_is_counted_with_its_reason_when_it_stands_among_records(
    record: Callable[..., Any], read: Callable[..., Any], taken: Callable[..., Any], rows: Callable[..., Any]
) -> None:
    lines = [record("stop"), "", "   ", *(line for line, _ in WRONG), record("stop")]
    assert len(rows(read(lines).of("stop"))) == 2
    counted = {row["reason"]: row["lines"] for row in taken(lines).rejected}
    assert counted == Counter(reason for _, reason in WRONG)


UNCOUNTABLE: list[dict[str, Any]] = [
    {"received": None},
    {"received": "many"},
    {"received": -1},
    {"received": 1.5},
    {"received": MOST + 1},
    {"interval_s": float("nan")},
    {"interval_s": float("inf")},
    {"publish_us": {"-1": 1}},
    {"publish_us": {"3287": 1}},
    {"publish_us": {"x": 1}},
    {"publish_us": {"99999": 1}},
    {"publish_us": {"3": None}},
    {"publish_us": {"3": -1}},
    {"publish_us": {"3": 1, "5": None}},
    {"publish_us": {"3": 1, "5": -1}},
    {"publish_us": {"3": MOST + 1, "5": 1}},
    {"publish_us": {"3": 1, "+5": 1}},
    {"publish_us": {"3": 1, " 5": 1}},
    {"publish_us": {"3": 1, "": 1}},
    {"publish_us": {"3": 1, "00005": 1}},
    {"publish_us": [1, 2]},
    {"dead_lettered": {"expired": -1}},
    {"batch_size": {"sum": 1.0}},
    {"lag": -5},
]
UNCOUNTABLE_OF_BUDGETS: list[dict[str, Any]] = [
    {"queue_delay_us": -1},
    {"drain_rate": float("inf")},
    {"rates": {"P3": float("inf")}},
    {"rates": {"P3": -1.0}},
    {"cuts": 0.5},
    {"hot": "P3"},
]


def test_a_record_is_malformed_when_a_field_can_not_be_counted_with(
    record: Callable[..., Any], taken: Callable[..., Any]
) -> None:
    cases = [record("class") | change for change in UNCOUNTABLE]
    cases += [record("verdict") | change for change in UNCOUNTABLE_OF_BUDGETS]
    found = taken(**{f"case_{number}": [case] for number, case in enumerate(cases)})
    rejected = {row["run"]: row["reason"] for row in found.rejected}
    assert [case for number, case in enumerate(cases) if rejected.get(f"case_{number}") != "malformed"] == []
    assert found.kinds == []


def test_a_distribution_counts_however_its_indexes_are_written_and_however_few_it_has(
    record: Callable[..., Any], read: Callable[..., Any], rows: Callable[..., Any]
) -> None:
    written: list[dict[str, int]] = [{}, {"0": 0}, {"3286": MOST}, {"007": 1, "8": 2}]
    found = rows(read([record("class") | {"publish_us": buckets} for buckets in written]).of("class"))
    assert sorted([row["publish_us"] for row in found], key=len) == written


def test_lines_of_version_1_are_read_when_a_log_holds_both(
    record: Callable[..., Any], read: Callable[..., Any], taken: Callable[..., Any], rows: Callable[..., Any]
) -> None:
    lines = Path(__file__).with_name("version_1.jsonl").read_text().splitlines()
    both = [*lines, record("class", confirmed=4, ahead_of_clock=3)]
    found, records = taken(both), read(both)
    assert found.rejected == []
    assert Counter({row["kind"]: row["lines"] for row in found.kinds}) == Counter(
        json.loads(line)["kind"] for line in lines
    ) + Counter(["class"])
    (of_class,) = rows(traffic(records.of("class"), ["run", "class"]))
    assert (of_class["confirmed"], of_class["ahead_of_clock"]) == (25, 3)


def test_records_of_a_kind_that_is_declared_and_not_read_are_counted_and_passed_over(
    record: Callable[..., Any], taken: Callable[..., Any]
) -> None:
    unread = [{"v": 2, "kind": kind, "at_ms": 1} for kind in declared.KINDS if kind not in KINDS]
    found = taken([record("stop"), *unread, {"v": 2, "kind": "later", "at_ms": 1}])
    told = {row["kind"]: row["lines"] for row in found.kinds}
    assert told == {"stop": 1, **dict.fromkeys((one["kind"] for one in unread), 1)}
    assert [row["reason"] for row in found.rejected] == ["unknown kind"]


def test_a_field_that_nobody_knows_is_passed_over_when_the_version_is_known(
    record: Callable[..., Any], read: Callable[..., Any], rows: Callable[..., Any]
) -> None:
    assert len(rows(read([record("drops") | {"later": {"a": [1]}}]).of("drops"))) == 1


def test_no_line_is_lost_when_records_are_mutilated_at_random(
    record: Callable[..., Any], tmp_path: Path, spark: Any
) -> None:
    chance = random.Random(4)
    originals = [json.dumps(record(kind)).encode() for kind in KINDS]
    lines = []
    for _ in range(3_000):
        line = bytearray(chance.choice(originals))
        for _ in range(chance.randint(0, 4)):
            place = chance.randrange(len(line))
            match chance.randrange(3):
                case 0:
                    line[place] = chance.randrange(256)
                case 1:
                    del line[place:]
                case 2:
                    line[place:place] = chance.choice([b"{", b"}", b'"', b",", b"null", b"1e9", b"\xff\xfe", b"[["])
            if not line:
                line = bytearray(b"x")
        lines.append(bytes(line).replace(b"\n", b" "))
    path = tmp_path / "any.jsonl"
    path.write_bytes(b"\n".join(lines))
    found = take_in(read_lines(spark, {"run": [str(path)]}), ["run"], str(tmp_path / "taken"), lambda _: None)
    counted = [row["lines"] for row in (*found.kinds, *found.rejected)]
    assert sum(counted) == sum(bool(line.strip()) for line in lines)
    assert {row["kind"] for row in found.kinds} == set(KINDS)
    assert found.rejected


def test_finished_and_open_files_are_read_and_half_written_ones_not_when_a_folder_is_given(
    record: Callable[..., Any], write: Callable[..., Path], tmp_path: Path, spark: Any
) -> None:
    line = json.dumps(record("drops")) + "\n"
    folder = tmp_path / "we[ir]d {a,b} näme*"
    for name in ("a.jsonl", "b.jsonl.open", "deep/er/c.jsonl", ".d.jsonl.gz.part", "e.txt", "f.jsonl.open"):
        write(f"{folder.name}/{name}", [line.strip()])
    for name in ("f.jsonl.gz", "g.jsonl.gz"):
        (folder / name).write_bytes(gzip.compress(line.encode()))
    files = log_files([str(folder)])
    names = [str(Path(file).relative_to(folder)) for file in files]
    assert names == ["a.jsonl", "b.jsonl.open", "deep/er/c.jsonl", "f.jsonl.gz", "g.jsonl.gz"]
    assert with_kind(read_lines(spark, {"run": files})).where("kind = 'drops'").count() == 5


def test_a_file_is_read_once_when_it_lies_there_again_under_its_name(tmp_path: Path) -> None:
    own = "20251121T044000Z-host-7-1763700000-000001.jsonl"
    for name in (f"a/{own}.open", f"b/{own}.gz", f"c/{own}", "a/mine.jsonl", "b/mine.jsonl", "b/mine.jsonl.gz"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    found = [str(Path(file).relative_to(tmp_path)) for file in log_files([str(tmp_path)])]
    assert found == ["a/mine.jsonl", f"b/{own}.gz", "b/mine.jsonl", "b/mine.jsonl.gz"], "others' names may be alike"


def test_a_file_is_told_unreadable_when_hadoop_can_not_name_it(tmp_path: Path) -> None:
    for name in ("a.jsonl", "2025-11-21T04:40.jsonl"):
        (tmp_path / name).touch()
    assert [path.name for path in sorted(tmp_path.iterdir()) if is_readable(str(path))] == ["a.jsonl"]


def test_the_path_is_named_when_there_is_nothing_to_read(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match=r"gone: no such file or folder"):
        log_files([str(tmp_path / "gone")])
    with pytest.raises(ReportError, match="no metric log here"):
        log_files([str(tmp_path)])


@pytest.fixture
def days(write: Callable[..., Path]) -> str:
    """The address of a folder of logs."""
    for name in (
        "01/a.jsonl",
        "01/b.jsonl.open",
        "02/deep/c.jsonl",
        "03/d.jsonl",
        "03/e.txt",
        "03/f{1}.jsonl.open",
        "04/e.txt",
    ):
        logs = write(f"logs/day-{name}", ["{}"]).parents[1]
    (logs / "day-03" / "f{1}.jsonl.gz").write_bytes(gzip.compress(b"{}\n"))
    return f"file://{logs}"


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("", ["01/a.jsonl", "01/b.jsonl.open", "02/deep/c.jsonl", "03/d.jsonl", "03/f{1}.jsonl.gz"]),
        ("/day-0[23]", ["02/deep/c.jsonl", "03/d.jsonl", "03/f{1}.jsonl.gz"]),
        ("/day-*/{a,e}.*", ["01/a.jsonl", "03/e.txt", "04/e.txt"]),
        ("/day-03/e.txt", ["03/e.txt"]),
        ("/day-03/f{1}.jsonl.open", ["03/f{1}.jsonl.open"]),
    ],
)
def test_an_address_is_searched_as_a_path_is_when_it_names_a_folder_a_file_or_several(
    asked: str, found: list[str], days: str, spark: Any
) -> None:
    files = looked_up([days + asked], Places(spark))
    assert files == [f"{days.removeprefix('file://')}/day-{name}" for name in found]
    assert read_lines(spark, {"run": files}).count() == len(found)


def test_paths_and_addresses_are_one_log_when_both_are_given(days: str, spark: Any) -> None:
    here = f"{days.removeprefix('file://')}/day-03/"
    assert looked_up([f"{here}f{{1}}.jsonl.open", f"{days}/day-03"], Places(spark)) == [
        f"{here}d.jsonl",
        f"{here}f{{1}}.jsonl.gz",
    ]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("/gone", "/gone: no such file or folder"),
        ("/day-9*", r"/day-9\*: no such file or folder"),
        ("/day-{01", "/day-{01: "),
        ("/day-04", "no metric log here"),
    ],
)
def test_the_address_is_named_when_there_is_nothing_to_read(asked: str, message: str, days: str, spark: Any) -> None:
    with pytest.raises(ReportError, match=message):
        looked_up([days + asked], Places(spark))


def test_a_compressed_file_is_unreadable_when_it_is_cut_or_mixed_up(tmp_path: Path, spark: Any) -> None:
    whole = gzip.compress(b'{"v":1}\n' * 10_000)
    for name, content in (
        ("whole", whole),
        ("cut", whole[:-20]),
        ("mixed", b"\x1f\x8b\x08" + b"x" * 50),
        ("not", b"x"),
    ):
        (tmp_path / f"{name}.gz").write_bytes(content)
    assert [name for name in ("whole", "cut", "mixed", "not") if is_readable(str(tmp_path / f"{name}.gz"))] == ["whole"]
    addresses = {name: f"file://{tmp_path}/{name}.gz" for name in ("whole", "cut", "mixed", "not", "gone")}
    assert [name for name, address in addresses.items() if Places(spark).is_readable(address)] == ["whole"]


def test_a_bucket_is_one_to_four_digits_up_to_the_last(spark: SparkSession) -> None:
    good = ["0", "7", "0000", "0012", "999", "3286"]
    bad = [
        "",
        "3287",
        "9999",
        "12345",
        "00001",
        "-1",
        "+5",
        " 5",
        "5 ",
        "5\n",
        "\x7f5",
        "5\x7f",
        "1.5",
        "1e2",
        "9a",
        "٣",
    ]
    frame = spark.sql("SELECT explode(from_json(:all, 'array<string>')) AS text", {"all": json.dumps(good + bad)})
    one = frame.selectExpr("text", f"named_struct('b', map(text, 1L), '{CORRUPT}', string(null)) AS one")
    schema = StructType([StructField("b", BUCKETS, nullable=False)])
    found = {row.text: row.fits for row in one.selectExpr("text", f"{is_sound(schema, 'one')} AS fits").collect()}
    assert found == dict.fromkeys(good, True) | dict.fromkeys(bad, False)
