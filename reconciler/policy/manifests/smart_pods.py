"""From a wish to its smart pods: what to ask of their templates, once a pool and instance type, and what they yield.

Whoever makes one later fills in its name, what it asks for and where; so a template is held to what that goes by, to
the labels by which a smart pod is found again, and to the fields that a smart pod may have: who writes templates gets
no rights on nodes, and none of the controller.
"""

from collections.abc import Iterator, Sequence

import msgspec

from reconciler.model import names
from reconciler.model.bundle import Rendering, RenderRequest
from reconciler.model.desired import Desired, SmartPod
from reconciler.model.manifest_rules.kinds import RESERVED_NAMESPACES, SMART_POD, SMART_PODS, YIELDED
from reconciler.model.manifest_rules.shape import faults
from reconciler.model.problem import Origin, Problem
from reconciler.policy.manifests.check import Yielded, manifests_of, origin, problem_at
from reconciler.policy.manifests.kubernetes_schema import Violation
from reconciler.policy.manifests.pool_values import values_of_pod
from reconciler.policy.manifests.render import RenderOrder, problem_for_pool
from reconciler.policy.tree import Path

NO_SMART_POD, TOO_MUCH = "RC415", "RC416"
_TEMPLATE = "spec.smartPods.template"
_REMEDY = "write it as the default template, smart_pod.yaml.j2, does"
_CONTAINERS: Path = ("spec", "containers")
_NAMESPACE: Path = ("metadata", "namespace")


class PodOrder(RenderOrder, frozen=True):
    """What is asked for machines of one type."""

    instance_type: str


def pod_orders(wish: Desired) -> tuple[PodOrder, ...]:
    """What to render for a wish, by pool and instance type."""
    return tuple(
        PodOrder(pool, RenderRequest(pool.spec.smart_pods.template, values), instance.name)
        for pool in wish.pools
        for instance in pool.spec.instance_types
        for values in [values_of_pod(pool.name, pool.spec, instance)]
    )


def smart_pods(
    wish: Desired, answers: Sequence[tuple[PodOrder, Rendering]]
) -> tuple[tuple[SmartPod, ...], list[Problem]]:
    """The smart pods of a wish, in the order in which they were asked for, and all that is wrong with them."""
    found: list[SmartPod] = []
    problems: list[Problem] = []
    for order, rendering in answers:
        if rendering.problem:
            problems.append(problem_for_pool(order, rendering.problem))
            continue
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
        place = order.pool.origin(_TEMPLATE)
        file, line = (place.file, place.line)
        if documents:
            # The first that is too many, or no Pod.
            file, line = origin(rendering, documents[kinds[:1] == ["Pod"]].line_of(()))
        text = f"{order.request.template} yields {', '.join(kinds) or 'nothing'}, and must yield one Pod"
        yield Problem(file, line, 1, NO_SMART_POD, text, _REMEDY)
        return
    (pod,) = documents
    for path, sentence in _violations(order, pod):
        yield problem_at(rendering, pod, Violation(path, NO_SMART_POD, sentence, _REMEDY))
    for fault in faults(SMART_POD, pod.data):
        if fault.path not in {_CONTAINERS, _NAMESPACE}:  # told above
            yield problem_at(rendering, pod, Violation(fault.path, TOO_MUCH, fault.sentence, fault.remedy))
    yield from _in_a_reserved_namespace(order)


def _in_a_reserved_namespace(order: PodOrder) -> Iterator[Problem]:
    namespace, place = order.pool.spec.smart_pods.namespace, order.pool.origin("spec.smartPods.namespace")
    if namespace in RESERVED_NAMESPACES:
        text = f"spec.smartPods.namespace is {namespace}, which has another purpose: no smart pod is made there"
        remedy = f"leave it out: the default is {names.SMART_PODS_NAMESPACE}"
        yield Problem(place.file, place.line, 1, TOO_MUCH, text, remedy)


def _violations(order: PodOrder, pod: Yielded) -> Iterator[tuple[Path, str]]:
    for path, expected in _expected(order):
        found = _at(pod.data, path)
        if found != expected:
            shown = "is missing" if found is None else f"is {msgspec.json.encode(found).decode()}"
            yield path, f'{shown}: it must be "{expected}"'
    containers = _at(pod.data, _CONTAINERS)
    if not isinstance(containers, list) or not containers or not all(isinstance(each, dict) for each in containers):
        yield _CONTAINERS, "must be a list of containers: the first one asks for the GPUs"


def _expected(order: PodOrder) -> Iterator[tuple[Path, str]]:
    """Rights are for its namespace alone; a label or a selector that is another's would count it elsewhere."""
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
