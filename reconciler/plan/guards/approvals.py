"""Which ChangeApprovals hold now: for one revision, whole, and one guard, until they end."""

from collections.abc import Iterable, Iterator

import msgspec

from reconciler.model.cluster.kinds import SEEN
from reconciler.model.cluster.whole import Whole
from reconciler.model.instant import Instant, instant
from reconciler.model.kinds.change_approval import ChangeApproval
from reconciler.model.planned.guarded import Measure
from reconciler.model.planned.inputs import Inputs
from reconciler.plan.guards.sums import Sums, limit_of

KIND = "ChangeApproval"
TITLE = next(each.title for each in SEEN if each.kind == KIND)


class Approval(msgspec.Struct, frozen=True):
    """One that can be read."""

    name: str
    spec: ChangeApproval
    ends: Instant

    def covers(self, sums: Sums, measures: Iterable[Measure]) -> bool:
        """Whether what is over the guard's own limits is within its ceilings."""
        ceilings = ((measure, limit_of(self.spec.ceilings, measure)) for measure in measures)
        return all(limit is not None and not sums.count(measure, limit).is_over for measure, limit in ceilings)


def approvals_for(inputs: Inputs, guard: str) -> tuple[Approval, ...]:
    """Those that hold for this guard and revision, by name. One may have been taken back where they can't be read."""
    revision = "" if inputs.observed.why_unread(TITLE) else inputs.desired.revision
    found = (each for each in _readable(inputs) if each.spec.guard_name == guard and each.spec.revision == revision)
    holding = (each for each in found if not each.spec.suspend and inputs.now < each.ends)
    return tuple(sorted(holding, key=lambda each: each.name)) if revision else ()


def told_of_approvals(inputs: Inputs) -> Iterator[str]:
    """What a person must know who relies on one."""
    if inputs.desired.guards and (why := inputs.observed.why_unread(TITLE)):
        yield f"approvals could not be read, so none counts: {why}"
    read = {each.name for each in _readable(inputs)}
    for whole in sorted(_there(inputs), key=lambda each: each.name):
        if whole.name not in read:
            yield f"{KIND}/{whole.name} can't be read, and approves nothing: compare it with its definition"


def _there(inputs: Inputs) -> Iterator[Whole]:
    return (each for each in inputs.observed.policies if each.kind == KIND and not each.metadata.deletion_timestamp)


def _readable(inputs: Inputs) -> Iterator[Approval]:
    for whole in _there(inputs):
        try:
            spec = msgspec.convert(whole.spec, ChangeApproval)
            yield Approval(whole.name, spec, instant(spec.expires))
        except ValueError:  # that a field is not what it should be is one too
            continue
