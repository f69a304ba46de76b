"""The broker's adapter: the lanes of all routes, their topology, and the monitor of their queues."""

from proxy.rabbitmq.broker import RabbitBroker

__all__ = ["RabbitBroker"]
