"""What an alarm on the metric log can be set on."""

from types import SimpleNamespace
from typing import Any

from proxy.operations.metric_log import metric_log_families


def test_what_is_lost_and_that_nothing_is_written_are_told_when_a_disk_is_full() -> None:
    log: Any = SimpleNamespace(failing=True, dropped_records=7)
    told = {sample.name: sample.value for family in metric_log_families(log) for sample in family.samples}
    assert told == {"tidegate_metric_log_failing": 1.0, "tidegate_metric_records_dropped_total": 7.0}
