"""Certificates, keys and tokens that the settings name: whether they can be used, before anyone logs in with them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from proxy.access.files import naming, read_file, read_or_say
from proxy.access.tls import FileError, TlsFiles, fault, new_context, own
from proxy.access.tokens import bearer
from proxy.config.items import Item, Mistakes, find
from proxy.errors import SecretError
from proxy.settings import BrokerSettings, BrokerTls, LogSecurity, LogSettings, Part, Token
from proxy.settings.parts import duration_text

_HOUR = 3_600.0


@dataclass(frozen=True, slots=True)
class Inspection:
    """How to judge what proves who we are: at `now`, in seconds since 1970, and by running commands or not."""

    now: float
    run: Callable[[Sequence[str], float], bytes] | None = None
    """Runs a command within seconds and returns what it printed. Raises `SecretError`."""


def check_access(root: Item, parts: Mapping[str, Part], inspection: Inspection, mistakes: Mistakes) -> None:
    """Note every file that can't be used, and every token that can't be had."""
    log, broker = parts.get("log"), parts.get("broker")
    if isinstance(log, LogSettings):
        _check_tls(root, ("log", "security"), log.security, inspection, mistakes)
        _check_token(root, ("log", "security", "token"), log.security.token, inspection, mistakes)
    if isinstance(broker, BrokerSettings):
        if broker.tls is not None:
            _check_tls(root, ("broker", "tls"), broker.tls, inspection, mistakes)
        _check_token(root, ("broker", "token"), broker.token, inspection, mistakes)


def _check_tls(
    root: Item, place: tuple[str, ...], tls: BrokerTls | LogSecurity, inspection: Inspection, mistakes: Mistakes
) -> None:
    files = TlsFiles(tls.ca_file, tls.certificate_file, tls.key_file)
    found: list[FileError] = []
    held: list[bytes | None] = []
    for key, path in files._asdict().items():
        try:
            held.append(None if path is None else read_or_say(read_file, path))
        except SecretError as error:
            found.append(FileError(key, f"the file {error}"))
    if not found and any(path is not None for path in files):
        try:
            new_context(files, tuple(held))
            _check_dates(files, held[1], inspection.now)
        except FileError as error:
            found.append(error)
    for one in found:
        mistakes.add(find(root, (*place, one.key))[0], one.words)


def _check_dates(files: TlsFiles, certificate: bytes | None, now: float) -> None:
    if certificate is None:
        return
    valid = own(files, "certificate_file", certificate)
    if valid.ends <= now:
        words = f"holds a certificate that expired {_ago(now - valid.ends)} ago; renew it"
        raise fault(files, "certificate_file", words)
    if valid.begins > now:
        begins = _ago(valid.begins - now)
        words = f"holds a certificate that is valid only in {begins}; is the clock of this machine right?"
        raise fault(files, "certificate_file", words)


def _check_token(
    root: Item, place: tuple[str, ...], token: Token | None, inspection: Inspection, mistakes: Mistakes
) -> None:
    if token is None:
        return
    try:
        if token.file is not None:
            data = read_or_say(read_file, token.file)
            with naming(token.file):
                _check_bearer(data, inspection.now)
        elif inspection.run is not None and token.command is not None:
            _check_bearer(inspection.run(token.command, token.timeout), inspection.now)
    except SecretError as error:
        key, what = ("command", "") if token.file is None else ("file", "the file ")
        mistakes.add(find(root, (*place, key))[0], f"{what}{error}")


def _check_bearer(data: bytes, now: float) -> None:
    made = bearer(data, now)
    if made.expires <= now:
        raise SecretError(f"holds a token that expired {_ago(now - made.expires)} ago; renew it")


def _ago(seconds: float) -> str:
    return duration_text(seconds // _HOUR * _HOUR if seconds >= _HOUR else max(1.0, seconds // 1))
