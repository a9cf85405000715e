"""Converts NodePools of a cluster to policies and templates whose plan drifts no node."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from reconciler.importer.autoscaler import Flags, drain_policy
from reconciler.importer.imported_pool import (
    NOTHING_SAYS,
    ImportedPool,
    is_ours,
    live_machines,
    read_imported_pool,
    why_without,
)
from reconciler.importer.policy_text import policy_text, template_text
from reconciler.importer.portion import can_say, live_spec, plain_taints
from reconciler.importer.text import ImportNote, notes
from reconciler.model.bundle import Bundle, Text
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.unstructured import Unstructured, UnstructuredMetadata
from reconciler.model.names import ARRIVING, OURS
from reconciler.model.quantity import Duration, Quantity
from reconciler.policy.rules.kinds import GPU_POOL
from reconciler.policy.words import did_you_mean

NODE_POOLS, NODES = "nodepools.karpenter.sh", "nodes"
TEMPLATES = "templates/"

_HEADER = """\
{#
  Imported from a NodePool in the cluster. Settings that no field of a GpuPool can express are copied here; all other
  lines are from the default template, node_pool.yaml.j2, and follow the policy.
#}
"""


class Skipped(msgspec.Struct, frozen=True):
    """A NodePool that was not imported."""

    name: str
    why: str


class Imported(msgspec.Struct, frozen=True):
    files: tuple[Text, ...] = ()
    notes: tuple[ImportNote, ...] = ()
    skipped: tuple[Skipped, ...] = ()

    def with_drain_policy(self, flags: Flags) -> "Imported":
        """Adds the DrainPolicy for a Cluster Autoscaler."""
        text, notes = drain_policy(flags)
        files = tuple(sorted((*self.files, text), key=lambda each: each.path))
        return msgspec.structs.replace(self, files=files, notes=(*self.notes, *notes))

    @property
    def bundle(self) -> Bundle:
        """The bundle, as read from the folder of the files."""
        policies = tuple(text for text in self.files if not text.path.startswith(TEMPLATES))
        templates = (text for text in self.files if text.path.startswith(TEMPLATES))
        named = (Text(text.path.removeprefix(TEMPLATES), text.content, text.path) for text in templates)
        return Bundle("import", policies, tuple(named))


def imported(observed: Observed, default_template: str, names: Sequence[str] = ()) -> Imported:
    """Imports the NodePools of these names, or all NodePools with GPUs. Their templates follow the default template."""
    pools = {pool.name: pool for pool in observed.node_pools}
    living = live_machines(observed)
    files: list[Text] = []
    import_notes: list[ImportNote] = []
    skipped: list[Skipped] = []
    for name in sorted(set(names) or pools):
        if name not in pools:
            skipped.append(Skipped(name, f"there is no NodePool of this name{did_you_mean(name, pools)}"))
            continue
        imported_pool = read_imported_pool(pools[name], living.get(name, ()))
        if why := _why_not(observed, imported_pool, name in names):
            skipped.append(Skipped(name, why))
            continue
        files += _files(imported_pool, default_template)
        import_notes += notes(imported_pool, observed.why_unread(NODES))
    return Imported(tuple(sorted(files, key=lambda text: text.path)), tuple(import_notes), tuple(skipped))


def _files(pool: ImportedPool, default_template: str) -> Iterator[Text]:
    yield Text(pool.policy_file, policy_text(pool).encode())
    kept = pool.portion.kept
    if kept.anything:
        yield Text(TEMPLATES + pool.template, (_HEADER + template_text(kept, default_template)).encode())


def _why_not(observed: Observed, pool: ImportedPool, is_named: bool) -> str:
    """Why a NodePool is not imported; empty if it is."""
    class_ref = pool.portion.said["nodeClassRef"]
    without, longest = why_without(pool.spec, pool.gpus), GPU_POOL.longest_name
    has_policy = any(each.kind == "GpuPool" and each.name == pool.name for each in observed.policies)
    reasons = (
        (not can_say("nodeClassRef", {**class_ref, "name": pool.name}), "its name is not a valid NodePool name"),
        (len(pool.name) > longest, f"its name exceeds the {longest} characters of a GpuPool name"),
        (pool.live.metadata.deletion_timestamp, "it is being deleted"),
        (is_ours(pool.live), "it is already managed by reconciler"),
        (has_policy, "the cluster already has a GpuPool of this name"),
        (not can_say("nodeClassRef", class_ref), "its nodeClassRef is invalid"),
        # A NodePool that is named counts as one with GPUs, unless its nodes say otherwise.
        (without and not (is_named and without == NOTHING_SAYS), without),
    )
    return next((why for applies, why in reasons if applies), "")


# --- Differences between a rendered NodePool and the live one: a first check, before a plan counts nodes.
#
# Two NodePools are equal here if they mean the same to Karpenter: requirements, taints and values in any order, 90m and
# 1h30m, 1000m and 1. Labels of our domain that the live one lacks do not count: for an adopted NodePool they are set on
# the Node objects instead. Nor does our startup taint, which adopted NodePools do not get.

Plain = dict[str, Any]

_NODE = "spec.template.spec"
_METADATA = "spec.template.metadata"
# Each of their entries is a separate difference.
_TAKEN_APART = frozenset(
    {"spec", "spec.limits", "spec.disruption", "spec.template", _NODE, f"{_NODE}.nodeClassRef", _METADATA}
    | {f"{_METADATA}.labels", f"{_METADATA}.annotations"}
)


def differences(rendered: Mapping[str, Any], live: Unstructured) -> tuple[str, ...]:
    """Fields of the spec that differ, sorted: spec.limits.cpu, spec.template.spec.taints."""
    wished = live_spec(Unstructured("", "", UnstructuredMetadata(""), {"spec": rendered.get("spec")}))
    there = live_spec(live)
    labels, known = wished["template"]["metadata"]["labels"], there["template"]["metadata"]["labels"]
    for key in [key for key in labels if key.startswith(OURS) and key not in known]:
        del labels[key]
    holding = wished["template"]["spec"]["startupTaints"]
    if ARRIVING not in {each.get("key") for each in there["template"]["spec"]["startupTaints"]}:
        holding[:] = [each for each in holding if each.get("key") != ARRIVING]
    return tuple(sorted(_apart(_meaning(wished), _meaning(there), "spec")))


def _apart(one: Any, other: Any, path: str) -> Iterator[str]:
    if one == other:
        return
    if path in _TAKEN_APART and isinstance(one, dict) and isinstance(other, dict):
        for key in sorted({*one, *other}):
            yield from _apart(one.get(key), other.get(key), f"{path}.{key}")
    else:
        yield path


def _meaning(spec: Plain) -> Plain:
    """Normalized form: equal for specs that mean the same to Karpenter."""
    template, disruption = spec["template"], spec["disruption"]
    node = template["spec"]
    of_nodes = {
        "requirements": _unordered([_requirement(each) for each in node["requirements"]]),
        "taints": _unordered(plain_taints(node["taints"])),
        "startupTaints": _unordered(plain_taints(node["startupTaints"])),
        "expireAfter": _length(node["expireAfter"]),
        "terminationGracePeriod": _length(node.get("terminationGracePeriod")),
    }
    of_disruption = {
        "consolidateAfter": _length(disruption["consolidateAfter"]),
        "budgets": [_budget(each) for each in disruption["budgets"]],
    }
    inner = _said(template) | {"spec": _said(node) | of_nodes}
    limits = {name: _amount(most) for name, most in spec["limits"].items()}
    return _said(spec) | {"limits": limits, "template": inner, "disruption": _said(disruption) | of_disruption}


def _said(fields: Plain) -> Plain:
    """Without empty values, which are equivalent to absent ones."""
    return {name: value for name, value in fields.items() if value not in ({}, [])}


def _requirement(requirement: Plain) -> Plain:
    return _said(requirement | {"values": _unordered(requirement.get("values", []))})


def _budget(budget: Plain) -> Plain:
    """The budget; an empty list of reasons stays: it means never, whereas absent reasons mean always."""
    result = dict(budget)
    if "reasons" in budget:
        result["reasons"] = _unordered(budget["reasons"])
    if "duration" in budget:
        result["duration"] = _length(budget["duration"])
    return result


def _unordered(values: Any) -> list[Any]:
    items = values if isinstance(values, list) else [values]
    return sorted(items, key=lambda each: msgspec.json.encode(each, order="sorted"))


def _length(text: Any) -> Any:
    try:
        return Duration.parse(text).milliseconds if isinstance(text, str) else text
    except ValueError:  # Never, or beyond the range of a policy: only equal texts are equal
        return text


def _amount(value: Any) -> Any:
    try:
        return Quantity.parse(str(value)).milli
    except ValueError:  # finer than the stored precision, or negative
        return str(value)
