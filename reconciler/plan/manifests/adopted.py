"""Whether a NodePool of ours was someone else's before: an annotation says so, and what is missing when that was lost.

Where the annotation is gone, our labels would go into a template that stands without them, and drift every node. So a
template that has none of the labels of our domain that are wished counts as adopted, unless someone else took them out:
a map of labels belongs to whoever wrote it last, so while we own it, it is as we wrote it.
"""

from typing import Any

from reconciler.model import names
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.plan.manifests.ownership import Owners, owners_of

YES = "true"


def was_adopted(live: Unstructured, body: dict[str, Any]) -> bool:
    """Whether our labels are to be kept out of its template."""
    return live.metadata.annotations.get(names.ADOPTED) == YES or _lost_its_mark(live, body)


def lacking_labels(live: Unstructured, body: dict[str, Any]) -> dict[str, str]:
    """The labels of our domain that the manifest has in its template, and the NodePool has not."""
    wished, there = template_labels(body.get("spec")), template_labels(live.spec)
    return {key: wished[key] for key in sorted(wished) if key.startswith(names.OURS) and key not in there}


def template_labels(spec: Any) -> dict[str, str]:
    """Of the nodes that a NodePool makes."""
    template = (spec or {}).get("template") or {}
    return (template.get("metadata") or {}).get("labels") or {}


def _lost_its_mark(live: Unstructured, body: dict[str, Any]) -> bool:
    lacking = lacking_labels(live, body)
    if not live.is_ours or not lacking:
        return False
    has_ours = any(key.startswith(names.OURS) for key in template_labels(live.spec))
    if not live.metadata.managed_fields:
        return not has_ours
    owners = _owners_of_labels(live)
    if has_ours:  # together with us, whoever had it before: then all that stands there was there before us
        return owners.ours is not None and bool(owners.others)
    is_all_ours = len(lacking) == len(template_labels(body.get("spec")))
    return owners.ours is not None or not owners.others or is_all_ours


def _owners_of_labels(live: Unstructured) -> Owners:
    owners = owners_of(live)
    for field in ("spec", "template", "metadata", "labels"):
        owners = owners.within(f"f:{field}")
    return owners
