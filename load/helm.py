"""Helm, to render the chart: found, or built once from the Go module that its makers publish."""

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from load.container.commands import ask
from load.stack.cache import cache, exclusively, run_tool
from load.stack.errors import SetupError
from load.stack.terminal import say

VERSION = "v3.22.0"
KUBERNETES = "1.33.0"
"""What the chart is rendered for."""
CHART = Path(__file__).resolve().parents[1] / "helm" / "tidegate"
BUILD_SECONDS = 900.0


def find() -> Path:
    """Return helm, built the first time (two minutes). Raises SetupError, saying what to install."""
    if found := shutil.which("helm"):
        return Path(found)
    program = cache() / f"helm-{VERSION}" / "helm"
    with exclusively("helm"):
        if program.exists():
            return program
        if not shutil.which("go"):
            raise SetupError(
                "Tests of the chart need Helm 3, or Go 1.25 or later to build it: install one, and repeat."
            )
        say(f"Building Helm {VERSION} with Go (two minutes, once) ...")
        _build(program.parent)
    return program


def render(values: Path | None = None, settings: Sequence[str] = (), *, name: str = "try") -> str:
    """Return what `helm template` writes. Raises StackError with its words."""
    given = [*(["--values", str(values)] if values else []), *(f"--set={one}" for one in settings)]
    return ask(str(find()), "template", name, str(CHART), f"--kube-version={KUBERNETES}", *given)


def _build(into: Path) -> None:
    """Build in a folder of its own, of which only the program stays."""
    work = into.with_name(f"{into.name}.work")
    places = {"GOPATH": work / "path", "GOCACHE": work / "cache", "GOBIN": work / "bin"}
    given = [f"{name}={place}" for name, place in places.items()]
    build = ["env", *given, "go", "install", "-modcacherw", "-ldflags=-s -w", f"helm.sh/helm/v3/cmd/helm@{VERSION}"]
    run_tool(build, seconds=BUILD_SECONDS, purpose=f"Helm {VERSION} can't be built")
    into.mkdir(parents=True, exist_ok=True)
    (work / "bin" / "helm").replace(into / "helm")
    shutil.rmtree(work, ignore_errors=True)


def main() -> int:
    """Provide it; return the exit code: 0 there, 2 not, with one message."""
    try:
        print(find())
    except SetupError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
