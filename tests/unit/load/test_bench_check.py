"""What became slower is told by ratios, beyond what the rounds of both runs already differ by."""

import json
from pathlib import Path
from typing import Any

import pytest

from load.bench_check import CheckError, check


def record(ratio: float | None, *, what: str = "rate", spread: float = 0.05, rounds: int = 3) -> dict[str, Any]:
    at = {"queue_type": "classic", "size": 256}
    return {
        "cells": [at | {"contender": name, "rounds": rounds} for name in ("tidegate", "raw")],
        "ratios": [at | {"what": what, "of": "tidegate", "over": "raw", "ratio": ratio, "spread": spread}],
    }


def checked(folder: Path, then: dict[str, Any], now: dict[str, Any]) -> int:
    (folder / "kept").mkdir()
    (folder / "kept" / "throughput-classic.json").write_text(json.dumps(then))
    (folder / "new.json").write_text(json.dumps(now))
    return check(folder / "kept", folder / "new.json")


@pytest.mark.parametrize(
    ("what", "now", "word", "code"),
    [
        ("rate", 0.89, "slower", 1),
        ("rate", 0.91, "same", 0),
        ("rate", 1.11, "faster", 0),
        ("cpu", 1.11, "dearer", 1),
        ("rabbitmq_cpu", 0.89, "cheaper", 0),
    ],
)
def test_a_ratio_is_judged_by_both_spreads_when_it_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], what: str, now: float, word: str, code: int
) -> None:
    assert checked(tmp_path, record(1.0, what=what), record(now, what=what)) == code
    assert capsys.readouterr().out.startswith(f"{word}: tidegate / raw")


def test_a_small_change_is_chance_when_rounds_were_all_alike(tmp_path: Path) -> None:
    assert checked(tmp_path, record(1.0, spread=0.0), record(0.98, spread=0.0)) == 0


def test_nothing_is_judged_when_a_run_has_one_round_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert checked(tmp_path, record(1.0), record(0.5, rounds=1)) == 0
    assert capsys.readouterr().out.startswith("unknown")


def test_it_is_said_when_two_files_have_nothing_in_common(tmp_path: Path) -> None:
    with pytest.raises(CheckError, match="no ratio"):
        checked(tmp_path, record(1.0), record(None))


def test_it_is_said_when_a_file_is_of_another_measurement(tmp_path: Path) -> None:
    with pytest.raises(CheckError, match="no result"):
        checked(tmp_path, record(1.0), {"measured": "cost"})
