"""A consumer that takes all there is and looks at nothing while it lasts: what it took is judged afterwards.

It costs the measured machine next to nothing: bytes are kept as they come, and events are counted by the mark that each
bulk value begins with.
"""

import threading
from collections.abc import Iterator
from contextlib import suppress
from types import TracebackType
from typing import Self

from pamqp import commands, frame

from load.events import MARK
from load.wire import CHANNEL, Delivery, Wire, deliveries

_READ = 1 << 20
_SECONDS = 30.0
"""RabbitMQ may be silent for so long."""
_TAG = "drain"
ANSWER = frame.marshal(commands.Basic.CancelOk(_TAG), CHANNEL)
"""To the cancel: RabbitMQ sends nothing of the queue after it."""


class Taken:
    """What came, in the pieces in which it came."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._tail = b""
        self.count = 0
        """Events so far."""

    def add(self, piece: bytes) -> bool:
        """Take a piece; return whether it ends with the answer to the cancel."""
        self._pieces.append(piece)
        # A mark, or that answer, may come in two pieces.
        self.count += (self._tail[1 - len(MARK) :] + piece).count(MARK)
        self._tail = (self._tail + piece)[-len(ANSWER) :]
        return self._tail == ANSWER

    def deliveries(self) -> Iterator[Delivery]:
        """Yield the messages, in their order."""
        yield from deliveries(b"".join(self._pieces))


class Drain:
    """One consumer of one queue, without acknowledgement, in a thread of its own. A context manager."""

    def __init__(self, port: int, queue: str) -> None:
        self._socket = Wire(port).detach()
        self._socket.settimeout(_SECONDS)
        self._taken = Taken()
        self._thread = threading.Thread(target=self._take, daemon=True)
        self._say(commands.Basic.Consume(queue=queue, consumer_tag=_TAG, no_ack=True))

    def __enter__(self) -> Self:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Disconnect."""
        self._socket.close()

    @property
    def count(self) -> int:
        """Return how many events came so far."""
        return self._taken.count

    def end(self) -> Iterator[Delivery]:
        """Consume no more; yield what came, in its order. RabbitMQ sends what it had begun to."""
        self._say(commands.Basic.Cancel(consumer_tag=_TAG))
        self._thread.join(_SECONDS)
        yield from self._taken.deliveries()

    def _say(self, method: commands.Basic.Consume | commands.Basic.Cancel) -> None:
        self._socket.sendall(frame.marshal(method, CHANNEL))

    def _take(self) -> None:
        with suppress(OSError):
            while (piece := self._socket.recv(_READ)) and not self._taken.add(piece):
                pass
