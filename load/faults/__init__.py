"""Real faults: three Tidegate replicas between a real Kafka and a real RabbitMQ, one fault after another.

On the command line `python -m load.faults`.

command ─► rounds ─► causes ─► stack, links (network), replicas
              │
              ├─ source ─► Kafka ─► link ─► Tidegate (replicas) ─► link ─► RabbitMQ ─► sink
              │    └──────────────────────► ledgers ◄───────────────────────────────────┘
              └─► verdicts (pure) ─► table, JSON
"""
