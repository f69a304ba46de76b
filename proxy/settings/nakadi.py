"""Where events come from if the log is Nakadi, an event bus with an HTTP API."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from proxy.settings.broker import BrokerTls
from proxy.settings.parts import Count, Part, Seconds, WebAddress
from proxy.settings.secrets import Token


class NakadiSettings(Part):
    """A Nakadi, and who reads there: with each event type a subscription is identified by this."""

    url: WebAddress
    owning_application: Annotated[str, Field(min_length=1, max_length=249)]
    consumer_group: Annotated[str, Field(min_length=1, max_length=249)]
    """Replicas of one Tidegate share it."""
    token: Token | None = None
    """A bearer token; None: none is sent."""
    tls: BrokerTls | None = None
    """With https: whom to trust and what to show; None: the system's authorities."""
    batch_events: Annotated[Count, Field(le=1_000)] = 50
    """Events in a batch at most: it is committed as a whole. Larger: less work; smaller: fewer duplicates."""
    commit_timeout: Annotated[Seconds, Field(ge=10, le=60)] = 30.0
    """What is not committed for so long goes to whoever comes. Whole seconds. Larger: what is held back is read again
    less often; smaller: a replica that dies, or stops with a full inbox, is replaced sooner."""
    batch_wait: Annotated[Seconds, Field(ge=1, le=15)] = 1.0
    """How long Nakadi may wait for a batch to fill. Whole seconds. Larger: less work when idle; smaller: sooner."""

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        wrong = [] if self.tls is None or self.url.startswith("https:") else ["tls goes with an https url only"]
        broken = [key for key in ("commit_timeout", "batch_wait") if getattr(self, key) % 1]
        if broken:
            wrong.append(f"{' and '.join(broken)} must be whole seconds: Nakadi knows no others")
        if wrong:
            raise ValueError("; ".join(wrong))
        return self
