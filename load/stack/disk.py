"""On what the nodes write: a figure is worth as much as the disk below it."""

from pathlib import Path

MEMORY = frozenset({"tmpfs", "ramfs"})


def filesystem(path: Path, *, mounts: str | None = None) -> str:
    """Return the type of the file system below a path, such as ext4, by the text of mountinfo (this machine's)."""
    path = path.resolve()
    best, kind = -1, "unknown"
    for line in (mounts or Path("/proc/self/mountinfo").read_text()).splitlines():
        left, _, right = line.partition(" - ")
        point = Path(left.split()[4].replace("\\040", " "))
        if (
            path.is_relative_to(point) and len(point.parts) >= best
        ):  # the later of two mounts on one point hides the earlier
            best, kind = len(point.parts), right.split()[0]
    return kind


def warning(kind: str) -> str | None:
    """Return what must be said of figures measured there, if anything."""
    return f"{kind} is memory, no disk: a figure measured on {kind} is no figure" if kind in MEMORY else None
