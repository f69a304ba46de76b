"""The library's part in the group, mended: a subscription may change while the group's broker is sought."""

from typing import Any

from aiokafka.consumer.group_coordinator import GroupCoordinator


class Coordination(GroupCoordinator):  # type: ignore[misc]  # the library is untyped
    """Begins anew then; the library would take the partitions of the old subscription for granted, and end."""

    def need_rejoin(self, subscription: Any) -> bool:
        """Return whether the group is to be joined, or the subscription is another by now."""
        return not subscription.active or bool(super().need_rejoin(subscription))

    async def ensure_active_group(self, subscription: Any, prev_assignment: Any) -> Any:
        """Join the group; None if the caller must look again at what it is subscribed to."""
        return await super().ensure_active_group(subscription, prev_assignment) if subscription.active else None
