"""TLS as the files describe it now: authorities to trust, our certificate, its key."""

import ssl
from typing import NamedTuple

from proxy.access.certificates import Validity, validities
from proxy.access.files import Read, read_or_say
from proxy.errors import SecretError


class TlsFiles(NamedTuple):
    """Where they are; None where the system's are meant, or none."""

    ca_file: str | None
    certificate_file: str | None
    key_file: str | None


class ServerFiles(NamedTuple):
    """Where those of a server are; without `client_ca_file` no certificate of a client is asked for."""

    client_ca_file: str | None
    certificate_file: str
    key_file: str


Files = TlsFiles | ServerFiles


class FileError(SecretError):
    """One of the files can't be used; `key` is the setting that names it."""

    def __init__(self, key: str, words: str) -> None:
        super().__init__(f"{key}: {words}")
        self.key = key
        self.words = words


_OTHER_KEY = "does not match certificate_file; give the key it was made with"
_NO_KEY = "holds no key that can be used; give a PEM file without passphrase"

Held = tuple[bytes | None, ...]


def read_all(files: Files, read: Read) -> Held:
    """Return what is in the files. Raises `FileError`."""
    held: list[bytes | None] = []
    for key, path in files._asdict().items():
        try:
            held.append(None if path is None else read_or_say(read, path))
        except SecretError as error:
            raise FileError(key, f"the file {error}") from error
    return tuple(held)


def new_context(files: Files, held: Held) -> ssl.SSLContext:
    """Return a context made of the files, whose contents are told beside. Raises `FileError`."""
    authorities, certificate, _ = held
    if isinstance(files, ServerFiles):
        # A probe has no certificate: whoever shows none is let in as a stranger, and one that is wrong is refused.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.verify_mode = ssl.CERT_NONE if authorities is None else ssl.CERT_OPTIONAL
    elif authorities is None:
        context = ssl.create_default_context()
    else:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if authorities is not None:
        key = files._fields[0]
        own(files, key, authorities)
        try:
            context.load_verify_locations(cadata=authorities.decode("utf-8", errors="replace"))
        except (ssl.SSLError, ValueError) as error:
            raise fault(files, key, "holds no certificates of authorities") from error
    if certificate is not None:
        assert files.certificate_file is not None
        own(files, "certificate_file", certificate)
        try:
            # OpenSSL would ask on the terminal for the passphrase of an encrypted key.
            context.load_cert_chain(files.certificate_file, files.key_file, password=_no_passphrase)
        except ssl.SSLError as error:
            if error.reason == "KEY_VALUES_MISMATCH":
                raise fault(files, "key_file", _OTHER_KEY) from error
            raise fault(files, "key_file", _NO_KEY) from error
        except (OSError, ValueError) as error:
            raise fault(files, "key_file", _NO_KEY) from error
    return context


def own(files: Files, key: str, pem: bytes) -> Validity:
    """Return the validity of the first certificate of a file, whose content is told beside. Raises `FileError`."""
    try:
        return validities(pem)[0]
    except ValueError as error:
        raise fault(files, key, f"{error}; give a PEM file") from error


def fault(files: Files, key: str, words: str) -> FileError:
    """Return what is wrong with one of the files, with its path; a key may be in the certificate's file."""
    path: str | None = files._asdict()[key] or files.certificate_file
    return FileError(key, f"the file {path} {words}")


def _no_passphrase() -> str:
    raise ValueError("the key is encrypted")


class Tls:
    """The current context; made anew when a file has changed and all of them can be used together."""

    def __init__(self, files: Files, read: Read) -> None:
        """Read the files. Raises `FileError`."""
        self._files = files
        self._read = read
        self._seen = read_all(files, read)
        self.context = new_context(files, self._seen)
        self.own = self._own()

    def look(self) -> bool:
        """Return whether there is a new context. Raises `FileError`; the last one stays in use then."""
        now = read_all(self._files, self._read)
        if now == self._seen:
            return False
        context = new_context(self._files, now)
        if read_all(self._files, self._read) != now:
            return False  # changed while it was made: made anew at the next look
        self._seen, self.context = now, context
        self.own = self._own()
        return True

    def _own(self) -> Validity | None:
        certificate = self._seen[1]
        return None if certificate is None else own(self._files, "certificate_file", certificate)
