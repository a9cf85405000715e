"""Pods that start together or not at all: those whose GpuClaims share a gangRef."""

from collections.abc import Iterable, Mapping

from reconciler.model.cluster.bounds import gpu_claims
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod

Gang = tuple[str, str]  # namespace and gangRef


def title_of(gang: Gang) -> str:
    """team-a/llama."""
    return "/".join(gang)


class GangIndex:
    """By the GpuClaims as they were seen."""

    def __init__(self, observed: Observed) -> None:
        self._of_claim: Mapping[tuple[str, str], str] = {
            (each.metadata.namespace, each.name): str(each.spec["gangRef"])
            for each in gpu_claims(observed.policies)
            if each.spec.get("gangRef")
        }

    @property
    def are_any(self) -> bool:
        return bool(self._of_claim)

    def of(self, pod: Pod) -> Gang | None:
        """None where it is of none."""
        claim = pod.metadata.annotations.claim
        gang = self._of_claim.get((pod.metadata.namespace, claim)) if claim else None
        return (pod.metadata.namespace, gang) if gang else None

    def broken_by(self, left: Iterable[Pod]) -> frozenset[Gang]:
        """The gangs that can't start if these pods can't."""
        return frozenset(gang for pod in left if (gang := self.of(pod)) is not None)
