"""A cluster that was seen, put into an imagined one.

Of workloads not all is read that their pods need: what their templates lack is taken from a pod that was made of one.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from reconciler.model import names
from reconciler.model.cluster.karpenter import NodeClass
from reconciler.model.cluster.kinds import RESOURCE_KINDS, ResourceKind
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.cluster.workload import Workload
from reconciler.protocol.preconditions import Object
from reconciler.simulate.actors.karpenter.registration import FINALIZER
from reconciler.simulate.bootstrap.owners import UnreadOwners, template_of
from reconciler.simulate.world import World


def put_observed(world: World, observed: Observed) -> None:
    """Every object that was read; what is kept whole comes last, in the place of what was read of it before."""
    owners = UnreadOwners(observed)
    for body in owners.made_up():
        world.put(body)
    done: set[str] = set()
    for resource_kind in RESOURCE_KINDS:
        if resource_kind.field not in done:
            done.add(resource_kind.field)
            for body in _bodies(resource_kind.field, observed, owners):
                world.put(body)


def _bodies(field: str, observed: Observed, owners: UnreadOwners) -> Iterator[Object]:
    sorts = {each.kind: each for each in RESOURCE_KINDS if each.field == field}
    only = next(iter(sorts.values()))
    pods = _pods_by_owner(observed) if field == "workloads" else {}
    for found in getattr(observed, field):
        if isinstance(found, Unstructured):
            yield _whole(found)
            continue
        body = _plain(sorts.get(getattr(found, "kind", ""), only), found)
        if isinstance(found, Workload):
            pod = pods.get((found.kind, found.metadata.namespace, found.metadata.name))
            body = _with_template(body, pod)
        yield owners.with_owner_note(body, found) if isinstance(found, Pod) else body


def _plain(resource_kind: ResourceKind, found: Any) -> Object:
    body: Object = msgspec.to_builtins(found)
    if isinstance(found, NodeClass):
        body.pop("images", None)
    body.setdefault("spec", {})  # as any object has it that there are actors for, though nothing in it was read
    version = resource_kind.version or "v1"
    if resource_kind.kind == "NodeClaim" or (
        resource_kind.kind == "Node" and names.KARPENTER_POOL in body["metadata"].get("labels", {})
    ):
        body["metadata"]["finalizers"] = [FINALIZER]  # nobody reads finalizers, and Karpenter's are always there
    return {
        **body,
        "apiVersion": f"{resource_kind.group}/{version}" if resource_kind.group else version,
        "kind": resource_kind.kind,
    }


def _whole(unstructured: Unstructured) -> Object:
    body: Object = msgspec.to_builtins(unstructured)
    rest: Object = body.pop("rest", {})
    return body | rest


def _pods_by_owner(observed: Observed) -> dict[tuple[str, str, str], Pod]:
    """The first by name of each owner's."""
    pods: dict[tuple[str, str, str], Pod] = {}
    for pod in sorted(observed.pods, key=lambda each: (each.metadata.namespace, each.name)):
        owner = pod.metadata.controller
        if owner is not None:
            pods.setdefault((owner.kind, pod.metadata.namespace, owner.name), pod)
    return pods


def _with_template(body: Object, pod: Pod | None) -> Object:
    spec: Object = body.get("spec") or {}
    template: Object = spec.get("template") or {}
    if pod is None:
        return body
    made = template_of(pod)
    of_template: Object = template.get("spec") or made["spec"]
    return {**body, "spec": {**spec, "template": {**made, "spec": of_template}}}
