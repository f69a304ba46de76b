"""What a process calls itself in logs, records and answers."""

import os
import secrets
import socket
import time


def instance_name(role: str | None = None) -> str:
    """Return the host, the process and the second of its start, behind them four digits by chance.

    Without these, two containers that share a host's name and were started together would have one name: in each the
    process is number 1.
    """
    named = f"{socket.gethostname()}-{os.getpid()}-{int(time.time())}-{secrets.token_hex(2)}"
    return named if role is None else f"{role}-{named}"
