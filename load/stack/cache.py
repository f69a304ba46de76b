"""The folder of what is fetched once per user: jars, RabbitMQ 4."""

import contextlib
import fcntl
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from load.stack.errors import SetupError
from load.stack.terminal import tail


def cache() -> Path:
    """Return the folder; XDG_CACHE_HOME moves it."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").resolve() / "tidegate"


@contextlib.contextmanager
def exclusively(purpose: str) -> Iterator[None]:
    """Let one script at a time change what all share; the lock ends with the script, however that ends."""
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / f"{purpose}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def made_once(folder: Path, make: Callable[[Path], None]) -> Path:
    """Return a folder of the cache, filled the first time by `make`: whole, or not there at all."""
    if folder.exists():
        return folder
    with exclusively(folder.name):
        if not folder.exists():
            part = folder.with_name(f"{folder.name}.part")
            shutil.rmtree(part, ignore_errors=True)  # of a script that was killed
            part.mkdir()
            try:
                make(part)
                part.rename(folder)
            finally:
                shutil.rmtree(part, ignore_errors=True)
    return folder


def run_tool(command: Sequence[str], *, seconds: float, purpose: str, home: Path | None = None) -> None:
    """Run a tool, with another home folder if given. Raises SetupError, with its last lines, when it fails."""
    cache().mkdir(parents=True, exist_ok=True)
    log = cache() / f"{Path(command[0]).name}.log"
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"} | ({"HOME": str(home)} if home else {})
    with log.open("w") as output:
        try:
            done = subprocess.run(
                command,
                check=False,
                timeout=seconds,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        except subprocess.TimeoutExpired as error:
            raise SetupError(f"{purpose}: not done after {seconds:.0f} s ({log})") from error
        except OSError as error:
            raise SetupError(f"{purpose}: {command[0]}: {error.strerror}") from error
    if done.returncode:
        raise SetupError(f"{purpose} ({log}):\n{tail(log)}")
