"""Why a connection to RabbitMQ ended or never came to be, in words and as the bridge's own error."""

import asyncio
import contextlib
import ssl
from collections.abc import Iterator

from aiormq.exceptions import AMQPError

from proxy.errors import BrokerError, causes


def cause(error: BaseException | None) -> str:
    """Return in a few words why a connection ended or was refused."""
    if error is None or isinstance(error, (asyncio.CancelledError, StopAsyncIteration)):
        return "connection closed"
    if any(isinstance(one, ssl.SSLError) and one.reason == "WRONG_VERSION_NUMBER" for one in causes(error)):
        return "it answers without TLS; see broker.tls, and the ports in broker.hosts"
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


def tls_failure(error: BaseException) -> str | None:
    """Return what OpenSSL says if a connection failed over a certificate, theirs or ours."""
    for one in causes(error):
        if isinstance(one, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted: {one.verify_message}"
        if isinstance(one, ssl.SSLError) and "ALERT" in (one.reason or ""):
            return f"it refuses our certificate, or that we show none: {one.reason}"
    return None
