"""The broker's adapter: the lanes of all routes, their topology, and the monitor of their queues."""

from proxy.rabbit_broker.broker import RabbitBroker

__all__ = ["RabbitBroker"]
