"""How failures of the log are told to people, with the setting to look at where it may be the cause."""

import ssl

from aiokafka import errors

from proxy.errors import causes


def failure(error: BaseException) -> str:
    """Return why a request failed; never empty."""
    if isinstance(error, errors.RequestTimedOutError) or (isinstance(error, TimeoutError) and not str(error)):
        return "no answer in time"
    return str(error) or type(error).__name__


def unreached(error: BaseException, protocol: str) -> str:
    """Return why the log can't be reached; `protocol` is that of `log.security`."""
    words = failure(error)
    found = list(causes(error))
    if any(isinstance(one, (ConnectionRefusedError, TimeoutError)) for one in found):
        return words
    if protocol.endswith("SSL") and any(isinstance(one, (ssl.SSLError, ConnectionError)) for one in found):
        return f"{words}: it ends the TLS handshake, as a port without TLS does; see log.security.protocol"
    if any(isinstance(one, (errors.KafkaConnectionError, ConnectionError)) for one in found):
        return f"{words}: if it runs, the port may ask for TLS or another login; see log.security"
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
