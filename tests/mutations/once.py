"""A profile of Hypothesis: a property that fails is made no smaller, and tries the same cases each time."""

from hypothesis import Phase, settings

settings.register_profile(
    "once", phases=(Phase.explicit, Phase.generate), deadline=None, derandomize=True, database=None
)
