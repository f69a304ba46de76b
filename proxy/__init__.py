"""Tidegate: events from Kafka to RabbitMQ, no faster than what stands behind RabbitMQ can take."""

__version__ = "0.1.0"
