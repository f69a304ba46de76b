"""A Nakadi that keeps to the published rules of its subscription API. `README.md` says how to start it.

`event_types`, `reading`, `stream`, `subscription` and `bus` are the rules, without I/O and handed the time; `face`
serves them by HTTP; `mischief` makes that face misbehave by chance; `load` publishes events by itself.
"""
