"""The control loop's hands: what reads queues and replicas, and what holds events back.

`depths`, `insights` and `other_replicas` read; `route_control` turns each route's law (pure, in `congestion`) with
what they read, and sets its gate; throttles of `budgeted` ask the gate. `policies` makes what a route needs,
`steering` all of it.
"""
