"""A template for one pool: the default template's text, and between its lines what only a template can say.

Theory of operation. Each section of the text below is a section of the default template; a test compares them. Where
the NodePool has more than the section would yield, the lines for it follow, and they hold no expressions; where the
field can't hold the NodePool's value, they replace it. All other lines still follow the policy, so that editing it has
effect.
"""

from collections.abc import Iterator
from typing import Any

from reconciler.importer import portion
from reconciler.importer.plain_yaml import entries, entry, items
from reconciler.importer.portion import UnmappedFields
from reconciler.model import names

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
{# Nodes are held back until they can be used. Only a NodePool that is made gets this: into others it is never put, and
   none loses it. While a pool only observes nobody takes the taint off. #}
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
{# Which nodes go is decided by the policies; Karpenter replaces those that drifted, a tenth at a time. #}
      - nodes: "0"
        reasons: [Empty, Underutilized]
      - nodes: 10%
        reasons: [Drifted]
{% else %}
      - nodes: 10%
{% endif %}
{% endfor %}
"""
_NEVER_BY_ITSELF = "{# Left out, it would be 720h, and would replace nodes outside all budgets. #}\n"


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
        yield _lines(entry(label, kept.given[label], 8)) if label in kept.given else text
    yield _LABELS
    yield _lines(entries(kept.labels, 8))
    if "annotations" not in kept.fields.get(portion.METADATA, {}):
        yield _ANNOTATIONS
    yield _more(kept, portion.METADATA, 6)
    yield "    spec:\n"
    yield _CLASS
    yield _more(kept, portion.CLASS, 8)
    yield from _requirements(kept)
    yield from _where("pool.taints", "      taints:\n", _TAINTS, _lines(items(kept.taints, 8)))
    if "startupTaints" not in kept.fields.get(portion.NODE, {}):
        yield _ARRIVING
    yield _NEVER_BY_ITSELF
    yield _field(kept, "expireAfter", 6, "{{ pool.expireAfter }}")
    yield _GRACE if "terminationGracePeriod" not in kept.instead else _field(kept, "terminationGracePeriod", 6, "")
    yield _more(kept, portion.NODE, 6)
    yield from _where("pool.limits", "  limits:\n", _LIMITS, _lines(entries(kept.limits, 4)))
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
    yield "{% endfor %}\n" + _lines(items(kept.requirements, 8))


def _where(requested: str, opening: str, text: str, more: str) -> Iterator[str]:
    """A field that is there if the policy says something of it, or the template does."""
    yield opening + text + more if more else f"{{% if {requested} %}}\n{opening}{text}{{% endif %}}\n"


def _budgets(kept: UnmappedFields) -> Iterator[str]:
    yield _BUDGETS
    if kept.no_budgets:
        yield "{% else %}\n      []\n{% endfor %}\n"
    elif kept.budgets:
        yield "{% endfor %}\n" + _lines(items(kept.budgets, 6))
    else:
        yield _OTHER_BUDGETS


def _field(kept: UnmappedFields, name: str, indent: int, follows: str) -> str:
    if name in kept.instead:
        return _lines(entry(name, kept.instead[name], indent))
    return f"{' ' * indent}{name}: {follows}\n"


def _more(kept: UnmappedFields, place: str, indent: int) -> str:
    fields: dict[str, Any] = kept.fields.get(place, {})
    return _lines(entries(dict(sorted(fields.items())), indent))


def _lines(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
