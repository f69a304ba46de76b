"""How failures of Nakadi are told to people, with the setting to look at where it may be the cause."""

import socket
import ssl

from aiohttp import ClientConnectorError

from proxy.errors import causes, in_words

_SHOWN = 200


def failure(error: BaseException) -> str:
    """Return why a request failed, in a line; never empty."""
    found = list(causes(error))
    if any(isinstance(one, TimeoutError) for one in found):
        return "no answer in time"
    if any(isinstance(one, socket.gaierror) for one in found):
        return "the name can't be resolved; see log.nakadi.url"
    if any(isinstance(one, ssl.SSLError) for one in found):
        return f"{_line(in_words(error))}; see log.nakadi.url, log.nakadi.tls"
    if isinstance(error, ClientConnectorError):
        return f"{_line(in_words(error))}; see log.nakadi.url"
    return _line(in_words(error))


def problem(status: int, body: object) -> str:
    """Return what an answer says that is none: its status, and its own words if it has any."""
    told = body if isinstance(body, dict) else {}
    words = [str(told[key]) for key in ("title", "detail") if told.get(key)]
    return _line(": ".join([str(status), *words]))


def _line(text: str) -> str:
    return " ".join(text.split())[:_SHOWN]
