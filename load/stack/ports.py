"""Free ports for the nodes of a stack."""

import random
import socket
from collections.abc import Callable, Sequence

from load.stack.errors import StackError

LOWEST, HIGHEST = 20000, 32000
"""Below what Linux gives outgoing connections (32768 and up): a stopped node finds its port free when it returns."""

ATTEMPTS = 200


def is_free(port: int) -> bool:
    """Tell whether a server could listen on this port of the loopback and of all addresses."""
    for address in ("127.0.0.1", ""):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((address, port))
            except OSError:
                return False
    return True


def choose(names: Sequence[str], *, free: Callable[[int], bool] = is_free) -> dict[str, int]:
    """Return a different free port for each name.

    Somebody may take one before its node listens there: the node then ends, and the stack is started on others.
    Raises StackError when nearly every port is taken.
    """
    chosen: dict[str, int] = {}
    for port in random.sample(range(LOWEST, HIGHEST), ATTEMPTS):
        if len(chosen) == len(names):
            break
        if free(port):
            chosen[names[len(chosen)]] = port
    if len(chosen) < len(names):
        raise StackError(f"no {len(names)} free ports among {ATTEMPTS} tried from {LOWEST} to {HIGHEST}")
    return chosen
