"""Whether messages pile up at consumers that have stopped: the one backlog that depth and nacks do not show.

A consumer without a prefetch takes everything at once, so the queue stays empty and nothing is nacked. What is left to
see is that the number of unacknowledged messages grows while hardly anything is acknowledged. The broker's statistics
come in steps of about 5 s, and queue and consumer report at different moments, so one step proves nothing: consumers
that start with a large prefetch look the same for a moment.

The rule: since some reading the number grew by more than was acknowledged, and in two steps of at least
`STEP_MESSAGES`, `STEP_SECONDS` apart. It ends when as much was acknowledged as the number grew, or when that falls by a
step; that nothing is sent any more does not end it. A stall is told 10 to 15 s after it began; so are
consumers too slow by half. Those that acknowledge in batches more than about 10 s apart look stalled in between.
"""

from dataclasses import dataclass

STEP_MESSAGES = 20
"""A growth by less is noise."""
STEP_SECONDS = 1.5
"""Two readings closer together may show the halves of one step."""
STEPS = 2


@dataclass(slots=True)
class _Span:
    """What was read since a moment at which consumers were last seen at work."""

    unacked: int
    acked: int
    stepped_at: float
    peak: int
    steps: int = 0


class UnackedGrowth:
    """Judges one queue."""

    def __init__(self) -> None:
        self._span: _Span | None = None

    @property
    def is_growing(self) -> bool:
        """Whether the consumers seem to have stopped."""
        return self._span is not None and self._span.steps >= STEPS

    def add(self, at: float, unacked: int, acked: int) -> None:
        """Take a reading; `acked` counts all acknowledgements ever, `at` is in seconds and must not fall."""
        span = self._span
        if span is None or _is_at_work(span, unacked, acked):
            self._span = _Span(unacked, acked, at, peak=unacked)
        elif unacked >= span.peak + STEP_MESSAGES:
            span.peak = unacked
            if at >= span.stepped_at + STEP_SECONDS:
                span.stepped_at = at
                span.steps += 1


def _is_at_work(span: _Span, unacked: int, acked: int) -> bool:
    grown, taken = unacked - span.unacked, acked - span.acked
    has_fallen = grown < 0 or unacked <= span.peak - STEP_MESSAGES
    counts_anew = taken < 0
    return has_fallen or counts_anew or (taken > 0 and taken >= grown)
