"""What became of each segment, and neighbours of one fate joined: the ledger, and what contradicts itself in it.

Of the claims on a segment one decides, in a fixed order, whatever the clocks said: what was delivered stays delivered.
Where a claim counts fewer events than it has positions it is not known which are absent: then rows share `first` and
`end`, and each says how many of the positions between them it is about.
"""

from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from proxy.reports.ledger.claims import KEY, Told, claims
from proxy.reports.ledger.segments import segments

DELIVERED, DEAD_LETTERED, EXPIRED = "delivered", "dead_lettered", "expired"
DISCARDED, SKIPPED, TRUNCATED, ABSENT = "discarded", "skipped", "truncated", "absent"
UNRECORDED = "unrecorded"
"""Committed, says a later record, and the record of it is missing: never called lost."""
PASSED_OVER = "passed_over"
"""Nobody committed it, and reading went on behind it: the log had dropped it, or the start was set to its end."""
DELETED = "deleted"
"""Not done with when the topic was deleted and made anew."""
IN_LOG = "in_log"
OUTCOMES = (
    DELIVERED,
    DEAD_LETTERED,
    EXPIRED,
    SKIPPED,
    DISCARDED,
    ABSENT,
    UNRECORDED,
    IN_LOG,
    TRUNCATED,
    PASSED_OVER,
    DELETED,
)
LOST = (TRUNCATED, PASSED_OVER, DELETED)
"""What nobody has, and nobody decided that it should be so."""

OVERLAP = "overlap"
"""Committed by more than one epoch, without a rewind: its events may have been delivered twice."""
REPEATED = "repeated"
"""More events are counted in it than it has positions: so many were read, and perhaps delivered, twice."""
WENT_BACK = "went_back"
"""An epoch began at `first` although another had committed more: what is behind comes again."""
GAP = "gap"
"""Positions that are `passed_over`."""
GONE = "deleted"
"""Positions that are `deleted`."""

_PARTS = (
    "array<struct<is_finding:boolean,name:string,reason:string,is_exact:boolean,"
    "first:bigint,end:bigint,positions:bigint,instances:array<string>>>"
)
_FATE = (*KEY, "is_finding", "name", "reason", "is_exact")


def accounts(told: Told) -> DataFrame:
    """Return ledger and findings as one table, as both come from one pass; see `ledger_rows`, `finding_rows`."""
    return _joined(_parts(_decided(segments(claims(told)))))


def ledger_rows(found: DataFrame) -> DataFrame:
    """Return the ledger: `KEY`, first, end, outcome, reason (of dead letters), positions.

    `positions` are all from `first` to `end - 1`, or so many of these; over all rows each position counts once.
    """
    return found.where(~fn.col("is_finding")).select(
        *KEY, "first", "end", fn.col("name").alias("outcome"), "reason", "positions"
    )


def finding_rows(found: DataFrame) -> DataFrame:
    """Return what contradicts itself or is missing: `KEY`, first, end, finding, positions, instances concerned."""
    return found.where("is_finding").select(
        *KEY,
        "first",
        "end",
        fn.col("name").alias("finding"),
        "positions",
        fn.concat_ws(", ", "instances").alias("instances"),
    )


def by_topic(found: DataFrame) -> DataFrame:
    """Return how many positions of each topic met which end."""
    of_topic = ("run", "group", "topic", "outcome", "reason")
    return ledger_rows(found).groupBy(*of_topic).agg(fn.sum("positions").alias("positions"))


def _decided(laid: DataFrame) -> DataFrame:
    """Say which claim decides each segment, what came of its events, and how many there are in all of its segments."""
    letter, read, skip, discard = fn.col("letter"), fn.col("read"), fn.col("skip"), fn.col("discard")
    is_skipped = skip.isNotNull() & (fn.col("n_skip") > fn.col("n_rewind"))
    order = (
        ("sure", ((fn.col("n_read") > 1) & (fn.col("sure") > 0)) | (fn.col("n_redrive") > 0)),
        ("letter", letter["is_full"]),
        ("discard", discard.isNotNull()),
        ("skip", is_skipped),
        ("truncated", fn.col("n_truncated") > 0),
        ("letter", letter.isNotNull()),
        ("read", read.isNotNull()),
    )
    claim = reduce(lambda chain, one: chain.when(one[1], one[0]), order[1:], fn.when(order[0][1], order[0][0]))
    of_letter = fn.when(letter["is_redriven"], DELIVERED).when(letter["reason"] == EXPIRED, EXPIRED)
    unclaimed = (
        fn.when(fn.col("is_done") & fn.col("is_jumped"), PASSED_OVER)
        .when(fn.col("is_done"), UNRECORDED)
        .when(fn.col("is_current"), IN_LOG)
        .otherwise(DELETED)
    )
    owned = {"letter": letter, "discard": discard, "skip": skip, "read": read}
    owner = reduce(
        lambda chain, item: fn.when(fn.col("claim") == item[0], item[1]).otherwise(chain), owned.items(), fn.lit(None)
    )
    is_sure = fn.col("claim").eqNullSafe("sure")
    # Of a range that shares positions with one that is sure of them, its own events there are no others.
    is_shared = is_sure & (fn.col("n_read") > 1) & letter.isNull() & discard.isNull()
    is_shared &= (fn.col("n_skip") == 0) & (fn.col("n_truncated") == 0)
    of_claim = Window.partitionBy(*KEY, "deciding", "start")
    return (
        laid.withColumn("claim", claim)
        .withColumn("owner", owner)
        .withColumns(
            {
                "deciding": fn.when(is_sure, "read").otherwise(fn.col("claim")),
                "start": fn.coalesce(fn.when(is_sure, read["start"]), "owner.start", "first"),
                "positions": fn.col("end") - fn.col("first"),
                "outcome": fn.when(fn.col("claim").isin("sure", "read"), DELIVERED)
                .when(fn.col("claim") == "letter", fn.coalesce(of_letter, fn.lit(DEAD_LETTERED)))
                .when(fn.col("claim") == "discard", DISCARDED)
                .when(fn.col("claim") == "skip", SKIPPED)
                .when(fn.col("claim") == "truncated", TRUNCATED)
                .otherwise(unclaimed),
            }
        )
        .withColumn("reason", fn.when(fn.col("outcome") == DEAD_LETTERED, fn.col("owner.reason")))
        .withColumns(
            {
                "of_claim": fn.sum(fn.when(~is_sure, fn.col("positions"))).over(of_claim),
                "shared": fn.sum(fn.when(is_shared, fn.col("positions")).otherwise(0)).over(of_claim),
                "lowest": fn.min(fn.when(~is_sure, fn.col("first"))).over(of_claim),
                "highest": fn.max(fn.when(~is_sure, fn.col("end"))).over(of_claim),
            }
        )
        .withColumn(
            "events",
            fn.least(
                fn.when(
                    fn.col("owner.count").isNotNull(), fn.greatest(fn.col("owner.count") - fn.col("shared"), fn.lit(0))
                ),
                "of_claim",
            ),
        )
    )


def _parts(decided: DataFrame) -> DataFrame:
    """Return the rows that each segment gives, ledger and findings."""
    return decided.select(*KEY, fn.explode(fn.concat(_of_ledger(), _of_findings())).alias("part")).select(
        *KEY, "part.*"
    )


def _of_ledger() -> Column:
    """Return a segment's own row; of a claim that has fewer events than positions, its rows with its first segment."""
    none = fn.array().cast("array<struct<key:string,value:bigint>>")
    told = fn.coalesce(fn.when(fn.col("claim") == "read", fn.col("owner.elsewhere")), none)
    count = fn.aggregate(told, fn.lit(0).cast("long"), lambda total, one: total + one["value"])
    # What was read twice, and counted here alone, may leave too little room for its dead letters.
    letters = fn.least(count, fn.col("of_claim"))
    whole = fn.array(fn.struct(fn.lit(None).cast("string").alias("key"), fn.col("of_claim").alias("value")))
    events = fn.least("events", fn.col("of_claim") - letters)
    shared = fn.concat(
        fn.array(
            _part("outcome", "reason", events),
            _part(fn.lit(ABSENT), fn.lit(None), fn.col("of_claim") - letters - events),
        ),
        fn.transform(
            fn.when(count <= fn.col("of_claim"), told).otherwise(whole),
            lambda one: _part(
                fn.when(one["key"] == EXPIRED, EXPIRED).otherwise(DEAD_LETTERED),
                fn.when(one["key"] != EXPIRED, one["key"]),
                one["value"],
            ),
        ),
    )
    is_exact = fn.col("claim").eqNullSafe("sure") | ((fn.col("events") == fn.col("of_claim")) & (count == 0))
    rows = (
        fn.when(is_exact, fn.array(_part("outcome", "reason", fn.col("positions"), "first", "end", exact=True)))
        .when(fn.col("first") == fn.col("lowest"), shared)
        .otherwise(fn.array().cast(_PARTS))
    )
    return fn.filter(rows, lambda one: one["positions"] > 0)


def _of_findings() -> Column:
    """Return what a segment shows that should not be; most show nothing."""
    extra = fn.col("n_read") - 1 - fn.col("n_rewind")
    first_of_range = fn.col("read.start") == fn.col("first")
    found = (
        (OVERLAP, extra > 0, "positions", "end", fn.array("read.instance", "latest")),
        (WENT_BACK, fn.col("is_behind") & (fn.col("n_read") == 1), "positions", "end", fn.array("read.instance")),
        (
            REPEATED,
            first_of_range & (fn.col("read.repeated") > 0),
            "read.repeated",
            "read.end",
            fn.array("read.instance"),
        ),
        (GAP, fn.col("outcome") == PASSED_OVER, "positions", "end", fn.array()),
        (GONE, fn.col("outcome") == DELETED, "positions", "end", fn.array()),
    )
    return fn.filter(
        fn.array(
            *[
                fn.when(
                    condition,
                    _part(fn.lit(name), fn.lit(None), fn.col(positions), "first", end, instances, is_finding=True),
                )
                for name, condition, positions, end, instances in found
            ]
        ),
        lambda one: one.isNotNull(),
    )


def _part(
    name: Column | str,
    reason: Column | str,
    positions: Column,
    first: str = "lowest",
    end: str = "highest",
    instances: Column | None = None,
    *,
    exact: bool = False,
    is_finding: bool = False,
) -> Column:
    values = {
        "is_finding": fn.lit(is_finding),
        "name": fn.col(name) if isinstance(name, str) else name,
        "reason": (fn.col(reason) if isinstance(reason, str) else reason).cast("string"),
        "is_exact": fn.lit(exact),
        "first": fn.col(first),
        "end": fn.col(end),
        "positions": positions.cast("long"),
        "instances": (fn.array() if instances is None else instances).cast("array<string>"),
    }
    return fn.struct(*[value.alias(name) for name, value in values.items()])


def _joined(parts: DataFrame) -> DataFrame:
    """Join rows of one fate that touch or overlap."""
    in_order = Window.partitionBy(*_FATE).orderBy("first", "end")
    before = fn.max("end").over(in_order.rowsBetween(Window.unboundedPreceding, -1))
    is_new = fn.coalesce(fn.col("first") > before, fn.lit(col=True))
    stretches = parts.withColumn("is_new", is_new).withColumn("stretch", fn.count_if("is_new").over(in_order))
    return (
        stretches.groupBy(*_FATE, "stretch")
        .agg(
            fn.min("first").alias("first"),
            fn.max("end").alias("end"),
            fn.sum("positions").alias("positions"),
            fn.array_sort(fn.array_distinct(fn.flatten(fn.collect_set("instances")))).alias("instances"),
        )
        .drop("stretch", "is_exact")
    )
