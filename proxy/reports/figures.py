"""How numbers are written for people."""

from typing import Any

_ROUNDS_TO_A_SECOND = 999.5


def count(value: int | None) -> str:
    """Write a whole number, `12,345`; a dash where it is not known."""
    return "–" if value is None else f"{value:,}"  # noqa: RUF001 - the dash is meant


def milliseconds(value: float | None) -> str:
    """Write a duration given in milliseconds with three digits and the unit that suits it."""
    if value is None:
        return "–"  # noqa: RUF001 - the dash is meant
    if abs(value) < _ROUNDS_TO_A_SECOND:
        return f"{_three_digits(value)} ms"
    if abs(value) < 100 * _ROUNDS_TO_A_SECOND:
        return f"{_three_digits(value / 1_000)} s"
    return f"{value / 1_000:,.0f} s"


def tick(value: float) -> str:
    """Write a round duration given in milliseconds, as on an axis."""
    return f"{value:g} ms" if value < _ROUNDS_TO_A_SECOND else f"{value / 1_000:g} s"


def seconds(value: float | None) -> str:
    """Write a duration or instant given in seconds."""
    return "–" if value is None else f"{value:,.1f} s"  # noqa: RUF001 - the dash is meant


def plain(value: Any) -> str:
    """Write anything else."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return count(value) if isinstance(value, int) or value is None else str(value)


def _three_digits(value: float) -> str:
    return f"{value:#.3g}".removesuffix(".")
