"""Logging in to RabbitMQ: plain aio-pika connections to the hosts in turn, and how they end.

Lanes, monitor and topology each log in for themselves; none lets the client reconnect behind its back.
"""

import asyncio
import contextlib
import itertools
import logging
import math
import ssl
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import aio_pika
from aio_pika.connection import make_url
from aiormq import Connection as Underlay
from aiormq.connection import TCPTransportFactory, TLSTransportFactory, TransportFactory
from aiormq.exceptions import AMQPError, AuthenticationError, InvalidFrameError, ProbableAuthenticationError
from yarl import URL

from proxy.errors import BrokerError, RefusedLoginError, SettingsError
from proxy.settings import BrokerSettings, BrokerTls
from proxy.settings.parts import split_host

CLOSE_DEADLINE = 2.0
"""Seconds a connection may take to close in order; then it is cut."""
FRAME_BYTES = 129 * 1024**2
"""The longest frame taken from a broker that sets no bound: the largest event that the settings allow, come back."""


def cause(error: BaseException | None) -> str:
    """Return in a few words why a connection ended or was refused."""
    if error is None or isinstance(error, (asyncio.CancelledError, StopAsyncIteration)):
        return "connection closed"
    return " ".join(str(argument) for argument in error.args) or type(error).__name__


@contextlib.contextmanager
def speaking(host: str) -> Iterator[None]:
    """Turn what the client raises into `BrokerError`; it cancels itself when a connection ends, which is no cancel."""
    try:
        yield
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise BrokerError(f"{host}: {cause(error)}") from error
    except (AMQPError, OSError, RuntimeError, EOFError, StopAsyncIteration) as error:
        # The last one is what the client raises when the end of the connection came before the frame it awaits.
        raise BrokerError(f"{host}: {cause(error)}") from error


class _BoundedReader:
    """What the client calls of a reader; it would gather a frame as long as its head says, up to 4 GiB."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self.longest = FRAME_BYTES
        self.at_eof = reader.at_eof
        self.read = reader.read
        self._read = reader.readexactly

    def readexactly(self, size: int) -> Awaitable[bytes]:
        """Read as `asyncio.StreamReader` does. Raises `OSError` if it is more than a frame may have."""
        if size > self.longest:
            raise OSError(f"a frame of {size} bytes, at most {self.longest} are agreed")
        return self._read(size)


class _Cuttable(TransportFactory):
    """Keeps the transport at hand: a connection that does not answer must be cut, and the client has no way to."""

    def __init__(self, *, tls: bool) -> None:
        self._factory = TLSTransportFactory() if tls else TCPTransportFactory()
        self._reader: _BoundedReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def create(self, url: URL, **kwargs: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, self._writer = await self._factory.create(url, **kwargs)
        self._reader = _BoundedReader(reader)
        return cast("asyncio.StreamReader", self._reader), self._writer

    def bound(self, frame_max: int) -> None:
        """Take no longer frames any more; 0 is no bound but that of `FRAME_BYTES`."""
        if self._reader is not None and frame_max:
            self._reader.longest = frame_max

    def cut(self) -> None:
        if self._writer is not None:
            self._writer.transport.abort()


@dataclass(frozen=True, slots=True)
class Login:
    """One connection, logged in."""

    host: str
    connection: aio_pika.Connection
    underlay: Underlay
    _transport: _Cuttable

    async def close(self, *, gracefully: bool) -> None:
        """Close, within `CLOSE_DEADLINE`; idempotent. What keeps it waiting for longer is cut."""
        await _close(self.connection, self._transport, gracefully=gracefully)


class Logins:
    """Makes connections. Raises `SettingsError` if the certificates can't be read."""

    def __init__(self, settings: BrokerSettings) -> None:
        self._settings = settings
        self._tls = None if settings.tls is None else tls_context(settings.tls)
        for client in ("aio_pika", "aiormq"):
            # They log tracebacks at every outage; lanes and monitor say each change of state once.
            logging.getLogger(client).setLevel(logging.CRITICAL + 1)

    @property
    def hosts(self) -> Iterator[str]:
        """The hosts in turn, without end."""
        return itertools.cycle(self._settings.hosts)

    async def log_in(self, host: str, name: str) -> Login:
        """Log in; `name` is shown in the broker's list of connections.

        Raises `RefusedLoginError` if the host refuses the credentials, else `BrokerError` with host and cause.
        """
        settings = self._settings
        address, port = split_host(host)
        transport = _Cuttable(tls=self._tls is not None)
        connection = aio_pika.Connection(
            make_url(
                host=address,
                port=port,
                login=settings.username,
                password=settings.password.get_secret_value(),
                virtualhost=settings.virtual_host,
                ssl=self._tls is not None,
                heartbeat=math.ceil(settings.heartbeat),
            ),
            ssl_context=self._tls,
            client_properties={"connection_name": f"tidegate {name}"},
        )
        connection.kwargs["transport_factory"] = transport
        try:
            with speaking(host):
                await self._connect(connection, host)
        except BaseException:
            await _close(connection, transport, gracefully=False)
            raise
        assert connection.transport is not None
        underlay = connection.transport.connection
        assert isinstance(underlay, Underlay)
        transport.bound(underlay.connection_tune.frame_max or 0)
        return Login(host, connection, underlay, transport)

    async def _connect(self, connection: aio_pika.Connection, host: str) -> None:
        settings = self._settings
        try:
            await connection.connect()
        except (AuthenticationError, ProbableAuthenticationError) as error:
            raise RefusedLoginError(
                f"{host} refuses broker.username {settings.username!r} with this broker.password"
            ) from error
        except InvalidFrameError as error:
            # The client hides what the broker says when it will not open the virtual host.
            raise BrokerError(
                f"{host} does not open broker.virtual_host {settings.virtual_host!r} to {settings.username!r}: it is "
                "missing, not permitted, or full"
            ) from error


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


def tls_context(tls: BrokerTls) -> ssl.SSLContext:
    """Return what `broker.tls` asks for. Raises `SettingsError` if a certificate can't be read."""
    try:
        context = ssl.create_default_context(cafile=tls.ca_file)
        if tls.certificate_file is not None:
            context.load_cert_chain(tls.certificate_file, tls.key_file)
    except (OSError, ValueError) as error:
        raise SettingsError([f"broker.tls: a certificate can't be read: {error}"]) from error
    return context
