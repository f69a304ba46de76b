import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).resolve().parents[1] / "conftest.py"


def pytest_run(folder: Path, *options: str, ci: bool = True, **files: str) -> subprocess.CompletedProcess[str]:
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
         *options, tests],
        check=False, capture_output=True, text=True, timeout=120, cwd=folder,
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


def needing(shared: str = "", tests: int = 1) -> str:
    """Tests that need something which tests share, here nothing."""
    lines = ["import pytest", f"@pytest.fixture\ndef {shared}():\n    pass"] if shared else []
    return "\n".join([*lines, *(f"def test_{number}({shared}):\n    pass" for number in range(tests))])


def passed(done: subprocess.CompletedProcess[str]) -> list[tuple[str, str]]:
    """The worker and the file of each test in order, as `pytest_run` names it; one process has no workers."""
    assert done.returncode == pytest.ExitCode.OK, done.stdout
    told = [line.removeprefix("[").partition("tests/") for line in done.stdout.splitlines() if "PASSED" in line]
    return [(before[:3], test.partition(".py")[0].replace("/test_", "/")) for before, _, test in told]


def test_spark_comes_first_and_brokers_last_when_all_are_run(tmp_path: Path) -> None:
    done = pytest_run(
        tmp_path,
        container__image=needing(),
        contract__lane=needing(),
        contract__real_lane=needing("stack"),
        contract__records=needing("spark"),
        histories__history=needing(),
        integration__bridge=needing("stack"),
        integration__access=needing(),
        page__page=needing(),
        reports__files=needing(),
        reports__report=needing("spark"),
        unit__flow=needing(),
        wire__calm=needing(),
    )  # fmt: skip
    files = [file for _, file in passed(done)]
    assert files[:-2] == [
        "reports/report", "contract/records", "reports/files", "histories/history", "wire/calm", "unit/flow",
        "contract/lane", "contract/real_lane", "integration/bridge", "integration/access",
    ]  # fmt: skip
    assert {*files[-2:]} == {"container/image", "page/page"}


def test_one_worker_has_all_on_spark_beside_histories_when_two_run(tmp_path: Path) -> None:
    done = pytest_run(
        tmp_path, "--numprocesses=2", "--dist=loadgroup",
        contract__lane=needing("stack", 9),
        contract__records=needing("spark", 3),
        histories__history=needing(tests=9),
        integration__bridge=needing("stack", 9),
        integration__redrive=needing("stack", 9),
        page__page=needing(tests=9),
        reports__report=needing("spark", 3),
        unit__flow=needing(tests=9),
    )  # fmt: skip
    workers: dict[str, set[str]] = {}
    files: dict[str, list[str]] = {}
    for worker, file in passed(done):
        workers.setdefault(file, set()).add(worker)
        files.setdefault(worker, []).append(file)
    shared = (
        ("reports/report", "contract/records"), ("contract/lane", "integration/redrive"), ("integration/bridge",),
        ("page/page",),
    )  # fmt: skip
    for several in shared:
        assert len(set().union(*(workers[file] for file in several))) == 1, several
    assert {some[0] for some in files.values()} == {"reports/report", "histories/history"}
