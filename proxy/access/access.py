"""All that one login needs, current at every moment, and the look at the files that keeps it so."""

import asyncio
import ssl
import time
from collections.abc import Callable
from typing import Any

import structlog
from pydantic import SecretStr

from proxy.access.certificates import validity
from proxy.access.commands import Run, run_command
from proxy.access.expiry import Expiries
from proxy.access.files import Read, password_in, read_file
from proxy.access.tls import FileError, Files, ServerFiles, Tls, TlsFiles
from proxy.access.tokens import Tokens
from proxy.errors import SecretError, SettingsError
from proxy.settings import (
    AdminSettings,
    BrokerSettings,
    BrokerTls,
    LogSecurity,
    Management,
    NakadiSettings,
    Secret,
    Token,
    Webhook,
)
from proxy.settings.secrets import BEARER_FORM, MASK, fits_bearer

LOOK_SECONDS = 1.0
"""Between two looks at the files; a login looks at them, too."""

_SHORTEST_REDACTED = 4
"""A shorter secret would be found in the middle of words."""
_say = structlog.get_logger("tidegate.access")


class Access:
    """Certificates, password and token of one login. `place` is the setting they stand under.

    `what` is the password's key in it, `fits` says what is wrong with a password, None if nothing is.
    Files are read by `read`, commands run by `run`, and the time of day is `wall`'s, in seconds since 1970.
    Raises `SettingsError` if a file can't be used at the beginning; later what was usable stays in use.
    """

    def __init__(
        self,
        place: str,
        *,
        tls: Files | None = None,
        password: Secret | None = None,
        what: str = "password",
        fits: Callable[[str], str | None] = lambda _: None,
        token: Token | None = None,
        read: Read = read_file,
        run: Run = run_command,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.place = place
        self.expiries = Expiries(place)
        self.has_token = token is not None
        self._read = read
        self._wall = wall
        self._secret = password
        self._what = what
        self._fits = fits
        self._tokens = None if token is None else Tokens(token, read=read, run=run, wall=wall)
        self._said: dict[str, str] = {}
        try:
            self._tls = None if tls is None else Tls(tls, read)
            self._password = self._read_password()
        except SecretError as error:
            part = f"{place}.tls" if place in {"broker", "admin"} and isinstance(error, FileError) else place
            raise SettingsError([f"{part}.{error}"]) from error
        self._note_own()

    @property
    def context(self) -> ssl.SSLContext | None:
        """What to connect with; None without TLS."""
        return None if self._tls is None else self._tls.context

    @property
    def password(self) -> str | None:
        """The password to log in with now; None if there is none."""
        return None if self._password is None else self._password.get_secret_value()

    @property
    def token(self) -> str | None:
        """The token of the last `turn` or `fresh_token`; None if there is none that is valid."""
        if self._tokens is None or self._tokens.current is None or self._tokens.is_over:
            return None
        return self._tokens.current.text

    def token_left(self) -> float | None:
        """Return for how many seconds the token is valid still; None if there never was one."""
        current = self._tokens and self._tokens.current
        return None if not current else current.expires - self._wall()

    async def fresh_token(self) -> str:
        """Return a token that is valid now, having looked for a newer one. Raises `SecretError` if there is none."""
        assert self._tokens is not None
        try:
            await self._tokens.renew()
        except SecretError:
            if self._tokens.is_over:
                raise
        if self._tokens.current is None or self._tokens.is_over:
            raise SecretError("the token has expired, and there is no newer one")
        return self._tokens.current.text

    def look(self) -> None:
        """Read certificates, key and password again; what can't be used is said once and leaves the last in use."""
        if self._tls is not None:
            self._try("certificate", self._tls.look)
            self._note_own()
        self._try(self._what, self._look_at_password)

    async def turn(self) -> None:
        """Look at everything, renew the token if that is due, say what expires soon."""
        self.look()
        if self._tokens is not None:
            before = self._tokens.current
            try:
                await self._tokens.renew()
            except SecretError as error:
                self._unusable("token", error)
            else:
                self._usable("token", changed=before is not None and before is not self._tokens.current)
        self.expiries.tell(self._wall())

    async def run(self) -> None:
        """Take turns until cancelled."""
        while True:
            await self.turn()
            await asyncio.sleep(LOOK_SECONDS)

    def on_tls(self, host: str, writer: asyncio.StreamWriter | None) -> None:
        """Note the certificate that the server shows over an open connection, if it shows one."""
        tls: Any = None if writer is None else writer.get_extra_info("ssl_object")
        shown = None if tls is None else tls.getpeercert(binary_form=True)
        if shown:
            try:
                self.expiries.note(host, validity(shown).ends)
            except ValueError:
                return  # a date in a form that nobody else uses: OpenSSL, which judges it, has let it pass
            self.expiries.tell(self._wall())

    def redacted(self, text: str) -> str:
        """Return what somebody else wrote without the secrets that it may quote."""
        for secret in (self.password, self._tokens and self._tokens.current and self._tokens.current.text):
            if secret and len(secret) >= _SHORTEST_REDACTED:
                text = text.replace(secret, MASK)
        return text

    def _read_password(self) -> SecretStr | None:
        if self._secret is None or self._secret.file is None:
            return None if self._secret is None else self._secret.text
        try:
            found = password_in(self._read, self._secret.file)
            if wrong := self._fits(found):
                raise SecretError(f"{self._secret.file} {wrong}")
        except SecretError as error:
            raise SecretError(f"{self._what}: the secret's file {error}") from error
        return SecretStr(found)

    def _look_at_password(self) -> bool:
        now = self._read_password()
        is_new, self._password = now != self._password, now
        return is_new

    def _note_own(self) -> None:
        if self._tls is not None and self._tls.own is not None:
            self.expiries.note("own", self._tls.own.ends)

    def _try(self, what: str, look: Callable[[], bool]) -> None:
        try:
            changed = look()
        except SecretError as error:
            self._unusable(what, error)
        else:
            self._usable(what, changed=changed)

    def _unusable(self, what: str, error: SecretError) -> None:
        why = str(error)
        if self._said.get(what) != why:
            self._said[what] = why
            _say.warning("secret_unusable", at=self.place, what=what, why=why, effect="the last one stays in use")

    def _usable(self, what: str, *, changed: bool) -> None:
        was_said = self._said.pop(what, None) is not None
        if changed:
            _say.info("secret_renewed", at=self.place, what=what, effect="new logins use it")
        elif was_said:
            _say.info("secret_usable", at=self.place, what=what)


def log_access(security: LogSecurity, **seams: Any) -> Access:
    """Return what Kafka is logged in to with; `seams` are `read`, `run` and `wall` of `Access`."""
    files = TlsFiles(security.ca_file, security.certificate_file, security.key_file)
    return Access(
        "log.security",
        tls=files if security.protocol.endswith("SSL") else None,
        password=security.password,
        token=security.token,
        **seams,
    )


def nakadi_access(settings: NakadiSettings, **seams: Any) -> Access:
    """Return what Nakadi is asked with; `seams` as in `log_access`."""
    files = (_files(settings.tls) or TlsFiles(None, None, None)) if settings.url.startswith("https:") else None
    return Access("log.nakadi", tls=files, token=settings.token, **seams)


def broker_access(settings: BrokerSettings, **seams: Any) -> Access:
    """Return what RabbitMQ is logged in to with; `seams` as in `log_access`."""
    sends_password = settings.token is None and settings.mechanism == "PLAIN"
    return Access(
        "broker",
        tls=_files(settings.tls),
        password=settings.password if sends_password else None,
        token=settings.token,
        **seams,
    )


def management_access(settings: BrokerSettings, management: Management, **seams: Any) -> Access:
    """Return what RabbitMQ's management API is asked with; `seams` as in `log_access`."""
    has_own = management.password is not None
    return Access(
        "broker.management",
        tls=_files(settings.tls),
        password=management.password or (None if settings.token else settings.password),
        token=None if has_own else settings.token,
        **seams,
    )


def admin_access(settings: AdminSettings, **seams: Any) -> Access:
    """Return what the admin address shows, and what lets in there; `seams` as in `log_access`."""
    tls = settings.tls
    files = None if tls is None else ServerFiles(tls.client_ca_file, tls.certificate_file, tls.key_file)
    return Access(
        "admin",
        tls=files,
        password=settings.token,
        what="token",
        fits=lambda text: None if fits_bearer(text) else f"can't be borne; allowed: {BEARER_FORM}",
        **seams,
    )


def notice_access(webhook: Webhook, **seams: Any) -> Access:
    """Return what notices are signed with, and who is trusted to take them; `seams` as in `log_access`."""
    files = TlsFiles(webhook.ca_file, None, None) if webhook.url.startswith("https:") else None
    return Access("notices.webhook", tls=files, password=webhook.key, what="key", **seams)


def _files(tls: BrokerTls | None) -> TlsFiles | None:
    return None if tls is None else TlsFiles(tls.ca_file, tls.certificate_file, tls.key_file)
