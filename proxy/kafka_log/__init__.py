"""The log's adapter: `bridge.event_log.EventLog` over aiokafka, whose sharp edges end here.

event_log ─► reader (polls) · rebalances · what `positions` asks: fetches, group (commits), inquiry
└► inquiry (topics and ends, over a client of its own) · client (login, outages)
"""

from proxy.kafka_log.event_log import KafkaLog

__all__ = ["KafkaLog"]
