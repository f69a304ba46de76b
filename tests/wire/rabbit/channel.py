"""One channel of a scripted connection: methods, messages coming in, returns and confirms (AMQP 0-9-1, chapter 1).

Confirms come as RabbitMQ's do: late, several at once, some out of order, a return always before its own ack.
"""

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pamqp import commands
from pamqp.header import ContentHeader

from tests.wire.rabbit.frames import Content, HardError, Message, SoftError
from tests.wire.rabbit.leaders import Knowledge

if TYPE_CHECKING:
    from tests.wire.rabbit.connection import RabbitConnection

_HELD_BACK = 0.2
"""Share of confirms that come later than those of later messages."""


class RabbitChannel:
    """A node's end."""

    def __init__(self, connection: "RabbitConnection", number: int) -> None:
        self.number = number
        self.is_closing = False
        """It was closed by the node: nothing counts until the client says so, too."""
        self._connection = connection
        self._cluster = connection.cluster
        self._content: Content | None = None
        self._confirms = False
        self._next_tag = 1
        self._waiting: dict[int, tuple[bool, Message]] = {}
        """Tags decided but not confirmed: whether by an ack, and of what."""
        self._confirmed = 0
        """Every tag up to this one has been confirmed."""
        self._beyond: set[int] = set()
        """Confirmed tags above."""
        self._known = Knowledge(connection.cluster.leaders)
        self._behind: deque[Message] | None = None
        """What came while the channel waits for a silent leader; None while it does not."""

    def unconfirmed(self) -> Iterator[Message]:
        """Yield what the client does not know to be stored."""
        return (message for _, message in self._waiting.values())

    def take_content(self, kind: int, value: Any) -> None:
        """Take a header or body frame. Raises `SoftError`, `HardError`."""
        if self._content is None:
            raise HardError(505, "UNEXPECTED_FRAME - expected method frame")
        message = self._content.add(kind, value)
        if message is not None:
            self._content = None
            message.process = self._connection.process
            self._publish(message)

    def take_method(self, value: Any) -> None:
        """Take a method frame. Raises `SoftError`, `HardError`."""
        if self._content is not None:
            raise HardError(
                505, "UNEXPECTED_FRAME - expected content header for class 60, got non content header frame"
            )
        match value:
            case commands.Basic.Publish():
                self._content = Content(value)
                self._connection.has_published = True
                self._connection.follow_alarm()
            case commands.Confirm.Select():
                self._confirms = True
                self._say(commands.Confirm.SelectOk())
            case commands.Basic.Qos():
                self._say(commands.Basic.QosOk())
            case commands.Queue.Declare(passive=True):
                self._tell(value.queue)
            case commands.Queue.Declare():
                self._declare_queue(value)
            case commands.Queue.Bind():
                self._bind(value)
            case commands.Basic.Consume():
                self._refuse_consumer(value)
            case commands.Exchange.Declare():
                self._declare_exchange(value)
            case _:
                raise HardError(540, f"NOT_IMPLEMENTED - {getattr(value, 'name', value)!r}")

    def _declare_queue(self, value: commands.Queue.Declare) -> None:
        bound = (value.arguments or {}).get("x-max-length")
        queue = self._cluster.declare_queue(value.queue, bound=bound if isinstance(bound, int) else None)
        self._say(commands.Queue.DeclareOk(value.queue, len(queue.messages), queue.consumers))

    def _bind(self, value: commands.Queue.Bind) -> None:
        cluster = self._cluster
        if value.queue not in cluster.queues or value.exchange not in cluster.exchanges:
            raise SoftError(404, f"NOT_FOUND - no queue '{value.queue}' or exchange '{value.exchange}' in vhost '/'")
        cluster.bind(value.exchange, value.queue, value.routing_key)
        self._say(commands.Queue.BindOk())

    def _refuse_consumer(self, value: commands.Basic.Consume) -> None:
        """Nobody consumes over the protocol here; what no kind of queue bears is refused as RabbitMQ does."""
        queue = self._cluster.queues.get(value.queue)
        if queue is None:
            raise SoftError(404, f"NOT_FOUND - no queue '{value.queue}' in vhost '/'")
        if "x-stream-offset" not in (value.arguments or {}):
            raise HardError(540, "NOT_IMPLEMENTED - consumers")
        raise SoftError(
            406,
            f"PRECONDITION_FAILED - invalid arg 'x-stream-offset' for queue '{value.queue}' in vhost '/' of queue type "
            f"rabbit_{queue.kind}_queue",
        )

    def _declare_exchange(self, value: commands.Exchange.Declare) -> None:
        known = self._cluster.exchanges.get(value.exchange)
        if known is None and value.passive:
            raise SoftError(404, f"NOT_FOUND - no exchange '{value.exchange}' in vhost '/'")
        if known is not None and not value.passive and known.kind != value.exchange_type:
            raise SoftError(
                406,
                f"PRECONDITION_FAILED - inequivalent arg 'type' for exchange '{value.exchange}' in vhost '/': received "
                f"'{value.exchange_type}' but current is '{known.kind}'",
            )
        if known is None:
            self._cluster.declare_exchange(value.exchange, value.exchange_type)
        self._say(commands.Exchange.DeclareOk())

    def _tell(self, queue: str) -> None:
        messages, consumers = self._cluster.state_of(queue)
        answer = commands.Queue.DeclareOk(queue, messages, consumers)
        seconds = self._cluster.trouble.answer_seconds
        if seconds:
            # A delay holds for every later answer, too: they come in the order of the questions.
            self._cluster.loop.call_later(seconds, self._say, answer)
        else:
            self._say(answer)

    def _publish(self, message: Message) -> None:
        from tests.wire.rabbit.cluster import Verdict

        if self._behind is not None:
            self._behind.append(message)
            return
        tag = self._next_tag
        self._next_tag += 1
        cluster = self._cluster
        verdict = cluster.publish(message, self._known)
        is_returned = verdict in {Verdict.RETURNED, Verdict.AWAY}
        if is_returned:
            method = commands.Basic.Return(312, "NO_ROUTE", message.exchange, message.key)
            header = ContentHeader(0, len(message.body), message.properties)
            self._connection.say_content(method, header, message.body, self.number)
        if verdict is Verdict.UNASKED and cluster.leaders.silent_seconds:
            self._behind = deque()
            cluster.loop.call_later(cluster.leaders.silent_seconds, self._go_on, tag, message)
        else:
            self._decide(tag, message, acked=is_returned or verdict is Verdict.ACKED)

    def _go_on(self, tag: int, message: Message) -> None:
        """Take up what came while the channel waited for a silent leader."""
        behind = self._behind or ()
        self._behind = None
        if self._connection.is_over:
            return
        self._decide(tag, message, acked=False)
        for one in behind:
            self._publish(one)

    def _decide(self, tag: int, message: Message, *, acked: bool) -> None:
        trouble = self._cluster.trouble
        if not self._confirms or (trouble.loses_confirms and self._cluster.chance.random() < trouble.loses_confirms):
            return
        if not self._waiting:
            self._confirm_later()
        self._waiting[tag] = acked, message

    def _confirm_later(self) -> None:
        cluster = self._cluster
        seconds = cluster.chance.uniform(0, cluster.confirm_seconds)
        if cluster.trouble.late_confirms and cluster.chance.random() < cluster.trouble.late_confirms:
            seconds += cluster.trouble.late_seconds
        cluster.loop.call_later(seconds, self._confirm)

    def _confirm(self) -> None:
        """Confirm what is decided but for some held back: runs of acks together, the rest singly."""
        if self.is_closing or self._connection.is_over:
            return
        if self._behind is not None:
            self._confirm_later()
            return
        chance, is_led = self._cluster.chance, not self._cluster.leaders.are_missing
        ready = {
            tag: acked
            for tag, (acked, message) in self._waiting.items()
            if chance.random() > _HELD_BACK and (is_led or not acked) and not self._cluster.is_stalled(message)
        }
        for tag in ready:
            del self._waiting[tag]
        if self._waiting:
            self._confirm_later()
        before = self._confirmed
        while ready.get(self._confirmed + 1, False) or self._confirmed + 1 in self._beyond:
            self._confirmed += 1
            self._beyond.discard(self._confirmed)
            ready.pop(self._confirmed, None)
        if self._confirmed > before:
            self._say(commands.Basic.Ack(self._confirmed, True))  # noqa: FBT003 -- pamqp's way
        for tag, acked in ready.items():
            self._beyond.add(tag)
            self._say(commands.Basic.Ack(tag) if acked else commands.Basic.Nack(tag, requeue=False))

    def _say(self, value: Any) -> None:
        if not self.is_closing:
            self._connection.say(value, self.number)
