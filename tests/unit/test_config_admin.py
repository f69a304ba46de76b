"""What the settings say of the admin address, and who is warned."""

import time
from pathlib import Path

import pytest

from load.stack.authority import Authority
from proxy import config
from proxy.errors import SettingsError
from tests.support.settings_files import HEAD, ONE_TYPE

TOKEN = "0123456789abcdef0123456789abcdef"


@pytest.fixture(scope="module")
def issued(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("issued")
    for name in ("one", "other"):
        Authority(folder).issue(name, folder / name, days=20)
    return folder


def load(folder: Path, admin: str) -> config.Settings:
    main = folder / "tidegate.yaml"
    main.write_text(f"{HEAD}{ONE_TYPE}\nadmin: {{{admin}}}\n")
    return config.load(main, {"TOKEN": TOKEN}, config.Inspection(time.time()))


def mistakes(folder: Path, admin: str) -> list[str]:
    with pytest.raises(SettingsError) as error:
        load(folder, admin)
    assert "secret-text" not in str(error.value)
    return [one.partition(": ")[2] for one in error.value.mistakes]


def warned(folder: Path, admin: str) -> list[str]:
    return [one for one in config.warnings(load(folder, admin)) if one.startswith("admin")]


def test_the_token_comes_from_text_environment_or_file_and_is_never_shown(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(TOKEN + "\n")
    for given in (TOKEN, "'${TOKEN}'", "{file: token}"):
        settings = load(tmp_path, f"token: {given}")
        assert settings.admin.asks_proof
        assert TOKEN not in config.as_json(settings)


@pytest.mark.parametrize("text", ["secret-text", "''", "secret-text with blanks", "secret-text-ü-0123456789"])
def test_a_token_that_nobody_could_bear_is_refused(tmp_path: Path, text: str) -> None:
    assert len(mistakes(tmp_path, f"token: {text}")) == 1
    (tmp_path / "token").write_text(text)
    (found,) = mistakes(tmp_path, "token: {file: token}")
    assert found.startswith("admin.token: ")


@pytest.mark.parametrize(
    ("tls", "words"),
    [
        ("certificate_file: one.pem, key_file: other.key", "admin.tls.key_file: the file other.key does not match"),
        ("certificate_file: one.pem, key_file: none.key", "admin.tls.key_file: the file none.key can't be read"),
        ("certificate_file: one.pem", "admin.tls.key_file: is missing"),
        ("certificate_file: one.pem, key_file: one.key, client_ca_file: one.key", "admin.tls.client_ca_file: the file"),
    ],
)
def test_a_file_that_can_not_be_used_is_named(
    issued: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tls: str, words: str
) -> None:
    monkeypatch.chdir(issued)
    (found,) = mistakes(tmp_path, f"tls: {{{tls}}}")
    assert found.startswith(words)


def test_whoever_is_reached_by_strangers_without_a_proof_is_warned(tmp_path: Path) -> None:
    (words,) = warned(tmp_path, 'listen: "0.0.0.0:8080"')
    assert words.startswith("admin.listen: whoever reaches 0.0.0.0:8080 reads /metrics and /scaling")


def test_whoever_sends_the_token_in_the_clear_is_warned(issued: Path, tmp_path: Path) -> None:
    (words,) = warned(tmp_path, f'listen: "[::]:8080", token: {TOKEN}')
    assert words.startswith("admin.token: goes in the clear")
    tls = f"tls: {{certificate_file: {issued}/one.pem, key_file: {issued}/one.key}}"
    assert warned(tmp_path, f'listen: "[::]:8080", token: {TOKEN}, {tls}') == []


@pytest.mark.parametrize("admin", ["listen: null", f"token: {TOKEN}", 'listen: "[::1]:8080"', 'listen: "localhost:1"'])
def test_nobody_is_warned_when_only_this_host_reaches_it(tmp_path: Path, admin: str) -> None:
    assert warned(tmp_path, admin) == []
