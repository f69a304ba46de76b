"""What is known of a stack, kept in a file of its home folder, written before anything else of it exists."""

import contextlib
import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from load.stack.errors import StackError
from load.stack.packages import Software
from load.stack.processes import Identity, is_running

PROJECT = Path(__file__).resolve().parents[2]
HOMES = PROJECT / ".build" / "stack"
FILE_NAME = "state.json"
KAFKA, RABBITMQ, NETWORK, GUARDIAN = "kafka", "rabbitmq", "network", "guardian"
"""Roles of processes; the second node of a kind and those after it carry a number, as kafka-2."""
KINDS = (KAFKA, RABBITMQ)
NAME_PATTERN = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")


@dataclass(frozen=True)
class State:
    """One stack. `data` holds the nodes' folders, `home` this file; ports and processes are named by their use.

    Without `software` the nodes are containers.
    """

    name: str
    home: Path
    data: Path
    ports: dict[str, int]
    software: Software | None
    owner: Identity | None = None
    heap: str = "1g"
    processes: dict[str, Identity] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    kafka_nodes: int = 1
    rabbitmq_nodes: int = 1
    cluster_id: str = ""
    """Of Kafka, where it has several nodes."""

    @property
    def kafka_roles(self) -> tuple[str, ...]:
        """Roles of Kafka's nodes, the first of them first."""
        return tuple(numbered(KAFKA, number) for number in range(1, self.kafka_nodes + 1))

    @property
    def rabbitmq_roles(self) -> tuple[str, ...]:
        """Roles of RabbitMQ's nodes, likewise."""
        return tuple(numbered(RABBITMQ, number) for number in range(1, self.rabbitmq_nodes + 1))

    @property
    def is_cluster(self) -> bool:
        """Whether there are nodes that talk with each other."""
        return self.kafka_nodes + self.rabbitmq_nodes > len(KINDS)

    @property
    def roles(self) -> tuple[str, ...]:
        """Roles of everything that must run for the stack to be up."""
        return (*self.kafka_roles, *self.rabbitmq_roles, *([NETWORK] if self.is_cluster else []))

    def erlang_name(self, number: int) -> str:
        """Return the name of one of RabbitMQ's nodes, without its host."""
        return numbered(f"tidegate-{self.name}", number)

    @property
    def path(self) -> Path:
        """The file, which TIDEGATE_STACK names."""
        return self.home / FILE_NAME

    def with_process(self, role: str, process: Identity | None) -> Self:
        """Return the state with one more process, or with one fewer."""
        processes = {name: known for name, known in self.processes.items() if name != role}
        return replace(self, processes=processes | ({role: process} if process else {}))

    def is_abandoned(self) -> bool:
        """Tell whether the script that was to take this stack down has ended without doing so."""
        return self.owner is not None and not is_running(self.owner)

    def save(self) -> None:
        """Write the file whole or not at all."""
        self.home.mkdir(parents=True, exist_ok=True)
        fresh = self.path.with_suffix(".new")
        with fresh.open("w") as file:
            json.dump(asdict(self), file, indent=2, default=str)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self.path)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a state file. Raises StackError when there is none or it isn't one."""
        try:
            known: dict[str, Any] = json.loads(path.read_text())
            known["processes"] = {role: Identity(**process) for role, process in known["processes"].items()}
            known["owner"] = Identity(**known["owner"]) if known["owner"] else None
            known["home"], known["data"] = Path(known["home"]), Path(known["data"])
            if known["software"]:
                known["software"] = Software(**{name: Path(path) for name, path in known["software"].items()})
            return cls(**known)
        except FileNotFoundError:
            raise StackError(f"no stack is up at {path.parent}; `python -m load.stack up` starts one") from None
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise StackError(f"{path} is no state file of a stack: {error}") from error


def numbered(name: str, number: int) -> str:
    """Return what a role, port or node of this name is called, that of the first node as if there were no other."""
    return name if number == 1 else f"{name}-{number}"


def home_of(name: str) -> Path:
    """Return the folder of the stack of this name. Raises StackError unless it is 1 to 40 of a-z, 0-9 and -."""
    if not NAME_PATTERN.fullmatch(name):
        raise StackError(f"{name!r} can't name a stack: 1 to 40 of a-z, 0-9 and -, not beginning with -")
    return HOMES / name


def homes() -> list[Path]:
    """Return the folders of all stacks of this project, whatever their condition."""
    return sorted(entry for entry in HOMES.glob("*") if entry.is_dir())


@contextlib.contextmanager
def locked(home: Path, *, wait: bool = True) -> Iterator[None]:
    """Keep other scripts off this stack; the lock ends with the script, however that ends.

    Raises BlockingIOError when another script holds it and `wait` is off.
    """
    path = home.with_suffix(".lock")
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), path.stat()):
                    break
        except BlockingIOError:
            os.close(handle)
            raise
        os.close(handle)  # it was removed while we waited: take the one that stands there now
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)


def remove(home: Path, state: State | None) -> None:
    """Delete the home folder and the nodes' data; of a data folder that was given only what the stack made there.

    Raises StackError when something stays.
    """
    if state is not None:
        for made in (*state.kafka_roles, *state.rabbitmq_roles):
            shutil.rmtree(state.data / made, ignore_errors=True)
        with contextlib.suppress(OSError):  # not empty, or never made
            state.data.rmdir()
    shutil.rmtree(home, ignore_errors=True)
    if home.exists():
        raise StackError(f"{home} can't be deleted; see who owns what lies there")


def empty_folder(folder: Path) -> Path:
    """Return the folder for data, if it is new or empty. Raises StackError."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise StackError(f"{folder} is not empty; --data takes a new or an empty folder")
    return folder
