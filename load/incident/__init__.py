"""An incident on real brokers and three replicas, and whoever is on duty: `python -m load.incident`.

A campaign floods, the consumers become slow, the log is about to drop the campaign, alerts have lost their queue. Duty
looks at `tidegate top` and at the page's API, pauses the campaign, passes over what is left of it, lets go what comes
after it, and sends the alerts' dead letters again. Every event is accounted for, by what came and by what was recorded.
"""

from load.incident.play import Ended, play

__all__ = ["Ended", "play"]
