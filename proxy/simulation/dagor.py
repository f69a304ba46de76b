"""DAGOR, WeChat's overload control: an admission level that falls by 5 % and rises by 1 %, window by window.

Source: Zhou et al., "Overload Control for Scaling WeChat Microservices", SoCC 2018, arXiv:1806.04075v3: algorithm 1
with its errata (what it rises by is a share of all requests, not of the admitted ones). A window ends after one second
or 2,000 requests; a service is overloaded if its requests waited for more than 20 ms on average. Overloaded, so many of
the least important cohorts are refused as leave 95 % of what was admitted; else so many more pass as add 1 % of all
that asked. Symbols: N requests of a window, N_adm the admitted ones, C those of a cohort, alpha 0.05, beta 0.01.

Not published: the level to begin with (taken: all pass), what a window says whose queuing time is not known (taken:
nothing).
"""

from collections.abc import Sequence

from proxy.simulation import cohorts
from proxy.simulation.shedding import Look, Window

WINDOW_SECONDS = 1.0
WINDOW_REQUESTS = 2_000
OVERLOADED = 0.02
"""Seconds of mean queuing time."""
ALPHA = 0.05
BETA = 0.01
_DUST = 1e-9


class Dagor:
    """The rule of one route. A `Rule`."""

    def __init__(self, begin: Sequence[float]) -> None:
        """Begin with these rates, one for each class, until the first window is over."""
        self.rates = tuple(begin)
        self._classes = classes = len(begin)
        self.level = cohorts.most(classes)
        """See `cohorts`."""
        self._window = Window(classes)

    def on_look(self, look: Look) -> None:
        """See `Rule.on_look`."""
        window = self._window
        window.add(look)
        if window.seconds < WINDOW_SECONDS - _DUST and sum(window.asked) < WINDOW_REQUESTS:
            return
        if window.delay is not None:
            admitted, asked = sum(window.admitted), sum(window.asked)
            if window.delay > OVERLOADED:
                self.level = cohorts.lowered(self.level, window.asked, admitted, (1 - ALPHA) * admitted)
            else:
                self.level = cohorts.raised(self.level, window.asked, admitted, admitted + BETA * asked)
            self.rates = window.rates(self.level)
        self.on_stop()

    def on_stop(self) -> None:
        """See `Rule.on_stop`."""
        self._window = Window(self._classes)
