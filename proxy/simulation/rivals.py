"""Policies of the simulator alone: published load shedders in the place of `class_budget` (docs/design/0028-rivals.md).

Nobody can set them in production: the settings know nothing of them.
"""

from collections.abc import Callable, Mapping, Sequence
from math import inf

from proxy.congestion.class_budget import RouteBudget
from proxy.simulation.cinnamon import Cinnamon
from proxy.simulation.dagor import Dagor
from proxy.simulation.scenario import Scenario
from proxy.simulation.shedding import Rule, Shedder
from proxy.steering.route_control import Judge, Judging

RIVALS: Mapping[str, Callable[[Sequence[float]], Rule]] = {"cinnamon": Cinnamon, "dagor": Dagor}
"""By name, what makes a rule that begins with a rate for each class."""

STANDS_FOR = "class_budget"
"""The policy that the settings of a rival's run name: all that is read and waited for is as under it."""


def judging(scenario: Scenario, policy: str) -> Judging:
    """Return what judges each route: a rival if that is the policy, but for routes with a policy of their own."""

    def judge(route: str, budget: RouteBudget) -> Judge:
        if policy not in RIVALS or scenario.routes[route].policy is not None:
            return budget
        # Nobody has asked yet, and every backlog would be admitted at once: the classes below the top begin as ever.
        return Shedder(budget, RIVALS[policy]((inf, *budget.rates[1:])))

    return judge
