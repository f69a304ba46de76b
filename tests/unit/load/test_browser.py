"""The browser of the page's tests is found, installed where that is permitted, else named in one sentence."""

from pathlib import Path

import pytest

from load import browser
from load.stack.errors import SetupError


@pytest.fixture(autouse=True)
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Hide what this machine has; programs are looked for in tmp_path."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def put(folder: Path) -> None:
    (folder / "chromium").write_text("#!/bin/sh\n")
    (folder / "chromium").chmod(0o755)


def test_the_machines_own_is_taken_when_there_is_one(bare_machine: Path) -> None:
    put(bare_machine)
    assert browser.provide() == bare_machine / "chromium"


def test_one_sentence_names_the_package_when_nothing_may_be_installed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(browser, "may_install", lambda: False)
    assert browser.main() == 2
    said = capsys.readouterr().err
    assert "sudo apt-get install chromium" in said
    assert said.count("\n") == 1


def test_apt_is_asked_when_it_may_be_used(bare_machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def install(packages: list[str]) -> None:
        asked.append(packages)
        put(bare_machine)

    monkeypatch.setattr(browser, "may_install", lambda: True)
    monkeypatch.setattr(browser, "apt_install", install)
    assert browser.provide() == bare_machine / "chromium"
    assert asked == [["chromium"]]


def test_it_is_said_when_apt_brings_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser, "may_install", lambda: True)
    monkeypatch.setattr(browser, "apt_install", lambda _: None)
    with pytest.raises(SetupError, match="can't be found"):
        browser.provide()
