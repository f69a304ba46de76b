"""What happened, for those who ask later: records, the tallies they come from, and the log that holds them on disk.

Records are JSON Lines, bounded, rotated, compressed; never in the data's way.
"""

from proxy.recording.metric_log import MetricLog

__all__ = ["MetricLog"]
