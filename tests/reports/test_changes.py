"""Settings that came into force while processes ran: told, and judged by, as of their time."""

import gzip
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proxy.reports.analysis import analyse
from proxy.reports.changes import compared, policies
from proxy.reports.files import log_files
from proxy.reports.findings import findings
from proxy.reports.page import page
from proxy.reports.stored import Stored

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Make = Callable[..., Any]


def told(at_s: float, policy: str = "static", instance: str = "one", **more: Any) -> dict[str, Any]:
    """What is compared: JSON, as Spark gives it."""
    fields = {"routes": {"main": {"policy": policy, "queues": ["work"]}}, "slos": None, "settings": {}} | more
    place = {"run": "run", "at_s": at_s, "instance": instance}
    return place | {name: value if isinstance(value, str) else json.dumps(value) for name, value in fields.items()}


def test_only_what_differs_from_what_the_same_process_told_before_is_a_change() -> None:
    slo = {"P1": {"within_s": 2.0, "share": 0.9, "judges": "bridge"}}
    rows = [
        told(0.0),
        told(0.5, instance="two"),
        told(1.0, "per_type", settings={"routes": {"main": {"policy": "per_type", "shadow": True}}}),
        told(2.0, "per_type", settings={"routes": {"main": {"policy": "per_type", "shadow": True}}}),
        told(3.0, instance="two", slos=slo, settings={"class_budget": {"growth": 0.2}}),
        told(4.0, instance="two", slos=slo, routes={}),
    ]
    assert [(row["at_s"], row["instance"], row["what"], row["before"], row["after"]) for row in compared(rows)] == [
        (1.0, "one", "routes.main.policy", "static", "per_type"),
        (1.0, "one", "routes.main.shadow", None, "true"),
        (3.0, "two", "class_budget.growth", None, "0.2"),
        (3.0, "two", "classes.P1.slo", None, '{"within_s": 2.0, "share": 0.9, "judges": "bridge"}'),
        (4.0, "two", "class_budget.growth", "0.2", None),
        (4.0, "two", "routes.main.policy", "static", None),
        (4.0, "two", "routes.main.queues", "work", None),
    ]


def test_nothing_is_made_of_what_is_none_of_ours() -> None:
    deep = "[" * 100_000
    nested: dict[str, Any] = {"a": 1}
    for _ in range(50):
        nested = {"a": nested}
    rows = [told(0.0), told(1.0, settings="no JSON"), told(2.0, settings=deep), told(3.0, settings="[7]")]
    assert list(compared(rows)) == []
    (row,) = compared([told(0.0), told(1.0, settings=nested)])
    assert row["what"] == "a.a.a.a.a"
    assert list(compared([told(1.0)])) == [], "what was before is not known"


def test_a_route_has_the_policies_it_had_in_their_order_from_the_window_on() -> None:
    rows = list(
        compared(
            [told(-9.0), told(-5.0, "per_type"), told(1.0), told(1.0, "per_type", "two"), told(2.0, "static", "two")]
        )
    )
    assert policies({"main": {"policy": "static"}, "still": {"policy": "static"}}, rows) == {
        "main": ["per_type", "static"],
        "still": ["static"],
    }
    new = list(compared([told(0.0), told(1.0, routes={"new": {"policy": "static", "queues": None}})]))
    assert policies({"main": {"policy": "static"}}, new) == {"main": ["static"], "new": ["static"]}


def test_a_report_says_which_settings_came_into_force_when_and_goes_by_them(
    spark: "SparkSession", record: Make, write: Make, tmp_path: Path
) -> None:
    """A log in which a policy and a target come by a reload: in a table, in a notice, on the page, in the judgement."""
    slo = {"P1": {"within_s": 1.0, "share": 0.5, "judges": "bridge"}}
    plan = {"main": {"policy": "class_budget", "queues": ["work"]}}
    lines = [
        record("start", 1_000),
        record("class", 2_000, confirmed=1, bridge_us={"100": 1}),
        record("verdict", 2_000, congested=True),
        record("settings", 3_000, routes=plan, slos=slo),
        record("class", 4_000, confirmed=1, bridge_us={"100": 1}),
        record("verdict", 4_500, congested=True, cuts=1, threshold_us=None),
        record("stop", 5_000, confirmed=2),
    ]
    runs = {"run": [str(write("log.jsonl", lines))]}
    analysis = analyse(spark, runs, str(tmp_path / "tables"), lambda _: None)
    rows = analysis.tables.rows
    assert [(row["at_s"], row["what"], row["after"]) for row in rows["settings"]] == [
        (2.0, "classes.P1.slo", json.dumps(slo["P1"])),
        (2.0, "routes.main.policy", "class_budget"),
    ]
    assert {row["policy"]: row["slowed"] for row in rows["decisions"]} == {"per_type": 1, "class_budget": 1}
    assert (rows["slo"][0]["scope"], rows["slo"][0]["within_s"]) == ("all", 1.0)
    found = findings(analysis, {}, datetime.now(UTC))
    (notice,) = [text for text in found.notices if "settings that changed meanwhile" in text]
    assert "routes.main.policy per_type -> class_budget" in notice
    shown = page(found)
    assert "main under per_type, then class_budget" in shown
    assert "Settings that came into force" in shown


def test_a_window_goes_by_the_settings_that_came_into_force_before_it_though_those_records_are_too_old_to_be_kept(
    spark: "SparkSession", record: Make, write: Make, tmp_path: Path
) -> None:
    plan, hour = {"main": {"policy": "class_budget", "queues": ["work"]}}, 3_600_000
    early = [record("start"), record("class", 2_000), record("settings", 3_000, routes=plan)]
    late = [record("class", 5 * hour), record("verdict", 5 * hour, congested=True, cuts=1, threshold_us=None)]
    for name, lines in (("early", early), ("late", late)):
        text = "".join(f"{json.dumps(line)}\n" for line in lines)
        write(f"logs/{name}.txt", []).with_name(f"{name}.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    paths = {"run": [str(tmp_path / "logs")]}
    for keep in ([], ["records=1h"]):
        stored = Stored.of(str(tmp_path / "store"), keep, 4 * hour, None, rebuild=False)
        analysis = stored.analyse(
            spark, paths, {"run": log_files(paths["run"])}, str(tmp_path / "tables"), lambda _: None
        )
        assert [row["policy"] for row in analysis.tables.rows["decisions"]] == ["class_budget"]
        assert [(row["what"], row["at_s"] < 0) for row in analysis.tables.rows["settings"]] == [
            ("routes.main.policy", True)
        ]
        found = findings(analysis, {}, datetime.now(UTC))
        assert found.runs[0]["policies"] == {"main": ["class_budget"]}
        assert not any("settings that changed" in text for text in found.notices)


def test_a_log_without_a_change_has_no_table_of_it(
    spark: "SparkSession", record: Make, write: Make, tmp_path: Path
) -> None:
    runs = {"run": [str(write("log.jsonl", [record("start"), record("class")]))]}
    analysis = analyse(spark, runs, str(tmp_path / "tables"), lambda _: None)
    assert "settings" not in analysis.tables.rows
    found = findings(analysis, {}, datetime.now(UTC))
    assert not any("settings" in text for text in found.notices)
    assert found.runs[0]["policies"] == {"main": ["per_type"]}
