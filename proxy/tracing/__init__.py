"""Spans of what is published: `contexts` reads headers, `traces` observes the bridge, `spans` knows OpenTelemetry."""

from proxy.tracing.traces import Traces, made

__all__ = ["Traces", "made"]
