"""The production bridge under a virtual clock, against an in-memory log and broker.

`scenario_run` wires it. `rivals` puts published load shedders in the place of its control: `shedding` judges a route by
the rule of `cinnamon` or `dagor`, over the priorities of `cohorts`.
"""
