"""Makes one batch's facts of many, and hours and days of minutes: else a month has a thousand small files to open.

Size-tiered, as log-structured stores merge (O'Neil et al. 1996, The Log-Structured Merge-Tree): `TOGETHER` batches of a
level become one of the next level, so a fact is written anew as often as there are levels.
"""

import hashlib
from collections.abc import Callable, Sequence
from functools import partial

from proxy.reports.facts import FACTS, by_grain
from proxy.reports.store.shelf import GRAINS_MS, MINUTE, Batch, Shelf, whole
from proxy.reports.together import together

TOGETHER = 24
"""So many batches of a level are merged: a day's hours."""


def merge(shelf: Shelf, run: str, say: Callable[[str], None]) -> None:
    """Merge the facts of a run's batches until no level has so many left.

    Killed anywhere it changes nothing: the new batch counts when its manifest is there, and the old ones' facts are
    removed after that.
    """
    while True:
        batches = [batch for batch in shelf.batches() if batch.run == run]
        _sweep(shelf, batches)
        levels: dict[int, list[Batch]] = {}
        for batch in whole(batches):
            levels.setdefault(batch.level, []).append(batch)
        full = next((some for _, some in sorted(levels.items()) if len(some) >= TOGETHER), None)
        if full is None:
            return
        _merge(shelf, full, say)


def _merge(shelf: Shelf, batches: Sequence[Batch], say: Callable[[str], None]) -> None:
    names = sorted(batch.name for batch in batches)
    name = "merged-" + hashlib.sha256("\0".join(names).encode()).hexdigest()[:12]
    say(f"merging the facts of {len(batches)} batches")
    facts = sorted({fact for batch in batches for fact in batch.facts})

    def write(fact: str, grain: str) -> None:
        rows = shelf.read_fact(fact, batches, MINUTE)
        shelf.write_fact(by_grain(fact, rows, GRAINS_MS[grain]), name, grain, fact)

    together(partial(write, fact, grain) for fact in FACTS if fact in facts for grain in GRAINS_MS)
    run, level = batches[0].run, batches[0].level + 1
    shelf.put(Batch(name, run, facts=facts, merged=names, level=level, has_records=False))
    _sweep(shelf, [*batches, Batch(name, run, merged=names)])


def _sweep(shelf: Shelf, batches: Sequence[Batch]) -> None:
    """Remove the facts of batches that are merged in another."""
    kept = {batch.name for batch in whole(batches)}
    for batch in batches:
        if batch.name not in kept and batch.facts:
            shelf.places.delete(shelf.facts(batch.name))
