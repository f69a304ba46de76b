"""Metric records on disk: JSON Lines, bounded, rotated, compressed; never in the data's way."""

from proxy.metric_log.log import MetricLog

__all__ = ["MetricLog"]
