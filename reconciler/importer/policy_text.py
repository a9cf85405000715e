"""The policy of one imported NodePool, written as a person would write it."""

from collections.abc import Iterator
from textwrap import wrap
from typing import Any

from reconciler.importer.imported_pool import ImportedPool
from reconciler.importer.notes import UNKNOWN
from reconciler.importer.plain_yaml import entry, flow, items
from reconciler.importer.portion import UnmappedFields
from reconciler.policy.manifests.render import consolidates

_FIELDS = (
    "nodeClassRef",
    "labels",
    "annotations",
    "taints",
    "startupTaints",
    "requirements",
    "limits",
    "weight",
    "expireAfter",
    "terminationGracePeriod",
)
_COMMENTS_AT = 37
_WIDTH = 120
_UNTIL = "until a NodeProvisioner or a DrainPolicy names this pool."
_LAST = f"Karpenter alone decides which nodes go, {_UNTIL}"
_KEPT_NODES = f"Nodes stay when they are empty, {_UNTIL}"
_TWO_WOULD_FIGHT = "as it is; leave it out once a NodeProvisioner or a DrainPolicy names the pool"
_PRICES = 'what a node costs an hour is not known here; add pricePerHour: {on-demand: "21.96"}, in quotes'


def policy_text(pool: ImportedPool) -> str:
    """One GpuPool, as YAML."""
    return "".join(f"{line}\n" for line in _lines(pool))


def _lines(pool: ImportedPool) -> Iterator[str]:
    yield "# What the NodePool of this name says, as `reconciler import` found it."
    yield "apiVersion: gpu.scheduling/v1"
    yield "kind: GpuPool"
    yield f"metadata: {flow({'name': pool.name})}"
    yield "spec:"
    yield from _noted("adopt", True, "the NodePool is there, and stays as it is: no node of it drifts")
    yield from _noted("mode", "Observe", "decide and explain, write nothing; Enforce acts")
    yield from _devices(pool)
    yield from _instance_types(pool)
    yield from _capacity_types(pool)
    said = pool.portion.said
    for name in _FIELDS:
        if name in said:
            yield from entry(name, said[name], 2)
    if "disruption" in said:
        yield from _noted("disruption", said["disruption"], _TWO_WOULD_FIGHT if _consolidates(pool) else "")
    if pool.portion.kept.anything:
        yield from _noted("template", pool.template, f"not the default one: {_field_names(pool.portion.kept)}")
    yield f"# {_LAST if consolidates(pool.spec) else _KEPT_NODES}"


def _devices(pool: ImportedPool) -> Iterator[str]:
    usual = pool.gpus.usual
    known = {"model": usual.model, "count": usual.count, "memory": usual.memory}
    if all(known.values()):
        yield from _noted("devices", known, "GPUs of one node, memory of one GPU")
        return
    ask = {
        "model": "nothing told it; write such as a100 or l4",
        "count": "nothing told it; write how many GPUs one node has",
        "memory": "nothing told it; write that of one GPU, such as 40Gi",
    }
    yield "  devices:"
    for name, value in known.items():
        yield from _noted(name, value or UNKNOWN, "" if value else ask[name], 4)


def _instance_types(pool: ImportedPool) -> Iterator[str]:
    if not pool.types:
        yield from _noted("instanceTypes", [], "nothing told them; write such as [{name: p4d.24xlarge}]")
        return
    yield f"  # {_PRICES}"
    follows = pool.portion.follows_instance_types
    first = (
        "smart pods ask for them in this order"
        if follows
        else "what its nodes can be; requirements leave the type open"
    )
    yield _beside("  instanceTypes:", first)
    for name in pool.types:
        capacity = pool.capacity(name)
        yield from items([{"name": name, **({"capacity": capacity} if capacity else {})}], 4)


def _capacity_types(pool: ImportedPool) -> Iterator[str]:
    said = pool.portion.said.get("capacityTypes")
    if not pool.portion.follows_capacity_types:
        living = list(pool.living_capacity_types)
        if living:
            yield from _noted("capacityTypes", living, "of its live nodes; requirements leave it open")
    elif said != ["on-demand"]:
        yield from entry("capacityTypes", said, 2)


def _consolidates(pool: ImportedPool) -> bool:
    """Whether Karpenter may take nodes away by itself, and would still when a policy covers the pool."""
    return pool.spec["disruption"]["consolidateAfter"] != "Never" and bool(
        pool.portion.said["disruption"].get("budgets")
    )


def _field_names(kept: UnmappedFields) -> str:
    """The names of what a template has to say, quoted where needed."""
    parts = {
        "labels": kept.labels or kept.given,
        "taints": kept.taints,
        "requirements": kept.requirements,
        "limits": kept.limits,
        "budgets": kept.budgets or kept.no_budgets,
    }
    lines = [flow(name) for fields in kept.fields.values() for name in fields]
    lines += [*kept.instead, *(name for name, there in parts.items() if there)]
    return ", ".join(sorted(set(lines)))


def _noted(name: str, value: Any, comment: str, indent: int = 2) -> Iterator[str]:
    """An entry with a comment beside it, or above where there is no room."""
    lines = entry(name, value, indent)
    if not comment:
        yield from lines
    elif len(_beside(lines[0], comment)) <= _WIDTH:
        yield _beside(lines[0], comment)
        yield from lines[1:]
    else:
        margin = f"{' ' * indent}# "
        yield from wrap(comment, _WIDTH, initial_indent=margin, subsequent_indent=margin, break_on_hyphens=False)
        yield from lines


def _beside(line: str, comment: str) -> str:
    return f"{line.ljust(max(_COMMENTS_AT, len(line) + 2))}# {comment}"
