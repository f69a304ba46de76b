"""Certificates, keys and tokens that the settings name: whether they can be used, before anyone logs in with them."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from pydantic import ValidationError

from proxy.access.files import naming, password_in, read_file, read_or_say
from proxy.access.tls import FileError, Files, ServerFiles, TlsFiles, fault, new_context, own
from proxy.access.tokens import bearer
from proxy.config.files import TOKENS
from proxy.config.items import Item, Mistakes, find, plain
from proxy.errors import SecretError
from proxy.settings import Token
from proxy.settings.parts import duration_text
from proxy.settings.secrets import BEARER_FORM, fits_bearer

_HOUR = 3_600.0


@dataclass(frozen=True, slots=True)
class Inspection:
    """How to judge what proves who we are: at `now`, in seconds since 1970, and by running commands or not."""

    now: float
    run: Callable[[Sequence[str], float], bytes] | None = None
    """Runs a command within seconds and returns what it printed. Raises `SecretError`."""


def check_access(root: Item, inspection: Inspection, mistakes: Mistakes) -> None:
    """Note every file that can't be used, and every token that can't be had, whatever else is wrong."""
    for holder in (
        _entry(root, "log", "security"),
        _entry(root, "log", "nakadi", "tls"),
        _entry(root, "broker", "tls"),
        _entry(root, "notices", "webhook"),
    ):
        _check_tls(holder, TlsFiles(*(_path(holder, key, mistakes) for key in TlsFiles._fields)), inspection, mistakes)
    admin = _entry(root, "admin", "tls")
    authorities, certificate, key = (_path(admin, name, mistakes) for name in ServerFiles._fields)
    if certificate is not None and key is not None:
        _check_tls(admin, ServerFiles(authorities, certificate, key), inspection, mistakes)
    _check_admin_token(_entry(root, "admin", "token"), mistakes)
    for place in TOKENS:
        token = _entry(root, *place)
        if token.value is not None:
            _check_token(token, inspection, mistakes)


def _entry(root: Item, *place: str) -> Item:
    found, left = find(root, place)
    return found.at(None) if left else found


def _path(holder: Item, key: str, mistakes: Mistakes) -> str | None:
    """Return the file that a setting names; None if it names none, or can't be used itself."""
    entry = holder.mapping.get(key)
    if entry is None or not isinstance(entry.value, str) or "\x00" in entry.value or mistakes.has(entry):
        return None
    return entry.value or None


def _check_tls(holder: Item, files: Files, inspection: Inspection, mistakes: Mistakes) -> None:
    found: list[FileError] = []
    held: list[bytes | None] = []
    for key, path in files._asdict().items():
        try:
            held.append(None if path is None else read_or_say(read_file, path))
        except SecretError as error:
            found.append(FileError(key, f"the file {error}"))
    is_whole = (files.certificate_file is None) == (files.key_file is None)  # else it was said already
    if not found and is_whole and any(path is not None for path in files):
        try:
            new_context(files, tuple(held))
            _check_dates(files, held[1], inspection.now)
        except FileError as error:
            found.append(error)
    for one in found:
        mistakes.add(find(holder, (one.key,))[0], one.words)


def _check_dates(files: Files, certificate: bytes | None, now: float) -> None:
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


def _check_admin_token(entry: Item, mistakes: Mistakes) -> None:
    """Note a token that nobody could show; a file that can't be read was said already."""
    if (file := _path(entry, "file", mistakes)) is None:
        return
    with suppress(SecretError):
        if not fits_bearer(password_in(read_file, file)):
            mistakes.add(entry, f"the secret's file {file} can't be borne; allowed: {BEARER_FORM}")


def _check_token(entry: Item, inspection: Inspection, mistakes: Mistakes) -> None:
    try:
        token = Token.model_validate(plain(entry))
    except ValidationError:
        return  # said already
    try:
        if token.file is not None:
            data = read_or_say(read_file, token.file)
            with naming(token.file):
                _check_bearer(data, inspection.now)
        elif inspection.run is not None and token.command is not None:
            _check_bearer(inspection.run(token.command, token.timeout), inspection.now)
    except SecretError as error:
        key, what = ("command", "") if token.file is None else ("file", "the file ")
        mistakes.add(find(entry, (key,))[0], f"{what}{error}")


def _check_bearer(data: bytes, now: float) -> None:
    made = bearer(data, now)
    if made.expires <= now:
        raise SecretError(f"holds a token that expired {_ago(now - made.expires)} ago; renew it")


def _ago(seconds: float) -> str:
    return duration_text(seconds // _HOUR * _HOUR if seconds >= _HOUR else max(1.0, seconds // 1))
