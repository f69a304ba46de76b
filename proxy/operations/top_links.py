"""What `tidegate top` hears: one thread for each admin address listens to its /stream, and comes again when it ends."""

import http.client
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from proxy.errors import SettingsError
from proxy.json_text import read_json
from proxy.operations.deadline import LateError

SILENT_SECONDS = 6.0
"""Without a word for so long a connection is given up; also how long a first answer may take to begin."""
_LINE_BYTES = 64 * 1024**2
"""No event is longer."""
AGAIN_SECONDS = 1.0
_PARTS = ("routes", "decisions", "classes", "types")


class AwayError(SettingsError):
    """Nothing is heard from an address; that may be over in a moment."""


class Replica:
    """One replica as it was told last; written by its thread, read by another: whole values are exchanged, no more."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.told: dict[str, Any] = {}
        """As the first event has it, with all changes since; empty before that."""
        self.heard_at = 0.0
        """On the clock `time.monotonic`."""
        self.why = "nothing heard yet"
        """Why nothing is heard now; empty while something is."""

    @property
    def name(self) -> str:
        """Its instance, or its address as long as that is not known."""
        return str(self.told.get("instance", self.address))

    def take(self, event: Mapping[str, Any]) -> None:
        """Take an event of the stream."""
        told = dict(event) if "columns" in event else {**self.told, **event}
        for part in _PARTS:
            before = {} if "columns" in event else self.told.get(part, {})
            members = {**before, **event.get(part, {})}
            told[part] = {name: value for name, value in members.items() if value is not None}
        if "point" in event:
            told["points"] = [*self.told.get("points", []), event["point"]][-600:]
        self.told, self.heard_at, self.why = told, time.monotonic(), ""


class Link:
    """Listens to one address. Raises `SettingsError` at once if the address is none."""

    def __init__(self, address: str, token: str | None, context: ssl.SSLContext) -> None:
        written = address if "//" in address else f"http://{address}"
        try:
            parts = urlsplit(written)
            host, self._port = parts.hostname, parts.port
        except ValueError as error:
            raise SettingsError([f"--admin {address}: {error}"]) from error
        if parts.scheme not in {"http", "https"} or not host or parts.path not in {"", "/"} or parts.query:
            raise SettingsError([f"--admin {address} is no address; give HOST:PORT or https://HOST:PORT"])
        self._host, self._is_tls = host, parts.scheme == "https"
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._context = context
        self.replica = Replica(address)

    def begin(self) -> None:
        """Listen until the process ends."""
        threading.Thread(target=self._run, name=f"top {self.replica.address}", daemon=True).start()

    def first(self) -> None:
        """Hear everything once. Raises `SettingsError` with the reason, `AwayError` if nobody is there."""
        try:
            self.replica.take(next(self._events()))
        except (OSError, http.client.HTTPException, ValueError, StopIteration) as error:
            self.replica.why = _words(error)
            is_away = isinstance(error, (TimeoutError, ConnectionError))
            failure = AwayError if is_away else SettingsError
            raise failure([f"{self.replica.address}: {self.replica.why}"]) from error

    def _run(self) -> None:
        while True:
            try:
                for event in self._events():
                    self.replica.take(event)
                self.replica.why = "it has ended the stream"
            except (OSError, http.client.HTTPException, ValueError) as error:
                self.replica.why = _words(error)
            time.sleep(AGAIN_SECONDS)

    def _events(self) -> Iterator[Mapping[str, Any]]:
        connection = (
            http.client.HTTPSConnection(self._host, self._port, timeout=SILENT_SECONDS, context=self._context)
            if self._is_tls
            else http.client.HTTPConnection(self._host, self._port, timeout=SILENT_SECONDS)
        )
        try:
            connection.request("GET", "/stream", headers=self._headers)
            answer = connection.getresponse()
            if answer.status != http.client.OK:
                raise ValueError(_refusal(answer))
            while line := answer.readline(_LINE_BYTES):
                if line.startswith(b"data: "):
                    yield _event(line[6:])
        finally:
            connection.close()


def context(ca_file: str | None, certificate: str | None, key: str | None) -> ssl.SSLContext:
    """Return what TLS is spoken with. Raises `SettingsError` if a file can't be used."""
    try:
        made = ssl.create_default_context(cafile=ca_file)
        if certificate is not None:
            made.load_cert_chain(certificate, key)
    except (OSError, ValueError) as error:
        used = ", ".join(name for name in (ca_file, certificate, key) if name)
        raise SettingsError([f"{used} can't be used: {getattr(error, 'strerror', None) or error}"]) from error
    return made


def _event(data: bytes) -> Mapping[str, Any]:
    event = read_json(data)
    if not isinstance(event, dict):
        raise ValueError("what answers is no Tidegate")  # noqa: TRY004 - one kind of error for whatever is no event
    return event


def _refusal(answer: http.client.HTTPResponse) -> str:
    told = answer.read(10_000)
    try:
        words = str(read_json(told)["error"])
    except (ValueError, KeyError, TypeError):
        return f"what answers is no Tidegate that has /stream (status {answer.status})"
    if answer.status == http.client.UNAUTHORIZED:
        return f"{words}; give it by --token-file or in TIDEGATE_ADMIN_TOKEN"
    return words


def _words(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}; --ca-file names who signs it"
    if isinstance(error, ssl.SSLError):
        return f"TLS fails: {error.reason or error}; does it speak TLS, and does it want --cert and --key?"
    if isinstance(error, TimeoutError):
        return str(error) if isinstance(error, LateError) else f"no word within {SILENT_SECONDS:g} s"
    if isinstance(error, StopIteration):
        return "it ended the stream before the first event"
    if isinstance(error, http.client.HTTPException):
        return "what answers speaks no HTTP; is it https:// ?"
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
