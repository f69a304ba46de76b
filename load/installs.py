"""Whether the sdist and the wheel install and run in clean environments: `python -m load.installs`.

An sdist of this checkout, a wheel from that sdist, then for each Python of this machine from 3.11 on a fresh
environment from the package registry: newest versions that the wheel allows, no extras, none of our pins. For Pythons
that are not here pip is asked whether every dependency has a wheel.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from load.container.commands import ask
from load.stack.cache import run_tool
from load.stack.errors import SetupError, StackError
from load.stack.terminal import say

CHECKOUT = Path(__file__).resolve().parents[1]
SUPPORTED = ("3.11", "3.12", "3.13", "3.14")
SECONDS = 900.0
_RELEASE = "import sys; print('%d.%d' % sys.version_info[:2], sys.implementation.name)"


def build(folder: Path) -> tuple[Path, Path]:
    """Return an sdist of this checkout, and a wheel made from the sdist alone. Raises SetupError."""
    sdists, wheels = folder / "sdist", folder / "wheel"
    made = ["-m", "hatchling", "build", "--target", "sdist", "--directory", str(sdists)]
    run_tool(
        ["sh", "-c", 'cd "$0" && exec "$@"', str(CHECKOUT), sys.executable, *made],
        seconds=SECONDS, purpose="the sdist can't be built",
    )  # fmt: skip
    (sdist,) = sdists.glob("*.tar.gz")
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", f"--wheel-dir={wheels}", str(sdist)]
    run_tool(pip, seconds=SECONDS, purpose="the wheel can't be built from the sdist")
    (wheel,) = wheels.glob("*.whl")
    return sdist, wheel


def pythons() -> dict[str, Path]:
    """Return this machine's Pythons that Tidegate supports: on PATH, and pyenv's; one for each release."""
    found: dict[str, Path] = {}
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    usual = [shutil.which(f"python{release}") for release in SUPPORTED]
    for path in (sys.executable, *usual, *sorted(pyenv.glob("3.*/bin/python3"))):
        if path is None:
            continue
        try:
            release, kind = ask(str(path), "-c", _RELEASE).split()
        except StackError:
            continue  # a shim of a Python that is not installed
        if release in SUPPORTED and kind == "cpython":
            found.setdefault(release, Path(path))
    return found


def install(wheel: Path, folder: Path, python: Path, extras: str = "") -> Path:
    """Return the Python of a fresh environment with the wheel in it. Raises SetupError."""
    run_tool([str(python), "-m", "venv", str(folder)], seconds=SECONDS, purpose=f"{python} makes no environment")
    inside = folder / "bin" / "python"
    wanted = f"{wheel}[{extras}]" if extras else str(wheel)
    run_tool(
        [str(inside), "-m", "pip", "install", wanted], seconds=SECONDS, purpose=f"{python} can't install the wheel"
    )
    return inside


def tried(python: Path) -> str:
    """Return the version that an environment's command tells, after it has helped and checked. Raises StackError."""
    command = str(python.with_name("tidegate"))
    ask(command, "--help")
    ask(command, "check", "-c", str(CHECKOUT / "config" / "minimal.yaml"))
    return ask(command, "--version")


def resolved(wheel: Path, release: str) -> list[str]:
    """Return what pip would install for another Python on this kind of machine, wheels alone. Raises StackError."""
    with tempfile.TemporaryDirectory(prefix="tidegate-resolve-") as folder:
        report = Path(folder) / "report.json"
        command = [
            sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--only-binary=:all:",
            f"--python-version={release}", f"--target={folder}", f"--report={report}", str(wheel),
        ]  # fmt: skip
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=SECONDS)
        if done.returncode:
            raise StackError(f"Python {release}: {done.stderr.strip()}")
        chosen = [one["metadata"] for one in json.loads(report.read_text())["install"]]
    return sorted(f"{one['name']} {one['version']}" for one in chosen)


def main(arguments: Sequence[str] | None = None) -> int:
    """Try all and print a line for each Python; return 0 if everything installs, runs and resolves, else 1."""
    parser = argparse.ArgumentParser(prog="python -m load.installs", description=__doc__)
    parser.add_argument("--extras", default="", help="also install these, such as reports")
    options = parser.parse_args(arguments)
    failed = False
    with tempfile.TemporaryDirectory(prefix="tidegate-installs-") as place:
        try:
            sdist, wheel = build(Path(place))
        except SetupError as error:
            say(str(error))
            return 1
        print(f"{sdist.name} {sdist.stat().st_size} bytes, {wheel.name} {wheel.stat().st_size} bytes")
        here = pythons()
        for release in SUPPORTED:
            try:
                if release in here:
                    folder = Path(place) / release
                    told = f"installs and runs: {tried(install(wheel, folder, here[release], options.extras))}"
                    shutil.rmtree(folder)
                else:
                    told = f"not here; every one of {len(resolved(wheel, release)) - 1} dependencies has a wheel"
            except (SetupError, StackError) as error:
                failed, told = True, f"fails: {' '.join(str(error).split())}"
            print(f"Python {release}: {told}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
