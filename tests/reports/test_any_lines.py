"""Whatever lines stand beside good ones, in whatever files: a report is made, all are counted, the good exactly."""

import gzip
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from proxy.reports import command
from proxy.reports.intake import stored, take_in
from proxy.reports.records import read_lines
from proxy.reports.schema import KINDS, MOST
from tests.reports.conftest import DEFAULTS

GOOD = 50
"""Records of class P1 that every example has, each of one confirmed event."""

odd_names = st.sampled_from(
    ["", "\x00", "\ud800", "$_{\\frac", "<b>", "n" * 20_000, "a\nb", "\u202e→😀", "P1 ", "null", "%s"]
)
odd_numbers = st.sampled_from(
    [
        0,
        1,
        -1,
        MOST,
        MOST + 1,
        2**63,
        10**400,
        0.5,
        1e-300,
        1e308,
        -0.0,
        float("nan"),
        float("inf"),
        "1",
        None,
        True,
        [],
    ]
)
odd = st.one_of(
    odd_names,
    odd_numbers,
    st.dictionaries(odd_names | st.sampled_from(["0", "3286", "3287", "-1", "x"]), odd_numbers, max_size=3),
    st.lists(odd_names | odd_numbers, max_size=3),
)
kinds = st.sampled_from([*KINDS, "surprise"])


@st.composite
def changed_record(draw: st.DrawFn) -> bytes:
    """A record of a kind with some fields exchanged, left out or added."""
    kind = draw(kinds)
    record = {"v": 1, "kind": kind, "at_ms": 2_000, "instance": "other", **DEFAULTS.get(kind, {})}
    record |= {name: "other" for name in ("class", "route", "type") if name in record}
    for name in draw(st.lists(st.sampled_from([*record, "later"]), max_size=3)):
        if draw(st.booleans()):
            record[name] = draw(odd)
        else:
            record.pop(name, None)
    text = json.dumps(record, ensure_ascii=draw(st.booleans())).encode(errors="surrogatepass")
    return text[: draw(st.integers(1, len(text)))] if draw(st.integers(0, 5)) == 0 else text


lines = st.one_of(
    changed_record(),
    changed_record(),
    st.binary(max_size=40),
    odd.map(lambda value: json.dumps(value).encode()),
    st.sampled_from(
        [b"", b"\xef\xbb\xbf{}", b"\xff\xfe", b"[" * 5_000, b'{"v":1,"v":2,"kind":"stop","at_ms":1}', b"\r"]
    ),
)


few = settings(database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))


def mixed(bad: list[bytes]) -> list[bytes]:
    """Return the bad lines with `GOOD` good ones among them."""
    counts = {"received": 1, "confirmed": 1, "publish_us": {"600": 1}}
    good = {"v": 1, "kind": "class", "at_ms": 1_000, "instance": "one", **DEFAULTS["class"], **counts}
    found = [line.replace(b"\n", b" ") for line in bad]
    for number in range(GOOD):
        found.insert(number * len(found) // GOOD, json.dumps(good).encode())
    return found


def filled(some: list[bytes]) -> int:
    return sum(bool(line.strip()) for line in some)


@settings(few, max_examples=2)
@given(st.lists(lines, min_size=200, max_size=300))
def test_every_line_is_a_record_or_counted_when_good_ones_stand_among_any(
    spark: Any, tmp_path_factory: pytest.TempPathFactory, bad: list[bytes]
) -> None:
    path = tmp_path_factory.mktemp("any") / "mixed.jsonl"
    path.write_bytes(b"\n".join(mixed(bad)))
    folder = str(path.parent / "taken")
    found = take_in(read_lines(spark, {"run": [str(path)]}), ["run"], folder, lambda _: None)
    assert sum(row["lines"] for row in (*found.kinds, *found.rejected)) == filled(mixed(bad))
    assert stored(spark, "class", [folder]).where("class = 'P1' and at_ms = 1000").count() == GOOD


@settings(few, max_examples=1)
@given(
    bad=st.lists(lines, min_size=200, max_size=300), rest=st.binary(min_size=1, max_size=200), cut=st.integers(9, 60)
)
def test_the_report_is_made_and_the_good_counted_when_files_hold_anything(
    spark: Any, tmp_path_factory: pytest.TempPathFactory, bad: list[bytes], rest: bytes, cut: int
) -> None:
    assume(len(set(bad)) > 50)  # the first that is made is the simplest there is: a report takes too long for it

    @contextmanager
    def started(*_: Any) -> Iterator[Any]:
        yield spark

    folder = tmp_path_factory.mktemp("any")
    rest = rest.replace(b"\n", b" ")
    (folder / "mixed.jsonl").write_bytes(b"\n".join(mixed(bad)))
    (folder / "empty.jsonl").touch()
    (folder / "binary.jsonl.open").write_bytes(rest)
    (folder / "cut.jsonl.gz").write_bytes(gzip.compress(b"\n".join(bad))[:-cut])
    (folder / "none.jsonl.gz").write_bytes(b"no gzip" + rest)
    with mock.patch.object(command, "spark_session", started):
        assert command.main([str(folder), "--out", str(folder / "out")]) == 0
    document = json.loads((folder / "out" / "report.json").read_text())
    (of_p1,) = (row for row in document["per_class"] if row["class"] == "P1")
    assert (of_p1["received"], of_p1["confirmed"]) == (GOOD, GOOD)
    assert all(name in document["notices"][0] for name in ("cut.jsonl.gz", "none.jsonl.gz"))
    (run,) = document["runs"]
    rejected = sum(row["lines"] for row in document["tables"]["rejected_lines"]["rows"])
    assert sum(run["records"].values()) + rejected == filled([*mixed(bad), rest])
