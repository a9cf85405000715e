"""From a wish to its manifests: what to ask of the templates, and what to make of their answers."""

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
from reconciler.policy.manifests.pool_values import OfProvisioner, values_of, weights_of

CONSOLIDATES, CLASHES = "RC306", "RC414"
_OWN_INITIATIVE = frozenset({"Empty", "Underutilized"})


class RenderOrder(msgspec.Struct, frozen=True):
    """A pool, and what is asked of its template."""

    pool: Declared[GpuPool]
    request: RenderRequest


def orders(wish: Desired) -> tuple[RenderOrder, ...]:
    """What to render for a wish, one order a pool."""
    weights = weights_of(wish)
    return tuple(
        RenderOrder(pool, RenderRequest(pool.spec.template, _values(wish, pool, weights.get(pool.name))))
        for pool in wish.pools
    )


def manifests(
    wish: Desired, answers: Sequence[tuple[RenderOrder, Rendering]], schema: Structural | None
) -> tuple[tuple[Manifest, ...], list[Problem]]:
    """The manifests of a wish, sorted, and all that is wrong with them; without a schema, all but what it asks."""
    found: list[Manifest] = list(shared_manifests(wish))
    problems: list[Problem] = []
    for order, rendering in answers:
        if rendering.problem:
            problems.append(problem_for_pool(order, rendering.problem))
            continue
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
    most_nodes = provisioner.spec.max_size if provisioner else None  # also of one that is suspended
    return values_of(pool.name, pool.spec, _covering(wish, pool) is not None, OfProvisioner(most_nodes, weight))


def _provisioner(wish: Desired, pool: Declared[GpuPool]) -> Declared[NodeProvisioner] | None:
    """The one that scales the pool; where there is none but one that is suspended, that."""
    scaling = (each for each in wish.provisioners if each.spec.pool_name == pool.name)
    return min(scaling, key=lambda each: (each.spec.suspend, each.name), default=None)


def _covering(wish: Desired, pool: Declared[GpuPool]) -> Declared[object] | None:
    """The policy that decides which of the pool's nodes go, if there is one: Karpenter must then leave them alone."""
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
    """A node belongs to the pool that its NodePool is named after: another name, and its nodes would be nobody's."""
    named = [each for each in yielded if each.kind == "NodePool"]
    for each in named[1:] if named and named[0].name == order.pool.name else named:
        text = f"NodePool/{each.name}: a pool has one NodePool, which bears its name"
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
            f"NodePool/{each.name} consolidates by itself, and {covering.kind}/{covering.name} decides which of its "
            f"nodes go: the two would fight"
        )
        remedy = f"leave disruption out, or take the pool out of {covering.kind}/{covering.name}"
        if not any(path.startswith("spec.disruption") for path, _ in order.pool.origins):  # its template's doing
            place, remedy = each.template, "write consolidateAfter: Never, or the budgets of the default template"
        yield Problem(place.file, place.line, 1, CONSOLIDATES, text, remedy)


def consolidates(spec: dict[str, dict[str, object]]) -> bool:
    """Whether Karpenter may take away empty or little used nodes of its own accord."""
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
    """The same object from two pools, or as one for all of them: whichever is applied last would win."""
    for one, other in itertools.pairwise(ordered):
        if (one.kind, one.namespace, one.name) == (other.kind, other.namespace, other.name):
            title, place, remedy = f"{other.kind}/{other.name}", other.template, "put the pool's name into its name"
            text = f"{title} is yielded for GpuPool/{one.pool} and GpuPool/{other.pool}"
            if not one.pool:
                text = f"{title} is yielded for GpuPool/{other.pool}, and is made for all pools anyway"
            yield Problem(place.file, place.line, 1, CLASHES, text, remedy)


def problem_for_pool(order: RenderOrder, problem: Problem) -> Problem:
    """The same problem, saying for which pool it showed."""
    place = order.pool.origin()
    about = f" (for GpuPool/{order.pool.name}, {place.place})"
    subject = PolicyRef("GpuPool", order.pool.name)
    return msgspec.structs.replace(problem, sentence=problem.sentence + about, subject=subject)


# --- What is made once for all pools: the PriorityClass of smart pods, as soon as any of the pools is acted on.
#
# It belongs to no pool: it stays while any is left, and says in its origin which one it is there for first.

PRIORITY_CLASS: dict[str, Any] = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": names.SMART_PODS_PRIORITY},
    # The least that people may give: every workload displaces a smart pod, and a smart pod displaces none.
    "value": -1_000_000_000,
    "preemptionPolicy": "Never",
    "globalDefault": False,
    "description": "Pods that ask Karpenter for GPU nodes: whoever needs their room gets it at once.",
}


def shared_manifests(wish: Desired) -> tuple[Manifest, ...]:
    """None where nothing is written."""
    acted_on = [pool for pool in wish.pools if pool.spec.mode == "Enforce" and not pool.spec.suspend]
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


# --- What a change of templates does: manifests that say something else although their template was asked for the same.
#
# Where a template was asked for something else too, its answer is another anyway, and which of the two made it so can't
# be told: that is no change of a template.

_PATH = "template"
_MOST_FIELDS = 3  # of one manifest; `render` shows all of it
_Titled = dict[str, Manifest]


def rewritten_templates(base: Desired, head: Desired) -> dict[str, list[FieldChange]]:
    """By pool, a change for each manifest that is new, gone, or another."""
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
    """What the templates of these pools are asked for."""
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
    """Each value that holds nothing further, by its path."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value:
        for number, inner in enumerate(value):
            yield from _leaves(inner, f"{path}[{number}]")
    else:
        yield path, value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _changed_fields_text(title: str, leaves: dict[str, str], paths: Sequence[str]) -> str:
    """The manifest with some of its fields that differ."""
    shown = [f"{path}: {leaves[path]}" for path in paths[:_MOST_FIELDS] if path in leaves]
    more = len(paths) - _MOST_FIELDS
    if more > 0:
        shown.append(f"and {more} more")
    return f"{title} ({', '.join(shown)})" if shown else title
