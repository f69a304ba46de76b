"""The data's path, in the order an event takes it.

    event_log ─► pump ─► inbox ─► listener ─► throttle ─► broker (lane)
                  ▲ pause / resume   (one per event type)     │ outcomes
                  └── committer ◄── offsets (watermark) ◄─────┘

Nothing here knows Kafka or AMQP: the adapters implement `event_log.EventLog` and `broker.Lane`, and the simulation
implements them in memory.
"""
