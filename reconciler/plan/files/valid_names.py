"""Validates names, namespaces and kinds in a file: a dump, a saved plan, a history, kubectl output.

The API server never returns an object that breaks these rules, but anybody can write a file.
"""

from collections.abc import Iterable, Iterator

from reconciler.model.cluster.kinds import RESOURCE_KINDS
from reconciler.model.cluster.observed import Observed
from reconciler.model.desired import Desired
from reconciler.model.parsers import is_namespace, is_object_name, shortened, why_no_object
from reconciler.model.plan.decision import Bind, Decision, Evict, Ref, Ungate
from reconciler.model.plan.inputs import Inputs
from reconciler.plan.check import KINDS, why_not_its_own


def why_invalid(inputs: Inputs) -> str:
    """The first invalid name, as a sentence; empty if all are valid."""
    return next(of_inputs(inputs), "")


def of_inputs(inputs: Inputs) -> Iterator[str]:
    """All invalid names in inputs of a plan, one sentence each."""
    yield from of_observed(inputs.observed)
    yield from of_desired(inputs.desired)
    for hints in inputs.hints.destinations.values():
        for places in hints.values():
            yield from _no_nodes(places)
    if inputs.pressure is not None:
        yield from _no_nodes(each.node for each in inputs.pressure.nodes)


def of_observed(observed: Observed) -> Iterator[str]:
    """Invalid names in a cluster."""
    if not is_namespace(observed.own_namespace):
        yield f"{shortened(observed.own_namespace)} is not a valid namespace"
    for field in _FIELDS:
        kinds = _KINDS_OF[field]
        for each in getattr(observed, field):
            kind = getattr(each, "kind", "") or kinds[0]
            if kind not in kinds and field != "node_classes":  # of these each cloud has its own
                yield f"{shortened(kind)} is not a kind of {field}"
            elif why := why_no_object(kind, each.metadata.namespace, each.metadata.name):
                yield why
    yield from _no_nodes(each.node for each in observed.pods if each.node)
    yield from _no_nodes(each.status.node_name for each in observed.node_claims if each.status.node_name)


def of_desired(desired: Desired) -> Iterator[str]:
    """Invalid names in policies and their rendered objects."""
    for declared in desired.declared:
        if why := why_no_object(declared.kind, "", declared.name):
            yield why
    for manifest in desired.manifests:
        ref = Ref(manifest.kind, manifest.namespace, manifest.name)
        if why := _why_no_ref(ref) or why_not_its_own(ref, manifest.body):
            yield why
    for pod in desired.smart_pods:
        if not is_object_name(pod.pool):
            yield f"{shortened(pod.pool)} is not a valid GpuPool name"


def of_decision(decision: Decision) -> Iterator[str]:
    """Invalid names in a decision, including all names in its action."""
    act = decision.act
    for ref in (*decision.refs, *decision.after, *decision.about):
        if why := _why_no_ref(ref):
            yield why
    if isinstance(act, Bind):
        yield from _no_nodes((act.node,))
        yield from (why for each in act.leases if (why := why_no_object("Lease", "", each.name)))
    if isinstance(act, Ungate) and act.node:
        yield from _no_nodes((act.node,))
    if isinstance(act, Evict):
        yield from (f"{each.ref.title} is not a Pod" for each in act.others if each.ref.kind != "Pod")


def _why_no_ref(ref: Ref) -> str:
    if ref.kind not in KINDS:
        return f"{shortened(ref.kind)} is not a kind that reconciler reads or writes"
    return why_no_object(ref.kind, ref.namespace, ref.name)


def _no_nodes(names: Iterable[str]) -> Iterator[str]:
    return (f"{shortened(each)} is not a valid Node name" for each in names if not is_object_name(each))


_FIELDS = tuple(dict.fromkeys(each.field for each in RESOURCE_KINDS))
_KINDS_OF = {field: tuple(each.kind for each in RESOURCE_KINDS if each.field == field) for field in _FIELDS}
