"""The digest of a policy's resolved result: its spec and what its templates yield, without where any of it was written.

The same content has the same digest at every revision and in every file. A field that says what its default says does
not count, so a version that adds fields leaves digests as they are. Of a GpuPool the manifests and smart pods count, as
templates yield them: a template that is edited changes the digest of each pool whose rendering it changes.
"""

from hashlib import sha256
from typing import Any

import msgspec

from reconciler.model.desired import Declared, Desired

POOL = "GpuPool"


def policy_digest(desired: Desired, kind: str, name: str) -> str | None:
    """None where no such policy is declared."""
    declared = next((each for each in desired.declared if (each.kind, each.name) == (kind, name)), None)
    if declared is None:
        return None
    content = {"kind": kind, "name": name, "spec": _content(declared.spec), "rendering": _rendering(desired, declared)}
    return f"sha256:{sha256(msgspec.json.encode(content, order='sorted')).hexdigest()}"


def _rendering(desired: Desired, declared: Declared[Any]) -> list[Any]:
    """Canonical JSON of each object, in a fixed order."""
    if declared.kind != POOL:
        return []
    manifests = sorted(each.body for each in desired.manifests if each.pool == declared.name)
    smart_pods = sorted((each.instance_type, each.body) for each in desired.smart_pods if each.pool == declared.name)
    return [manifests, smart_pods]


def _content(value: Any) -> Any:
    """Of an object, what its defaults don't say."""
    if isinstance(value, msgspec.Struct):
        return {
            field.encode_name: _content(said)
            for field in msgspec.structs.fields(value)
            if (said := getattr(value, field.name)) != _default(field)
        }
    if isinstance(value, list | tuple):
        return [_content(each) for each in value]
    if isinstance(value, dict):
        return {key: _content(each) for key, each in value.items()}
    return value


def _default(field: msgspec.structs.FieldInfo) -> Any:
    return field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
