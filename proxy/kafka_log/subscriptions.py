"""What the library's consumer reads, telling whose fetching begins or ends."""

from collections.abc import Callable

from aiokafka import TopicPartition
from aiokafka.consumer.subscription_state import SubscriptionState


class Subscriptions(SubscriptionState):  # type: ignore[misc]  # the library is untyped
    """What is read; tells whose fetching begins or ends. Made by the library's consumer, in place of its own class."""

    on_changed: Callable[[TopicPartition], None] = staticmethod(lambda _: None)

    def pause(self, tp: TopicPartition) -> None:
        """See the library."""
        super().pause(tp)
        self.on_changed(tp)

    def resume(self, tp: TopicPartition) -> None:
        """See the library."""
        super().resume(tp)
        self.on_changed(tp)
