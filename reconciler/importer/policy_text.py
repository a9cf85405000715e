"""Text of the policy and of the template of one imported NodePool."""

from collections.abc import Iterator
from textwrap import wrap
from typing import Any

from reconciler.importer import portion
from reconciler.importer.imported_pool import ImportedPool
from reconciler.importer.portion import UnmappedFields
from reconciler.importer.text import UNKNOWN, entries, entry, flow, items
from reconciler.model import names
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
    """One GpuPool, as YAML."""
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


# --- A template for one pool: the text of the default template, with lines for settings that only a template can
# express.
#
# Theory of operation. Each section of the text below is a section of the default template; a test compares them. If the
# NodePool has more than the section would render, additional lines follow, without expressions; if the field cannot
# hold the NodePool's value, they replace the section. All other lines still follow the policy, so that edits of the
# policy have effect.

_TOP = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: {{ pool.name }}
spec:
"""
_GPU_TYPE = "        gpu.scheduling/gpu-type: {{ pool.devices.model }}\n"
_MANAGED = '        gpu.scheduling/managed: "true"\n'
_LABELS = """\
{% for key, value in pool.labels | items if key not in ["gpu.scheduling/gpu-type", "gpu.scheduling/managed"] %}
        {{ key }}: {{ value }}
{% endfor %}
"""
_ANNOTATIONS = """\
{% if pool.annotations %}
      annotations:
{% for key, value in pool.annotations | items %}
        {{ key }}: {{ value }}
{% endfor %}
{% endif %}
"""
_CLASS = """\
      nodeClassRef:
        group: {{ pool.nodeClassRef.group }}
        kind: {{ pool.nodeClassRef.kind }}
        name: {{ pool.nodeClassRef.name }}
"""
_REQUIREMENTS = """\
{% for requirement in requirements %}
        - key: {{ requirement.key }}
          operator: {{ requirement.operator }}
{% if requirement.values or requirement.operator not in ["Exists", "DoesNotExist"] %}
          values: {{ requirement.values }}
{% endif %}
{% if requirement.minValues is not none %}
          minValues: {{ requirement.minValues }}
{% endif %}
"""
_TAINTS = """\
{% for taint in pool.taints %}
        - key: {{ taint.key }}
          effect: {{ taint.effect }}
{% if taint.value %}
          value: {{ taint.value }}
{% endif %}
{% endfor %}
"""
_ARRIVING = """\
{# This taint keeps pods off new nodes until the nodes are usable. Only a new NodePool gets the taint: an existing one
   neither gets nor loses the taint. In mode Observe, no controller would remove the taint. #}
{% if pool.mode == "Enforce" or pool.startupTaints %}
      startupTaints:
{% if pool.mode == "Enforce" %}
        - key: gpu.scheduling/arriving
          effect: NoSchedule
{% endif %}
{% for taint in pool.startupTaints if pool.mode != "Enforce" or taint.key != "gpu.scheduling/arriving" %}
        - key: {{ taint.key }}
          effect: {{ taint.effect }}
{% if taint.value %}
          value: {{ taint.value }}
{% endif %}
{% endfor %}
{% endif %}
"""
_GRACE = """\
{% if pool.terminationGracePeriod is not none %}
      terminationGracePeriod: {{ pool.terminationGracePeriod }}
{% endif %}
"""
_LIMITS = """\
{% for resource, most in pool.limits | items %}
    {{ resource }}: {{ most }}
{% endfor %}
"""
_WEIGHT = """\
{% if pool.weight is not none %}
  weight: {{ pool.weight }}
{% endif %}
"""
_BUDGETS = """\
    budgets:
{% for budget in pool.disruption.budgets %}
      - nodes: {{ budget.nodes }}
{% if budget.reasons %}
        reasons: {{ budget.reasons }}
{% endif %}
{% if budget.schedule is not none and budget.duration is not none %}
        schedule: {{ budget.schedule }}
        duration: {{ budget.duration }}
{% endif %}
"""
_OTHER_BUDGETS = """\
{% else %}
{% if covered or pool.disruption.consolidateAfter == "Never" %}
{# The policies decide which nodes are removed. Karpenter replaces drifted nodes, a tenth at a time. #}
      - nodes: "0"
        reasons: [Empty, Underutilized]
      - nodes: 10%
        reasons: [Drifted]
{% else %}
      - nodes: 10%
{% endif %}
{% endfor %}
"""
_NEVER_BY_ITSELF = (
    "{# Without this field, the default 720h would apply, and nodes would be replaced outside all budgets. #}\n"
)


def template_text(kept: UnmappedFields) -> str:
    """The template's text, from apiVersion on."""
    return "".join(_sections(kept))


def _sections(kept: UnmappedFields) -> Iterator[str]:
    yield _TOP
    yield _more(kept, portion.SPEC, 2)
    yield "  template:\n"
    yield _more(kept, portion.TEMPLATE, 4)
    yield "    metadata:\n      labels:\n"
    for label, text in ((names.GPU_TYPE, _GPU_TYPE), (names.MANAGED, _MANAGED)):
        yield _template_text_lines(entry(label, kept.given[label], 8)) if label in kept.given else text
    yield _LABELS
    yield _template_text_lines(entries(kept.labels, 8))
    if "annotations" not in kept.fields.get(portion.METADATA, {}):
        yield _ANNOTATIONS
    yield _more(kept, portion.METADATA, 6)
    yield "    spec:\n"
    yield _CLASS
    yield _more(kept, portion.CLASS, 8)
    yield from _requirements(kept)
    yield from _where("pool.taints", "      taints:\n", _TAINTS, _template_text_lines(items(kept.taints, 8)))
    if "startupTaints" not in kept.fields.get(portion.NODE, {}):
        yield _ARRIVING
    yield _NEVER_BY_ITSELF
    yield _field(kept, "expireAfter", 6, "{{ pool.expireAfter }}")
    yield _GRACE if "terminationGracePeriod" not in kept.instead else _field(kept, "terminationGracePeriod", 6, "")
    yield _more(kept, portion.NODE, 6)
    yield from _where("pool.limits", "  limits:\n", _LIMITS, _template_text_lines(entries(kept.limits, 4)))
    if "weight" not in kept.fields.get(portion.SPEC, {}):
        yield _WEIGHT
    yield "  disruption:\n"
    yield _field(kept, "consolidationPolicy", 4, "{{ pool.disruption.consolidationPolicy }}")
    yield _field(kept, "consolidateAfter", 4, "{{ pool.disruption.consolidateAfter }}")
    yield _more(kept, portion.DISRUPTION, 4)
    yield from _budgets(kept)


def _requirements(kept: UnmappedFields) -> Iterator[str]:
    yield "      requirements:\n" + _REQUIREMENTS
    if not kept.requirements:
        yield "{% else %}\n        []\n"
    yield "{% endfor %}\n" + _template_text_lines(items(kept.requirements, 8))


def _where(requested: str, opening: str, text: str, more: str) -> Iterator[str]:
    """A field that exists if the policy sets it, or the template does."""
    yield opening + text + more if more else f"{{% if {requested} %}}\n{opening}{text}{{% endif %}}\n"


def _budgets(kept: UnmappedFields) -> Iterator[str]:
    yield _BUDGETS
    if kept.no_budgets:
        yield "{% else %}\n      []\n{% endfor %}\n"
    elif kept.budgets:
        yield "{% endfor %}\n" + _template_text_lines(items(kept.budgets, 6))
    else:
        yield _OTHER_BUDGETS


def _field(kept: UnmappedFields, name: str, indent: int, follows: str) -> str:
    if name in kept.instead:
        return _template_text_lines(entry(name, kept.instead[name], indent))
    return f"{' ' * indent}{name}: {follows}\n"


def _more(kept: UnmappedFields, place: str, indent: int) -> str:
    fields: dict[str, Any] = kept.fields.get(place, {})
    return _template_text_lines(entries(dict(sorted(fields.items())), indent))


def _template_text_lines(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
