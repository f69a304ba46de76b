"""The scenarios of `tidegate simulate` on a real Kafka and a real RabbitMQ, one policy beside the other.

On the command line `python -m load.control`.

command ─► comparison ─► run ─► offer, generator ─► Kafka ─► Tidegate (replicas) ─► RabbitMQ ─► services (hands)
                          │ happenings, relay                                            └─► record ─► figures
                          └─► judged by the scenario itself ─► table, pictures, page, JSON
"""
