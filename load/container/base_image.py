"""The base image for Buildah: pulled, or where no image registry can be reached, made from Debian's packages.

The stand-in has the name that the Dockerfile asks for and less in it: Debian 12 with Python 3.11, its venv module and
certificates. What is proved on it is proved of the Dockerfile, not of the image that it stands in for.
"""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from load.container.commands import ask, succeeds
from load.stack.cache import exclusively, run_tool
from load.stack.terminal import say

BUILDAH = ("buildah", "--storage-driver", "vfs")
"""The vfs driver keeps layers as plain folders: slow and large, but it works on any file system and in any sandbox."""

STAND_IN = "io.tidegate.stand-in"
"""Label of an image whose base was made here; its value says of what."""

SUITE = "bookworm"
PULL_SECONDS = 300.0
MAKE_SECONDS = 900.0
COMMIT_SECONDS = 300.0
NOT_NEEDED = ("usr/share/doc", "usr/share/man", "usr/share/locale", "var/cache/apt", "var/lib/apt/lists")


def provide(name: str) -> None:
    """Put an image of this name into Buildah's storage unless one is there. Raises StackError when it can't be made."""
    with exclusively("base-image"):
        if succeeds(*BUILDAH, "inspect", "--type", "image", name):
            return
        if succeeds(*BUILDAH, "pull", "--quiet", name, seconds=PULL_SECONDS):
            return
        say(f"{name} can't be pulled: making a stand-in from Debian's packages (about a minute, once) ...")
        _make(name)


@contextlib.contextmanager
def unpacked(image: str) -> Iterator[tuple[str, Path]]:
    """Give a working container of an image (or of `scratch`) and the folder of its root, for the length of a block."""
    container = ask(*BUILDAH, "from", "--pull-never", image)
    try:
        yield container, Path(ask(*BUILDAH, "mount", container))
    finally:
        ask(*BUILDAH, "rm", container)


def _make(name: str) -> None:
    with unpacked("scratch") as (container, root):
        wanted = "--include=python3,python3-venv,ca-certificates"
        command = ["debootstrap", "--force-check-gpg", "--variant=minbase", wanted, SUITE, str(root), *_mirror()]
        run_tool(command, seconds=MAKE_SECONDS, purpose=f"Debian {SUITE} can't be fetched as a base image")
        for folder in NOT_NEEDED:
            shutil.rmtree(root / folder, ignore_errors=True)
        (root / "usr/bin/python").symlink_to("python3")
        path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        ask(*BUILDAH, "config", "--env", path, "--cmd", "python3", "--label", f"{STAND_IN}={SUITE}", container)
        commit = [*BUILDAH, "commit", "--format", "docker", container, name]
        run_tool(commit, seconds=COMMIT_SECONDS, purpose="the base image can't be stored")


def _mirror() -> list[str]:
    """Return the Debian mirror that the machine's own apt uses; without one, debootstrap's own choice stands."""
    mirrors = ask("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Label: Debian")
    return mirrors.splitlines()[:1]
