"""From a wish to its manifests: what to ask of the templates, and what to make of their answers."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from reconciler.model.desired import Declared, Desired, Manifest
from reconciler.model.origin import Origin
from reconciler.model.policy.gpu_pool import GpuPool
from reconciler.model.policy.node_provisioner import NodeProvisioner
from reconciler.model.problem import PolicyRef, Problem
from reconciler.model.rendering import Rendering, RenderRequest
from reconciler.policy.manifests.check import Yielded, manifests_of, origin
from reconciler.policy.manifests.pool_values import OfProvisioner, values_of
from reconciler.policy.manifests.shared import shared_manifests
from reconciler.policy.manifests.structural import Structural
from reconciler.policy.manifests.weights import weights_of

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
