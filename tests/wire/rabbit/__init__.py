"""A scripted RabbitMQ: what it is and does (`cluster`), its connections, channels and frames. See 0016 in docs/design."""
