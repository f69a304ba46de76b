"""What is tested is what is installed: the wheel, whole, and nothing of the checkout."""

import os
import re
import subprocess
import sys
import sysconfig
from importlib.metadata import distribution, distributions
from pathlib import Path

import pytest

import proxy

CHECKOUT = Path(__file__).resolve().parents[2]
INSTALLED = Path(sysconfig.get_path("purelib")).resolve()

pytestmark = pytest.mark.skipif(
    "TIDEGATE_TEST_WHEEL" not in os.environ, reason="only where `make` has installed the wheel"
)


def test_proxy_comes_from_the_wheel_when_make_runs_the_tests() -> None:
    assert Path(proxy.__file__).resolve().is_relative_to(INSTALLED)


def test_wheel_holds_every_source_file_and_no_other_when_built_from_the_checkout() -> None:
    files = {str(file) for file in distribution("tidegate").files or () if file.parts[0] == "proxy"}
    sources = {str(path.relative_to(CHECKOUT)) for path in (CHECKOUT / "proxy").rglob("*") if path.is_file()}
    assert {name for name in files if "__pycache__" not in name} == {
        name for name in sources if "__pycache__" not in name
    }


def test_tests_and_loads_stay_out_of_the_wheel_when_built_from_the_checkout() -> None:
    roots = {file.parts[0] for file in distribution("tidegate").files or () if ".." not in file.parts}
    assert {root for root in roots if not root.endswith(".dist-info")} == {"proxy"}


def test_command_is_installed_when_the_wheel_is() -> None:
    command = Path(sys.executable).with_name("tidegate")
    told = subprocess.run([command, "--version"], check=True, capture_output=True, text=True, timeout=30).stdout
    assert told.split() == ["tidegate", distribution("tidegate").version]


def test_installed_files_are_those_of_the_checkout_when_the_checkout_has_changed() -> None:
    stale = [
        path
        for path in (CHECKOUT / "proxy").rglob("*.py")
        if path.read_bytes() != (INSTALLED / path.relative_to(CHECKOUT)).read_bytes()
    ]
    assert stale == []


def test_every_version_is_pinned_when_the_environment_was_made_by_the_constraints() -> None:
    lines = (CHECKOUT / "constraints.txt").read_text().splitlines()
    pinned = {
        _canonical(name): version for name, _, version in (line.partition("==") for line in lines if line[0] != "#")
    }
    installed = {_canonical(found.name): found.version for found in distributions(path=[str(INSTALLED)])}
    assert {name: version for name, version in installed.items() if name not in {"pip", "tidegate"}} == pinned


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
