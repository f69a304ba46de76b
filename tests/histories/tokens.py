"""Counts a replica's tokens: what its gates granted and took back against what its event types say they used."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from proxy.app import App
from proxy.settings import Settings
from proxy.steering.policies import Token

_ROUNDING = 1e-6


class Tokens:
    """Of one replica."""

    def __init__(self) -> None:
        self._used = defaultdict[tuple[str, Token], float](float)
        self._doubted = set[tuple[str, Token]]()
        """What was admitted by one gate, or by none, and used after another had come."""

    def use(self, route: str, amounts: Mapping[Token, float]) -> None:
        """Count what is sent of what a throttle of a route admitted."""
        for token, amount in amounts.items():
            self._used[route, token] += amount

    def doubt(self, before: Settings, then: Settings) -> None:
        """Count no more what gates admit that others come for; a gate that stays is held to what it grants.

        Of a policy in shadow events pass the gate after they were sent: those are not counted either.
        """
        for name, route in then.routes.items():
            was = before.routes.get(name)
            if was is None or was.policy != route.policy or was.shadow or route.shadow:
                self._doubted.add((name, "work"))

    def wrong(self, app: App) -> Iterator[str]:
        """Yield what does not add up; meant for when nobody has anything to send."""
        for route, gate, token in app.steering.policies.gates:
            if (route, token) in self._doubted:
                continue
            used = self._used[route, token]
            if abs(gate.taken - used) > _ROUNDING * max(1.0, used):
                yield f"{gate.taken:g} tokens are taken, {used:g} are used"
