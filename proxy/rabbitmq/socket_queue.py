"""What the kernel holds of what was written to a socket."""

import struct
import sys
from fcntl import ioctl
from socket import socket
from termios import TIOCOUTQ

_INT = struct.Struct("i")


def unacknowledged(connected: socket | None) -> int:
    """Return how many bytes the other host has not acknowledged; 0 where the kernel does not tell (tcp(7), SIOCOUTQ).

    With TLS these are bytes on the wire, some more than were written.
    """
    if connected is None or sys.platform != "linux":
        return 0
    try:
        return int(_INT.unpack(ioctl(connected.fileno(), TIOCOUTQ, bytes(_INT.size)))[0])
    except (OSError, ValueError):
        return 0  # it is closed; both loops then say -1 for its descriptor
