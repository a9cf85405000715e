"""Whether a manifest may be applied at all: asked again before it is sent, whoever the plan comes from.

Policies are checked when they are read. A saved plan, a custom resource or a fault of ours could bring a manifest that
no template may yield.
"""

import msgspec

from reconciler.model.manifest_rules.kinds import why_not_applied
from reconciler.model.plan.action import Apply
from reconciler.model.plan.decision import Decision
from reconciler.protocol.preconditions import WriteResult


def why_unapplied(decision: Decision) -> WriteResult | None:
    """How it ends without a write; None where the manifest is of its subject, and may be applied."""
    act, subject = decision.act, decision.subject
    if not isinstance(act, Apply):
        return None
    if why := why_not_applied(act.manifest):
        return WriteResult("refused", f"{subject.title} is not applied: {why}")
    manifest = msgspec.json.decode(act.manifest)
    metadata = manifest["metadata"]
    if (manifest["kind"], metadata.get("namespace", ""), metadata.get("name")) != (
        subject.kind,
        subject.namespace,
        subject.name,
    ):
        return WriteResult("refused", f"{subject.title} is not applied: the manifest is of another object")
    return None
