"""Codes of resizes of elastic pods."""

from reconciler.model.plan.decision import CodeFacts, Ref


class OfElasticPod(CodeFacts, frozen=True):
    """Base of the codes about an elastic pod on a node. Without a template, the class is no code."""

    pod: Ref
    node: str


class PodResized(OfElasticPod, frozen=True):
    template = "{pod} is resized in place to what its agent is permitted on Node/{node}."

    resources: tuple[tuple[str, int], ...]  # of the first container, in thousandths


class ResizePending(OfElasticPod, frozen=True):
    template = "{pod} waits to be resized on Node/{node}: the kubelet says {why}."

    why: str  # the reason of the condition PodResizePending: Deferred or Infeasible


class PermitBelowOthers(OfElasticPod, frozen=True):
    template = (
        "{pod} is not resized: the permit for {resource} leaves nothing for the first container beside the others."
    )
    by_person = True

    resource: str
