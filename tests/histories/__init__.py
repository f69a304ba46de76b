"""Fault histories: the production bridge, several replicas of it, a log and a broker in memory, and what befalls them.

    plan ─► history ─► replica (the production App) ─► memory log, memory broker
              │ hands (does the faults)      │
              └────── checks ◄── witness ◄───┘  (sees every fetch, write, store, outcome and commit)

One seed is one history, the same every time. `command` runs many of them, `shrink` finds the faults that matter.
"""
