"""Makes a failing history shorter: delta debugging over its faults (Zeller and Hildebrandt, 2002, "ddmin")."""

from collections.abc import Callable, Sequence


def smallest(numbers: Sequence[int], fails: Callable[[frozenset[int]], bool]) -> frozenset[int]:
    """Return a part of `numbers` that still fails and none of whose numbers can be left out; all of them must fail."""
    kept = list(numbers)
    parts = 2
    while len(kept) > 1:
        size = -(-len(kept) // parts)
        pieces = [kept[at : at + size] for at in range(0, len(kept), size)]
        rest = next((left for piece in pieces if fails(frozenset(left := _without(kept, piece)))), None)
        if rest is not None:
            kept, parts = rest, max(2, parts - 1)
        elif size == 1:
            return frozenset(kept)
        else:
            parts = min(len(kept), 2 * parts)
    return frozenset() if kept and fails(frozenset()) else frozenset(kept)


def _without(numbers: Sequence[int], piece: Sequence[int]) -> list[int]:
    return [number for number in numbers if number not in piece]
