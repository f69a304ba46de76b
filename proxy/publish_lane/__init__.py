"""Confirmed publishing in batches: `bridge.broker.Lane` over one AMQP connection.

lane (waits, state) ─► line (who is next, window) ─► session (writes) ─► frames ─► wire: connection (aio-pika)
outcomes ◄─ ledger (open tags) ◄─ confirms and returns      quarantine (who closed the channel)
"""

from proxy.publish_lane.lane import PublishLane

__all__ = ["PublishLane"]
