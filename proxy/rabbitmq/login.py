"""Logging in to RabbitMQ: plain aio-pika connections to the hosts in turn, and how they end.

Lanes, monitor and topology each log in for themselves, with what `access` holds at that moment; none lets the client
reconnect behind its back. A new token is sent on every living connection.
"""

import asyncio
import itertools
import logging
import math
import weakref
from dataclasses import dataclass, field
from random import Random
from typing import Any, cast

import aio_pika
import structlog
from aio_pika.connection import make_url
from aiormq import Connection as Underlay
from aiormq.connection import TCPTransportFactory, TLSTransportFactory, TransportFactory
from aiormq.exceptions import AMQPError, AuthenticationError, InvalidFrameError, ProbableAuthenticationError
from yarl import URL

from proxy.access import LOOK_SECONDS, Access, broker_access
from proxy.errors import BrokerError, RefusedLoginError, SecretError
from proxy.rabbitmq.host_turn import DoubtedHosts, HostTurn
from proxy.rabbitmq.intake import UNREADABLE, BoundedReader, Intake
from proxy.rabbitmq.words import handshake_failure, silent, speaking, stranger, tls_failure
from proxy.settings import BrokerSettings
from proxy.settings.parts import split_host

CLOSE_DEADLINE = 2.0
"""Seconds a connection may take to close in order; then it is cut."""
UPDATE_SECONDS = 5.0
"""A broker that blocks the connection, or is silent, takes no new token within it; the next look tries again."""
_say = structlog.get_logger("tidegate.broker")


class _Cuttable(TransportFactory):
    """Keeps the transport at hand: a connection that does not answer must be cut, and the client has no way to."""

    def __init__(self, *, tls: bool) -> None:
        self._is_tls = tls
        self._factory = TLSTransportFactory() if tls else TCPTransportFactory()
        self._reader: BoundedReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def create(self, url: URL, **kwargs: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, self._writer = await self._factory.create(url, **kwargs)
        self._reader = BoundedReader(reader)
        return cast("asyncio.StreamReader", self._reader), self._writer

    @property
    def writer(self) -> asyncio.StreamWriter | None:
        """The open transport's end; None before."""
        return self._writer

    @property
    def intake(self) -> Intake:
        """What comes; there is a connection."""
        assert self._reader is not None
        return self._reader.intake

    @property
    def heard(self) -> float:
        """When something last came; 0 before there is a connection."""
        return 0.0 if self._reader is None else self._reader.intake.heard

    def stranger(self, error: BaseException) -> str | None:
        """Return what to say of whom answered, if that is no broker; `error` is what came of it."""
        if self._reader is not None:
            return stranger(self._reader.intake.first)
        return handshake_failure(error) if self._is_tls else None

    def bound(self, frame_max: int) -> None:
        """Take no longer frames any more; 0 is no bound but that of `FRAME_BYTES`."""
        if self._reader is not None and frame_max:
            self._reader.intake.longest = frame_max

    def cut(self) -> None:
        if self._writer is not None:
            self._writer.transport.abort()


@dataclass(slots=True, weakref_slot=True, eq=False)
class Login:
    """One connection, logged in."""

    host: str
    connection: aio_pika.Connection
    underlay: Underlay
    _transport: _Cuttable
    _token: str | None = field(default=None, repr=False)
    """What the broker has taken last."""

    @property
    def heard(self) -> float:
        """When something last came, in seconds of the loop's clock."""
        return self._transport.heard

    @property
    def intake(self) -> Intake:
        """What comes, before the client sees it."""
        return self._transport.intake

    @property
    def writer(self) -> asyncio.StreamWriter:
        """Where what is written goes."""
        assert self._transport.writer is not None
        return self._transport.writer

    async def renew(self, token: str) -> None:
        """Send the token unless the broker has it; `UPDATE_SECONDS` at most. Raises `BrokerError`."""
        if token == self._token or self.underlay.is_closed:
            return
        with speaking(self.host):
            await self.underlay.update_secret(token, reason="renewed", timeout=UPDATE_SECONDS)
        self._token = token

    async def close(self, *, gracefully: bool) -> None:
        """Close, within `CLOSE_DEADLINE`; idempotent. What keeps it waiting for longer is cut."""
        await _close(self.connection, self._transport, gracefully=gracefully)


class Logins:
    """Makes connections, and keeps their tokens new."""

    def __init__(self, settings: BrokerSettings, access: Access | None = None, chance: Random | None = None) -> None:
        self._settings = settings
        self._chance = chance or Random()  # noqa: S311 -- it spreads load
        self._places = itertools.count(self._chance.randrange(len(settings.hosts)))
        self._access = access or broker_access(settings)
        self._living: weakref.WeakKeyDictionary[Login, None] = weakref.WeakKeyDictionary()
        self.doubted = DoubtedHosts()
        self.was_let_in = False
        """Whether a host ever took the credentials."""
        self._refused_tokens: set[str] = set()
        for client in ("aio_pika", "aiormq"):
            # They log tracebacks at every outage; lanes and monitor say each change of state once.
            logging.getLogger(client).setLevel(logging.CRITICAL + 1)

    def hosts(self) -> HostTurn:
        """Return the hosts in an order of its own for each who asks.

        The first ones differ by one place, from a chance start, so that lanes and replicas spread; the rest are in a
        chance order, so that those who lose a host don't all meet at the next.
        """
        hosts = self._settings.hosts
        first = hosts[next(self._places) % len(hosts)]
        others = [host for host in hosts if host != first]
        self._chance.shuffle(others)
        return HostTurn([first, *others], self.doubted)

    async def run(self) -> None:
        """Follow what the files hold, and send new tokens on the living connections, until cancelled."""
        while True:
            await self._access.turn()
            token = self._access.token
            if token is not None:
                await asyncio.gather(*(self._renew(login, token) for login in list(self._living)))
            await asyncio.sleep(LOOK_SECONDS)

    async def log_in(self, host: str, name: str) -> Login:
        """Log in; `name` is shown in the broker's list of connections.

        Raises `RefusedLoginError` if the host refuses the credentials though none was ever taken, else `BrokerError`
        with host and cause: what was right once may have been changed, and is read anew at the next attempt.
        """
        self._access.look()
        try:
            token = await self._access.fresh_token() if self._access.has_token else None
        except SecretError as error:
            raise BrokerError(f"{host}: broker.token: {error}") from error
        address, port = split_host(host)
        context = self._access.context
        transport = _Cuttable(tls=context is not None)
        connection = aio_pika.Connection(
            self._url(address, port, token),
            ssl_context=context,
            client_properties={"connection_name": f"tidegate {name}"},
        )
        connection.kwargs["transport_factory"] = transport
        try:
            with speaking(host):
                await self._connect(connection, transport, host)
        except BaseException:
            await _close(connection, transport, gracefully=False)
            raise
        assert connection.transport is not None
        underlay = connection.transport.connection
        assert isinstance(underlay, Underlay)
        capabilities = underlay.server_properties.get("capabilities")
        if not isinstance(capabilities, dict) or not capabilities.get("publisher_confirms"):
            await _close(connection, transport, gracefully=False)
            raise BrokerError(
                f"{host}: it does not confirm what is published; Tidegate needs RabbitMQ, or a broker that does"
            )
        transport.bound(underlay.connection_tune.frame_max or 0)
        self._access.on_tls(host, transport.writer)
        self.was_let_in = True
        login = Login(host, connection, underlay, transport, token)
        self._living[login] = None
        return login

    async def log_in_within(self, seconds: float, host: str, name: str) -> Login:
        """Log in as `log_in` does, or raise `BrokerError` when the host has said nothing for so long."""
        try:
            async with asyncio.timeout(seconds):
                return await self.log_in(host, name)
        except TimeoutError as error:
            raise BrokerError(silent(host, seconds, is_known=self.was_let_in)) from error

    def _url(self, address: str, port: int, token: str | None) -> URL:
        settings = self._settings
        options: dict[str, Any] = {"auth": "external"} if settings.mechanism == "EXTERNAL" else {}
        return make_url(
            host=address,
            port=port,
            login=settings.username,
            password=token or self._access.password or "",
            virtualhost=settings.virtual_host,
            ssl=self._access.context is not None,
            heartbeat=math.ceil(settings.heartbeat),
            **options,
        )

    async def _connect(self, connection: aio_pika.Connection, transport: _Cuttable, host: str) -> None:
        settings = self._settings
        try:
            await connection.connect()
        except (AuthenticationError, ProbableAuthenticationError) as error:
            raise self._refusal(f"{host} refuses {self._credentials()}") from error
        except InvalidFrameError as error:
            self._tell_stranger(transport, host, error)
            # The client hides what the broker says when it will not open the virtual host.
            raise BrokerError(
                f"{host} does not open broker.virtual_host {settings.virtual_host!r} to {settings.username!r}: it is "
                "missing, not permitted, or full"
            ) from error
        except (AMQPError, OSError) as error:
            tls = tls_failure(error)
            if tls is None:
                self._tell_stranger(transport, host, error)
                raise
            raise self._refusal(f"{host}: TLS fails; see broker.tls: {tls}") from error
        except UNREADABLE as error:
            self._tell_stranger(transport, host, error)
            raise

    def _tell_stranger(self, transport: _Cuttable, host: str, error: Exception) -> None:
        words = transport.stranger(error)
        if words is not None:
            raise BrokerError(f"{host}: {words}") from error

    def _credentials(self) -> str:
        if self._settings.mechanism == "EXTERNAL":
            return "the certificate of broker.tls, or has no user called as its subject"
        if self._access.has_token:
            return "this broker.token"
        return f"broker.username {self._settings.username!r} with this broker.password"

    def _refusal(self, words: str) -> RefusedLoginError | BrokerError:
        return BrokerError(words) if self.was_let_in else RefusedLoginError(words)

    async def _renew(self, login: Login, token: str) -> None:
        try:
            await login.renew(token)
        except (BrokerError, TimeoutError) as error:
            why = str(error) or f"{login.host}: no answer within {UPDATE_SECONDS:g} s"
            if why not in self._refused_tokens:
                self._refused_tokens.add(why)
                _say.warning(
                    "token_not_taken", why=self._access.redacted(why), effect="tried again as long as it lives"
                )
        else:
            self._refused_tokens.clear()


async def _close(connection: aio_pika.Connection, transport: _Cuttable, *, gracefully: bool) -> None:
    if not gracefully:
        transport.cut()
    closing = asyncio.ensure_future(connection.close())
    try:
        await asyncio.wait([closing], timeout=CLOSE_DEADLINE)
    finally:
        if not closing.done():
            transport.cut()
    await asyncio.wait([closing], timeout=CLOSE_DEADLINE)
    closing.cancel()
    await asyncio.gather(closing, return_exceptions=True)
