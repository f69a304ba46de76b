"""How long Kafka keeps a topic: one DescribeConfigs for any number of topics. It asks for Describe Configs on them."""

from collections.abc import Collection, Mapping
from typing import Any

from aiokafka import errors
from aiokafka.protocol.admin import DescribeConfigsRequest

from proxy.model import Retention

_TOPIC = 2
"""Kafka's number for the kind of resource."""
_MS, _BYTES, _SEGMENT, _POLICY = "retention.ms", "retention.bytes", "segment.bytes", "cleanup.policy"
_DENIED = {errors.TopicAuthorizationFailedError.errno, errors.ClusterAuthorizationFailedError.errno}


def settings_question(topics: Collection[str]) -> DescribeConfigsRequest:
    """Return the question for the settings of the topics that say how long they are kept."""
    names = [_MS, _BYTES, _SEGMENT, _POLICY]
    return DescribeConfigsRequest([(_TOPIC, topic, names) for topic in sorted(topics)])


def retentions(response: Any) -> dict[str, Retention | None]:
    """Return what the response tells of each topic; None: not to this login. Topics that are gone are left out."""
    found: dict[str, Retention | None] = {}
    for error, _, _, topic, entries in response.resources:
        if not error:
            found[topic] = _retention({entry[0]: entry[1] for entry in entries})
        elif error in _DENIED:
            found[topic] = None
    return found


def _retention(told: Mapping[str, str | None]) -> Retention:
    """Return what the settings mean; a topic that is only compacted keeps the last of each key without end."""
    if "delete" not in (told.get(_POLICY) or "delete"):
        return Retention(None, None, None)
    milliseconds, size, segment = (_number(told.get(name)) for name in (_MS, _BYTES, _SEGMENT))
    return Retention(None if milliseconds is None else milliseconds / 1000, size, segment)


def _number(text: str | None) -> int | None:
    """Return a number; None for -1, which is without end, and for what is none."""
    return None if text is None or not text.isdecimal() else int(text)
