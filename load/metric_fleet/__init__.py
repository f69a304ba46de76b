"""Metric logs of whole fleets, and the truth about them: `python -m load.metric_fleet OUT`.

A report that is tested on what the bridge wrote is tested against itself. Here a plain model of a fleet makes the log:
what comes, who owns what, when a route is congested, what became of each position. It shares nothing with the bridge,
the simulator and the reports but the declaration of the records and the layout of the buckets, and writes beside the
logs what really was.

`OUT/logs` is what is there at once, `OUT/late` files that come later, `OUT/again` copies of files under their own
names. In Python: `truth = make(folder, Plan(minutes=10, faults=faults(["all"])))`, with `Plan.events` for producers and
consumers. A plan makes the same bytes each time; `--help` tells all options and faults.

`OUT/truth.json`, instants in ms since 1970 by the true clock (`processes[].skew_ms` says whose clock is how far off):

- `records`: readable records by kind, each file once, without producers' and consumers'. `rejected`: lines by reason.
  `files`: the same by file, with the folders that it lies in. `processes`: lives with their ending (`stopped`,
  `killed`, `zombie`, `running`), what each confirmed by class, and when a lossy one lost everything.
- `by_class`, `by_type`, `by_route`: the sums of what is recorded each second, of types every ten; `publish`, `bridge`
  are exact percentiles of the raw latencies, by nearest rank, null for types from the 33rd on. What a kill or a lossy
  log took is not in it, as no report can know it.
- `slos`: of each class what is promised of it, the routes that serve it, and `minutes` of `[begin, judged, missed]`, by
  raw times; bridge times count in the minute in which their record ends, consumed times in that of the consumption, an
  event that never came in its own. Those of the consumed time are empty without `Plan.events`.
- `episodes`: from, to, cause, ruling queue and its delay, the `stretches` in which the route was said to be congested
  (several under steady control: one episode), cuts as recorded by all replicas, how often these decided to slow down
  (`slowed`; `is_empty`: in front of an empty queue), how many stretches they judged, whether a rate grew when it began
  (`after_growth`); by class the cuts of each replica, the
  share that was left of its rate, the backlog at the end and when it was drained. Verdicts are late by less than
  `within_ms`. Episodes of a route are a minute apart or more, stretches of one episode less than 2 s. `blind`:
  likewise.
- `scaled`: when a route had other consumers, how many and their drain rate, before and after.
- `oldest_s`: how far behind each type ever was. `stuck`: when an event type got nothing done, though there was some.
- `incidents`: as they were recorded.
- `partitions`: of each topic_id and partition `ranges` of `[first, end, outcome]` without gap or overlap, from where
  the group began to the end of the log: `delivered`, `dead_lettered:REASON`, `expired`, `discarded`, `skipped`,
  `truncated`, `absent`, `unrecorded`, `in_log`; where several are true, the first of these that is. So what was a dead
  letter and was redriven, or read again, is delivered. `positions` are the sums. The log does not tell where in a
  committed range the absent stand: a ledger is compared with the ranges after `absent` has been taken for its
  neighbour, and with the sums as they are. Of more than 50 ranges of dead letters in a record it tells the number only:
  `letters_untold`, by type. Types of version 1 (`old.*`) have no ledger.
- `conflicts`: ranges that two processes say they were done with.
- `proof`: by class and type produced, delivered, missing, duplicated, and the percentiles of the consumed time.
"""

from load.metric_fleet.make import make
from load.metric_fleet.plan import Fault, FleetError, Plan, faults

__all__ = ["Fault", "FleetError", "Plan", "faults", "make"]
