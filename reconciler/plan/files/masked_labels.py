"""Labels of pods, nodes and machines in a dump: the values that nothing in the same inputs asks for are masked.

Plans order objects by their labels. A mask therefore sorts as its value did among the other values of the same label,
and equal values have equal masks, so that a dump replays to the same plan.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from reconciler.model import names
from reconciler.model.cluster.kinds import RESOURCE_KINDS
from reconciler.model.cluster.redaction import DOMAINS
from reconciler.model.plan.inputs import Inputs

_OBJECTS = sorted({each.field for each in RESOURCE_KINDS})
_MASKED = ("pods", "nodes", "node_claims", "node_pools", "policies", "kept")
# What Kubernetes, the cloud and the GPU operator say about a machine.
_OF_MACHINES = frozenset(
    {*DOMAINS, "node.kubernetes.io", "topology.kubernetes.io", "failure-domain.beta.kubernetes.io", "nvidia.com"}
)
_READ = frozenset(value for value in vars(names).values() if isinstance(value, str))
_STRING = re.compile(rb'"([^"\\]+)')
_ENCODER = msgspec.json.Encoder()
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
        yield from _STRING.findall(_ENCODER.encode(part))
    for field in _OBJECTS:
        for each in getattr(inputs.observed, field):
            for name in each.__struct_fields__:
                if name != "metadata":
                    yield from _STRING.findall(_ENCODER.encode(getattr(each, name)))


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
