"""Loads policies from folders, Git or the cluster, resolves them, and renders them in the sandboxed child process."""

import os
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType

import msgspec

from reconciler.controller.cluster import ClusterPlace
from reconciler.model.bundle import Bundle, Rendering
from reconciler.model.cluster.observed import Observed
from reconciler.model.desired import Desired
from reconciler.model.instant import Instant
from reconciler.model.problem import LastChange, Origin, Problem
from reconciler.policy.manifests.kubernetes_schema import Structural
from reconciler.policy.manifests.render import RenderOrder, manifests, orders
from reconciler.policy.manifests.saved import check_saved
from reconciler.policy.manifests.smart_pods import pod_orders, smart_pods
from reconciler.policy.resolve import (
    ADD_TO_FILE,
    GRANT,
    NotChosen,
    Resolved,
    bundle_of,
    by_severity,
    chosen,
    resolve,
    shown,
)
from reconciler.ports import Source, Wished
from reconciler.sources.directory import read_directory
from reconciler.sources.git import Access, GitPlace, read_revision
from reconciler.sources.git import last_changes as read_last_changes
from reconciler.sources.input_file import NOT_CHECKED, default_templates, karpenter_schema
from reconciler.sources.renderer import render
from reconciler.sources.repository.process import Credentials
from reconciler.sources.walk import SourceBounds
from reconciler.sources.watched import PolledRepository, WatchedFolders, WatchedSource

# The package `cel` imports its own command line, which takes a tenth of a second and is never used here.
sys.modules.setdefault("cel.cli", ModuleType("cel.cli"))

POLL_SECONDS = 30.0
NO_POLICY_FILES = "no policies found: {where} has no .yaml, .yml or .json file"
NO_POLICIES_IN_FILES = "no policies found: the files of {where} declare none"
NO_CUSTOM_RESOURCES = "no policies found: {where} has no custom resources of policies"


class Checkup(msgspec.Struct, frozen=True):
    """A resolved and rendered bundle, with its problems and notices."""

    resolved: Resolved
    notices: tuple[str, ...] = ()


class Origins(msgspec.Struct, frozen=True):
    """Origin of policies: paths on disk, paths in a repository at a revision, or the cluster."""

    paths: tuple[Path, ...]
    repository: str = ""
    revision: str = "HEAD"
    resources: bool = False  # custom resources of the cluster


class Question(msgspec.Struct, frozen=True):
    """Input of a dry run: policies, cluster, base revision, and time."""

    origins: Origins
    place: ClusterPlace
    environment: str | None = None
    base: str = ""  # a revision; empty: no comparison
    now: Instant | None = None
    prune: tuple[str, ...] = ()
    takes_dumped: bool = False  # use the policies of a dump if there are no others


class NoRepository(ValueError):
    """There is no base to compare with."""


def read(origins: Origins) -> Bundle:
    if not origins.repository:
        return read_directory(origins.paths, SourceBounds())
    return read_revision(_git_place(origins), SourceBounds(), _git_access())


def last_changes(origins: Origins | None, lines: Sequence[Origin | None]) -> tuple[LastChange, ...]:
    """The last commits that changed the policy lines, if the policies are in a repository."""
    if origins is None or not origins.repository:
        return ()
    wanted = list(dict.fromkeys(line for line in lines if line is not None and line.line > 0 and line.revision))
    if not wanted:
        return ()
    place = msgspec.structs.replace(_git_place(origins), revision=wanted[0].revision)
    same = [line for line in wanted if line.revision == place.revision]
    return read_last_changes(place, same, SourceBounds(), _git_access())


def check(origins: Origins, only: str | None = None) -> Checkup:
    """Reads, resolves and renders the policies, of one environment if it is named."""
    return check_bundle(read(origins), ", ".join(path.as_posix() for path in origins.paths), only)


def check_custom_resources(observed: Observed, *, is_file: bool = False) -> Checkup:
    """The same for policies as custom resources of a cluster, or of a file."""
    return check_bundle(bundle_of(observed, ADD_TO_FILE if is_file else GRANT), "the cluster")


def own_templates(bundle: Bundle, wish: Desired) -> tuple[str, ...]:
    """Pools whose template comes from their bundle; custom resources include no templates."""
    brought = {(text.path, text.content) for text in default_templates()}
    own = {text.path for text in bundle.templates if (text.path, text.content) not in brought}
    return tuple(
        f"GpuPool/{pool.name}" for pool in wish.pools if own & {pool.spec.template, pool.spec.smart_pods.template}
    )


def is_without(checkup: Checkup) -> bool:
    """Whether the only problem is that the path does not exist at the revision: there were no policies then."""
    return [each.is_absent for each in checkup.resolved.problems] == [True]


def is_good(bundle: Bundle) -> bool:
    """Whether the bundle has no problems."""
    return not check_bundle(bundle).resolved.problems


def watch(origins: Origins, on_change: Callable[[], None], judge: Callable[[Bundle], bool] = is_good) -> WatchedSource:
    """A source that follows the policies. A bundle with problems never replaces a good one."""
    place: WatchedFolders | PolledRepository = WatchedFolders(origins.paths, SourceBounds())
    if origins.repository:
        # Replicas that start together must not poll a Git host at the same time.
        chance = random.Random(os.getpid())  # noqa: S311 - jitter, not a secret
        place = PolledRepository(_git_place(origins), SourceBounds(), _git_access(), POLL_SECONDS, chance)
    return WatchedSource(place, judge, on_change)


def _git_place(origins: Origins) -> GitPlace:
    return GitPlace(origins.repository, origins.revision, origins.paths[0].as_posix())


def _git_access() -> Access:
    """Remotes are cached in the user's cache folder; a token comes from the environment, unreadable for other users."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "reconciler" / "git"
    return Access(cache, Credentials(token=os.environ.get("RECONCILER_GIT_TOKEN", "")))


def check_bundle(bundle: Bundle, where: str = "the bundle", only: str | None = None) -> Checkup:
    """Checks a bundle of any origin."""
    resolved = resolve(bundle, only)
    wanted = [(wish, orders(wish), pod_orders(wish)) for wish in resolved.wishes]
    rendered = _rendered(bundle, [order for _, *each in wanted for some in each for order in some])
    schema = _schema() if rendered else None
    wishes, problems = [], [*resolved.problems, *resolved.warnings]
    for wish, ordered, pods_ordered in wanted:
        yielded, error = manifests(wish, [(each, rendered[_request_key(each)]) for each in ordered], schema)
        pods, pods_wrong = smart_pods(wish, [(each, rendered[_request_key(each)]) for each in pods_ordered])
        wishes.append(msgspec.structs.replace(wish, manifests=yielded, smart_pods=pods))
        problems += shown(bundle, [*error, *pods_wrong])
    errors, warnings = by_severity(problems)
    notices = (NOT_CHECKED,) if rendered and not schema else ()
    if not errors and not any(wish.declared for wish in resolved.wishes):
        nothing = NO_POLICIES_IN_FILES if bundle.policies else NO_POLICY_FILES
        notices = (*notices, (NO_CUSTOM_RESOURCES if bundle.by_field else nothing).format(where=where))
    resolved = msgspec.structs.replace(resolved, wishes=tuple(wishes), problems=errors, warnings=warnings)
    return Checkup(resolved, notices)


def saved_problems(wish: Desired) -> list[Problem]:
    """Problems of manifests in a saved plan, which must obey the same rules as templates."""
    return check_saved(wish, _schema())


def _schema() -> Structural | None:
    definition = karpenter_schema()
    return Structural(definition) if definition else None


def _rendered(bundle: Bundle, ordered: Sequence[RenderOrder]) -> dict[bytes, Rendering]:
    """Renderings by request. Environments share most requests with base, so equal requests are rendered once."""
    requests = {_request_key(order): order.request for order in ordered}
    if not requests:
        return {}
    # Templates of the bundle take precedence over built-in templates.
    own = {text.path for text in bundle.templates}
    templates = (*bundle.templates, *(text for text in default_templates() if text.path not in own))
    places = {f"templates/{text.path}": text.place for text in bundle.templates}
    answers = [_placed(each, places) for each in render(templates, list(requests.values()))]
    return dict(zip(requests, answers, strict=True))


def _placed(rendering: Rendering, places: Mapping[str, str]) -> Rendering:
    """The rendering, with the location of each template for people."""
    lines = tuple((places.get(file, file), line) for file, line in rendering.lines)
    problem = rendering.problem
    if problem:
        problem = msgspec.structs.replace(problem, file=places.get(problem.file, problem.file))
    return msgspec.structs.replace(rendering, lines=lines, problem=problem)


def _request_key(order: RenderOrder) -> bytes:
    return msgspec.json.encode(order.request, order="sorted")


# --- Desired state from a followed source. Owns the results for the latest bundles.
#
# A source checks each bundle on its own thread; the check resolves and renders the bundle. The result is kept here, so
# that the loop does not repeat the work.


class _Judged(msgspec.Struct, frozen=True):
    bundle: Bundle
    resolved: Resolved


class PolicyCache:
    """A Policies. It is created before its source, which needs its check."""

    def __init__(self, environment: str | None = None) -> None:
        self._environment = environment
        self.source: Source | None = None
        self._good: tuple[_Judged, ...] = ()  # two entries: the source may not have taken up the newer one yet
        self._refused: _Judged | None = None
        self._chosen: tuple[Resolved, str, Desired] | None = None

    def judge(self, bundle: Bundle) -> bool:
        judged = _Judged(bundle, check_bundle(bundle, only=self._environment).resolved)
        is_good = not judged.resolved.problems
        if is_good:
            self._good = (*self._good, judged)[-2:]
        else:
            self._refused = judged
        return is_good

    def wish(self, cluster_uid: str) -> Wished:
        """The last good desired state for this cluster; the same object while it is unchanged."""
        if self.source is None:
            return Wished(None)
        latest, refused = self.source.latest(), self.source.last_refused
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
