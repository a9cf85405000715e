"""ChangeApprovals: which approvals are valid now, and what each covers. An approval is valid until it expires, and only
while approvals can be read.

An approval of objects covers decisions caused by policies with exactly the named digests, at any revision. An
approval of a revision covers every decision of a plan of that revision, and is valid only if the revision is derived
from the content: custom resources may claim any revision. Objects named in `prune` may be deleted once no policy
declares them, and the approval covers their deletion.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cache, cached_property, partial
from hashlib import sha256
from typing import Any

import msgspec

from reconciler.model.cluster.kinds import RESOURCE_KINDS
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.desired import Declared, Desired
from reconciler.model.instant import Instant, instant
from reconciler.model.plan.guard_verdict import Measure
from reconciler.model.plan.inputs import Inputs
from reconciler.model.policy.guards import ApprovedObject, ChangeApproval
from reconciler.plan.causes import Cause, PolicyKey
from reconciler.plan.guards.ledger import DisruptionSums, limit_of

KIND = "ChangeApproval"
TITLE = next(each.title for each in RESOURCE_KINDS if each.kind == KIND)
INSTALL = "reconciler schema ChangeApproval --crd | kubectl apply --server-side -f -"
SHOWN = 15  # characters of a digest: sha256: and usually enough digits to distinguish two


class Approval(msgspec.Struct, frozen=True):
    """A readable approval."""

    name: str
    spec: ChangeApproval
    ends: Instant
    policies: frozenset[PolicyKey] = frozenset()  # named policies that have the named digests

    def covers(self, cause: Cause) -> bool:
        """Whether the approval covers the cause, whatever the decision takes."""
        if cause.lost and cause.lost in self.spec.prune:
            return True
        if self.spec.objects:
            return bool(cause.policies) and cause.policies <= self.policies
        return self.spec.revision is not None

    def allows(self, sums: DisruptionSums, measures: Iterable[Measure]) -> bool:
        """Whether the measures beyond the guard's limits are within the approval's ceilings."""
        ceilings = ((measure, limit_of(self.spec.ceilings, measure)) for measure in measures)
        return all(limit is not None and not sums.count(measure, limit).is_over for measure, limit in ceilings)


class Approvals:
    """Lookups of approvals for one plan."""

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs

    def for_guard(self, guard: str) -> tuple[Approval, ...]:
        """Valid approvals for the guard, by name."""
        return tuple(each for each in self.holding if each.spec.guard_name == guard)

    @cached_property
    def holding(self) -> tuple[Approval, ...]:
        """Valid approvals, by name. Empty if approvals can't be read, because an approval may have been withdrawn."""
        inputs = self._inputs
        if inputs.observed.why_unread(TITLE):
            return ()
        approvals = (
            each
            for each in _readable(inputs)
            if self._is_of_revision(each.spec.revision) and not each.spec.suspend and inputs.now < each.ends
        )
        digest = cache(partial(policy_digest, inputs.desired))
        whole = (msgspec.structs.replace(each, policies=_unchanged(each.spec, digest)) for each in approvals)
        return tuple(sorted(whole, key=lambda each: each.name))

    def _is_of_revision(self, revision: str | None) -> bool:
        desired = self._inputs.desired
        return revision is None or (revision == desired.revision and not desired.is_claimed)

    @cached_property
    def losses(self) -> dict[str, str]:
        """Titles of objects that may be deleted, with the approval or option that allows the deletion."""
        found = {title: f"{KIND}/{each.name}" for each in reversed(self.holding) for title in each.spec.prune}
        return found | {title: f"--prune {title}" for title in self._inputs.prune}


def approval_notes(inputs: Inputs) -> Iterator[str]:
    """Notes for people who rely on an approval."""
    if inputs.desired.guards and (why := inputs.observed.why_unread(TITLE)):
        yield f"approvals could not be read, so no approval is valid: {why}"
    if inputs.desired.guards and TITLE in inputs.observed.absent:
        yield f"this cluster has no definition of {KIND}, so nothing can be approved; install it with: {INSTALL}"
    read = {each.name for each in _readable(inputs)}
    for whole in sorted(_there(inputs), key=lambda each: each.name):
        if whole.name not in read:
            yield f"{KIND}/{whole.name} is malformed and approves nothing: compare the object with its definition"
    yield from _claimed(inputs)
    for approval in Approvals(inputs).holding:
        for each in approval.spec.objects:
            if (each.kind, each.name) not in approval.policies:
                yield f"{KIND}/{approval.name} does not cover {each.kind}/{each.name}: {_other(inputs, each)}"


def _claimed(inputs: Inputs) -> Iterator[str]:
    """Notes about approvals of a revision that custom resources only claim to have."""
    for each in sorted(_readable(inputs), key=lambda one: one.name) if inputs.desired.is_claimed else ():
        if each.spec.revision == inputs.desired.revision and not each.spec.suspend and inputs.now < each.ends:
            yield (
                f"{KIND}/{each.name} approves a revision, which custom resources only claim to have, so the approval "
                "is not valid: approve policies by their content (reconciler approve KIND/NAME --resources)"
            )


def _other(inputs: Inputs, approved: ApprovedObject) -> str:
    found = policy_digest(inputs.desired, approved.kind, approved.name)
    if found is None:
        return "no such policy is declared"
    return f"the approved digest is {approved.digest[:SHOWN]}, the current digest is {found[:SHOWN]}"


def _there(inputs: Inputs) -> Iterator[Unstructured]:
    return (each for each in inputs.observed.policies if each.kind == KIND and not each.metadata.deletion_timestamp)


def _readable(inputs: Inputs) -> Iterator[Approval]:
    for whole in _there(inputs):
        try:
            spec = msgspec.convert(whole.spec, ChangeApproval)
            ends = instant(spec.expires)
        except ValueError:  # includes msgspec.ValidationError
            continue
        yield Approval(whole.name, spec, ends)


def _unchanged(spec: ChangeApproval, digest: Callable[[str, str], str | None]) -> frozenset[PolicyKey]:
    """Named policies that have the named digests."""
    return frozenset((each.kind, each.name) for each in spec.objects if digest(each.kind, each.name) == each.digest)


# --- Digest of a resolved policy: its spec and its rendered templates, without their places in files.
#
# The same content has the same digest at every revision and in every file. Fields with their default value do not
# count, so a version with new fields keeps digests unchanged. The digest of a GpuPool includes the rendered manifests
# and smart pods, so an edited template changes the digest of each pool whose rendering changes.

POOL = "GpuPool"


def policy_digest(desired: Desired, kind: str, name: str) -> str | None:
    """Digest of the policy; None if no such policy is declared."""
    declared = next((each for each in desired.declared if (each.kind, each.name) == (kind, name)), None)
    if declared is None:
        return None
    content = {"kind": kind, "name": name, "spec": _content(declared.spec), "rendering": _rendering(desired, declared)}
    return f"sha256:{sha256(msgspec.json.encode(content, order='sorted')).hexdigest()}"


def _rendering(desired: Desired, declared: Declared[Any]) -> list[Any]:
    """Rendered objects as canonical JSON, in a fixed order."""
    if declared.kind != POOL:
        return []
    manifests = sorted(each.body for each in desired.manifests if each.pool == declared.name)
    smart_pods = sorted((each.instance_type, each.body) for each in desired.smart_pods if each.pool == declared.name)
    return [manifests, smart_pods]


def _content(value: Any) -> Any:
    """Fields of an object that differ from their defaults."""
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
