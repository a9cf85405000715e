"""Dry runs: a plan from policies and a cluster, and optionally the plan of another revision on the same cluster."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from reconciler import __version__
from reconciler.controller.cluster import ClusterPlace, ClusterView, observed_cluster
from reconciler.controller.policies import (
    Checkup,
    NoRepository,
    Origins,
    Question,
    check,
    check_custom_resources,
    is_without,
)
from reconciler.loop.cycle import decide
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


class DryRun(msgspec.Struct, frozen=True):
    """Result of a dry run; without a cycle if the policies, or those of the base, have problems."""

    checkup: Checkup
    cluster_view: ClusterView | None = None
    head: PlanningResult | None = None
    base: PlanningResult | None = None
    changed: tuple[PolicyChange, ...] = ()
    notices: tuple[str, ...] = ()  # caveats about the comparison
    origins: Origins | None = None  # origin of the policies; None: a dump


def dry_run(question: Question) -> DryRun:
    """Plans without writing. Raises NotChosen if the environment is ambiguous."""
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
    """Inputs of a plan, without planning; None if the policies have problems."""
    if result := _of_dump(question):
        return result
    checkup, cluster_view = _checked(question)
    if checkup.resolved.problems:
        return checkup, None, None
    sight = cluster_view or observed_cluster(question.place)
    wish = chosen(checkup.resolved, question.environment, sight.observed.cluster_uid)
    return checkup, sight, _inputs(question, sight, wish)


def checked(origins: Origins, place: ClusterPlace, only: str | None = None) -> Checkup:
    """Checks the policies alone. For custom resources, other unreadable kinds of the cluster do not matter."""
    return _checked(Question(origins, place, only))[0]


def _checked(question: Question) -> tuple[Checkup, ClusterView | None]:
    """The policies, and the cluster if it had to be read for them."""
    if not question.origins.resources:
        return check(question.origins, question.environment), None
    cluster_view = observed_cluster(question.place)
    is_file = question.place.file is not None
    return check_custom_resources(cluster_view.observed, is_file=is_file), cluster_view


def _of_dump(question: Question) -> tuple[Checkup, ClusterView, Inputs] | None:
    """Everything from a dump, if no policies were named and there are none at the default path."""
    path = question.origins.paths[0]
    if question.base or not question.takes_dumped or question.place.file is None or path.exists():
        return None
    cluster_view = observed_cluster(question.place)
    if cluster_view.dumped is None:
        return None
    dumped = cluster_view.dumped
    resolved = Resolved((dumped.desired.environment,), (dumped.desired,), (), 0)
    chosen(resolved, question.environment)
    note = f"using the policies of {cluster_view.name}, because there are none in {path}"
    now = dumped.now if question.now is None else question.now
    inputs = msgspec.structs.replace(dumped, now=now, prune=question.prune or dumped.prune)
    return Checkup(resolved), msgspec.structs.replace(cluster_view, notes=(*cluster_view.notes, note)), inputs


class _Before(msgspec.Struct, frozen=True):
    """Policies of the base; `refused` if they have problems."""

    revision: str
    resolved: Resolved | None = None
    refused: Checkup | None = None
    notices: tuple[str, ...] = ()

    def wish(self, environment: str) -> Desired:
        """The desired state of the base. For an environment added by this change, uses `base`; without `base`, no
        policies."""
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
        new = f"{question.base} has no policies in {origins.paths[0].as_posix()}: all policies are new"
        return _Before(question.base, notices=(new,))
    if checkup.resolved.problems:
        return _Before(question.base, refused=checkup)
    revision = next((wish.revision for wish in checkup.resolved.wishes), question.base)
    return _Before(revision, checkup.resolved)


def at_base(origins: Origins, revision: str) -> Origins:
    """The same policies at another revision of their repository."""
    if origins.resources:
        raise NoRepository(f"custom resources have no Git revisions to compare with, such as {revision}")
    if origins.repository:
        return msgspec.structs.replace(origins, revision=revision)
    path = origins.paths[0].resolve()
    top = next((each for each in (path, *path.parents) if (each / ".git").exists()), None)
    if top is None or len(origins.paths) > 1:
        raise NoRepository(f"{origins.paths[0]} is not in a Git repository, and has no {revision} to compare with")
    return Origins((path.relative_to(top),), _shown(top), revision)


def _shown(folder: Path) -> str:
    """The path relative to the current folder if below it, so that messages do not depend on where a repository was
    cloned."""
    here = Path.cwd().resolve()
    return "." if folder == here else folder.as_posix()


def _inputs(question: Question, cluster_view: ClusterView, wish: Desired) -> Inputs:
    now = cluster_view.now if question.now is None else question.now
    return Inputs(wish, cluster_view.observed, now, cluster_view.memory, prune=question.prune)


def _forgetful(cluster_view: ClusterView, wish: Desired) -> tuple[str, ...]:
    """Notes about unknown memory: guards count actions of the last hour, which only a controller remembers."""
    if not wish.guards or not cluster_view.why_no_memory:
        return ()
    return (f"counts of guards for the last hour are unknown: {cluster_view.why_no_memory}",)


# --- Repeated decisions: from the history of `run`, or from a dump.


def past(folder: Path, at: Instant) -> tuple[ClusterView, PlanningResult]:
    """State at the last plan with actions up to this time. Raises NotKept."""
    recorded_inputs = kept_at(folder, at)
    inputs = recorded_inputs.inputs
    notes = [f"state at {timestamp(inputs.now)}, the time of the last plan with actions before {timestamp(at)}"]
    if recorded_inputs.version != __version__:
        notes.append(f"decided by reconciler {recorded_inputs.version}, and repeated by {__version__}")
    return ClusterView(inputs.observed, "history", inputs.now, notes=tuple(notes)), decide(inputs)


def replay_history(folder: Path, since: Instant, until: Instant | None) -> Iterator[ReplayResult]:
    """Repeats each recorded plan of a time range, oldest first. Raises NotKept."""
    for each in kept(folder, since, until):
        yield _replayed(each.inputs, each.digest, each.version)


def replay_dump(content: bytes, expected: str = "") -> ReplayResult:
    """Repeats the plan of a dump. Raises BadDump."""
    return _replayed(dump.read(content), expected, "")


def _replayed(inputs: Inputs, expected: str, version: str) -> ReplayResult:
    try:
        plan = decide(inputs).plan
    except BrokenInvariant:
        return ReplayResult(inputs.now, "", expected, version, 0)
    return ReplayResult(inputs.now, plan.digest, expected, version, len(plan.decisions))
