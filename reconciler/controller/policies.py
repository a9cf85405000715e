"""Where policies come from: folders or Git, resolved, and rendered in the bounded child."""

import os
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from reconciler.kube.policies import ResourcePolicies
from reconciler.model.bundle import Bundle, Rendering
from reconciler.model.cluster.observed import Observed
from reconciler.model.desired import Desired
from reconciler.model.problem import LastChange, Origin, Problem
from reconciler.policy.manifests.kubernetes_schema import Structural
from reconciler.policy.manifests.render import RenderOrder, manifests, orders
from reconciler.policy.manifests.saved import check_saved
from reconciler.policy.manifests.smart_pods import pod_orders, smart_pods
from reconciler.policy.resolve import NotChosen, Resolved, bundle_of, by_severity, chosen, resolve, shown
from reconciler.ports import Renderer, Source, Wished
from reconciler.sources.directory import read_directory
from reconciler.sources.git import Access, GitPlace, read_revision
from reconciler.sources.git import last_changes as read_last_changes
from reconciler.sources.input_file import NOT_CHECKED, default_templates, karpenter_schema
from reconciler.sources.renderer import BoundedRenderer
from reconciler.sources.repository.process import Credentials
from reconciler.sources.walk import SourceBounds
from reconciler.sources.watched import PolledRepository, PollInterval, WatchedFolders, WatchedSource

POLL_SECONDS = 30.0
NO_POLICY_FILES = "no policies were found: there is no .yaml, .yml or .json file in {where}"
NO_CUSTOM_RESOURCES = "no policies were found: there is no custom resource that is one in {where}"


class Checkup(msgspec.Struct, frozen=True):
    """What a bundle says, rendered; and what a person should know beside the problems."""

    resolved: Resolved
    notices: tuple[str, ...] = ()


class Origins(msgspec.Struct, frozen=True):
    """Where policies are read: below some paths, of the disk or of a repository at a revision; or in the cluster."""

    paths: tuple[Path, ...]
    repository: str = ""
    revision: str = "HEAD"
    resources: bool = False  # they are the custom resources of the cluster that is looked at


def read(origins: Origins) -> Bundle:
    """The bundle as it is now."""
    if not origins.repository:
        return read_directory(origins.paths, SourceBounds())
    return read_revision(_git_place(origins), SourceBounds(), _git_access())


def last_changes(origins: Origins | None, lines: Sequence[Origin | None]) -> tuple[LastChange, ...]:
    """Who last changed some lines of policies, where those were read from a repository."""
    if origins is None or not origins.repository:
        return ()
    wanted = list(dict.fromkeys(line for line in lines if line is not None and line.line > 0 and line.revision))
    if not wanted:
        return ()
    place = msgspec.structs.replace(_git_place(origins), revision=wanted[0].revision)
    same = [line for line in wanted if line.revision == place.revision]
    return read_last_changes(place, same, SourceBounds(), _git_access())


def check(origins: Origins, only: str | None = None) -> Checkup:
    """Reads, resolves and renders the policies, of one environment where that is named."""
    return check_bundle(read(origins), ", ".join(path.as_posix() for path in origins.paths), only)


def check_custom_resources(observed: Observed) -> Checkup:
    """The same for policies that are custom resources of a cluster."""
    return check_bundle(bundle_of(observed), "the cluster")


def follow_resources(
    observe: Callable[[], Observed], judge: Callable[[Bundle], bool], receive: Callable[[Observed], None]
) -> ResourcePolicies:
    """A source that keeps up with policies that are custom resources."""
    return ResourcePolicies(observe, judge, receive)


def own_templates(bundle: Bundle, wish: Desired) -> tuple[str, ...]:
    """Pools whose template is their bundle's own; custom resources have no templates with them."""
    brought = {(text.path, text.content) for text in default_templates()}
    own = {text.path for text in bundle.templates if (text.path, text.content) not in brought}
    return tuple(
        f"GpuPool/{pool.name}" for pool in wish.pools if own & {pool.spec.template, pool.spec.smart_pods.template}
    )


def is_without(checkup: Checkup) -> bool:
    """Whether all that is wrong is that the revision has no such path: there were no policies there."""
    if len(checkup.resolved.problems) != 1:
        return False
    (problem,) = checkup.resolved.problems
    return problem.is_absent


def is_good(bundle: Bundle) -> bool:
    """Whether it has no problem at all."""
    return not check_bundle(bundle).resolved.problems


def watch(origins: Origins, on_change: Callable[[], None], judge: Callable[[Bundle], bool] = is_good) -> WatchedSource:
    """A source that keeps up with the policies. A bundle with any problem never takes the place of a good one."""
    place: WatchedFolders | PolledRepository = WatchedFolders(origins.paths, SourceBounds())
    if origins.repository:
        # Replicas that start together must not ask a forge together.
        pace = PollInterval(POLL_SECONDS, random.Random(os.getpid()))  # noqa: S311 - jitter, not a secret
        place = PolledRepository(_git_place(origins), SourceBounds(), _git_access(), pace)
    return WatchedSource(place, judge, on_change)


def _git_place(origins: Origins) -> GitPlace:
    return GitPlace(origins.repository, origins.revision, origins.paths[0].as_posix())


def _git_access() -> Access:
    """Remotes are kept in the user's cache; a token comes from the environment, where no other user can read it."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "reconciler" / "git"
    return Access(cache, Credentials(token=os.environ.get("RECONCILER_GIT_TOKEN", "")))


def check_bundle(bundle: Bundle, where: str = "the bundle", only: str | None = None) -> Checkup:
    """The same for a bundle from anywhere."""
    resolved = resolve(bundle, only)
    wanted = [(wish, orders(wish), pod_orders(wish)) for wish in resolved.wishes]
    rendered = _rendered(bundle, [order for _, *each in wanted for some in each for order in some])
    definition = karpenter_schema() if rendered else None
    schema = Structural(definition) if definition else None
    wishes, problems = [], [*resolved.problems, *resolved.warnings]
    for wish, ordered, pods_ordered in wanted:
        yielded, error = manifests(wish, [(each, rendered[_request_key(each)]) for each in ordered], schema)
        pods, pods_wrong = smart_pods(wish, [(each, rendered[_request_key(each)]) for each in pods_ordered])
        wishes.append(msgspec.structs.replace(wish, manifests=yielded, smart_pods=pods))
        problems += shown(bundle, [*error, *pods_wrong])
    errors, warnings = by_severity(problems)
    notices = ((NOT_CHECKED,) if rendered and not schema else ()) + (
        () if bundle.policies or bundle.problems else (_nothing(bundle).format(where=where),)
    )
    resolved = msgspec.structs.replace(resolved, wishes=tuple(wishes), problems=errors, warnings=warnings)
    return Checkup(resolved, notices)


def saved_problems(wish: Desired) -> list[Problem]:
    """What is wrong with the manifests of policies that were saved with a plan: held to what templates are held to."""
    definition = karpenter_schema()
    return check_saved(wish, Structural(definition) if definition else None)


def _nothing(bundle: Bundle) -> str:
    return NO_CUSTOM_RESOURCES if bundle.by_field else NO_POLICY_FILES


def _rendered(bundle: Bundle, ordered: Sequence[RenderOrder]) -> dict[bytes, Rendering]:
    """Each rendering by what was asked. Most of an environment is what base says: the same is rendered once."""
    requests = {_request_key(order): order.request for order in ordered}
    if not requests:
        return {}
    # A bundle's own templates come before those that reconciler brings.
    own = {text.path for text in bundle.templates}
    templates = (*bundle.templates, *(text for text in default_templates() if text.path not in own))
    renderer: Renderer = BoundedRenderer()
    places = {f"templates/{text.path}": text.place for text in bundle.templates}
    answers = [_placed(each, places) for each in renderer.render(templates, list(requests.values()))]
    return dict(zip(requests, answers, strict=True))


def _placed(rendering: Rendering, places: Mapping[str, str]) -> Rendering:
    """The same, with each template named by where a person finds it."""
    lines = tuple((places.get(file, file), line) for file, line in rendering.lines)
    problem = rendering.problem
    if problem:
        problem = msgspec.structs.replace(problem, file=places.get(problem.file, problem.file))
    return msgspec.structs.replace(rendering, lines=lines, problem=problem)


def _request_key(order: RenderOrder) -> bytes:
    return msgspec.json.encode(order.request, order="sorted")


# --- What is wished for, from a source that is followed; owner of what the last bundles were found to say.
#
# A source asks for a judgment of each bundle, on a thread of its own, and for that the bundle is resolved and rendered:
# that is kept here, so that the loop need not do it again.


class FollowedSource(Source, Protocol):
    """A source that also tells what it refused."""

    @property
    def last_refused(self) -> Bundle | None:
        """What was read last, if it was not good."""
        ...


class _Judged(msgspec.Struct, frozen=True):
    bundle: Bundle
    resolved: Resolved


class PolicyCache:
    """A Policies, made before its source, which needs its judgment."""

    def __init__(self, environment: str | None = None) -> None:
        self._environment = environment
        self._source: FollowedSource | None = None
        self._good: tuple[_Judged, ...] = ()  # two: the source may not have taken up the newer one yet
        self._refused: _Judged | None = None
        self._chosen: tuple[Resolved, str, Desired] | None = None

    def judge(self, bundle: Bundle) -> bool:
        """Whether the bundle is good."""
        judged = _Judged(bundle, check_bundle(bundle, only=self._environment).resolved)
        is_good = not judged.resolved.problems
        if is_good:
            self._good = (*self._good, judged)[-2:]
        else:
            self._refused = judged
        return is_good

    def follow(self, source: FollowedSource) -> None:
        self._source = source

    def wish(self, cluster_uid: str) -> Wished:
        """The last good wish for this cluster, the same object while it is the same."""
        if self._source is None:
            return Wished(None)
        latest, refused = self._source.latest(), self._source.last_refused
        problems = self._problems(refused) if refused else ()
        resolved = next((each.resolved for each in self._good if each.bundle is latest), None)
        if resolved is None:
            return Wished(None, problems or latest.problems)
        try:
            return Wished(self._choose(resolved, cluster_uid), problems)
        except NotChosen as why:
            return Wished(None, problems, str(why))

    def _problems(self, refused: Bundle) -> tuple[Problem, ...]:
        judged = self._refused
        return judged.resolved.problems if judged and judged.bundle is refused else refused.problems

    def _choose(self, resolved: Resolved, cluster_uid: str) -> Desired:
        known = self._chosen
        if known is None or known[0] is not resolved or known[1] != cluster_uid:
            known = (resolved, cluster_uid, chosen(resolved, self._environment, cluster_uid))
            self._chosen = known
        return known[2]
