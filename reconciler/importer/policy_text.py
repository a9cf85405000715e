"""Text of the policy and of the template of one imported NodePool."""

from collections.abc import Iterator, Mapping
from textwrap import wrap
from typing import Any

from reconciler.importer import portion
from reconciler.importer.imported_pool import ImportedPool
from reconciler.importer.portion import UnmappedFields
from reconciler.importer.text import UNKNOWN, entries, entry, flow, items
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
_LAST = f"Karpenter alone decides which nodes are removed, {_UNTIL}"
_KEPT_NODES = f"Empty nodes stay, {_UNTIL}"
_TWO_WOULD_FIGHT = "unchanged; remove this once a NodeProvisioner or a DrainPolicy names the pool"
_PRICES = 'the price of a node per hour is unknown; add pricePerHour: {on-demand: "21.96"}, in quotes'


def policy_text(pool: ImportedPool) -> str:
    return "".join(f"{line}\n" for line in _lines(pool))


def _lines(pool: ImportedPool) -> Iterator[str]:
    yield "# Converted by `reconciler import` from the NodePool of this name."
    yield "apiVersion: gpu.scheduling/v1"
    yield "kind: GpuPool"
    yield f"metadata: {flow({'name': pool.name})}"
    yield "spec:"
    yield from _noted("adopt", True, "the NodePool exists, and does not change: none of its nodes drifts")
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
        yield from _noted("template", pool.template, f"not the default template: {_field_names(pool.portion.kept)}")
    yield f"# {_LAST if consolidates(pool.spec) else _KEPT_NODES}"


def _devices(pool: ImportedPool) -> Iterator[str]:
    usual = pool.gpus.usual
    known = {"model": usual.model, "count": usual.count, "memory": usual.memory}
    if all(known.values()):
        yield from _noted("devices", known, "GPUs of one node, memory of one GPU")
        return
    ask = {
        "model": "unknown; write for example a100 or l4",
        "count": "unknown; write the number of GPUs per node",
        "memory": "unknown; write the memory of one GPU, such as 40Gi",
    }
    yield "  devices:"
    for name, value in known.items():
        yield from _noted(name, value or UNKNOWN, "" if value else ask[name], 4)


def _instance_types(pool: ImportedPool) -> Iterator[str]:
    if not pool.types:
        yield from _noted("instanceTypes", [], "unknown; write for example [{name: p4d.24xlarge}]")
        return
    yield f"  # {_PRICES}"
    follows = pool.portion.follows_instance_types
    first = (
        "smart pods request them in this order" if follows else "types of its nodes; requirements leave the type open"
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
            yield from _noted("capacityTypes", living, "from its live nodes; requirements leave it open")
    elif said != ["on-demand"]:
        yield from entry("capacityTypes", said, 2)


def _consolidates(pool: ImportedPool) -> bool:
    """Whether Karpenter may remove nodes by itself, and still would after a policy covers the pool."""
    return pool.spec["disruption"]["consolidateAfter"] != "Never" and bool(
        pool.portion.said["disruption"].get("budgets")
    )


def _field_names(kept: UnmappedFields) -> str:
    """Names of the settings that a template must contain, quoted if needed."""
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
    """An entry with a comment beside it, or above if the line would be too long."""
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


# --- A template for one pool: the default template, with lines for settings that only a template can express.
#
# Theory of operation. If the NodePool has more than a section of the default template would render, additional lines
# follow the section, without expressions; if the field cannot hold the NodePool's value, they replace the section. All
# other lines still follow the policy, so that edits of the policy have effect.

# Sections of the default template in their order, and how their first lines begin.
_SECTIONS = {
    "top": "apiVersion:",
    "template": "  template:",
    "metadata": "    metadata:",
    "labels": "{% for key, value in pool.labels",
    "annotations": "{% if pool.annotations",
    "node": "    spec:",
    "requirements": "      requirements:",
    "taints": "{% if pool.taints",
    "startupTaints": "{# This taint keeps pods off",
    "expireAfter": "{# Without this field",
    "terminationGracePeriod": "{% if pool.terminationGracePeriod",
    "limits": "{% if pool.limits",
    "weight": "{% if pool.weight",
    "disruption": "  disruption:",
    "budgets": "    budgets:",
}


def template_text(kept: UnmappedFields, default: str) -> str:
    """The template's text, from apiVersion on, after the default template."""
    starts = [default.index(f"\n{beginning}") + 1 for beginning in _SECTIONS.values()]
    ends = [*starts[1:], len(default)]
    sections = {name: default[start:end] for name, start, end in zip(_SECTIONS, starts, ends, strict=True)}
    return "".join(_sections(kept, sections))


def _sections(kept: UnmappedFields, default: Mapping[str, str]) -> Iterator[str]:
    yield default["top"] + _more(kept, portion.SPEC, 2)
    yield default["template"] + _more(kept, portion.TEMPLATE, 4)
    yield _with_values(default["metadata"], kept.given, 8)
    yield default["labels"] + _text(entries(kept.labels, 8))
    if "annotations" not in kept.fields.get(portion.METADATA, {}):
        yield default["annotations"]
    yield _more(kept, portion.METADATA, 6)
    yield default["node"] + _more(kept, portion.CLASS, 8)
    required = default["requirements"]
    # A loop that other requirements follow has no empty list.
    yield required.replace("{% else %}\n        []\n", "") if kept.requirements else required
    yield _text(items(kept.requirements, 8))
    yield _always(default["taints"], _text(items(kept.taints, 8)))
    if "startupTaints" not in kept.fields.get(portion.NODE, {}):
        yield default["startupTaints"]
    yield _with_values(default["expireAfter"], kept.instead, 6)
    grace = {name: value for name, value in kept.instead.items() if name == "terminationGracePeriod"}
    yield _text(entries(grace, 6)) or default["terminationGracePeriod"]
    yield _more(kept, portion.NODE, 6)
    yield _always(default["limits"], _text(entries(kept.limits, 4)))
    if "weight" not in kept.fields.get(portion.SPEC, {}):
        yield default["weight"]
    yield _with_values(default["disruption"], kept.instead, 4) + _more(kept, portion.DISRUPTION, 4)
    yield from _budgets(kept, default["budgets"])


def _with_values(section: str, values: Mapping[str, Any], indent: int) -> str:
    """The section with these values of its fields that take one line."""
    for name, value in values.items():
        beginning = f"{' ' * indent}{name}: "
        lines = section.splitlines(keepends=True)
        section = "".join(_text(entry(name, value, indent)) if line.startswith(beginning) else line for line in lines)
    return section


def _always(section: str, more: str) -> str:
    """A section that exists if the policy sets the field, or the template does, with `more` items or entries."""
    return "".join(section.splitlines(keepends=True)[1:-1]) + more if more else section


def _budgets(kept: UnmappedFields, section: str) -> Iterator[str]:
    listed, _, _ = section.partition("{% else %}\n")
    if kept.no_budgets:
        yield listed + "{% else %}\n      []\n{% endfor %}\n"
    elif kept.budgets:
        yield listed + "{% endfor %}\n" + _text(items(kept.budgets, 6))
    else:
        yield section


def _more(kept: UnmappedFields, place: str, indent: int) -> str:
    fields: dict[str, Any] = kept.fields.get(place, {})
    return _text(entries(dict(sorted(fields.items())), indent))


def _text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
