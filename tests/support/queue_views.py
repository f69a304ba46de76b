"""What one queue is seen to be, for the rules that choose among several."""

from math import inf

from proxy.congestion.receiver import View

HIGHEST = 0.5
"""Seconds of queue delay that are too many."""


def view(name: str, delay: float | None = 0.0, consumers: int = 4, *, feeds: tuple[bool, ...] = (True, True)) -> View:
    """Return a queue with ten messages; without a delay nothing is known of it."""
    return View(
        name=name,
        is_known=delay is not None,
        estimate=None,
        delay=delay,
        limits=(HIGHEST, 0.08),
        share=1.0,
        held=inf,
        feeds=feeds,
        ready=10,
        waiting=10.0,
        cost=1.0,
        is_even=True,
        consumers=consumers,
        is_left=False,
        unacked=None,
        unacked_growing=False,
        knows_others=True,
        empty_for=None,
        empty_since_last=0.0,
    )
