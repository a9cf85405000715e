"""A dump: the inputs of a plan as canonical JSON, digested, and without what may be secret.

The same cluster gives the same bytes in whatever order it was read. What is left out here was not read in the first
place, so that a dump replays to the same plan; it is left out again because inputs may come from elsewhere. What the
policies say stands in it as it is.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from hashlib import sha256
from typing import Any

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.cluster.kinds import RESOURCE_KINDS
from reconciler.model.cluster.metadata import LabelSelector
from reconciler.model.cluster.node import NodeClass
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod
from reconciler.model.cluster.unstructured import (
    DOMAINS,
    Unstructured,
    class_without_secrets,
    metadata_without_secrets,
    without_secrets,
)
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.plan import Plan
from reconciler.plan.files.format_1 import Inputs1, decoded_1, skimmed, with_typed_hints
from reconciler.plan.files.valid_names import why_invalid
from reconciler.plan.holds.standstill import Standstill, Standstills
from reconciler.plan.reason_catalog import decoded

_NAME = "reconciler-dump"
FORMAT = f"{_NAME}/2"
_BEFORE = f"{_NAME}/1"  # read still

_OBJECTS = (
    "nodes",
    "pods",
    "budgets",
    "workloads",
    "node_pools",
    "node_claims",
    "node_classes",
    "resource_claims",
    "resource_slices",
    "volume_claims",
    "volumes",
    "storage_classes",
    "csi_nodes",
    "csi_drivers",
    "attachments",
    "namespaces",
    "policies",
    "leases",
    "kept",
)


# No plan looks at labels of these, but of domains that are gone by.
_UNLABELLED = (
    "budgets",
    "workloads",
    "node_classes",
    "resource_claims",
    "resource_slices",
    "volume_claims",
    "storage_classes",
    "csi_nodes",
    "csi_drivers",
    "attachments",
    "leases",
)
_NAMESPACE_NAME = "kubernetes.io/metadata.name"
_OF_VOLUMES = frozenset({names.ZONE, names.REGION, names.ZONE_BEFORE, names.REGION_BEFORE, names.HOSTNAME})


class BadDump(ValueError):
    """Not a dump that can be read; the sentence says why, the remedy what to do."""

    def __init__(self, sentence: str, remedy: str) -> None:
        super().__init__(sentence)
        self.remedy = remedy


class _DumpFile(msgspec.Struct):
    format: str
    digest: str = ""
    inputs: msgspec.Raw = msgspec.Raw(b"null")


_ENCODER = msgspec.json.Encoder(order="sorted")
_DIGEST_LENGTH = len(f"sha256:{sha256().hexdigest()}")


def write(inputs: Inputs) -> bytes:
    """The dump, in one buffer: at 100,000 pods a second one would cost as much as the cluster itself."""
    before, after = b'{"digest":"', b'","format":"%s","inputs":' % FORMAT.encode()
    start = len(before) + _DIGEST_LENGTH + len(after)
    buffer = bytearray()
    _ENCODER.encode_into(redacted(inputs), buffer, start)
    with memoryview(buffer) as whole:
        digest = _digest(whole[start:])
    buffer[:start] = before + digest + after
    buffer += b"}\n"
    return bytes(buffer)


def read(content: bytes) -> Inputs:
    """Raises BadDump."""
    try:
        file = msgspec.json.decode(content, type=_DumpFile)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as fault:
        raise BadDump(f"it is no dump: {fault}", "write it again with reconciler dump") from fault
    if file.format not in {FORMAT, _BEFORE}:
        raise _of_another_format(file.format)
    if not _is_whole(file):
        raise BadDump(
            "what it holds does not match its digest: it was changed after it was written, or is damaged",
            "take the dump again as it was written",
        )
    try:
        inputs = decoded(file.inputs, Inputs) if file.format == FORMAT else _inputs_1(file.inputs)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as fault:
        remedy = "read it with the version of reconciler that wrote it, or write it again with this one"
        raise BadDump(f"this version of reconciler cannot read it: {fault}", remedy) from fault
    if why := why_invalid(inputs):
        raise BadDump(f"reconciler writes no such dump: {why}", "write it again with reconciler dump")
    return inputs


def _inputs_1(content: msgspec.Raw) -> Inputs:
    """Raises msgspec.MsgspecError."""
    return with_typed_hints(decoded_1(content, Inputs), skimmed(content, Inputs1))


def redacted(inputs: Inputs) -> Inputs:
    """As `canonical`, and of namespaces and volumes those labels alone that a selector in the same inputs names; of all
    else masks in the place of what no selector names.

    Only of whole inputs: a part of them does not show which selectors there are."""
    inputs = masked(canonical(inputs))
    observed = inputs.observed
    of_namespaces = {key for pod in observed.pods for key in _namespace_selectors(pod)} | {_NAMESPACE_NAME}
    if any('"namespaceSelector"' in each.body for each in inputs.desired.smart_pods):  # not read as those of pods are
        of_namespaces |= {key for each in observed.namespaces for key in each.metadata.labels}
    of_volumes = _OF_VOLUMES | {key for claim in observed.volume_claims for key in _keys(claim.spec.selector)}
    return msgspec.structs.replace(
        inputs,
        observed=msgspec.structs.replace(
            observed,
            namespaces=tuple(_with_labels(each, of_namespaces) for each in observed.namespaces),
            volumes=tuple(_with_labels(each, of_volumes) for each in observed.volumes),
        ),
    )


def _namespace_selectors(pod: Pod) -> Iterator[str]:
    affinity = pod.spec.affinity
    for term in (*affinity.pod_affinity.required, *affinity.pod_anti_affinity.required) if affinity else ():
        yield from _keys(term.namespace_selector)


def _keys(selector: LabelSelector | None) -> Iterator[str]:
    if selector is not None:
        yield from selector.match_labels
        yield from (each.key for each in selector.match_expressions)


def _with_labels(each: Any, keys: Collection[str]) -> Any:
    """With the labels of these keys, and of domains that are gone by."""
    labels = each.metadata.labels
    kept = {key: value for key, value in labels.items() if key in keys or key.partition("/")[0] in DOMAINS}
    if len(kept) == len(labels):
        return each
    return msgspec.structs.replace(each, metadata=msgspec.structs.replace(each.metadata, labels=kept))


def canonical(inputs: Inputs) -> Inputs:
    """Every collection in order, and nothing in it that may be secret."""
    desired, observed = inputs.desired, inputs.observed
    wishes = {
        key: tuple(sorted(getattr(desired, key), key=lambda each: (each.kind, each.name)))
        for key in ("pools", "provisioners", "drains", "pressures", "guards")
    }
    manifests = tuple(sorted(desired.manifests, key=lambda each: (each.kind, each.namespace, each.name, each.pool)))
    # Those of one pool stand in the order in which it would have its machines.
    smart_pods = tuple(sorted(desired.smart_pods, key=lambda each: each.pool))
    return msgspec.structs.replace(
        inputs,
        desired=msgspec.structs.replace(desired, manifests=manifests, smart_pods=smart_pods, **wishes),
        observed=_observed(observed),
        prune=tuple(sorted(inputs.prune)),
    )


def _observed(observed: Observed) -> Observed:
    objects: dict[str, Any] = {key: tuple(sorted(getattr(observed, key), key=_place)) for key in _OBJECTS}
    for key in _UNLABELLED:
        objects[key] = tuple(_with_labels(each, ()) for each in objects[key])
    for key in ("node_pools", "policies", "kept"):
        objects[key] = tuple(map(_redacted, objects[key]))
    return msgspec.structs.replace(
        observed,
        unread=tuple(sorted(observed.unread)),
        quiet=tuple(sorted(observed.quiet)),
        absent=tuple(sorted(observed.absent)),
        set_aside=tuple(sorted(observed.set_aside)),
        **objects | {"node_classes": tuple(map(_redacted_class, objects["node_classes"]))},
    )


def _place(each: Any) -> tuple[str, str, str, str, str]:
    """Where an object stands among the others; no two of a cluster share it."""
    metadata = each.metadata
    kind = getattr(each, "kind", "")
    return getattr(each, "api_version", ""), kind, metadata.namespace, metadata.name, metadata.uid


def _redacted(whole: Unstructured) -> Unstructured:
    metadata = metadata_without_secrets(whole.metadata)
    return msgspec.structs.replace(whole, metadata=metadata, rest=without_secrets(whole.kind, whole.rest))


def _redacted_class(each: NodeClass) -> NodeClass:
    return msgspec.structs.replace(each, spec=class_without_secrets(each.spec), images=tuple(sorted(each.images)))


def _digest(content: bytes | memoryview) -> bytes:
    return f"sha256:{sha256(content).hexdigest()}".encode()


def _is_whole(file: _DumpFile) -> bool:
    """A file that was only laid out anew, by jq say, still is."""
    digest = file.digest.encode()
    return digest == _digest(memoryview(file.inputs)) or digest == _digest(
        _ENCODER.encode(msgspec.json.decode(file.inputs))
    )


def _of_another_format(found: str) -> BadDump:
    name, _, version = found.partition("/")
    if name != _NAME:
        return BadDump(f'it is no dump: its format is "{found}"', "write it with reconciler dump")
    return BadDump(
        f"it is a dump of format {version}, and this version of reconciler reads 1 and 2",
        "read it with the version of reconciler that wrote it",
    )


# --- Labels of pods, nodes and machines in a dump: the values that nothing in the same inputs asks for are masked.
#
# Plans order objects by their labels. A mask therefore sorts as its value did among the other values of the same label,
# and equal values have equal masks, so that a dump replays to the same plan.

_MASKED_LABELS_OBJECTS = sorted({each.field for each in RESOURCE_KINDS})
_MASKED = ("pods", "nodes", "node_claims", "node_pools", "policies", "kept")
# What Kubernetes, the cloud and the GPU operator say about a machine.
_OF_MACHINES = frozenset(
    {*DOMAINS, "node.kubernetes.io", "topology.kubernetes.io", "failure-domain.beta.kubernetes.io", "nvidia.com"}
)
_READ = frozenset(value for value in vars(names).values() if isinstance(value, str))
_STRING = re.compile(rb'"([^"\\]+)')
_MASKED_LABELS_ENCODER = msgspec.json.Encoder()
# Sorts before every character that a label may have: what begins with a value and this stands right behind the value.
_MASK = "*"


def masked(inputs: Inputs) -> Inputs:
    """Only of whole inputs: a part of them does not show which labels are asked for."""
    observed = inputs.observed
    objects = [each for field in _MASKED for each in getattr(observed, field)]
    keys = {key for each in objects for key in each.metadata.labels if not _is_of_machines(key)}
    keys -= _READ
    keys -= {each.decode() for each in _strings(inputs)}
    if not keys:
        return inputs
    masks = {key: _masks(key, objects) for key in keys}
    fields = {field: tuple([_with_masks(each, masks) for each in getattr(observed, field)]) for field in _MASKED}
    return msgspec.structs.replace(inputs, observed=msgspec.structs.replace(observed, **fields))


def _is_of_machines(key: str) -> bool:
    return key.partition("/")[0] in _OF_MACHINES


def _strings(inputs: Inputs) -> Iterator[bytes]:
    """Every string of the inputs but what is in the metadata of objects; so every label that a selector names."""
    for part in (inputs.desired, inputs.memory, inputs.hints):
        yield from _STRING.findall(_MASKED_LABELS_ENCODER.encode(part))
    for field in _MASKED_LABELS_OBJECTS:
        for each in getattr(inputs.observed, field):
            for name in each.__struct_fields__:
                if name != "metadata":
                    yield from _STRING.findall(_MASKED_LABELS_ENCODER.encode(getattr(each, name)))


def _masks(key: str, objects: Iterable[Any]) -> Mapping[str, str]:
    """By value. The name of the object itself is no secret, and compared with the label: it stays."""
    shown, hidden = set[str](), set[str]()
    for each in objects:
        value = each.metadata.labels.get(key)
        if value is not None:
            (shown if value == each.metadata.name else hidden).add(value)
    hidden -= shown
    masks, before, rank = dict[str, str](), "", 0
    width = len(str(len(hidden)))
    for value in sorted(shown | hidden):
        if value in shown:
            before, rank = value, 0
        else:
            rank += 1
            masks[value] = f"{before}{_MASK}{rank:0{width}}"
    return masks


def _with_masks(each: Any, masks: Mapping[str, Mapping[str, str]]) -> Any:
    labels = each.metadata.labels
    if labels.keys().isdisjoint(masks):
        return each
    entries = {key: masks[key].get(value, value) if key in masks else value for key, value in labels.items()}
    return msgspec.structs.replace(each, metadata=msgspec.structs.replace(each.metadata, labels=entries))


# --- A plan and all that it followed from: what reports and explanations are made of.


class PlanningResult(msgspec.Struct, frozen=True, dict=True):
    """What went in, and what came of it."""

    inputs: Inputs
    fleet: Fleet
    plan: Plan

    @cached_property
    def standstills(self) -> Mapping[str, Standstill]:
        """By node: taints of ours with which no planner goes on."""
        return Standstills(self.inputs, self.fleet).all
