"""What a stack asks of a node, be it a process of this machine or a container."""

from typing import Protocol

from load.stack.processes import Identity


class Node(Protocol):
    """One of the two brokers. All but `answers` and `pid` raise StackError with the node's last lines."""

    @property
    def role(self) -> str:
        """The node's name in the state and in the mark of its processes."""

    def start(self) -> Identity:
        """Start it and return at once."""

    def await_ready(self, process: Identity) -> tuple[Identity, dict[str, str]]:
        """Wait until what `start` returned answers in its protocol; return the process to remember, and versions."""

    def answers(self) -> bool:
        """Tell whether this node, not just any, answers now."""

    def pid(self, process: Identity) -> int | None:
        """Return the pid if that process still runs."""

    def stop(self, process: Identity, *, kill: bool) -> None:
        """Stop it, orderly or by SIGKILL, and return when it has ended; data and ports stay."""


class Kafka(Node, Protocol):
    """The log."""

    def grant(self) -> None:
        """Give the users of the SASL listener their rights."""


class Rabbitmq(Node, Protocol):
    """The message broker."""

    def control(self, *arguments: str) -> str:
        """Run rabbitmqctl on this node and return what it prints."""
