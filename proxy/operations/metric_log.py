"""What /metrics tells of the metric log: what an alarm can be set on when its disk is full."""

from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from proxy.recording import MetricLog


def metric_log_families(log: MetricLog) -> Iterable[CounterMetricFamily | GaugeMetricFamily]:
    """Yield whether it can write, and what it has lost since the start."""
    yield GaugeMetricFamily("tidegate_metric_log_failing", "1 while records can't be written.", float(log.failing))
    yield CounterMetricFamily("tidegate_metric_records_dropped", "Records of the metric log lost.", log.dropped_records)
