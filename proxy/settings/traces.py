"""Spans of what is published, for a collector of OpenTelemetry."""

from typing import Annotated

from pydantic import AfterValidator, Field

from proxy.settings.parts import Allowed, Count, Number, Part, web_host


class TraceSettings(Part):
    """One span for each batch written, with links to the contexts in its events' headers; needs `tidegate[traces]`."""

    endpoint: (
        Annotated[
            str,
            Field(pattern=r"^https?://[^\s/?#@]+/[^\s?#@]*$", max_length=1024),
            AfterValidator(web_host),
            Allowed("http://host:port/path or https://host:port/path, usually with the path /v1/traces"),
        ]
        | None
    ) = None
    """Takes OTLP over HTTP. None: nothing is traced, and nothing of OpenTelemetry is loaded."""
    sample: Annotated[Number, Field(ge=0, le=1)] = 0.01
    """Share of the batches without a sampled context that have a span all the same. Larger: more to look at."""
    spans_per_second: Annotated[Count, Field(le=10_000)] = 50
    """Begun at most. Larger: more of what producers sample, up to 0.1 ms of CPU for each."""
    links: Annotated[Count, Field(le=128)] = 16
    """Contexts that one span is linked to at most. Larger: more events are found from their trace."""
