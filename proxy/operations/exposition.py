"""Metrics as Prometheus reads them, in its text format 0.0.4, written in steps.

The library's own `generate_latest` writes all of it in one step of the loop.
"""

from collections.abc import Iterable

from prometheus_client.metrics_core import Metric
from prometheus_client.samples import Sample
from prometheus_client.utils import floatToGoString

from proxy.operations.steps import PIECE, Steps

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Families = Iterable[Metric | None]
"""None where whoever collects them lets the loop go on."""

_VALUE = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})
_WORDS = str.maketrans({"\\": r"\\", "\n": r"\n"})


async def exposition(families: Families, steps: Steps) -> bytes:
    """Return the families as text. They are gauges, counters and histograms."""
    lines: list[str] = []
    for family in families:
        if family is not None:
            name = f"{family.name}_total" if family.type == "counter" else family.name
            lines.append(f"# HELP {name} {family.documentation.translate(_WORDS)}\n# TYPE {name} {family.type}\n")
            for count, sample in enumerate(family.samples, 1):
                lines.append(_line(sample))
                if not count % PIECE:
                    await steps.pause()
        await steps.pause()
    return "".join(lines).encode()


def _line(sample: Sample) -> str:
    value: str = floatToGoString(sample.value)  # type: ignore[no-untyped-call]
    labels = ",".join(f'{name}="{text.translate(_VALUE)}"' for name, text in sorted(sample.labels.items()))
    return f"{sample.name}{f'{{{labels}}}' if labels else ''} {value}\n"
