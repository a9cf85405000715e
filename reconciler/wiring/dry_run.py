"""What would happen: policies and a cluster become a plan, beside it that of another revision on the same cluster."""

from pathlib import Path

import msgspec

from reconciler.loop import decide
from reconciler.model.change import PolicyChange
from reconciler.model.desired import Desired
from reconciler.model.instant import Instant
from reconciler.model.planned.inputs import Inputs
from reconciler.plan.scene import Scene
from reconciler.policy.changes import changes
from reconciler.policy.environments import chosen
from reconciler.wiring.cluster import ClusterPlace, Sight, observed_cluster
from reconciler.wiring.policies import Checkup, Origins, check


class Question(msgspec.Struct, frozen=True):
    """What is asked: which policies, on which cluster, compared with what, at which time."""

    origins: Origins
    place: ClusterPlace
    environment: str | None = None
    base: str = ""  # a revision; nothing compares with nothing
    now: Instant | None = None
    prune: tuple[str, ...] = ()


class DryRun(msgspec.Struct, frozen=True):
    """The answer; without a cycle where the policies, or those of the base, have problems."""

    checkup: Checkup
    sight: Sight | None = None
    head: Scene | None = None
    base: Scene | None = None
    changed: tuple[PolicyChange, ...] = ()


def dry_run(question: Question) -> DryRun:
    """Nothing is ever written. Raises NotChosen where several environments could be meant."""
    checkup = check(question.origins)
    before = check(at_base(question.origins, question.base)) if question.base else None
    for each in (checkup, before):
        if each and each.resolved.problems:
            return DryRun(each)
    sight = observed_cluster(question.place)
    wish = chosen(checkup.resolved, question.environment, sight.observed.cluster_uid)
    head = decide(_inputs(question, sight, wish))
    if before is None:
        return DryRun(checkup, sight, head)
    # An environment that is new with this change had no policies before.
    was = before.resolved.wish(wish.environment) or Desired(_revision(before), wish.environment)
    return DryRun(checkup, sight, head, decide(_inputs(question, sight, was)), changes(was, wish))


def inputs_of(question: Question) -> tuple[Checkup, Sight | None, Inputs | None]:
    """What a plan would follow from, without planning; nothing where the policies have problems."""
    checkup = check(question.origins)
    if checkup.resolved.problems:
        return checkup, None, None
    sight = observed_cluster(question.place)
    wish = chosen(checkup.resolved, question.environment, sight.observed.cluster_uid)
    return checkup, sight, _inputs(question, sight, wish)


def at_base(origins: Origins, revision: str) -> Origins:
    """The same policies at another revision of the repository that they are in."""
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


def _revision(checkup: Checkup) -> str:
    return next((wish.revision for wish in checkup.resolved.wishes), "")


def _inputs(question: Question, sight: Sight, wish: Desired) -> Inputs:
    now = sight.now if question.now is None else question.now
    return Inputs(wish, sight.observed, now, prune=question.prune)
