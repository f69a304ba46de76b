"""A scripted RabbitMQ: what it is does (`cluster`), connections, channels and frames. See 0016 in docs/design."""
