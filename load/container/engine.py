"""What builds and runs images: a container engine that answers, else Buildah and the kernel's namespaces."""

import contextlib
import json
import shutil
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

from load.container import base_image
from load.container.build_settings import write_secrets
from load.container.commands import ask, succeeds
from load.container.running import Mount, Running, attached, isolated
from load.stack.cache import exclusively, run_tool
from load.stack.errors import SetupError
from load.stack.packages import apt_install, may_install
from load.stack.terminal import say

CHECKOUT = Path(__file__).resolve().parents[2]
DOCKERFILE = CHECKOUT / "docker" / "Dockerfile"
BUILD_SECONDS = 900.0
PROBE_SECONDS = 10.0
PUSH_SECONDS = 300.0
PACKAGES = ("buildah", "debootstrap", "debian-archive-keyring")


@dataclass(frozen=True)
class Image:
    """What an image says of itself, as far as Tidegate's goes."""

    name: str
    entrypoint: tuple[str, ...]
    command: tuple[str, ...]
    environment: Mapping[str, str]
    user: str
    volumes: tuple[str, ...]
    health_check: tuple[str, ...]
    """A command and its arguments; empty if there is none that is run without a shell."""
    labels: Mapping[str, str]

    @classmethod
    def from_config(cls, name: str, config: Mapping[str, Any]) -> Self:
        """Read the `Config` of a Docker image."""
        kind, *health = (config.get("Healthcheck") or {}).get("Test") or [""]
        return cls(
            name=name,
            entrypoint=tuple(config.get("Entrypoint") or ()),
            command=tuple(config.get("Cmd") or ()),
            environment=dict(pair.split("=", 1) for pair in config.get("Env") or ()),
            user=config.get("User") or "",
            volumes=tuple(config.get("Volumes") or ()),
            health_check=tuple(health) if kind == "CMD" else (),
            labels=config.get("Labels") or {},
        )


class Engine(Protocol):
    """Builds images and starts containers: read-only root, the image's own user, the machine's network."""

    name: str

    def provide_base(self) -> None:
        """Put the base image where builds find it. Raises StackError when it can be neither pulled nor made."""
        ...

    def build(self, tag: str) -> Image:
        """Build `docker/Dockerfile` and return the image. Raises StackError with the last lines of the log."""
        ...

    def start(
        self, image: Image, arguments: Sequence[str], *, mounts: Sequence[Mount] = (), entrypoint: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> Running:  # fmt: skip
        """Start a container: the image's entrypoint, or another, with these arguments."""
        ...

    def remove(self, image: Image) -> None:
        """Delete the image; its base stays."""
        ...


def find_engine() -> Engine:
    """Return what this machine builds and runs images with, installing Buildah where that is needed and permitted.

    Raises SetupError, saying what to install, when there is nothing.
    """
    for program in ("docker", "podman"):
        # `docker` may be there without the engine that it talks to.
        if shutil.which(program) and succeeds(program, "info", seconds=PROBE_SECONDS):
            return Docker(program)
    return find_buildah()


def find_buildah() -> "Buildah":
    """Return Buildah, installed where that is needed and permitted. Raises SetupError, saying what to install."""
    if any(shutil.which(program) is None for program in PACKAGES[:2]):
        if not may_install():
            raise SetupError(
                "The image needs a running Docker or Podman, or root and `apt-get install buildah debootstrap`."
            )
        with exclusively("packages"):
            say(f"Installing {' and '.join(PACKAGES[:2])} with apt-get, to build the image without an engine ...")
            apt_install(PACKAGES)
    return Buildah()


@dataclass
class Docker:
    """Docker, or Podman, whose commands are the same."""

    name: str

    def provide_base(self) -> None:
        """Pull it."""
        pull = [self.name, "pull", _base()]
        run_tool(pull, seconds=base_image.PULL_SECONDS, purpose=f"{_base()} can't be pulled")

    def build(self, tag: str) -> Image:
        """Build with the engine."""
        _build((self.name, "build"), tag)
        return Image.from_config(tag, json.loads(ask(self.name, "image", "inspect", tag))[0]["Config"])

    def start(
        self, image: Image, arguments: Sequence[str], *, mounts: Sequence[Mount] = (), entrypoint: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> Running:  # fmt: skip
        """Start in the foreground: signals sent to the client are passed on, and its exit code is the container's."""
        first, *rest = entrypoint or image.entrypoint
        options = [f"--volume={mount.source}:{mount.target}{'' if mount.writable else ':ro'}" for mount in mounts]
        options += [f"--env={name}={value}" for name, value in (environment or {}).items()]
        name = f"tidegate-{uuid.uuid4().hex[:12]}"
        return attached(
            self.name, "run", "--rm", f"--name={name}", "--read-only", "--network=host", "--cap-drop=ALL",
            "--security-opt=no-new-privileges", *options, f"--entrypoint={first}", image.name, *rest, *arguments,
            remove=lambda: succeeds(self.name, "rm", "--force", name),
        )  # fmt: skip

    def remove(self, image: Image) -> None:
        """Delete the image."""
        ask(self.name, "image", "rm", image.name)


class Buildah:
    """No daemon at all: Buildah builds in a chroot, and a container is a process in namespaces that we make ourselves.

    It falls short of an engine in two ways: system calls are not filtered; network and devices are the machine's.
    """

    name = "buildah"

    def __init__(self) -> None:
        self._unpacked = contextlib.ExitStack()
        self._root_of: dict[str, Path] = {}

    def provide_base(self) -> None:
        """Pull it, or make a stand-in."""
        base_image.provide(_base())

    def build(self, tag: str, *, anew: bool = False) -> Image:
        """Build in a chroot with the machine's network; `anew` takes nothing from earlier builds."""
        self.provide_base()
        # All files and layers bear the commit's time: the same digest from the same commit and base.
        how = ["--isolation=chroot", "--format=docker", "--pull-never", f"--timestamp={_committed_at()}"]
        how += ["--no-cache"] if anew else []
        _build((*base_image.BUILDAH, "build", *how), tag)
        described = json.loads(ask(*base_image.BUILDAH, "inspect", "--type", "image", tag))
        return Image.from_config(tag, described["Docker"]["config"])

    def start(
        self, image: Image, arguments: Sequence[str], *, mounts: Sequence[Mount] = (), entrypoint: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> Running:  # fmt: skip
        """Start as process 1 of its own process namespace, on the unpacked image mounted read-only."""
        if image.name not in self._root_of:
            _, self._root_of[image.name] = self._unpacked.enter_context(base_image.unpacked(image.name))
        command = [*(entrypoint or image.entrypoint), *arguments]
        return isolated(
            self._root_of[image.name], command, user=image.user, mounts=mounts,
            environment=dict(image.environment) | dict(environment or {}),
        )  # fmt: skip

    def packed(self, image: Image, folder: Path) -> tuple[str, int]:
        """Return the digest under which a registry would have the image, as OCI, and its compressed bytes."""
        digest, archive = folder / "digest", folder / "image.tar"
        form = ("--format", "oci", "--digestfile", str(digest))
        push = [*base_image.BUILDAH, "push", "--quiet", *form, image.name, f"oci-archive:{archive}"]
        run_tool(push, seconds=PUSH_SECONDS, purpose=f"{image.name} can't be packed")
        size = archive.stat().st_size
        archive.unlink()
        return digest.read_text().strip(), size

    def remove(self, image: Image) -> None:
        """Delete the image and everything that was unpacked."""
        self._unpacked.close()
        self._root_of.clear()
        ask(*base_image.BUILDAH, "rmi", image.name)


def _build(command: Sequence[str], tag: str) -> None:
    with tempfile.TemporaryDirectory(prefix="tidegate-build-") as folder:
        secrets = [f"--secret=id={name},src={path}" for name, path in write_secrets(Path(folder)).items()]
        build = [*command, f"--tag={tag}", f"--file={DOCKERFILE}", *secrets, str(CHECKOUT)]
        run_tool(build, seconds=BUILD_SECONDS, purpose=f"{DOCKERFILE.name} can't be built")


def _committed_at() -> str:
    """Return the time of this checkout's commit, in seconds since 1970."""
    return ask("git", "-C", str(CHECKOUT), "log", "-1", "--format=%ct")


def _base() -> str:
    """Return the default of the Dockerfile's BASE."""
    lines = DOCKERFILE.read_text().splitlines()
    return next(line.removeprefix("ARG BASE=") for line in lines if line.startswith("ARG BASE="))
