import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).resolve().parents[1] / "conftest.py"


def pytest_run(folder: Path, *, ci: bool, **files: str) -> subprocess.CompletedProcess[str]:
    """Run pytest on files of a tree with our conftest in it; `unit__a` is tests/unit/test_a.py."""
    tests = folder / "tests"
    for name, text in files.items():
        path = tests / name.partition("__")[0] / f"test_{name.partition('__')[2]}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    shutil.copy(CONFTEST, tests)
    environment = {name: value for name, value in os.environ.items() if name not in {"CI", "COVERAGE_FILE"}}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "-p", "no:randomly", "--import-mode=importlib",
         tests],
        check=False, capture_output=True, text=True, timeout=50, cwd=folder,
        env=environment | ({"CI": "true"} if ci else {}) | {"PYTHONPATH": str(CONFTEST.parents[1])},
    )  # fmt: skip


SKIPPED = "import pytest\n\n\ndef test_one():\n    pytest.skip('no broker')\n\n\ndef test_two():\n    pass\n"
SKIPPED_WHOLE = "import pytest\n\npytest.importorskip('no_such_module')\n"


@pytest.mark.parametrize("text", [SKIPPED, SKIPPED_WHOLE])
def test_run_fails_and_names_the_test_when_one_is_skipped_in_ci(text: str, tmp_path: Path) -> None:
    done = pytest_run(tmp_path, ci=True, unit__a=text, unit__b="def test_three():\n    pass\n")
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout
    assert "A skipped test fails CI" in done.stdout
    assert "test_a.py" in done.stdout.split("A skipped test fails CI")[1]


def test_run_passes_when_a_test_is_skipped_outside_ci(tmp_path: Path) -> None:
    assert pytest_run(tmp_path, ci=False, unit__a=SKIPPED).returncode == pytest.ExitCode.OK


def test_quick_folders_come_first_when_all_are_run(tmp_path: Path) -> None:
    test = "def test_it():\n    pass\n"
    done = pytest_run(
        tmp_path, ci=True, container__a=test, contract__b=test, reports__c=test, unit__d=test, simulation__e=test
    )
    assert done.returncode == pytest.ExitCode.OK, done.stdout
    folders = [line.partition("/test_")[0].rpartition("/")[2] for line in done.stdout.splitlines() if "PASSED" in line]
    assert folders[:3] == ["unit", "simulation", "contract"]
    assert {*folders[3:]} == {"reports", "container"}
