"""Tidegate: events from Kafka to RabbitMQ, no faster than what stands behind RabbitMQ can take."""
