"""Partitions that nobody shares out: of a topic that has grown while the group's leader did not look.

The leader alone watches for partitions that come, and has the group gather. With static members there may be none that
does: a leader that returns within its session gets its old assignment and is not told that it leads, so that it shares
nothing out anew (KIP-345; KIP-814 mends it with a JoinGroup that the library does not speak). What its topics have got
since then would stand unread until some other rebalance.

So whoever sees a partition that is not its own, of which the group has committed nothing, in a generation that has
outlasted the leader's patience, joins anew, once for each generation. The group gathers if the broker knows the member
as the leader; for any other the generation goes on.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping

import structlog

from proxy.errors import LogError
from proxy.kafka_log.network import Network
from proxy.model import Partition
from proxy.positions.identity import Committed

_say = structlog.get_logger("tidegate.kafka")

AGES = 3.0
"""Ages of the metadata after which a leader has seen what has come, and the group has gathered."""


class Counts:
    """How many partitions topics have by the client's metadata; counted anew when these have come anew."""

    def __init__(self, client: Network) -> None:
        self._cluster = client.cluster
        self._topics: Collection[str] = ()
        self._counts: Mapping[str, int] | None = None
        client.on_metadata.append(self._forget)

    def of(self, topics: Collection[str]) -> Mapping[str, int]:
        """Return them, the same object as before if nothing has come since."""
        if self._counts is None or topics is not self._topics:
            self._topics = topics
            self._counts = {topic: len(self._cluster.partitions_for_topic(topic) or ()) for topic in topics}
        return self._counts

    def _forget(self) -> None:
        self._counts = None


class Unshared:
    """Looks for them; `counts` gives how many partitions topics have, times come from `clock`, in seconds."""

    def __init__(
        self,
        counts: Callable[[Collection[str]], Mapping[str, int]],
        committed: Callable[[], Awaitable[Mapping[Partition, Committed | None]]],
        clock: Callable[[], float],
        *,
        patience: float,
        is_static: bool,
    ) -> None:
        self._counts = counts
        self._committed = committed
        self._clock = clock
        self._patience = patience
        self._suspects_first = is_static
        """In its first generation a static member does not know what came while it was away."""
        self._owned: frozenset[Partition] = frozenset()
        self._known: Mapping[str, int] | None = None
        self._since: float | None = None

    def begin(self, owned: Collection[Partition]) -> None:
        """Note what this member was given in a new generation."""
        self._owned = frozenset(owned)
        self._known = None
        self._since = self._clock() if self._suspects_first else None
        self._suspects_first = False

    async def are_there(self, topics: Collection[str]) -> bool:
        """Return whether to join anew, for partitions of these topics that nobody reads.

        To be asked every second. Where the group does not tell what it has committed, it is asked again the next time.
        """
        counts = self._counts(topics)
        known, self._known = self._known or counts, counts
        if (
            self._since is None
            and counts is not known  # as they were, for nothing has been heard of them since
            and any(count > known.get(topic, count) for topic, count in counts.items())
        ):
            self._since = self._clock()
        if self._since is None or self._clock() - self._since < self._patience:
            return False
        try:
            told = await self._committed()
        except LogError:
            return False  # whoever places partitions asks it as well, and must not wait for this
        self._since = None
        everything = (Partition(topic, number) for topic, count in counts.items() for number in range(count))
        unread = [at for at in everything if at not in told and at not in self._owned]
        if unread:
            _say.info(
                "partitions_unshared",
                partitions=len(unread),
                first=str(min(unread)),
                effect="joins the group anew, so that they are given to somebody",
            )
        return bool(unread)
