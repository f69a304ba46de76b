"""The log's adapter: `bridge.event_log.EventLog` over aiokafka, whose sharp edges end here.

event_log ─► reader (polls) · rebalances · what `positions` asks: fetches, group (commits), inquiry
board · notice_topic ─► own_topic (a client of its own) · notes (what is pinned, on the wire)
└► inquiry (topics and ends, over a client of its own) · client (login, outages)
"""

from proxy.kafka_log.board import KafkaBoard
from proxy.kafka_log.event_log import KafkaLog
from proxy.kafka_log.notice_topic import NoticeTopic

__all__ = ["KafkaBoard", "KafkaLog", "NoticeTopic"]
