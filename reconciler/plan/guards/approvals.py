"""Which ChangeApprovals hold now, and what each covers: until they end, and only while they can be read.

An approval of objects covers the decisions that follow from policies with exactly the digests that it names, at any
revision. An approval of a revision covers every decision of a plan of that revision, and counts only where the
revision is known from the content: custom resources may claim any. What `prune` names may be deleted once no policy
declares it, and its deletion is covered too.
"""

from collections.abc import Iterable, Iterator
from functools import cached_property
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
SHOWN = 15  # of a digest: sha256: and as many digits as tell two apart, as a rule


class Approval(msgspec.Struct, frozen=True):
    """One that can be read."""

    name: str
    spec: ChangeApproval
    ends: Instant
    policies: frozenset[PolicyKey] = frozenset()  # that it names, and that have the digests that it names

    def covers(self, cause: Cause) -> bool:
        """Whether the decision is within what was approved, however much it takes."""
        if cause.lost and cause.lost in self.spec.prune:
            return True
        if self.spec.objects:
            return bool(cause.policies) and cause.policies <= self.policies
        return self.spec.revision is not None

    def allows(self, sums: DisruptionSums, measures: Iterable[Measure]) -> bool:
        """Whether what is over the guard's own limits is within its ceilings."""
        ceilings = ((measure, limit_of(self.spec.ceilings, measure)) for measure in measures)
        return all(limit is not None and not sums.count(measure, limit).is_over for measure, limit in ceilings)


class Approvals:
    """Owner of what was looked up of them for one plan."""

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs

    def for_guard(self, guard: str) -> tuple[Approval, ...]:
        """Those that hold for this guard, by name."""
        return tuple(each for each in self.holding if each.spec.guard_name == guard)

    @cached_property
    def holding(self) -> tuple[Approval, ...]:
        """Those that hold now, by name. One may have been taken back where they can't be read."""
        inputs = self._inputs
        if inputs.observed.why_unread(TITLE):
            return ()
        approvals = (
            each
            for each in _readable(inputs)
            if self._is_of_revision(each.spec.revision) and not each.spec.suspend and inputs.now < each.ends
        )
        digests: dict[PolicyKey, str | None] = {}
        whole = (msgspec.structs.replace(each, policies=_unchanged(inputs, each.spec, digests)) for each in approvals)
        return tuple(sorted(whole, key=lambda each: each.name))

    def _is_of_revision(self, revision: str | None) -> bool:
        desired = self._inputs.desired
        return revision is None or (revision == desired.revision and not desired.is_claimed)

    @cached_property
    def losses(self) -> dict[str, str]:
        """Titles of objects that may be lost, and who agreed to that."""
        found = {title: f"{KIND}/{each.name}" for each in reversed(self.holding) for title in each.spec.prune}
        return found | {title: f"--prune {title}" for title in self._inputs.prune}


def approval_notes(inputs: Inputs) -> Iterator[str]:
    """What a person must know who relies on one."""
    if inputs.desired.guards and (why := inputs.observed.why_unread(TITLE)):
        yield f"approvals could not be read, so none counts: {why}"
    if inputs.desired.guards and TITLE in inputs.observed.absent:
        yield f"this cluster has no definition of {KIND}, so nothing can be approved; install it with: {INSTALL}"
    read = {each.name for each in _readable(inputs)}
    for whole in sorted(_there(inputs), key=lambda each: each.name):
        if whole.name not in read:
            yield f"{KIND}/{whole.name} can't be read, and approves nothing: compare it with its definition"
    yield from _claimed(inputs)
    for approval in Approvals(inputs).holding:
        for each in approval.spec.objects:
            if (each.kind, each.name) not in approval.policies:
                yield f"{KIND}/{approval.name} does not cover {each.kind}/{each.name}: {_other(inputs, each)}"


def _claimed(inputs: Inputs) -> Iterator[str]:
    """Of approvals of a revision that the custom resources only claim to have."""
    for each in sorted(_readable(inputs), key=lambda one: one.name) if inputs.desired.is_claimed else ():
        if each.spec.revision == inputs.desired.revision and not each.spec.suspend and inputs.now < each.ends:
            yield (
                f"{KIND}/{each.name} approves a revision, which custom resources only claim to have, and does not "
                "count: approve policies by their content (reconciler approve KIND/NAME --resources)"
            )


def _other(inputs: Inputs, approved: ApprovedObject) -> str:
    found = policy_digest(inputs.desired, approved.kind, approved.name)
    if found is None:
        return "no such policy is declared"
    return f"it was approved as {approved.digest[:SHOWN]}, and is {found[:SHOWN]} now"


def _there(inputs: Inputs) -> Iterator[Unstructured]:
    return (each for each in inputs.observed.policies if each.kind == KIND and not each.metadata.deletion_timestamp)


def _readable(inputs: Inputs) -> Iterator[Approval]:
    for whole in _there(inputs):
        try:
            spec = msgspec.convert(whole.spec, ChangeApproval)
            ends = instant(spec.expires)
        except ValueError:  # that a field is not what it should be is one too
            continue
        yield Approval(whole.name, spec, ends)


def _unchanged(inputs: Inputs, spec: ChangeApproval, digests: dict[PolicyKey, str | None]) -> frozenset[PolicyKey]:
    """Policies that have the digests that an approval names; `digests` are those known already."""
    found = set()
    for each in spec.objects:
        key = (each.kind, each.name)
        if key not in digests:
            digests[key] = policy_digest(inputs.desired, *key)
        if digests[key] == each.digest:
            found.add(key)
    return frozenset(found)


# --- The digest of a policy's resolved result: its spec and what its templates yield, without where any of it was
# written.
#
# The same content has the same digest at every revision and in every file. A field that says what its default says does
# not count, so a version that adds fields leaves digests as they are. Of a GpuPool the manifests and smart pods count,
# as templates yield them: a template that is edited changes the digest of each pool whose rendering it changes.

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
