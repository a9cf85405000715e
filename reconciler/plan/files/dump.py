"""A dump: inputs of a plan as canonical JSON, with a digest and without secrets.

The same cluster gives the same bytes in whatever order it was read. Data omitted here is never read for a plan
either, so a dump replays to the same plan; it is omitted again because inputs may have other origins. Content of
policies is not redacted.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from hashlib import sha256
from typing import Any

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.cluster.metadata import LabelSelector
from reconciler.model.cluster.node import NodeClass
from reconciler.model.cluster.observed import OBJECTS, Observed
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
from reconciler.model.plan.pressure import PressureState
from reconciler.plan.files.format_1 import Inputs1, decoded_1, skimmed, with_typed_hints
from reconciler.plan.files.valid_names import why_invalid
from reconciler.plan.holds.standstill import Standstill, Standstills
from reconciler.plan.reason_catalog import decoded

_NAME = "reconciler-dump"
FORMAT = f"{_NAME}/2"
_BEFORE = f"{_NAME}/1"  # still readable

# Kinds of which plans read only labels of the domains in DOMAINS.
_LABELLED = {"nodes", "pods", "node_pools", "node_claims", "volumes", "namespaces", "policies", "kept"}
_UNLABELLED = tuple(field for field in OBJECTS if field not in _LABELLED)
_NAMESPACE_NAME = "kubernetes.io/metadata.name"
_OF_VOLUMES = frozenset({names.ZONE, names.REGION, names.ZONE_BEFORE, names.REGION_BEFORE, names.HOSTNAME})


class BadFile(ValueError):
    """The content is not valid, with a sentence and a remedy."""

    def __init__(self, sentence: str, remedy: str) -> None:
        super().__init__(sentence)
        self.remedy = remedy


class BadDump(BadFile):
    """The content is not a valid dump."""


class _DumpFile(msgspec.Struct):
    format: str
    digest: str = ""
    inputs: msgspec.Raw = msgspec.Raw(b"null")


ENCODER = msgspec.json.Encoder(order="sorted")
_DIGEST_LENGTH = len(f"sha256:{sha256().hexdigest()}")


def write(inputs: Inputs) -> bytes:
    """The dump in one buffer: at 100,000 pods a second buffer would cost as much as the cluster itself."""
    before, after = b'{"digest":"', b'","format":"%s","inputs":' % FORMAT.encode()
    start = len(before) + _DIGEST_LENGTH + len(after)
    buffer = bytearray()
    ENCODER.encode_into(redacted(inputs), buffer, start)
    with memoryview(buffer) as whole:
        digest = digest_of_bytes(whole[start:]).encode()
    buffer[:start] = before + digest + after
    buffer += b"}\n"
    return bytes(buffer)


def read(content: bytes) -> Inputs:
    """Parses a dump. Raises BadDump."""
    try:
        file = msgspec.json.decode(content, type=_DumpFile)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as fault:
        raise BadDump(f"not a dump: {fault}", "create a new dump with reconciler dump") from fault
    if file.format not in {FORMAT, _BEFORE}:
        raise _of_another_format(file.format)
    if not is_whole(file.digest, file.inputs):
        raise BadDump(
            "the content does not match its digest: the file was modified or is damaged",
            "use the original file",
        )
    try:
        inputs = decoded(file.inputs, Inputs) if file.format == FORMAT else _inputs_1(file.inputs)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as fault:
        remedy = "use the version of reconciler that wrote the dump, or create a new dump with this version"
        raise BadDump(f"this version of reconciler cannot read the dump: {fault}", remedy) from fault
    if why := why_invalid(inputs):
        raise BadDump(f"invalid dump: {why}", "create a new dump with reconciler dump")
    return inputs


def _inputs_1(content: msgspec.Raw) -> Inputs:
    """Raises msgspec.MsgspecError."""
    return with_typed_hints(decoded_1(content, Inputs), skimmed(content, Inputs1))


def redacted(inputs: Inputs) -> Inputs:
    """Like `canonical`; of namespaces and volumes keeps only labels that a selector in the same inputs names, and masks
    other label values that no selector names.

    Only for complete inputs: a part does not show all selectors.
    """
    inputs = masked(canonical(inputs))
    observed = inputs.observed
    of_namespaces = {key for pod in observed.pods for key in _namespace_selectors(pod)} | {_NAMESPACE_NAME}
    if any(
        '"namespaceSelector"' in each.body for each in inputs.desired.smart_pods
    ):  # smart pods are rendered manifests, not parsed pods
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
    """The object with only labels of these keys, and of the domains in DOMAINS."""
    labels = each.metadata.labels
    kept = {key: value for key, value in labels.items() if key in keys or key.partition("/")[0] in DOMAINS}
    if len(kept) == len(labels):
        return each
    return msgspec.structs.replace(each, metadata=msgspec.structs.replace(each.metadata, labels=kept))


def canonical(inputs: Inputs) -> Inputs:
    """Every collection sorted, without secrets."""
    desired, observed = inputs.desired, inputs.observed
    wishes = {
        key: tuple(sorted(getattr(desired, key), key=lambda each: (each.kind, each.name)))
        for key in ("pools", "provisioners", "drains", "pressures", "guards")
    }
    manifests = tuple(sorted(desired.manifests, key=lambda each: (each.kind, each.namespace, each.name, each.pool)))
    # Machine options of a pool keep their order, which is the order of preference.
    smart_pods = tuple(sorted(desired.smart_pods, key=lambda each: each.pool))
    return msgspec.structs.replace(
        inputs,
        desired=msgspec.structs.replace(desired, manifests=manifests, smart_pods=smart_pods, **wishes),
        observed=_observed(observed),
        prune=tuple(sorted(inputs.prune)),
        pressure=_pressure(inputs.pressure) if inputs.pressure is not None else None,
    )


def _pressure(state: PressureState) -> PressureState:
    nodes = (
        msgspec.structs.replace(each, pods=tuple(sorted(each.pods, key=lambda pod: pod.uid))) for each in state.nodes
    )
    return PressureState(tuple(sorted(nodes, key=lambda each: each.node)), state.loads)


def _observed(observed: Observed) -> Observed:
    objects: dict[str, Any] = {key: tuple(sorted(getattr(observed, key), key=_place)) for key in OBJECTS}
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
    """Sort key of an object, unique in a cluster."""
    metadata = each.metadata
    kind = getattr(each, "kind", "")
    return getattr(each, "api_version", ""), kind, metadata.namespace, metadata.name, metadata.uid


def _redacted(whole: Unstructured) -> Unstructured:
    metadata = metadata_without_secrets(whole.metadata)
    return msgspec.structs.replace(whole, metadata=metadata, rest=without_secrets(whole.kind, whole.rest))


def _redacted_class(each: NodeClass) -> NodeClass:
    return msgspec.structs.replace(each, spec=class_without_secrets(each.spec), images=tuple(sorted(each.images)))


def digest_of_bytes(content: bytes | memoryview) -> str:
    return f"sha256:{sha256(content).hexdigest()}"


def is_whole(digest: str, content: msgspec.Raw) -> bool:
    """Whether the digest matches. A reformatted file, for example by jq, still matches."""
    if digest == digest_of_bytes(memoryview(content)):
        return True
    try:
        return digest == digest_of_bytes(ENCODER.encode(msgspec.json.decode(content)))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False


def _of_another_format(found: str) -> BadDump:
    name, _, version = found.partition("/")
    if name != _NAME:
        return BadDump(f'not a dump: its format is "{found}"', "create one with reconciler dump")
    return BadDump(
        f"the dump has format {version}; this version of reconciler reads 1 and 2",
        "use the version of reconciler that wrote it",
    )


# --- Labels of pods, nodes and machines in a dump: values that nothing in the inputs selects are masked.
#
# Plans order objects by their labels. Therefore a mask sorts like its value among the other values of the same label,
# and equal values have equal masks, so that a dump replays to the same plan.

_MASKED = ("pods", "nodes", "node_claims", "node_pools", "policies", "kept")
# Labels of Kubernetes, clouds and the GPU operator about machines.
_OF_MACHINES = frozenset(
    {*DOMAINS, "node.kubernetes.io", "topology.kubernetes.io", "failure-domain.beta.kubernetes.io", "nvidia.com"}
)
_READ = frozenset(value for value in vars(names).values() if isinstance(value, str))
_STRING = re.compile(rb'"([^"\\]+)')
# Sorts before every character of a label value: a value followed by this sorts directly after the value.
_MASK = "*"


def masked(inputs: Inputs) -> Inputs:
    """Only for complete inputs: a part does not show which labels are selected."""
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
    """Every string of the inputs outside of metadata, which includes every label named by a selector."""
    for part in (inputs.desired, inputs.memory, inputs.hints):
        yield from _STRING.findall(ENCODER.encode(part))
    for field in OBJECTS:
        for each in getattr(inputs.observed, field):
            for name in each.__struct_fields__:
                if name != "metadata":
                    yield from _STRING.findall(ENCODER.encode(getattr(each, name)))


def _masks(key: str, objects: Iterable[Any]) -> Mapping[str, str]:
    """Masks by value. The object's own name is not a secret, and is compared with the label, so it stays."""
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


# --- A plan with its inputs, for reports and explanations.


class PlanningResult(msgspec.Struct, frozen=True, dict=True):
    inputs: Inputs
    fleet: Fleet
    plan: Plan

    @cached_property
    def standstills(self) -> Mapping[str, Standstill]:
        """By node: taints of ours that no planner continues with."""
        return Standstills(self.inputs, self.fleet).all
