"""The docs site is built strictly, needs nothing from elsewhere, and its reference has a word for everything."""

import ast
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml

from load.site import api, commands, metrics, settings
from proxy.records import KINDS, fields_of

CHECKOUT = Path(__file__).resolve().parents[2]
DOCS = CHECKOUT / "docs"


class Assets(HTMLParser):
    """What a page loads by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = dict(attrs)
        if tag in {"script", "img", "iframe", "source"}:
            self.found.append(told.get("src") or "")
        if tag == "link" and told.get("rel") in {"stylesheet", "icon", "preload"}:
            self.found.append(told.get("href") or "")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder],
        check=False, capture_output=True, text=True, timeout=150, cwd=CHECKOUT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.series
def test_no_page_loads_anything_from_elsewhere_when_built(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 60
    for page in pages:
        assets = Assets()
        assets.feed(page.read_text("utf-8"))
        assert [one for one in assets.found if re.match(r"(https?:)?//", one)] == [], page


@pytest.mark.series
def test_every_design_page_is_reached_when_the_list_is_opened(site: Path) -> None:
    listed = (site / "reference" / "design.html").read_text("utf-8")
    assert all(f"../design/{path.stem}.html" in listed for path in (DOCS / "design").glob("*.md"))


def test_every_metric_has_a_name_of_ours_and_a_description_when_it_is_told() -> None:
    found = metrics.metrics()
    assert len(found) > 40
    assert [one for one in found if not one.name.startswith("tidegate_") or len(one.text) < 8] == []
    assert len({one.name for one in found}) == len(found)


def test_a_metric_without_a_word_is_found_when_the_code_makes_one() -> None:
    (told,) = metrics.made_in(ast.parse("GaugeMetricFamily('tidegate_new', '', labels=['type'])"))
    assert (told.text, told.labels) == ("", ("type",))


def test_every_setting_of_the_file_is_on_its_page_when_built() -> None:
    page = settings.page()
    paths = settings.documented(settings.EXAMPLE.read_text("utf-8"))
    assert {
        path for path, (comment, _) in paths.items() if comment and f"`{path}`" not in page and "." in path
    } == set()


def test_every_field_of_a_record_has_a_meaning_when_it_is_declared() -> None:
    assert [(name, field.name) for name, kind in KINDS.items() for field in fields_of(kind) if not field.meaning] == []
    assert [name for name, kind in KINDS.items() if not (kind.__doc__ or "").strip()] == []


def test_every_question_parameter_and_answer_has_a_word_when_the_api_has_it() -> None:
    document = json.loads(api.DOCUMENT.read_text("utf-8"))
    for method, path, operation in api.operations(document):
        assert operation["summary"], (method, path)
        assert all(one["description"] for one in operation.get("parameters", ()))
        assert all(answer.get("description") for answer in operation["responses"].values()), (method, path)


@pytest.mark.series
def test_every_command_says_what_it_does_when_asked() -> None:
    page = commands.page()
    assert {"run", "check", "health", "report", "simulate", "tune", "pause"} <= {
        *re.findall(r"^## tidegate (\w+)$", page, re.MULTILINE)
    }


def test_every_alert_has_its_page_with_fault_and_remedy_when_it_can_fire() -> None:
    rules = yaml.safe_load((CHECKOUT / "helm" / "tidegate" / "files" / "alerts.yaml").read_text())
    page = (DOCS / "alerts.md").read_text("utf-8")
    sections = {part.partition("\n")[0]: part for part in page.split("\n## ")[1:]}
    alerts = {rule["alert"]: rule for group in rules["groups"] for rule in group["rules"]}
    assert {*sections} == {*alerts}
    for name, rule in alerts.items():
        assert rule["annotations"]["runbook"] == f"alerts.html#{name.lower()}"
        assert f"**{rule['labels']['severity'].capitalize()}.**" in sections[name]
        assert "*Fired by*" in sections[name]
        assert "\n- " in sections[name]
