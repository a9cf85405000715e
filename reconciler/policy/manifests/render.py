"""Renders the manifests of a Desired: builds the render requests and checks the rendered documents."""

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from reconciler.model import names
from reconciler.model.bundle import FieldChange, Rendering, RenderRequest
from reconciler.model.desired import Declared, Desired, Manifest
from reconciler.model.policy.gpu import GpuPool
from reconciler.model.policy.scaling import NodeProvisioner
from reconciler.model.problem import Origin, PolicyRef, Problem
from reconciler.policy.manifests.check import Yielded, manifests_of, origin
from reconciler.policy.manifests.kubernetes_schema import Structural
from reconciler.policy.manifests.pool_values import values_of, weights_of

CONSOLIDATES, CLASHES = "RC306", "RC414"
_OWN_INITIATIVE = frozenset({"Empty", "Underutilized"})


class RenderOrder(msgspec.Struct, frozen=True):
    pool: Declared[GpuPool]
    request: RenderRequest

    @property
    def template_field(self) -> str:
        """The field of the pool that names the template."""
        return "spec.template"


def orders(wish: Desired) -> tuple[RenderOrder, ...]:
    """The render orders of a Desired, one per pool."""
    weights = weights_of(wish)
    return tuple(
        RenderOrder(pool, RenderRequest(pool.spec.template, _values(wish, pool, weights.get(pool.name))))
        for pool in wish.pools
    )


def manifests(
    wish: Desired, answers: Sequence[tuple[RenderOrder, Rendering]], schema: Structural | None
) -> tuple[tuple[Manifest, ...], list[Problem]]:
    """The manifests of a Desired, sorted, and all problems. Without `schema`, NodePools are not checked against it."""
    found: list[Manifest] = list(shared_manifests(wish))
    problems: list[Problem] = []
    for order, rendering in answers:
        documents, errors = manifests_of(rendering, schema)
        if not errors:
            yielded = [_manifest(wish, order, rendering, document) for document in documents]
            errors = [*misnamed(order, yielded), *fights(wish, order, documents, yielded)]
            found += yielded
        problems += [problem_for_pool(order, each) for each in errors]
    ordered = tuple(sorted(found, key=lambda each: (each.kind, each.namespace, each.name, each.pool)))
    return ordered, [*problems, *clashes(ordered)]


def _values(wish: Desired, pool: Declared[GpuPool], weight: int | None) -> dict[str, Any]:
    provisioner = _provisioner(wish, pool)
    most_nodes = provisioner.spec.max_size if provisioner else None  # also of a suspended NodeProvisioner
    return values_of(pool.name, pool.spec, _covering(wish, pool) is not None, most_nodes, weight)


def _provisioner(wish: Desired, pool: Declared[GpuPool]) -> Declared[NodeProvisioner] | None:
    """The NodeProvisioner that scales the pool; if none is active, a suspended one."""
    scaling = (each for each in wish.provisioners if each.spec.pool_name == pool.name)
    return min(scaling, key=lambda each: (each.spec.suspend, each.name), default=None)


def _covering(wish: Desired, pool: Declared[GpuPool]) -> Declared[object] | None:
    """The policy that removes nodes of the pool, if any. Karpenter must then not disrupt these nodes."""
    if (provisioner := _provisioner(wish, pool)) and not provisioner.spec.suspend:
        return provisioner
    for drain in wish.drains:
        if {"*", pool.name} & set(drain.spec.pool_names) and not drain.spec.suspend:
            return drain
    return None


def _manifest(wish: Desired, order: RenderOrder, rendering: Rendering, document: Yielded) -> Manifest:
    body, metadata = document.data, document.data["metadata"]
    file, line = origin(rendering, document.line_of(()))
    return Manifest(
        kind=body["kind"],
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        body=msgspec.json.encode(body, order="sorted").decode(),
        pool=order.pool.name,
        origin=order.pool.origin(),
        template=Origin(file, line, wish.revision),
    )


def misnamed(order: RenderOrder, yielded: Sequence[Manifest]) -> Iterator[Problem]:
    """A NodePool must have the name of its pool: nodes of any other NodePool would belong to no pool."""
    named = [each for each in yielded if each.kind == "NodePool"]
    for each in named[1:] if named and named[0].name == order.pool.name else named:
        text = f"NodePool/{each.name}: a pool has exactly one NodePool, with the pool's name"
        remedy = "write name: {{ pool.name }}, and declare a GpuPool for each NodePool"
        yield Problem(each.template.file, each.template.line, 1, CLASHES, text, remedy)


def fights(
    wish: Desired, order: RenderOrder, documents: Sequence[Yielded], yielded: Sequence[Manifest]
) -> Iterator[Problem]:
    covering = _covering(wish, order.pool)
    for document, each in zip(documents, yielded, strict=True):
        if covering is None or each.kind != "NodePool" or not consolidates(document.data["spec"]):
            continue
        place = order.pool.origin("spec.disruption.consolidateAfter")
        text = (
            f"NodePool/{each.name} lets Karpenter consolidate, in conflict with {covering.kind}/{covering.name}, which "
            f"removes nodes of the pool"
        )
        scales = covering.kind == "NodeProvisioner"
        leave = "delete" if scales else "remove the pool from"
        remedy = f"remove disruption, or {leave} {covering.kind}/{covering.name}"
        if not any(path.startswith("spec.disruption") for path, _ in order.pool.origins):  # set by the template
            place, remedy = each.template, "write consolidateAfter: Never, or the budgets of the default template"
        yield Problem(place.file, place.line, 1, CONSOLIDATES, text, remedy)


def consolidates(spec: dict[str, dict[str, object]]) -> bool:
    """Whether Karpenter may consolidate empty or underutilized nodes on its own."""
    disruption = spec.get("disruption", {})
    if disruption.get("consolidateAfter") == "Never":
        return False
    budgets = disruption.get("budgets")
    blocked: set[str] = set()
    for budget in budgets if isinstance(budgets, list) else []:
        if budget.get("nodes") in {"0", "0%"} and not budget.get("schedule"):
            blocked |= set(budget.get("reasons") or _OWN_INITIATIVE)
    return not blocked >= _OWN_INITIATIVE


def clashes(ordered: Sequence[Manifest]) -> Iterator[Problem]:
    """The same object rendered for two pools, or for one pool and for all pools: the last one applied would win."""
    for one, other in itertools.pairwise(ordered):
        if (one.kind, one.namespace, one.name) == (other.kind, other.namespace, other.name):
            title, place, remedy = f"{other.kind}/{other.name}", other.template, "include the pool's name in the name"
            text = f"{title} is rendered for GpuPool/{one.pool} and GpuPool/{other.pool}"
            if not one.pool:
                text = f"{title} is rendered for GpuPool/{other.pool}, but reconciler creates it for all pools"
            yield Problem(place.file, place.line, 1, CLASHES, text, remedy)


def problem_for_pool(order: RenderOrder, problem: Problem) -> Problem:
    """The same problem, with the pool for which the template was rendered; located there if it has no file."""
    place = order.pool.origin()
    about = f" (for GpuPool/{order.pool.name}, {place.place})"
    subject = PolicyRef("GpuPool", order.pool.name)
    located = msgspec.structs.replace(problem, sentence=problem.sentence + about, subject=subject)
    if problem.file:
        return located
    named = order.pool.origin(order.template_field)
    column = 1 if named.line else 0
    return msgspec.structs.replace(located, file=named.file, line=named.line, column=column, field=order.template_field)


# --- Manifests that are shared by all pools: the PriorityClass of smart pods, created once any pool is in Enforce mode.
#
# The PriorityClass belongs to no single pool. It stays while any of the pools remains; its origin is the first of them.

PRIORITY_CLASS: dict[str, Any] = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": names.SMART_PODS_PRIORITY},
    # The lowest priority that users may set: every workload preempts smart pods, and smart pods preempt nothing.
    "value": -1_000_000_000,
    "preemptionPolicy": "Never",
    "globalDefault": False,
    "description": "Pods that ask Karpenter for GPU nodes: every other pod may preempt them.",
}


def shared_manifests(wish: Desired) -> tuple[Manifest, ...]:
    """None if no pool is written."""
    acted_on = [pool for pool in wish.pools if pool.spec.is_enforced]
    if not acted_on:
        return ()
    return (
        Manifest(
            kind=PRIORITY_CLASS["kind"],
            namespace="",
            name=PRIORITY_CLASS["metadata"]["name"],
            body=msgspec.json.encode(PRIORITY_CLASS, order="sorted").decode(),
            pool="",
            origin=acted_on[0].origin("spec.mode"),
            template=Origin("", 0, wish.revision),
        ),
    )


# --- Effect of a changed template: manifests that differ although the render request is the same.
#
# If the render request changed too, the cause of the difference is unknown; such differences are not reported as a
# change of the template.

_PATH = "template"
_MOST_FIELDS = 3  # per manifest; `render` shows all of them
_Titled = dict[str, Manifest]


def rewritten_templates(base: Desired, head: Desired) -> dict[str, list[FieldChange]]:
    """By pool, one change for each manifest that is added, removed or changed."""
    before, after = _by_pool(base), _by_pool(head)
    others = {pool for pool in {*before, *after} if _bodies(before[pool]) != _bodies(after[pool])}
    if not others:
        return {}
    requested, asks = _render_requests(base, others), _render_requests(head, others)
    return {
        pool: list(_rewritten(before[pool], after[pool]))
        for pool in sorted(others)
        if pool in asks and requested.get(pool) == asks[pool]
    }


def _by_pool(wish: Desired) -> defaultdict[str, _Titled]:
    result: defaultdict[str, _Titled] = defaultdict(dict)
    for each in wish.manifests:
        result[each.pool]["/".join(part for part in (each.kind, each.namespace, each.name) if part)] = each
    return result


def _bodies(manifests: _Titled) -> dict[str, str]:
    return {title: each.body for title, each in manifests.items()}


def _render_requests(wish: Desired, names: set[str]) -> dict[str, Any]:
    some = msgspec.structs.replace(wish, pools=tuple(pool for pool in wish.pools if pool.name in names))
    return {order.pool.name: order.request for order in orders(some)}


def _rewritten(before: _Titled, after: _Titled) -> Iterator[FieldChange]:
    for title in sorted({*before, *after}):
        one, other = before.get(title), after.get(title)
        if one and other:
            if one.body != other.body:
                yield _differing(title, one, other)
        elif other:
            yield FieldChange(_PATH, None, title, other.template)
        elif one:
            yield FieldChange(_PATH, title, None, one.template)


def _differing(title: str, one: Manifest, other: Manifest) -> FieldChange:
    before, after = (dict(_leaves(msgspec.json.decode(each.body), "")) for each in (one, other))
    paths = [path for path in sorted({*before, *after}) if before.get(path) != after.get(path)]
    return FieldChange(
        _PATH, _changed_fields_text(title, before, paths), _changed_fields_text(title, after, paths), other.template
    )


def _leaves(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value:
        for number, inner in enumerate(value):
            yield from _leaves(inner, f"{path}[{number}]")
    else:
        yield path, value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _changed_fields_text(title: str, leaves: dict[str, str], paths: Sequence[str]) -> str:
    """The manifest with some of its differing fields."""
    shown = [f"{path}: {leaves[path]}" for path in paths[:_MOST_FIELDS] if path in leaves]
    more = len(paths) - _MOST_FIELDS
    if more > 0:
        shown.append(f"and {more} more")
    return f"{title} ({', '.join(shown)})" if shown else title
