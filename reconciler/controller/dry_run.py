"""What would happen: policies and a cluster become a plan, beside it that of another revision on the same cluster."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from reconciler import __version__
from reconciler.controller.cluster import ClusterPlace, ClusterView, observed_cluster
from reconciler.controller.policies import Checkup, Origins, check, check_custom_resources, is_without
from reconciler.loop import decide
from reconciler.model.bundle import PolicyChange
from reconciler.model.desired import Desired
from reconciler.model.instant import Instant, timestamp
from reconciler.model.plan.inputs import Inputs
from reconciler.plan.check import BrokenInvariant
from reconciler.plan.files import dump
from reconciler.plan.files.dump import PlanningResult
from reconciler.policy.changes import changes
from reconciler.policy.document import BASE
from reconciler.policy.resolve import Resolved, chosen
from reconciler.report.replayed import ReplayResult
from reconciler.sources.history import kept, kept_at


class Question(msgspec.Struct, frozen=True):
    """What is asked: which policies, on which cluster, compared with what, at which time."""

    origins: Origins
    place: ClusterPlace
    environment: str | None = None
    base: str = ""  # a revision; nothing compares with nothing
    now: Instant | None = None
    prune: tuple[str, ...] = ()
    takes_dumped: bool = False  # where there are no policies, those of a dump


class DryRun(msgspec.Struct, frozen=True):
    """The answer; without a cycle where the policies, or those of the base, have problems."""

    checkup: Checkup
    cluster_view: ClusterView | None = None
    head: PlanningResult | None = None
    base: PlanningResult | None = None
    changed: tuple[PolicyChange, ...] = ()
    notices: tuple[str, ...] = ()  # what a reader must know of the comparison
    origins: Origins | None = None  # where the policies were read; None: they are those of a dump


def dry_run(question: Question) -> DryRun:
    """Nothing is ever written. Raises NotChosen where several environments could be meant."""
    if found := _of_dump(question):
        checkup, cluster_view, inputs = found
        return DryRun(checkup, cluster_view, decide(inputs))
    checkup, seen = _checked(question)
    before = _before(question) if question.base and not checkup.resolved.problems else None
    for each in (checkup, before and before.refused):
        if each and each.resolved.problems:
            return DryRun(each)
    cluster_view = seen or observed_cluster(question.place)
    wish = chosen(checkup.resolved, question.environment, cluster_view.observed.cluster_uid)
    head, notices = decide(_inputs(question, cluster_view, wish)), _forgetful(cluster_view, wish)
    if before is None:
        return DryRun(checkup, cluster_view, head, notices=notices, origins=question.origins)
    was = before.wish(wish.environment)
    base = decide(_inputs(question, cluster_view, was))
    compared = (*before.notices, *notices)
    return DryRun(checkup, cluster_view, head, base, changes(was, wish), compared, question.origins)


def inputs_of(question: Question) -> tuple[Checkup, ClusterView | None, Inputs | None]:
    """What a plan would follow from, without planning; nothing where the policies have problems."""
    if result := _of_dump(question):
        return result
    checkup, cluster_view = _checked(question)
    if checkup.resolved.problems:
        return checkup, None, None
    sight = cluster_view or observed_cluster(question.place)
    wish = chosen(checkup.resolved, question.environment, sight.observed.cluster_uid)
    return checkup, sight, _inputs(question, sight, wish)


def checked(origins: Origins, place: ClusterPlace, only: str | None = None) -> Checkup:
    """The policies alone. Where they are custom resources, what else of the cluster can't be read does not matter."""
    if not origins.resources:
        return check(origins, only)
    return check_custom_resources(observed_cluster(place).observed)


def _checked(question: Question) -> tuple[Checkup, ClusterView | None]:
    """The policies, and the cluster where that had to be looked at for them."""
    if not question.origins.resources:
        return check(question.origins, question.environment), None
    cluster_view = observed_cluster(question.place)
    return check_custom_resources(cluster_view.observed), cluster_view


def _of_dump(question: Question) -> tuple[Checkup, ClusterView, Inputs] | None:
    """All of it from a dump, where no policies were named and there are none."""
    path = question.origins.paths[0]
    if question.base or not question.takes_dumped or question.place.file is None or path.exists():
        return None
    cluster_view = observed_cluster(question.place)
    if cluster_view.dumped is None:
        return None
    dumped = cluster_view.dumped
    resolved = Resolved((dumped.desired.environment,), (dumped.desired,), (), 0)
    chosen(resolved, question.environment)
    note = f"the policies are those of {cluster_view.name}, since there are none in {path}"
    now = dumped.now if question.now is None else question.now
    inputs = msgspec.structs.replace(dumped, now=now, prune=question.prune or dumped.prune)
    return Checkup(resolved), msgspec.structs.replace(cluster_view, notes=(*cluster_view.notes, note)), inputs


class _Before(msgspec.Struct, frozen=True):
    """The policies of the base; `refused` where they have problems."""

    revision: str
    resolved: Resolved | None = None
    refused: Checkup | None = None
    notices: tuple[str, ...] = ()

    def wish(self, environment: str) -> Desired:
        """An environment that is new with this change was what base was before; without one there were no policies."""
        if self.resolved is None:
            return Desired(self.revision, environment)
        desired = self.resolved.wish(environment) or self.resolved.wish(BASE)
        if desired is None:
            return Desired(self.revision, environment)
        return msgspec.structs.replace(desired, environment=environment)


def _before(question: Question) -> _Before:
    origins = at_base(question.origins, question.base)
    checkup = check(origins, question.environment)
    if is_without(checkup):
        new = f"{question.base} has no policies in {origins.paths[0].as_posix()}: all of this is new"
        return _Before(question.base, notices=(new,))
    if checkup.resolved.problems:
        return _Before(question.base, refused=checkup)
    revision = next((wish.revision for wish in checkup.resolved.wishes), question.base)
    return _Before(revision, checkup.resolved)


def at_base(origins: Origins, revision: str) -> Origins:
    """The same policies at another revision of the repository that they are in."""
    if origins.resources:
        raise NoRepository(f"custom resources are in no Git repository, so there is no {revision} to compare with")
    if origins.repository:
        return msgspec.structs.replace(origins, revision=revision)
    path = origins.paths[0].resolve()
    top = next((each for each in (path, *path.parents) if (each / ".git").exists()), None)
    if top is None or len(origins.paths) > 1:
        raise NoRepository(f"{origins.paths[0]} is in no Git repository, so there is no {revision} to compare with")
    return Origins((path.relative_to(top),), _shown(top), revision)


class NoRepository(ValueError):
    """There is nothing to compare with."""


def _shown(folder: Path) -> str:
    """From here where it is below: what messages say should not depend on where a repository was cloned."""
    here = Path.cwd().resolve()
    return "." if folder == here else folder.as_posix()


def _inputs(question: Question, cluster_view: ClusterView, wish: Desired) -> Inputs:
    now = cluster_view.now if question.now is None else question.now
    return Inputs(wish, cluster_view.observed, now, cluster_view.memory, prune=question.prune)


def _forgetful(cluster_view: ClusterView, wish: Desired) -> tuple[str, ...]:
    """Guards count what was done in the last hour, which a controller remembers."""
    if not wish.guards or not cluster_view.why_no_memory:
        return ()
    return (f"what guards counted in the last hour is not known here: {cluster_view.why_no_memory}",)


# --- What was decided, decided again: from the history of `run`, or from a dump.


class TimeRange(msgspec.Struct, frozen=True):
    """A time of the history; all of it, where nothing is said."""

    since: Instant = Instant(0)
    until: Instant | None = None


def past(folder: Path, at: Instant) -> tuple[ClusterView, PlanningResult]:
    """How things stood at the last plan that acted by then. Raises NotKept."""
    recorded_inputs = kept_at(folder, at)
    inputs = recorded_inputs.inputs
    notes = [f"as things stood at {timestamp(inputs.now)}, when a plan acted for the last time before {timestamp(at)}"]
    if recorded_inputs.version != __version__:
        notes.append(f"reconciler {recorded_inputs.version} decided then, this is {__version__}")
    return ClusterView(inputs.observed, "as it was kept", inputs.now, notes=tuple(notes)), decide(inputs)


def replay_history(folder: Path, span: TimeRange) -> Iterator[ReplayResult]:
    """Each plan that is kept, the oldest first. Raises NotKept."""
    for each in kept(folder, span.since, span.until):
        yield _replayed(each.inputs, each.digest, each.version)


def replay_dump(content: bytes, expected: str = "") -> ReplayResult:
    """The plan of a dump. Raises BadDump."""
    return _replayed(dump.read(content), expected, "")


def _replayed(inputs: Inputs, expected: str, version: str) -> ReplayResult:
    try:
        plan = decide(inputs).plan
    except BrokenInvariant:
        return ReplayResult(inputs.now, "", expected, version, 0)
    return ReplayResult(inputs.now, plan.digest, expected, version, len(plan.decisions))
