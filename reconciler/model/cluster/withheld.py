"""What is not read even of an object that is kept whole, because people put secrets there.

What is never read can't leak: into a dump, a log or a report. The other side of it: whoever compares a manifest with an
object that was read must leave the same things out of the manifest first.
"""

from typing import Any

import msgspec

from reconciler.model import names
from reconciler.model.cluster.whole import WholeMetadata

# Annotations of these are gone by. Of all others, only those that we set: they stand in the policies anyway.
DOMAINS = frozenset({"gpu.scheduling", "karpenter.sh", "karpenter.k8s.aws"})

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")
_OF_A_CONTAINER = frozenset(
    {"args", "command", "env", "envFrom", "lifecycle", "livenessProbe", "readinessProbe", "startupProbe"}
)
# Drivers of volumes take options in these, passwords among them.
_OF_A_VOLUME = {"csi": "volumeAttributes", "flexVolume": "options"}


def without_secrets(kind: str, rest: dict[str, Any]) -> dict[str, Any]:
    """What stands beside apiVersion, kind and metadata, without what a Pod's containers run, and with what."""
    spec = rest.get("spec")
    if kind != "Pod" or not isinstance(spec, dict):
        return rest
    told = {key: [_container(each) for each in spec[key]] for key in _CONTAINERS if isinstance(spec.get(key), list)}
    if isinstance(spec.get("volumes"), list):
        told["volumes"] = [_volume(each) for each in spec["volumes"]]
    return rest | {"spec": spec | told}


def class_without_secrets(spec: dict[str, Any]) -> dict[str, Any]:
    """A node class' spec without the script that its machines run when they start."""
    return {key: value for key, value in spec.items() if not key.lower().startswith("userdata")}


def metadata_without_secrets(metadata: WholeMetadata) -> WholeMetadata:
    """With those annotations alone that are gone by, or that we set."""
    annotations = metadata.annotations
    asked = {key for key in annotations if key.partition("/")[0] in DOMAINS}
    if len(asked) < len(annotations):
        asked |= _ours(metadata) & annotations.keys() - {_LAST_APPLIED}
    if len(asked) == len(annotations):
        return metadata
    return msgspec.structs.replace(metadata, annotations={key: annotations[key] for key in annotations if key in asked})


def _ours(metadata: WholeMetadata) -> set[str]:
    """Annotations that the API server says we set."""
    found: set[str] = set()
    for writer in metadata.managed_fields:
        fields = writer.fields.get("f:metadata")
        named = fields.get("f:annotations") if isinstance(fields, dict) else None
        if writer.manager == names.FIELD_MANAGER and writer.operation == "Apply" and isinstance(named, dict):
            found |= {key.removeprefix("f:") for key in named}
    return found


def _container(container: object) -> object:
    if not isinstance(container, dict):
        return container
    return {key: value for key, value in container.items() if key not in _OF_A_CONTAINER}


def _volume(volume: object) -> object:
    if not isinstance(volume, dict):
        return volume
    return {
        key: {name: each for name, each in value.items() if name != _OF_A_VOLUME.get(key)}
        if isinstance(value, dict)
        else value
        for key, value in volume.items()
    }
