"""The JSON that a comparison is kept in, written anew after every run, so that what was interrupted goes on."""

import json
import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from proxy.errors import SettingsError


class Book:
    """What was found so far, by scenario and policy, simulated and real."""

    def __init__(self, file: Path) -> None:
        """Open the book, an empty one if there is none yet. Raises `SettingsError` if the file is none."""
        self._file = file
        self.content: dict[str, Any] = {"measured": "comparison", "simulated": {}, "real": {}}
        if file.exists():
            try:
                self.content = json.loads(file.read_text(encoding="utf-8"))
                assert self.content["measured"] == "comparison"
            except (ValueError, KeyError, TypeError, AssertionError) as error:
                raise SettingsError([f"{file} is no comparison; name another, or remove it"]) from error

    def knows(self, scenario: str, policy: str, digest: str) -> bool:
        """Return whether a simulated run of just this scenario under the policy is there."""
        known = self.content["simulated"].get(scenario, {})
        return known.get("digest") == digest and policy in known["runs"]

    def simulated(self, scenario: str, about: Mapping[str, Any], policy: str, run: Mapping[str, Any]) -> None:
        """Take in a simulated run; runs of the scenario as it was before go."""
        known = self.content["simulated"].get(scenario, {})
        runs = known["runs"] if known.get("digest") == about["digest"] else {}
        self.content["simulated"][scenario] = {**about, "runs": runs | {policy: run}}
        self.write()

    def real(self, scenario: str, found: Mapping[str, Any]) -> None:
        """Take in what became of a scenario on real brokers, in place of what was known."""
        self.content["real"][scenario] = dict(found)
        self.write()

    def write(self) -> None:
        """Write the file; whoever reads meanwhile finds the old one. One line a run: it is kept in the repository."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        draft = self._file.with_name(f".{self._file.name}.{os.getpid()}")
        try:
            draft.write_text(dumped(self.content), encoding="utf-8")
            draft.replace(self._file)
        finally:
            draft.unlink(missing_ok=True)  # a signal came between


def digest(path: Path) -> str:
    """Return what tells a scenario's text from every other."""
    return sha256(path.read_bytes()).hexdigest()[:12]


def dumped(content: Mapping[str, Any], depth: int = 0) -> str:
    """Return JSON with sorted scenarios, opened down to the runs, each of which is one line."""
    if depth == _OPEN or not isinstance(content, dict) or not content:
        return json.dumps(content, ensure_ascii=False)
    indent = " " * (depth + 1)
    keys = sorted(content) if depth == 1 else content
    lines = [f"{indent}{json.dumps(key)}: {dumped(content[key], depth + 1)}" for key in keys]
    return "{\n" + ",\n".join(lines) + "\n" + " " * depth + "}" + "\n" * (depth == 0)


_OPEN = 4
"""Levels that are opened: simulated or real, scenario, runs, policy."""
