"""Addresses of HTTP, and what goes with them: a form that no client could use is refused, and no secret is shown."""

from operator import attrgetter
from pathlib import Path

import pytest

from proxy import config
from tests.support.settings_files import HEAD, ONE_TYPE, Files

PLACES = ("log.nakadi.url", "broker.management.url", "notices.webhook.url", "traces.endpoint")
KAFKA = 'log: {hosts: ["localhost:9092"], group: tidegate}'


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def text(place: str, url: str) -> str:
    if place == "log.nakadi.url":
        return (
            HEAD.replace(KAFKA, f"log: {{nakadi: {{url: '{url}', owning_application: a, consumer_group: g}}}}")
            + ONE_TYPE
        )
    if place == "broker.management.url":
        return HEAD.replace("broker: {", f"broker: {{management: {{url: '{url}'}}, ") + ONE_TYPE
    if place == "notices.webhook.url":
        return f"{HEAD}{ONE_TYPE}\nnotices: {{webhook: {{url: '{url}'}}}}\n"
    return f"{HEAD}{ONE_TYPE}\ntraces: {{endpoint: '{url}'}}\n"


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "where", ["[::1", "x:99999", "x:0", "x..y", ":80", "%zz", "-", "x:", "[::1]:0", "a" * 64, "1:2:3"]
)
def test_an_address_is_refused_when_nobody_could_connect_to_it(files: Files, place: str, where: str) -> None:
    (found,) = files.mistakes(text(place, f"http://{where}/v1"))
    assert f"{place}: " in found
    assert "allowed: http://host:port" in found


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("where", ["x", "x:80", "10.0.0.1:65535", "[::1]", "[2001:db8::1]:4318", "a.b-c.d_e."])
def test_an_address_is_taken_when_it_names_a_host(files: Files, place: str, where: str) -> None:
    given = files.load(text(place, f"https://{where}/v1"))
    assert attrgetter(place)(given) == f"https://{where}/v1"


def test_the_query_of_a_webhook_is_not_shown_when_settings_are(files: Files) -> None:
    settings = files.load(text("notices.webhook.url", "https://hooks.example/x?token=confidential"))
    assert settings.notices.webhook is not None
    assert settings.notices.webhook.url.endswith("?token=confidential")
    assert "confidential" not in config.as_json(settings)
    assert "https://hooks.example/x?***" in config.as_json(settings)


def test_an_empty_key_is_refused_when_notices_are_to_be_signed(files: Files) -> None:
    given = f"{HEAD}{ONE_TYPE}\nnotices: {{webhook: {{url: 'http://x', key: ''}}}}\n"
    (found,) = files.mistakes(given)
    assert "notices.webhook: key is empty" in found


def test_a_hidden_file_is_passed_over_when_a_folder_is_included(files: Files, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / ".#a.yaml").symlink_to("somebody@host.123")
    (tmp_path / "more" / "a.yaml").write_text("event_types: {more: {}}\n")
    assert set(files.load(f"{HEAD}{ONE_TYPE}\ninclude: more\n").event_types) == {"order-confirmed", "more"}
