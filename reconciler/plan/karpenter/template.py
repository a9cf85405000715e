"""A NodePool's template as Karpenter reads it: None is what was not written, which is not the same as empty."""

from collections.abc import Mapping
from typing import Any

import msgspec

EXPIRES_AFTER = "720h"  # what the API server writes where nothing is said


class TemplateMetadata(msgspec.Struct, frozen=True, gc=False):
    """What its nodes are labelled with."""

    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class TemplateTaint(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A taint that its nodes are born with."""

    key: str = ""
    value: str | None = None
    effect: str = ""
    time_added: str | None = None


class TemplateClass(msgspec.Struct, frozen=True, gc=False):
    """The class of its machines."""

    kind: str = ""
    name: str = ""
    group: str = ""


class NodePoolRequirement(msgspec.Struct, frozen=True, gc=False):
    """A label compared. `minValues` is left behind: it limits what is bought, never what may stay."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class TemplateSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What its nodes are."""

    taints: tuple[TemplateTaint, ...] | None = None
    startup_taints: tuple[TemplateTaint, ...] | None = None
    requirements: tuple[NodePoolRequirement, ...] | None = None
    node_class_ref: TemplateClass | None = None
    termination_grace_period: str | None = None
    expire_after: str | None = EXPIRES_AFTER


class NodeClaimTemplate(msgspec.Struct, frozen=True, gc=False):
    """The whole of it."""

    metadata: TemplateMetadata = TemplateMetadata()
    spec: TemplateSpec = TemplateSpec()


def read_template(written: Mapping[str, Any]) -> NodeClaimTemplate:
    """Reads `spec.template`. Raises ValueError with a sentence where the API server would refuse it."""
    try:
        return msgspec.convert(written, NodeClaimTemplate)
    except msgspec.ValidationError as refused:
        raise ValueError(f"spec.template is not what Karpenter reads: {refused}") from None
