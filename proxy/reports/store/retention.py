"""Removes what is older than it should be kept: a store that only grows is full one day."""

import time
from dataclasses import replace

from proxy.reports.retained import Keep
from proxy.reports.store.shelf import LASTING, Shelf


def remove_old(shelf: Shelf, keep: Keep) -> None:
    """Remove the records of batches, and the facts, that are wholly older than they are to be kept.

    A record from the future, of a process whose clock is ahead, does not make the others old. Facts of a merged batch
    are removed when all of it is old. What a batch says of itself stays: its files are not taken again.
    """
    batches = shelf.batches()
    newest = min(max((batch.last_ms for batch in batches), default=0), round(1000 * time.time()))
    for batch in batches:
        old = keep.records_ms is not None and batch.last_ms < newest - keep.records_ms
        if batch.kinds and (old or not batch.has_records):
            if batch.has_records:
                shelf.put(replace(batch, has_records=False))
            for entry in shelf.places.entries(shelf.records(batch.name)):
                if entry.is_folder and entry.place.rsplit("/", 1)[-1] not in LASTING:
                    shelf.places.delete(entry.place)
    if keep.facts_ms is None:
        return
    ends = {batch.name: batch.last_ms for batch in batches}
    for batch in batches:
        last_ms = max([batch.last_ms, *(ends.get(name, 0) for name in batch.merged)])
        if batch.facts and last_ms < newest - keep.facts_ms:
            shelf.put(replace(batch, facts=()))
            shelf.places.delete(shelf.facts(batch.name))
