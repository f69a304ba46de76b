"""Logging in to Kafka with what `access` holds at that moment, and again before the broker ends the session.

The library takes certificates and password once, when a client is made, and knows no second login. Its connections are
ours (see `client.teach_manners`): each asks `Credentials` when it connects, and where the broker bounds the session
(KIP-368: `connections.max.reauth.ms`, a token's expiry) logs in again on the same connection. Nobody leaves the group.
"""

import asyncio
import ssl
from typing import Any

import structlog
from aiokafka import errors
from aiokafka.abc import AbstractTokenProvider
from aiokafka.conn import CloseReason
from aiokafka.protocol.admin import SaslAuthenticateRequest, SaslHandShakeRequest

from proxy.access import Access
from proxy.errors import SecretError
from proxy.kafka_log.connection import Connection
from proxy.kafka_log.fetch_sessions import Fetch
from proxy.settings.secrets import MASK

SESSION_USED = 0.8
"""The share of a session after which the connection logs in again."""
LEAST_SESSION_SECONDS = 1.1
"""A broker takes a second login on a connection only a second after the first."""
FIRST_PAUSE = 0.2
LONGEST_PAUSE = 2.0
"""Seconds between attempts at a host that refuses the login: the first pause, doubled up to the longest."""

_REFUSALS = (
    errors.AuthenticationFailedError,
    errors.SaslAuthenticationFailed,
    errors.UnsupportedSaslMechanismError,
    errors.IllegalSaslStateError,
)
_say = structlog.get_logger("tidegate.kafka")


def refusal(error: BaseException | None) -> str | None:
    """Return why the login was refused, or None if a connection failed for another reason."""
    while error is not None:
        if isinstance(error, _REFUSALS):
            return str(error)
        if isinstance(error, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted: {error.verify_message}"
        if isinstance(error, ssl.SSLError) and "ALERT" in (error.reason or ""):
            return f"it refuses our certificate, or that we show none: {error.reason}"
        error = error.__cause__
    return None


class Credentials(AbstractTokenProvider):  # type: ignore[misc]  # the library is untyped
    """What the connections of one log ask; the library carries it to them in place of a token provider."""

    def __init__(self, access: Access) -> None:
        self.access = access
        self._was_let_in = False
        self._pauses: dict[str, tuple[float, float]] = {}
        """By host that refuses: when the next attempt is due by the loop's clock, and the pause after it."""

    async def token(self) -> str:
        """Return the token. Raises `KafkaConnectionError` if there is none for now."""
        try:
            return await self.access.fresh_token()
        except SecretError as error:
            raise errors.KafkaConnectionError(f"log.security.token: {error}") from error

    def begin(self, host: str) -> None:
        """Look at the files before a login. Raises `KafkaConnectionError` while the host is given a rest."""
        due, _ = self._pauses.get(host, (0.0, 0.0))
        if asyncio.get_running_loop().time() < due:
            raise errors.KafkaConnectionError(f"{host} has refused the login a moment ago")
        self.access.look()

    def on_refused(self, host: str, why: str) -> None:
        """Note a refused login, and say it once if others were accepted before."""
        if not self._was_let_in:
            return  # at start: whoever asked says it, and ends
        _, pause = self._pauses.get(host, (0.0, FIRST_PAUSE))
        if host not in self._pauses:
            effect = "tried again with what the files hold then"
            _say.warning("login_refused", host=host, why=self.access.redacted(why), effect=effect)
        due = asyncio.get_running_loop().time() + pause
        self._pauses[host] = due, min(2 * pause, LONGEST_PAUSE)

    def on_accepted(self, host: str) -> None:
        """Note a login."""
        self._was_let_in = True
        if self._pauses.pop(host, None) is not None:
            _say.info("login_accepted", host=host)


class _Masked(bytes):
    """What a login sends, as nobody may read it in a log: the library shows requests to whoever sets it to debug."""

    def __repr__(self) -> str:
        return MASK

    def __getitem__(self, _: Any) -> bytes:  # type: ignore[override]
        return MASK.encode()


class SecuredConnection(Connection):
    """One that logs in by `Credentials`, if it is given some, and again before its session ends."""

    _renewal: asyncio.TimerHandle | None = None
    _renewing: asyncio.Task[None] | None = None
    _exchange: asyncio.Future[None] | None = None
    """Ends with the second login under way; what else is to be sent waits for it."""

    async def connect(self) -> Any:
        """Connect and log in. Raises OSError, TimeoutError, `KafkaError`."""
        credentials = self._credentials
        if credentials is None:
            return await super().connect()
        host = f"{self.host}:{self.port}"
        credentials.begin(host)
        self._ssl_context = credentials.access.context
        try:
            opened = await super().connect()
        except (OSError, errors.KafkaError) as error:
            why = refusal(error)
            if why is not None:
                credentials.on_refused(host, why)
            raise
        credentials.on_accepted(host)
        credentials.access.on_tls(host, self._writer)
        return opened

    def send(self, request: Any, expect_response: bool = True) -> Any:  # as the library has it
        """Send a request, behind a second login under way; return what its answer is awaited by."""
        if self._exchange is None:
            return super().send(request, expect_response)
        return self._send_later(request, expect_response)

    def close(self, reason: Any = None, exc: BaseException | None = None) -> Any:
        """Close; no second login follows."""
        if self._renewal is not None:
            self._renewal.cancel()
        if self._renewing is not None and self._renewing is not asyncio.current_task():
            self._renewing.cancel()
        return super().close(reason, exc)

    @property
    def _credentials(self) -> Credentials | None:
        given = self._sasl_oauth_token_provider
        return given if isinstance(given, Credentials) else None

    def fetch(self, request: Fetch) -> asyncio.Future[Any] | None:
        """See `Connection`."""
        return super().fetch(request) if self._exchange is None else None

    async def _send_later(self, request: Any, expect_response: bool) -> Any:
        while self._exchange is not None:
            await asyncio.wait({self._exchange})
        return await super().send(request, expect_response)

    async def _do_sasl_handshake(self) -> None:
        credentials = self._credentials
        if credentials is None:
            await super()._do_sasl_handshake()
        else:
            await self._log_in(credentials)

    async def _log_in(self, credentials: Credentials) -> None:
        """Log in, for the first or a further time, and see to the next."""
        token = await credentials.token() if self._sasl_mechanism == "OAUTHBEARER" else ""
        self._exchange = self._loop.create_future()
        try:
            lifetime = await (self._show(token) if token else self._prove(credentials))
        except (errors.KafkaError, OSError) as error:
            self.close(reason=CloseReason.AUTH_FAILURE, exc=error)
            raise
        finally:
            self._exchange.set_result(None)
            self._exchange = None
        if lifetime > 0:
            delay = max(LEAST_SESSION_SECONDS, SESSION_USED * lifetime / 1000)
            self._renewal = self._loop.call_later(delay, self._renew_soon)

    def _renew_soon(self) -> None:
        if self._writer is not None:
            self._renewing = self._loop.create_task(self._renew(), name="kafka-login")

    async def _renew(self) -> None:
        """Log in again. Where that fails the connection is closed, and whoever needs it connects anew."""
        credentials = self._credentials
        assert credentials is not None
        credentials.access.look()
        try:
            await self._log_in(credentials)
        except (errors.KafkaError, OSError) as error:
            why = refusal(error)
            if why is not None:
                credentials.on_refused(f"{self.host}:{self.port}", why)
            self.close(reason=CloseReason.AUTH_FAILURE, exc=error)

    async def _show(self, token: str) -> int:
        """Send the token (RFC 7628); return the session's milliseconds, 0 if it has no bound."""
        await self._choose_mechanism()
        answer = await self._tell(f"n,,\x01auth=Bearer {token}\x01\x01".encode())
        if answer.sasl_auth_bytes:  # why it refuses; it ends the exchange, with an error, on whatever comes next
            await self._tell(b"\x01")
            raise errors.SaslAuthenticationFailed("the token is refused")
        return _lifetime(answer)

    async def _prove(self, credentials: Credentials) -> int:
        """Show that we know the password, by the library's own means; return as `_show` does."""
        self._sasl_plain_password = credentials.access.password or ""
        is_scram = self._sasl_mechanism.startswith("SCRAM")
        authenticator = self.authenticator_scram() if is_scram else self.authenticator_plain()
        self._sasl_plain_password = ""
        await self._choose_mechanism()
        answer: Any = None
        try:
            while (step := await authenticator.step(answer and answer.sasl_auth_bytes)) is not None:
                answer = await self._tell(step[0])
        except (ValueError, KeyError, AssertionError) as error:
            raise errors.AuthenticationFailedError("the server does not know the password either") from error
        return _lifetime(answer)

    async def _choose_mechanism(self) -> None:
        answer = await super().send(SaslHandShakeRequest(self._sasl_mechanism))
        if answer.error_code:
            offered = ", ".join(answer.enabled_mechanisms)
            kind = errors.for_code(answer.error_code)
            raise kind(f"mechanism {self._sasl_mechanism} is not offered; offered: {offered}")

    async def _tell(self, payload: bytes) -> Any:
        answer = await super().send(SaslAuthenticateRequest(_Masked(payload)))
        if answer.error_code:
            credentials = self._credentials
            words = answer.error_message or ""
            raise errors.for_code(answer.error_code)(credentials.access.redacted(words) if credentials else words)
        return answer


def _lifetime(answer: Any) -> int:
    return int(getattr(answer, "session_lifetime_ms", 0) or 0)
