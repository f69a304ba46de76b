"""Who is told when events of a class are held back: whoever sends too much of them, by a webhook or a Kafka topic."""

from typing import Annotated, Self

from pydantic import Field, field_serializer, model_validator

from proxy.settings.events import TopicName
from proxy.settings.parts import FilePath, Part, Seconds, WebTarget
from proxy.settings.secrets import MASK, Secret


class Webhook(Part):
    """An address that takes notices by POST."""

    url: WebTarget
    key: Secret | None = None
    """With it every notice is signed (HMAC-SHA256); read again when its file changes. None: not signed."""
    ca_file: FilePath | None = None
    """PEM file of the authorities to trust; the system's if not given."""

    @model_validator(mode="after")
    def _key_signs(self) -> Self:
        if self.key is not None and self.key.text is not None and not self.key.text.get_secret_value():
            raise ValueError("key is empty, so anybody could sign; leave it out, or give one")
        return self

    @property
    def shown(self) -> str:
        """The address without its query: many a service has its secret there."""
        where, asked, _ = self.url.partition("?")
        return f"{where}?{MASK}" if asked else where

    @field_serializer("url")
    def _as_shown(self, _: str) -> str:
        return self.shown


class NoticeSettings(Part):
    """Notices of the start and the end of an episode, to a webhook or a topic; without either nobody is told."""

    webhook: Webhook | None = None
    topic: TopicName | None = None
    """Of the cluster of `log`; it must exist, and the login needs Write. All goes to its partition 0."""
    after: Annotated[Seconds, Field(ge=1, le=3600)] = 10.0
    """A class must be held back for so long before it is told. Larger: less noise."""
    quiet: Annotated[Seconds, Field(ge=3, le=3600)] = 30.0
    """It must not be held back for so long before the end is told. Larger: fewer notices."""

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if self.webhook is not None and self.topic is not None:
            raise ValueError("give one of webhook, topic, not both")
        return self
