"""What the congestion detector said, with all that it saw, so that every decision can be computed again."""

from typing import Annotated, ClassVar

from proxy.records.declaration import Record


class Verdict(Record):
    """Of a route: each report of the statistics collector; under `class_budget` when it says something new or cut."""

    KIND: ClassVar[str] = "verdict"

    route: Annotated[str, "that was judged"]
    congested: Annotated[bool | None, "null: nothing said"]
    cause: Annotated[str, "see below"]
    p50_us: Annotated[float | None, "publish latency seen; under `class_budget` in the last statistics interval"]
    errors: Annotated[int, "publications nacked or unknown; under `class_budget` since the last recorded verdict"]
    samples: Annotated[int, "outcomes seen; likewise"]
    threshold_us: Annotated[float | None, "that `p50_us` was compared with"] = None
    threshold_errors: Annotated[float | None, "that `errors` was compared with"] = None
    min_samples: Annotated[int | None, "below which nothing is said"] = None
    cuts: Annotated[int | None, "levels whose rate this verdict cut"] = None
    hot: Annotated[list[str] | None, "classes whose level is over its threshold"] = None
    queue_delay_us: Annotated[int | None, "an estimate; null if not known or without end"] = None
    drain_rate: Annotated[float | None, "events of cost 1 a second that the consumers take from all replicas"] = None
    depth: Annotated[int | None, "messages ready in the route's queues"] = None
    depth_cost: Annotated[float | None, "what these cost, an estimate; null where every event costs 1"] = None
    rates: Annotated[
        dict[str, float] | None,
        "for each class the events of cost 1 a second that it and those above it may send from this replica; without a "
        "limit, none",
    ] = None
    ruled_by: Annotated[str | None, "queue that this rests on; null: all of the route's together"] = None
    queues: Annotated[
        dict[str, int | None] | None, "each queue's delay in µs where they are judged one by one; null if not known"
    ] = None
    unbound: Annotated[
        dict[str, str] | None,
        "queues that are not `active`: `linger`, `resting` (not counted), `absent` (no consumers)",
    ] = None
