"""Who holds the other end of a connection, as the kernel knows it."""

from contextlib import suppress
from pathlib import Path

from load.stack.processes import roles

TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
"""Java's sockets are of the second kind, whatever they carry."""


def role_of(home: Path, port: int, target: int) -> str | None:
    """Return the role of the node of this stack that is connected from one local port to the other; None for others."""
    inode = _inode(port, target)
    if inode is None:
        return None
    for pid, role in roles(home).items():
        with suppress(OSError):
            for handle in Path(f"/proc/{pid}/fd").iterdir():
                with suppress(OSError):
                    if str(handle.readlink()) == f"socket:[{inode}]":
                        return role
    return None


def _inode(port: int, target: int) -> str | None:
    here, there = f":{port:04X}", f":{target:04X}"
    for table in TABLES:
        with suppress(FileNotFoundError):
            for line in table.read_text().splitlines()[1:]:
                fields = line.split()
                if fields[1].endswith(here) and fields[2].endswith(there):
                    return fields[9]
    return None
