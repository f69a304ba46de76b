"""Spans by the SDK of OpenTelemetry: the only module that knows it, loaded only where `traces` is set."""

import logging
import threading
from collections.abc import Callable, Sequence

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    TraceState,
)

from proxy import __version__
from proxy.settings.traces import TraceSettings
from proxy.tracing.contexts import Context
from proxy.tracing.statuses import Statuses
from proxy.tracing.words import OPERATION, SCHEMA

QUEUE = 2_048
"""Spans that may wait for the collector; of more the oldest go."""
AT_ONCE = 256
"""Spans in one question."""
DELAY_MS = 2_000
ANSWER_SECONDS = 5.0
"""The collector may take for an answer, tries again included; then the spans are given up."""

Exported = Callable[[int, bool], None]
"""Told from another thread how many spans the collector has, or has not, taken."""


class SdkSpans:
    """Makes and exports spans. See `proxy.tracing.traces.Spans`."""

    def __init__(self, settings: TraceSettings, instance: str, on_exported: Exported) -> None:
        # It says every failed try with a trace of the stack; who is told of exports says it once.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL + 1)
        named = {"service.name": "tidegate", "service.instance.id": instance, "service.version": __version__}
        self._provider = TracerProvider(
            sampler=ALWAYS_ON,  # who asks for a span has decided
            resource=Resource.create(named),
            shutdown_on_exit=False,
            span_limits=SpanLimits(max_links=settings.links),
        )
        exporter = OTLPSpanExporter(
            settings.endpoint, timeout=ANSWER_SECONDS, compression=Compression.Gzip, session=Statuses()
        )
        self._provider.add_span_processor(
            BatchSpanProcessor(
                _Counted(exporter, on_exported),
                max_queue_size=QUEUE,
                max_export_batch_size=AT_ONCE,
                schedule_delay_millis=DELAY_MS,
            )
        )
        self._tracer = self._provider.get_tracer("tidegate", __version__, schema_url=SCHEMA)

    def add(
        self,
        destination: str,
        begin_ns: int,
        end_ns: int,
        parent: Context | None,
        links: Sequence[Context],
        attributes: dict[str, str | int],
        error: str | None,
    ) -> None:
        """Make a span that has ended; times in nanoseconds since 1970."""
        above = None if parent is None else trace.set_span_in_context(NonRecordingSpan(_remote(parent)))
        span = self._tracer.start_span(
            f"{OPERATION} {destination}" if destination else OPERATION,
            context=above,
            kind=SpanKind.CLIENT,
            attributes=attributes,
            links=[Link(_remote(one)) for one in links],
            start_time=begin_ns,
        )
        if error is not None:
            span.set_status(Status(StatusCode.ERROR, error))
        span.end(end_ns)

    def close(self, then: Callable[[], None]) -> None:
        """Export what is left and call back, from another thread; it may take as long as the collector does."""

        def end() -> None:
            self._provider.shutdown()
            then()

        threading.Thread(target=end, name="traces end", daemon=True).start()


class _Counted(SpanExporter):
    """Tells what became of the spans; whatever goes wrong ends here."""

    def __init__(self, exporter: SpanExporter, on_exported: Exported) -> None:
        self._exporter = exporter
        self._on_exported = on_exported

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        try:
            result = self._exporter.export(spans)
        except Exception:  # noqa: BLE001 -- a collector's answer must not end the thread
            result = SpanExportResult.FAILURE
        self._on_exported(len(spans), result is SpanExportResult.SUCCESS)
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()


def _remote(context: Context) -> SpanContext:
    state = TraceState.from_header([context.state]) if context.state else None
    return SpanContext(context.trace, context.span, is_remote=True, trace_flags=TraceFlags(1), trace_state=state)
