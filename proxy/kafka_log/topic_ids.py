"""The ids by which Kafka tells topics apart, as the newest metadata have them: no topic made anew gets the same."""

from base64 import urlsafe_b64decode
from collections.abc import Mapping
from typing import NamedTuple


class TopicIds(NamedTuple):
    """Ids of 16 bytes of topics by their names, and the other way round; of none where the brokers tell none."""

    of: Mapping[str, bytes]
    names: Mapping[bytes, str]

    @classmethod
    def printed(cls, ids: Mapping[str, str]) -> "TopicIds":
        """Return those of topics whose ids are given as Kafka's tools print them; an empty one is none."""
        of = {topic: urlsafe_b64decode(id_ + "==") for topic, id_ in ids.items() if id_}
        return cls(of, {id_: topic for topic, id_ in of.items()})


NO_IDS = TopicIds({}, {})
