"""How failures of the log are told to people, with the setting to look at where it may be the cause."""

import socket
import ssl
from collections.abc import Mapping

from aiokafka import errors

from proxy.errors import causes
from proxy.settings import LogSettings

_PERHAPS = "if it runs, the port may be another service's, or ask for TLS or another login; see log.hosts, log.security"
NO_GROUP = "this login may not use the consumer group; grant it Read on it"
_SHOWN = 3
"""Most hosts whose failures are told; of the others only their number."""


class NoHostError(errors.KafkaConnectionError):  # type: ignore[misc]  # the library is untyped
    """No host of `log.hosts` could be logged in to; `by_host` tells why of each."""

    def __init__(self, by_host: Mapping[str, Exception]) -> None:
        super().__init__("no host of log.hosts can be reached")
        self.by_host = by_host


def failure(error: BaseException) -> str:
    """Return why a request failed; never empty."""
    if isinstance(error, errors.RequestTimedOutError) or (isinstance(error, TimeoutError) and not str(error)):
        return "no answer in time"
    if isinstance(error, errors.GroupAuthorizationFailedError):
        return NO_GROUP
    return str(error) or type(error).__name__


def unreached(error: BaseException, protocol: str) -> str:
    """Return why the log can't be reached, of each host if that is known; `protocol` is that of `log.security`."""
    if not isinstance(error, NoHostError):
        return _unreached(error, protocol)
    told = [f"{host}: {_unreached(one, protocol)}" for host, one in list(error.by_host.items())[:_SHOWN]]
    more = len(error.by_host) - len(told)
    return " | ".join(told) + (f" | and {more} more" if more > 0 else "")


def unanswered(error: BaseException, settings: LogSettings) -> str:
    """Return the line of a command that ends because the log gave no answer: which hosts, and why."""
    why = unreached(error, settings.security.protocol)
    if isinstance(error, NoHostError):
        return f"Kafka does not answer: {why}"
    more = len(settings.hosts) - _SHOWN
    hosts = ", ".join(settings.hosts[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
    return f"Kafka at {hosts} does not answer: {why}"


def _unreached(error: BaseException, protocol: str) -> str:
    words = failure(error).removeprefix("KafkaConnectionError: ")
    if isinstance(error, socket.gaierror):
        return f"the name can't be resolved ({error.strerror}); see log.hosts"
    found = list(causes(error))
    if any(isinstance(one, ConnectionRefusedError) for one in found):
        return "refused, nothing listens there"
    if any(isinstance(one, TimeoutError) for one in found):
        return f"{words}; if it runs, is this its port? See log.hosts"
    if protocol.endswith("SSL") and any(isinstance(one, (ssl.SSLError, ConnectionError)) for one in found):
        return f"{words}: it ends the TLS handshake, as a port without TLS does; see log.security.protocol"
    if any(isinstance(one, (errors.KafkaConnectionError, ConnectionError)) for one in found):
        return f"{words}: {_PERHAPS}"
    return words


def misfit(error: errors.KafkaError) -> str:
    """Return why the log refuses to have us in the group, for a reason that waiting does not mend."""
    match error:
        case errors.InconsistentGroupProtocolError():
            return (
                "log.group: another client is in this consumer group, and shares out partitions in another way; stop "
                "it, or give Tidegate a group of its own"
            )
        case errors.InvalidSessionTimeoutError():
            return (
                "log.session_timeout: the brokers don't allow it; choose one between their "
                "group.min.session.timeout.ms and group.max.session.timeout.ms"
            )
        case _:
            return f"log.group: the brokers refuse this name: {error}"
