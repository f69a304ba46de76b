"""The store: records and facts of all batches so far, in a folder or an object store (docs/design/0031).

```
STORE/store.json                     the version of all that is here
STORE/store.lock                     names the report that has it, or had it last
STORE/locks/NUMBER                   likewise, of a store at an address
STORE/batches/BATCH.json             what a batch has: written last, so a batch without it is none
STORE/records/BATCH/KIND/            its records, as `records.parsed` gives them
STORE/facts/BATCH/GRAIN/FACT/        its facts, merged by minute; of a merged batch by hour and day, too
STORE/checkpoints/STREAM/            which files Structured Streaming has taken
```

`stream` takes new files in, `merging` makes one batch's facts of many, `retention` removes what is too old, `opened`
gives the layers of a report. `lock` lets one report in at a time, at an address by `lease`.
"""

from proxy.reports.store.merging import merge
from proxy.reports.store.opened import opened
from proxy.reports.store.retention import remove_old
from proxy.reports.store.shelf import Shelf
from proxy.reports.store.stream import take_new

__all__ = ["Shelf", "merge", "opened", "remove_old", "take_new"]
