"""The log's adapter: `bridge.event_log.EventLog` over aiokafka, whose sharp edges end here.

event_log ─► reader (polls) · epoch (rebalances) · group (commits) · shares (start positions, truncation)
├► identity (which log a topic's name stands for)
└► inquiry (topics and ends, over a client of its own) · client (login, outages)
"""

from proxy.kafka_log.event_log import KafkaLog

__all__ = ["KafkaLog"]
