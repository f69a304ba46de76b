"""The log if it is Nakadi: HTTP streams, cursors committed a batch at a time, no pause.

event_log ─┬► reader (one event type: stream after stream) ─► session, window, lines, offsets (pure)
           ├► commits · endings (partitions given up, each with its last commit)
           ├► counts · event_types (what it tells of itself)
           └► bus (HTTP), reach, words
"""

from proxy.nakadi_log.event_log import NakadiLog

__all__ = ["NakadiLog"]
