"""What one login needs is as its files are now, and as they were while they can't be used."""

import shutil
import time
from pathlib import Path
from typing import Any

import pytest
import structlog

from load.stack.authority import Authority, token
from proxy.access import Access, broker_access, log_access
from proxy.access.tls import TlsFiles
from proxy.errors import SecretError, SettingsError
from proxy.settings import BrokerSettings, LogSecurity, Secret, Token

DAY = 86_400.0


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def files(authority: Authority, tmp_path: Path) -> TlsFiles:
    certificate, key = authority.issue("first", tmp_path / "client")
    return TlsFiles(str(authority.certificate), str(certificate), str(key))


def said(logs: list[Any]) -> list[str]:
    return [entry["event"] for entry in logs]


def test_new_connections_use_the_new_pair_when_both_files_are_replaced(
    authority: Authority, files: TlsFiles, tmp_path: Path
) -> None:
    access = Access("log.security", tls=files)
    before = access.context
    access.look()
    assert access.context is before
    authority.issue("second", tmp_path / "client")
    with structlog.testing.capture_logs() as logs:
        access.look()
        access.look()
    assert access.context is not before
    assert said(logs) == ["secret_renewed"]


@pytest.mark.parametrize("half", ["certificate", "key", "empty", "missing", "garbage"])
def test_the_last_pair_stays_in_use_and_is_said_once_when_the_files_do_not_go_together(
    authority: Authority, files: TlsFiles, tmp_path: Path, half: str
) -> None:
    access = Access("log.security", tls=files)
    before = access.context
    certificate, key = authority.issue("second", tmp_path / "next")
    assert files.certificate_file is not None
    assert files.key_file is not None
    with structlog.testing.capture_logs() as logs:
        match half:
            case "certificate":
                shutil.copy(certificate, files.certificate_file)
            case "key":
                shutil.copy(key, files.key_file)
            case "empty":
                Path(files.certificate_file).write_bytes(b"")
            case "missing":
                Path(files.key_file).unlink()
            case "garbage":
                Path(files.key_file).write_text("-----BEGIN PRIVATE KEY-----\nhidden\n")
        for _ in range(3):
            access.look()
        assert access.context is before
        assert said(logs) == ["secret_unusable"]
        shutil.copy(certificate, files.certificate_file)
        shutil.copy(key, files.key_file)
        access.look()
    assert access.context is not before
    assert said(logs) == ["secret_unusable", "secret_renewed"]
    assert "hidden" not in str(logs)


def test_secrets_are_renewed_when_kubernetes_swaps_its_symbolic_link(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / f"..{number}").mkdir()
        (tmp_path / f"..{number}" / "password").write_text(f"secret-{number}\n")
    (tmp_path / "..data").symlink_to("..1")
    (tmp_path / "password").symlink_to("..data/password")
    access = Access("broker", password=Secret(file=str(tmp_path / "password")))
    assert access.password == "secret-1"
    (tmp_path / "..next").symlink_to("..2")
    (tmp_path / "..next").rename(tmp_path / "..data")
    access.look()
    assert access.password == "secret-2"


def test_a_password_is_renewed_when_the_file_keeps_its_size_and_its_date(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("secret-1")
    status = file.stat()
    access = Access("broker", password=Secret(file=str(file)))
    file.write_text("secret-2")
    import os

    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    access.look()
    assert access.password == "secret-2"


def test_the_last_password_stays_when_the_file_is_empty_for_a_moment(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("secret-1")
    access = Access("broker", password=Secret(file=str(file)))
    for content in (b"", b"\xff", b"\n"):
        file.write_bytes(content)
        access.look()
        assert access.password == "secret-1"


def test_the_settings_are_refused_when_a_file_can_not_be_used_at_the_beginning(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"log\.security\.ca_file: the file \S+ can't be read: No such file"):
        log_access(LogSecurity(protocol="SSL", ca_file=str(tmp_path / "none")))
    with pytest.raises(SettingsError, match=r"broker\.password: the secret's file \S+ can't be read"):
        broker_access(BrokerSettings(hosts=["h:1"], password=Secret(file=str(tmp_path / "none"))))


async def test_a_token_is_handed_out_until_it_ends_when_its_file_is_gone(tmp_path: Path) -> None:
    now = time.time()
    file = tmp_path / "token"
    file.write_text(token({"exp": now + 60}))
    access = Access("broker", token=Token(file=str(file)), wall=lambda: now)
    first = await access.fresh_token()
    file.unlink()
    assert await access.fresh_token() == first
    assert access.token == first
    now += 61
    assert access.token is None
    with pytest.raises(SecretError, match="can't be read"):
        await access.fresh_token()
    file.write_text(token({"exp": now + 60}))
    with structlog.testing.capture_logs() as logs:
        await access.turn()
        await access.turn()
    assert said(logs) == ["secret_renewed"]
    assert access.token == await access.fresh_token() != first


async def test_the_end_of_a_certificate_is_said_once_a_day_when_it_is_near(files: TlsFiles) -> None:
    start = now = time.time()
    access = Access("broker", tls=files, wall=lambda: now)
    days: list[int] = []
    with structlog.testing.capture_logs() as logs:
        for hour in range(0, 92 * 24, 6):
            now = start + hour * 3600
            before = len(logs)
            await access.turn()
            days += [hour // 24] * (len(logs) - before)
    assert days == list(range(60, 92))
    assert {entry["event"] for entry in logs} == {"certificate_expires", "certificate_expired"}
    assert (logs[0]["at"], logs[0]["whose"], logs[0]["log_level"]) == ("broker", "own", "warning")
    assert logs[-1]["log_level"] == "error"
    assert dict(access.expiries.left(now))["own"] < 0


def test_what_a_server_writes_is_shown_without_our_secrets_when_it_quotes_them() -> None:
    access = Access("broker", password=Secret.of("planted-secret"))
    assert access.redacted("no user guest with planted-secret") == "no user guest with **********"
