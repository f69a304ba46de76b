"""A Prometheus and its promtool for tests of alerts and board: found, or Debian's package, unpacked in the cache.

It is not installed: nothing of it runs but what a test starts.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import yaml

from load.stack.cache import cache, made_once, run_tool
from load.stack.errors import SetupError
from load.stack.packages import may_install
from load.stack.ports import choose
from load.stack.terminal import say

PROGRAMS = ("prometheus", "promtool")
SECONDS = 300.0
START_SECONDS = 30.0


def find(program: str) -> Path:
    """Return the program, unpacked the first time (20 MB). Raises SetupError, saying what to install."""
    if found := shutil.which(program):
        return Path(found)
    folder = cache() / "prometheus"
    if not folder.exists():
        if not may_install():
            raise SetupError("Tests of alerts need a Prometheus: run `sudo apt-get install prometheus`, and repeat.")
        say("Fetching Prometheus from Debian's packages (20 MB, once) ...")
    return made_once(folder, _unpack) / "usr" / "bin" / program


def _unpack(part: Path) -> None:
    run_tool(["apt-get", "-q", "update"], seconds=SECONDS, purpose="apt-get can't update its lists")
    with tempfile.TemporaryDirectory(prefix="tidegate-prometheus-") as place:
        script = 'cd "$0" && apt-get -q download -o APT::Sandbox::User=root prometheus'
        run_tool(["sh", "-c", script, place], seconds=SECONDS, purpose="Prometheus can't be fetched")
        package = next(Path(place).glob("*.deb"))
        run_tool(["dpkg-deb", "--extract", str(package), str(part)], seconds=SECONDS, purpose="it can't be unpacked")
    for folder in ("lib", "usr/share"):
        shutil.rmtree(part / folder, ignore_errors=True)


class Prometheus:
    """A Prometheus that looks at targets, and at rules, once in `interval`; ended with the block."""

    def __init__(
        self,
        folder: Path,
        targets: Mapping[str, int],
        rules: Path,
        *,
        guarded: Mapping[str, str] = {},
        interval: str = "500ms",
    ) -> None:
        """Look at ports of this machine by instance; those `guarded` by TLS and a token are given theirs."""
        self.port = choose(["prometheus"])["prometheus"]
        config = {
            "global": {"scrape_interval": interval, "scrape_timeout": interval, "evaluation_interval": interval},
            "rule_files": [str(rules)],
            "scrape_configs": [
                {
                    "job_name": f"tidegate-{name}",
                    "static_configs": [{"targets": [f"127.0.0.1:{port}"], "labels": {"instance": name}}],
                    **(_proof(guarded[name]) if name in guarded else {}),
                }
                for name, port in targets.items()
            ],
        }
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        command = [
            str(find("prometheus")), f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
            f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=warn",
        ]  # fmt: skip
        self._log = folder / "prometheus.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)

    def __enter__(self) -> Self:
        """Wait until it answers. Raises SetupError with its last words."""
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end and self._process.poll() is None:
            try:
                self.ask("/api/v1/status/buildinfo")
            except OSError:
                time.sleep(0.1)
            else:
                return self
        self.__exit__()
        raise SetupError(f"Prometheus does not start: {self._log.read_text()[-500:]}")

    def __exit__(self, *_: object) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()

    def ask(self, path: str, **parameters: str) -> Any:
        """Return `data` of an answer of its API."""
        url = f"http://127.0.0.1:{self.port}{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return what an expression gives now."""
        found: list[dict[str, Any]] = self.ask("/api/v1/query", query=expression)["result"]
        return found

    def firing(self) -> set[str]:
        """Return the names of the alerts that fire."""
        return {one["labels"]["alertname"] for one in self.ask("/api/v1/alerts")["alerts"] if one["state"] == "firing"}


def _proof(token: str) -> dict[str, Any]:
    return {
        "scheme": "https",
        "tls_config": {"insecure_skip_verify": True},
        "authorization": {"credentials": token},
    }


def main() -> int:
    """Provide both; return the exit code: 0 there, 2 not, with one message."""
    try:
        for program in PROGRAMS:
            print(find(program))
    except SetupError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
