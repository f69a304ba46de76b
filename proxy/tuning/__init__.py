"""`tidegate tune`: the load of recorded metric logs, simulated under other policies, laws and settings.

The one place that knows Spark and the simulator. `recorded` reads records by Spark · `arrivals` and `intake` make of
them what came and what the consumers could take · `rebuilt` makes a scenario of both · `measured` says what the bridge
saw, in a recording as in a replay · `grid` what is tried · `goals` which is best · `runs` one run, `spread` all of them
by Spark · `findings` and `command` what people see. Only `recorded` and `spread` meet Spark.
"""
