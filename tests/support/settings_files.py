"""A folder of settings files, and the shortest head that a file can begin with."""

from pathlib import Path
from textwrap import dedent

import pytest

from proxy import config
from proxy.errors import SettingsError
from proxy.settings import Settings

HEAD = """\
log: {hosts: ["localhost:9092"], group: tidegate}
broker: {hosts: ["localhost:5672"]}
routes:
  mails: {exchange: events, queues: [mail]}
  pushes: {exchange: events, queues: [push]}
defaults: {class: P2, route: mails, routing_key: mail, dead_letter: {routing_key: dead}}
"""
HEAD_LINES = HEAD.count("\n")
ONE_TYPE = "event_types: {order-confirmed: {}}\n"


class Files:
    """A folder of settings files, loaded by the first of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.main = folder / "tidegate.yaml"

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), encoding="utf-8")
        return path

    def load(self, text: str, environ: dict[str, str] | None = None) -> Settings:
        self.main.write_text(text, encoding="utf-8")
        return config.load(self.main, environ or {})

    def mistakes(self, text: str, environ: dict[str, str] | None = None) -> list[str]:
        with pytest.raises(SettingsError) as caught:
            self.load(text, environ)
        return [mistake.removeprefix(f"{self.folder}/") for mistake in caught.value.mistakes]
