"""Renders and checks smart pods: one render request per pool and instance type.

When a smart pod is created, its name, resource requests and node affinity are filled in. The template must therefore
set the expected placeholders, the labels that identify smart pods, and only fields that smart pods may have: authors of
templates get no rights on nodes and none of the controller's rights.
"""

from collections.abc import Iterator, Sequence

import msgspec

from reconciler.model import names
from reconciler.model.bundle import Rendering, RenderRequest
from reconciler.model.desired import Desired, SmartPod
from reconciler.model.manifest_rules import RESERVED_NAMESPACES, SMART_POD, SMART_PODS, YIELDED, faults
from reconciler.model.problem import Origin, Problem
from reconciler.policy.manifests.check import Yielded, manifests_of, origin, problem_at
from reconciler.policy.manifests.kubernetes_schema import Violation
from reconciler.policy.manifests.pool_values import values_of_pod
from reconciler.policy.manifests.render import RenderOrder, problem_for_pool
from reconciler.policy.tree import Path

NO_SMART_POD, TOO_MUCH = "RC415", "RC416"
_TEMPLATE = "spec.smartPods.template"
_REMEDY = "write it as in the default template, smart_pod.yaml.j2"
_CONTAINERS: Path = ("spec", "containers")
_NAMESPACE: Path = ("metadata", "namespace")


class PodOrder(RenderOrder, frozen=True):
    """A render order for one instance type."""

    instance_type: str

    @property
    def template_field(self) -> str:
        return _TEMPLATE


def pod_orders(wish: Desired) -> tuple[PodOrder, ...]:
    """The render orders of a Desired, by pool and instance type."""
    return tuple(
        PodOrder(pool, RenderRequest(pool.spec.smart_pods.template, values), instance.name)
        for pool in wish.pools
        for instance in pool.spec.instance_types
        for values in [values_of_pod(pool.name, pool.spec, instance)]
    )


def smart_pods(
    wish: Desired, answers: Sequence[tuple[PodOrder, Rendering]]
) -> tuple[tuple[SmartPod, ...], list[Problem]]:
    """The smart pods of a Desired, in the order of their render orders, and all their problems."""
    found: list[SmartPod] = []
    problems: list[Problem] = []
    for order, rendering in answers:
        documents, errors = manifests_of(rendering, None, YIELDED | SMART_PODS)
        errors = errors or list(smart_pod_problems(order, rendering, documents))
        problems += [problem_for_pool(order, each) for each in errors]
        if not errors:
            found.append(_smart_pod(wish, order, rendering, documents[0]))
    return tuple(found), problems


def _smart_pod(wish: Desired, order: PodOrder, rendering: Rendering, document: Yielded) -> SmartPod:
    file, line = origin(rendering, document.line_of(()))
    body = msgspec.json.encode(document.data, order="sorted").decode()
    return SmartPod(order.pool.name, order.instance_type, body, Origin(file, line, wish.revision))


def smart_pod_problems(order: PodOrder, rendering: Rendering, documents: Sequence[Yielded]) -> Iterator[Problem]:
    kinds = [each.data["kind"] for each in documents]
    if kinds != ["Pod"]:
        place = order.pool.origin(order.template_field)
        file, line = (place.file, place.line)
        if documents:
            # Either the first surplus document, or the first document if it is not a Pod.
            file, line = origin(rendering, documents[kinds[:1] == ["Pod"]].line_of(()))
        text = f"{order.request.template} renders {', '.join(kinds) or 'nothing'}, but must render one Pod"
        yield Problem(file, line, 1, NO_SMART_POD, text, _REMEDY)
        return
    (pod,) = documents
    for path, sentence in _violations(order, pod):
        yield problem_at(rendering, pod, Violation(path, NO_SMART_POD, sentence, _REMEDY))
    for fault in faults(SMART_POD, pod.data):
        if fault.path not in {_CONTAINERS, _NAMESPACE}:  # reported above
            yield problem_at(rendering, pod, Violation(fault.path, TOO_MUCH, fault.sentence, fault.remedy))
    yield from _in_a_reserved_namespace(order)


def _in_a_reserved_namespace(order: PodOrder) -> Iterator[Problem]:
    namespace, place = order.pool.spec.smart_pods.namespace, order.pool.origin("spec.smartPods.namespace")
    if namespace in RESERVED_NAMESPACES:
        text = f"spec.smartPods.namespace is {namespace}, which is reserved: smart pods cannot run there"
        remedy = f"remove it; the default is {names.SMART_PODS_NAMESPACE}"
        yield Problem(place.file, place.line, 1, TOO_MUCH, text, remedy)


def _violations(order: PodOrder, pod: Yielded) -> Iterator[tuple[Path, str]]:
    for path, expected in _expected(order):
        found = _at(pod.data, path)
        if found != expected:
            shown = "is missing" if found is None else f"is {msgspec.json.encode(found).decode()}"
            yield path, f'{shown}, must be "{expected}"'
    containers = _at(pod.data, _CONTAINERS)
    if not isinstance(containers, list) or not containers or not all(isinstance(each, dict) for each in containers):
        yield _CONTAINERS, "must be a list of containers: the first container requests the GPUs"


def _expected(order: PodOrder) -> Iterator[tuple[Path, str]]:
    """Paths with fixed values.

    Rights cover only the smart pods' namespace, and another label or selector would miscount the pod.
    """
    pool = order.pool
    yield _NAMESPACE, pool.spec.smart_pods.namespace
    labels = {
        names.COMPONENT: names.SMART_SCHEDULER,
        names.GPU_MODEL: pool.spec.devices.model,
        names.POOL: pool.name,
        names.TRIGGER_TYPE: names.GPU_SCALING,
        names.MANAGED: "true",
    }
    for key, value in labels.items():
        yield ("metadata", "labels", key), value
    yield ("spec", "nodeSelector", names.KARPENTER_POOL), pool.name
    yield ("spec", "nodeSelector", names.INSTANCE_TYPE), order.instance_type


def _at(value: object, path: Path) -> object:
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value
