"""Why a connection to RabbitMQ ended or never came to be, in words and as the bridge's own error."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Iterator

from aiormq.exceptions import AMQPError

from proxy.errors import BrokerError, causes
from proxy.rabbitmq.intake import UNREADABLE

_PORT = (
    "if RabbitMQ runs there, is this its port for AMQP, with or without TLS as said? See broker.hosts and broker.tls"
)
_TLS_ALERT = b"\x15\x03"
_METHOD_FRAME = b"\x01"


def cause(error: BaseException | None) -> str:
    """Return in a few words why a connection ended or was refused."""
    if error is None or isinstance(error, (asyncio.CancelledError, StopAsyncIteration)) or type(error) is Exception:
        return "connection closed"
    if any(isinstance(one, ssl.SSLError) and one.reason == "WRONG_VERSION_NUMBER" for one in causes(error)):
        return "it answers without TLS; see broker.tls, and the ports in broker.hosts"
    if any(isinstance(one, socket.gaierror) for one in causes(error)):
        return "the name can't be resolved; see broker.hosts"
    return " ".join(str(argument) for argument in error.args) or type(error).__name__


def silent(host: str, seconds: float, *, is_known: bool) -> str:
    """Return what to say of a host that gave no answer in time; `is_known`: the broker has let us in before."""
    words = f"{host}: no answer within {seconds:g} s"
    return words if is_known else f"{words}: {_PORT}"


def stranger(first: bytes) -> str | None:
    """Return what to say of whom answered the greeting of AMQP with these bytes; None if that is a broker.

    Kafka closes the connection without a word, as RabbitMQ's port with TLS may do, and RabbitMQ that is just starting.
    """
    if not first:
        return f"it closes the connection without a word of AMQP: {_PORT}"
    if first.startswith(b"HTTP"):
        return "it speaks HTTP, not AMQP; see the ports in broker.hosts: AMQP's is mostly 5672, or 5671 with TLS"
    if first.startswith(b"AMQP"):
        return "it speaks another version of AMQP than 0-9-1; see the ports in broker.hosts"
    if first.startswith(_TLS_ALERT):
        return "it asks for TLS; see broker.tls, and the ports in broker.hosts"
    if not first.startswith(_METHOD_FRAME):
        return f"it speaks something else than AMQP ({ascii(first)[1:]}): {_PORT}"
    return None


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
    except UNREADABLE as error:
        raise BrokerError(f"{host}: a frame can't be read: {error}") from error
    except Exception as error:
        if type(error) is not Exception:
            raise
        # So the client rejects whoever waits when a connection ends in good order, as over TLS.
        raise BrokerError(f"{host}: {cause(error)}") from error


def tls_failure(error: BaseException) -> str | None:
    """Return what OpenSSL says if a connection failed over a certificate, theirs or ours."""
    for one in causes(error):
        if isinstance(one, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted: {one.verify_message}"
        if isinstance(one, ssl.SSLError) and "ALERT" in (one.reason or ""):
            return f"it refuses our certificate, or that we show none: {one.reason}"
    return None


def handshake_failure(error: BaseException) -> str | None:
    """Return what to say of whom ended a TLS handshake without a word of TLS, as a port without it does."""
    if any(isinstance(one, (ConnectionResetError, BrokenPipeError)) for one in causes(error)):
        return "it ends the TLS handshake, as a port without TLS does; see broker.tls, and the ports in broker.hosts"
    return None
