"""How long a static member that is put out of its group again and again waits before it joins anew.

Who joins with another's `group_instance_id` puts that one out. Two processes with the same one did so with each
heartbeat, twice a second, and what was sent between two commits came again, sevenfold. A member that was put out only
once or twice may have been away itself, for longer than its session, and joins at once.
"""

AT_ONCE = 2
"""So often it joins anew without a wait."""
LONGEST = 32.0
"""Seconds that it waits at most; before, twice as long from one time to the next, from a second on."""
SETTLED = 60.0
"""Seconds of membership after which earlier ones are forgotten."""


class PutOut:
    """Counts; pure. `now` in seconds."""

    def __init__(self) -> None:
        self.times = 0
        """How often it was put out, soon after it had joined each time."""
        self._joined_at: float | None = None

    def on_joined(self, now: float) -> None:
        """Note that the group has taken it in."""
        self._joined_at = now

    def on_put_out(self, now: float) -> None:
        """Note that the group does not know it any more."""
        if self._joined_at is None:
            return  # known already
        self.times = self.times + 1 if now - self._joined_at < SETTLED else 1
        self._joined_at = None

    @property
    def pause(self) -> float:
        """Seconds to wait before the next join, if it is put out now."""
        beyond = self.times - AT_ONCE - 1
        return 0.0 if beyond < 0 or self._joined_at is not None else min(LONGEST, 2.0**beyond)

    @property
    def why(self) -> str:
        """What this says of the settings."""
        return f"put out of the group {self.times} times; does another process use this log.group_instance_id?"
