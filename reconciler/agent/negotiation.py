"""The agent's side of asks and permits.

The agent uses at most its last permit. While nobody answers, it goes on deciding within that permit: it gives up what
the pod does not need, and takes back no more than it was permitted.
"""

from collections.abc import Mapping

from reconciler.agent.sizing import Usage, wanted
from reconciler.fleet.pressure.pods import ElasticBounds
from reconciler.model.plan.pressure import Amounts
from reconciler.protocol.asks import NEWEST_VERSION, AskAnswer, AskMessage, PodName, own_amounts, wire_amounts


class Negotiation:
    """Owner of the last permit and of the last compute unit. Amounts are in the units of kube-scheduler."""

    def __init__(self, pod: PodName, bounds: ElasticBounds) -> None:
        self._pod, self._bounds = pod, bounds
        self._unit: Mapping[str, int] = {}
        self._token = ""
        self.permit: Amounts = {}  # empty before the first answer
        self.is_leaving = False

    def ask(self, usage: Usage) -> AskMessage:
        """The next ask."""
        return AskMessage(
            proto_version=NEWEST_VERSION,
            pod=self._pod,
            resources=dict(wire_amounts(wanted(usage, self._bounds, self._unit))),
            compute_unit=dict(wire_amounts(self._unit)) if self._unit else None,
            permit_token=self._token,
            metrics={"loadAvg1M": usage.load_milli / 1_000},
        )

    def take(self, answer: AskAnswer) -> None:
        """A permit."""
        self.permit = {**self.permit, **own_amounts(answer.permit)}
        self._unit, self._token = own_amounts(answer.compute_unit), answer.permit_token
        self.is_leaving = answer.migrate is not None

    def learn_unit(self, compute_unit: Mapping[str, int]) -> None:
        """The ask was refused because its amounts are no multiples of this."""
        self._unit = {**self._unit, **own_amounts(compute_unit)}

    def decide(self, usage: Usage) -> Amounts:
        """What the pod is to have while nobody answers: never more than the last permit, and nothing without one."""
        wants = wanted(usage, self._bounds, self._unit)
        return {name: min(wants[name], amount) for name, amount in self.permit.items() if name in wants}
