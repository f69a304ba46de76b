"""Whether two reports say the same."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from load.same_report import main

pa = pytest.importorskip("pyarrow")

ROWS = [{"run": "a", "t_s": 0.5, "rate": 1.0}, {"run": "a", "t_s": 1.5, "rate": 0.1}]


def report(folder: Path, tables: Mapping[str, Sequence[Mapping[str, Any]]], **figures: Any) -> Path:
    from pyarrow import parquet

    (folder / "tables").mkdir(parents=True, exist_ok=True)
    for name, rows in tables.items():
        (folder / "tables" / name).mkdir(parents=True)
        parquet.write_table(pa.Table.from_pylist(list(rows)), folder / "tables" / name / "part-0.parquet")
    (folder / "report.json").write_text(json.dumps({"made_at": str(folder), **figures}))
    return folder


def told(tmp_path: Path, after: Mapping[str, Sequence[Mapping[str, Any]]], **figures: Any) -> int:
    before = report(tmp_path / "before", {"rates": ROWS}, runs=[{"p": 0.3}])
    return main([str(before), str(report(tmp_path / "after", after, **{"runs": [{"p": 0.3}], **figures}))])


def test_reports_are_the_same_when_rows_come_in_another_order_and_sums_in_their_last_digits(tmp_path: Path) -> None:
    rows = [{**ROWS[1], "rate": 0.1 + 1e-12}, ROWS[0]]
    assert told(tmp_path, {"rates": rows}, runs=[{"p": 0.1 + 0.2}]) == 0


@pytest.mark.parametrize(
    ("after", "words"),
    [
        ({"rates": [ROWS[0]]}, "rates: 1 rows of 2 differ (1 after)"),
        ({"rates": [ROWS[0], {**ROWS[1], "rate": 0.1001}]}, "rates: 1 rows of 2 differ"),
        ({"rates": [{**row, "rate": None} for row in ROWS]}, "rates: columns"),
        ({"rates": ROWS, "more": ROWS}, "more: only after"),
        ({}, "rates: only before"),
    ],
)
def test_a_table_that_differs_is_named(
    after: Mapping[str, Sequence[Mapping[str, Any]]], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told(tmp_path, after) == 1
    assert words in capsys.readouterr().out


def test_a_figure_that_differs_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert told(tmp_path, {"rates": ROWS}, runs=[{"p": 0.3001}], lines=3) == 1
    assert capsys.readouterr().out.splitlines() == ["report.json: lines", "report.json: runs"]


def test_a_folder_without_a_whole_report_is_a_mistake_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(report(tmp_path / "before", {})), str(tmp_path / "nowhere")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "nowhere: no whole report is here" in line
