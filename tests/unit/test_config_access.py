"""Certificates, keys and tokens that settings name are looked into before anyone logs in with them."""

import asyncio
import json
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from load.stack.authority import Authority, token
from proxy import config
from proxy.access.commands import run_command
from proxy.errors import SettingsError
from tests.support.settings_files import HEAD, ONE_TYPE

DAY = 86_400.0


@pytest.fixture(scope="module")
def issued(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("issued")
    for name in ("one", "other"):
        Authority(folder).issue(name, folder / name, days=20)
    return folder


def found(folder: Path, log: str = "", broker: str = "", *, now: float | None = None) -> list[str]:
    """Return what is wrong with settings that have these words more for log and broker."""
    main = folder / "tidegate.yaml"
    text = HEAD.replace("group: tidegate", f"group: tidegate, {log}").replace(
        '["localhost:5672"]', f'["localhost:5672"], {broker}'
    )
    main.write_text(text + ONE_TYPE)

    def run(command: Sequence[str], seconds: float) -> bytes:
        return asyncio.run(run_command(command, seconds))

    try:
        settings = config.load(main, {}, config.Inspection(time.time() if now is None else now, run))
    except SettingsError as error:
        return [mistake.removeprefix(f"{folder}/") for mistake in error.mistakes]
    assert "planted" not in config.as_json(settings)
    return []


def test_nothing_is_wrong_when_certificates_and_tokens_can_be_used(issued: Path, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(token({"exp": time.time() + 60, "planted": 1}))
    tls = f"ca_file: {issued}/ca.pem, certificate_file: {issued}/one.pem, key_file: {issued}/one.key"
    log = f"security: {{protocol: SASL_SSL, mechanism: OAUTHBEARER, token: {{file: token}}, {tls}}}"
    assert found(tmp_path, log, f"tls: {{{tls}}}, mechanism: EXTERNAL") == []


def test_every_file_is_named_when_several_can_not_be_used(issued: Path, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("planted secret")
    tls = f"ca_file: {issued}/none.pem, certificate_file: {issued}/one.pem, key_file: {issued}/none.key"
    log = f"security: {{protocol: SASL_SSL, mechanism: OAUTHBEARER, token: {{file: token}}, {tls}}}"
    broker = f"tls: {{certificate_file: {issued}/one.pem, key_file: {issued}/other.key}}, token: {{command: ['false']}}"
    no_token = "holds no token: neither a JWT nor JSON with access_token"
    no_match = "does not match certificate_file; give the key it was made with"
    assert found(tmp_path, log, broker) == [
        f"tidegate.yaml:1: log.security.ca_file: the file {issued}/none.pem can't be read: No such file or directory",
        f"tidegate.yaml:1: log.security.key_file: the file {issued}/none.key can't be read: No such file or directory",
        f"tidegate.yaml:1: log.security.token.file: the file {tmp_path}/token {no_token}",
        f"tidegate.yaml:2: broker.tls.key_file: the file {issued}/other.key {no_match}",
        "tidegate.yaml:2: broker.token.command: command 'false' fails with exit code 1",
    ]


def test_files_are_looked_into_when_other_settings_beside_them_are_wrong(issued: Path, tmp_path: Path) -> None:
    log = "start: never, security: {protocol: SSL, ca_file: nowhere.pem, mechansm: PLAIN}"
    broker = f"heartbeat: 1h, tls: {{certificate_file: {issued}/one.pem, x: 1}}, token: {{file: token}}"
    assert [mistake.partition(";")[0] for mistake in found(tmp_path, log, broker)] == [
        "tidegate.yaml:1: log.security.ca_file: the file nowhere.pem can't be read: No such file or directory",
        "tidegate.yaml:1: log.security.mechansm: no such setting",
        'tidegate.yaml:1: log.start: "never" is unknown',
        "tidegate.yaml:2: broker.heartbeat: is out of range",
        "tidegate.yaml:2: broker.tls.x: no such setting",
        "tidegate.yaml:2: broker.tls: certificate_file and key_file go together",
        f"tidegate.yaml:2: broker.token.file: the file {tmp_path}/token can't be read: No such file or directory",
    ]


@pytest.mark.parametrize(
    ("days", "words"), [(21.0, "expired 1d ago; renew it"), (-1.0, "is valid only in 1d; is the clock of this machine")]
)
def test_the_certificate_is_a_mistake_when_its_time_is_over_or_to_come(
    issued: Path, tmp_path: Path, days: float, words: str
) -> None:
    tls = f"ca_file: {issued}/ca.pem, certificate_file: {issued}/one.pem, key_file: {issued}/one.key"
    [mistake] = found(tmp_path, broker=f"tls: {{{tls}}}", now=time.time() + days * DAY + (600 if days > 0 else -600))
    place = "tidegate.yaml:2: broker.tls.certificate_file"
    assert mistake.startswith(f"{place}: the file {issued}/one.pem holds a certificate that {words}"), mistake


@pytest.mark.parametrize(
    ("content", "words"),
    [("", "holds no certificate; give a PEM file"), ("planted", "holds no certificate; give a PEM file")],
)
def test_the_authorities_are_a_mistake_when_the_file_holds_none(tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "ca.pem").write_text(content)
    assert found(tmp_path, broker=f"tls: {{ca_file: {tmp_path}/ca.pem}}") == [
        f"tidegate.yaml:2: broker.tls.ca_file: the file {tmp_path}/ca.pem {words}"
    ]


def test_the_token_is_a_mistake_when_it_has_expired(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(token({"exp": time.time() - 7300}))
    assert found(tmp_path, broker="token: {file: token}") == [
        f"tidegate.yaml:2: broker.token.file: the file {tmp_path}/token holds a token that expired 2h ago; renew it"
    ]


def test_the_command_shows_its_program_only_when_the_settings_are_printed(tmp_path: Path) -> None:
    answer = json.dumps({"access_token": "planted-token", "expires_in": 60})
    (tmp_path / "issue").write_text(f"#!/bin/sh\necho '{answer}'\n")
    (tmp_path / "issue").chmod(0o755)
    assert found(tmp_path, broker=f"token: {{command: [{tmp_path}/issue, --secret, planted]}}") == []


@pytest.mark.parametrize(
    ("log", "broker", "words"),
    [
        (
            "security: {protocol: SASL_SSL, mechanism: OAUTHBEARER}",
            "",
            "log.security: mechanism OAUTHBEARER needs token",
        ),
        (
            "security: {protocol: SASL_SSL, mechanism: OAUTHBEARER, token: {file: t}, username: u}",
            "",
            "log.security: mechanism OAUTHBEARER needs token",
        ),
        ("security: {token: {file: t}}", "", "log.security: only mechanism OAUTHBEARER"),
        ("", "mechanism: EXTERNAL", "broker: mechanism EXTERNAL logs in by tls.certificate_file"),
        ("", "token: {file: t}, password: p", "broker: give password or token, not both"),
        ("", "token: {}", "broker.token: give exactly one of file, command"),
        ("", "token: {file: t, command: [c]}", "broker.token: give exactly one of file, command"),
        (
            "",
            "mechanism: EXTERNAL, tls: {certificate_file: c, key_file: k}, username: u",
            "broker: mechanism EXTERNAL sends no username",
        ),
        (
            "",
            'mechanism: EXTERNAL, tls: {certificate_file: c, key_file: k}, management: {url: "http://h:1"}',
            "broker: with mechanism EXTERNAL management needs a username",
        ),
    ],
)
def test_ways_to_log_in_are_a_mistake_when_they_exclude_each_other(
    tmp_path: Path, log: str, broker: str, words: str
) -> None:
    assert any(f": {words}" in mistake for mistake in found(tmp_path, log, broker))


def test_a_probe_of_health_looks_into_no_certificate_when_it_reads_the_settings(tmp_path: Path) -> None:
    main = tmp_path / "tidegate.yaml"
    main.write_text(HEAD.replace('["localhost:5672"]', '["localhost:5672"], token: {file: none}') + ONE_TYPE)
    token_settings = config.load(main, {}).broker.token
    assert token_settings is not None
    assert token_settings.file == str(tmp_path / "none")
