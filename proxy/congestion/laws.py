"""The rate laws by name: those that come with Tidegate, and those of installed packages (docs/rate-laws.md)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from math import inf
from typing import Any

from proxy.congestion.aimd import Aimd
from proxy.congestion.cubic import Cubic
from proxy.congestion.rate_law import METHODS, RateLaw, is_rate
from proxy.congestion.vegas import Vegas
from proxy.errors import RateLawError
from proxy.settings import ClassBudget

GROUP = "tidegate.rate_laws"
"""The entry points by which a package names its laws: `name = "module:function"`."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """What a law begins with; each level of each route gets a law of its own."""

    settings: ClassBudget
    start: float
    """Events of cost 1 a second; infinite for the top level: no limit until it has to be."""
    chance: Callable[[], float]
    """Draws from 0 to 1, repeatably."""


LawMaker = Callable[[Beginning], RateLaw]

LAWS: Mapping[str, LawMaker] = {
    "aimd": lambda begin: Aimd(begin.settings, start=begin.start),
    "cubic": lambda begin: Cubic(begin.settings, start=begin.start),
    "vegas": lambda begin: Vegas(begin.settings, start=begin.start, chance=begin.chance, is_capped=False),
    "vegas_capped": lambda begin: Vegas(begin.settings, start=begin.start, chance=begin.chance, is_capped=True),
}
"""Those that come with Tidegate."""


def names() -> tuple[str, ...]:
    """Return the names of all laws there are, those that come with Tidegate first."""
    brought = {entry.name for entry in entry_points(group=GROUP)}
    return (*LAWS, *sorted(brought - LAWS.keys()))


def shadowed() -> Mapping[str, str]:
    """Return the laws of packages that are never used, for Tidegate has one of the name: where each is, by name."""
    return {entry.name: entry.value for entry in entry_points(group=GROUP) if entry.name in LAWS}


def find(name: str) -> LawMaker:
    """Return what makes a law of the name. Raises `RateLawError` if there is none, or its package is broken."""
    if name in LAWS:
        return LAWS[name]
    for entry in entry_points(group=GROUP, name=name):
        try:
            make = entry.load()
        except (Exception, SystemExit) as error:  # a package of somebody else's may raise anything
            raise RateLawError(f"{entry.value} can't be loaded: {type(error).__name__}: {error}") from error
        for start in (ClassBudget().start_rate, inf):
            _try(entry.value, make, start)
        return make  # type: ignore[no-any-return]
    raise RateLawError("does not exist")


def _try(place: str, make: Any, start: float) -> None:
    """Make a law to see whether it is one. Raises `RateLawError`."""
    try:
        law = make(Beginning(ClassBudget(), start=start, chance=lambda: 0.5))
    except (Exception, SystemExit) as error:  # likewise
        raise RateLawError(f"{place} makes no law: {type(error).__name__}: {error}") from error
    lacking = [name for name in ("unit", "hears_trips", "rate") if not hasattr(law, name)]
    lacking += [name for name in METHODS if not callable(getattr(law, name, None))]
    if lacking:
        raise RateLawError(f"{place} makes no law: what it returns has no {', '.join(lacking)}")
    if not is_rate(law.rate):
        raise RateLawError(f"{place} makes no law: its rate is {law.rate!r}")
