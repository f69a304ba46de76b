"""Why a route was judged as it was, in a sentence, from the record of the verdict."""

from collections.abc import Mapping
from typing import Any

from proxy.congestion.detector import Cause
from proxy.congestion.signs import Sign


def why(verdict: Mapping[str, Any]) -> str:
    """Return the sentence."""
    cause, samples = verdict["cause"], verdict["samples"]
    match cause:
        case Sign.DEPTH:
            delay, queue = verdict["queue_delay_us"], verdict["ruled_by"]
            waits = "would wait for ever" if delay is None else f"would wait {delay / 1e6:.3g} s"
            place = "its queues" if queue is None else f"queue {queue}"
            return f"an event {waits} in {place}: too long for {', '.join(verdict['hot'] or ())}"
        case Cause.LATENCY if verdict["threshold_us"] is not None:
            return _slow(verdict)
        case Cause.ERRORS:
            return _failing(verdict)
        case Cause.BOTH:
            return f"{_slow(verdict)}, and {_failing(verdict)}"
        case Cause.TOO_FEW_SAMPLES:
            return f"{samples} outcomes say too little, {verdict['min_samples']} are needed"
        case _:
            return _OTHERS.get(cause, cause)


_OTHERS: Mapping[str, str] = {
    Sign.BLOCKED: "its connection is lost, or blocked by the broker",
    Sign.UNCONFIRMED: "the broker has not confirmed for longer than it ever took",
    Sign.NO_CONSUMERS: "messages wait, and nobody consumes them",
    Sign.UNACKED: "consumers take messages and acknowledge none",
    Sign.NACKS: "more than one in a hundred publications is nacked",
    Sign.LATENCY: "confirms take longer than they do for so many in flight",
    Sign.BLIND: "the depth of its queues is not known",
    Sign.NONE: "nothing speaks against sending",
}


def _slow(verdict: Mapping[str, Any]) -> str:
    p50, limit = verdict["p50_us"] / 1e3, verdict["threshold_us"] / 1e3
    return f"half of the confirms took {p50:g} ms or longer, {limit:g} ms is the limit"


def _failing(verdict: Mapping[str, Any]) -> str:
    return f"{verdict['errors']} of {verdict['samples']} publications failed, {verdict['threshold_errors']:g} may"
