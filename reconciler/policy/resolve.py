"""Resolves a Bundle into one Desired per environment, and reports every Problem at once."""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from hashlib import sha256
from typing import Any

import msgspec

from reconciler.model import names
from reconciler.model.bundle import Bundle, Seal, Text
from reconciler.model.cluster.bundle_objects import BundleObjects, by_bundle
from reconciler.model.cluster.kinds import RESOURCE_KINDS
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.desired import Declared, Desired
from reconciler.model.problem import Origin, Problem
from reconciler.policy.custom_resources import by_field, digest_of
from reconciler.policy.document import BASE, Layered, PolicyDocument, environment_of, environments, layered, read_head
from reconciler.policy.read import read_readable
from reconciler.policy.rules import CROSS_RULES, REFERENCE_RULES
from reconciler.policy.rules.conflicts import RuleContext
from reconciler.policy.rules.kinds import POLICY_KINDS, own_problems
from reconciler.policy.shape import GROUP
from reconciler.policy.tree import LONGEST_EXCERPT, MOST_MERGED, MOST_PROBLEMS, Mark, places, problem, written
from reconciler.policy.unreadable import checked
from reconciler.policy.words import meant
from reconciler.policy.yaml import hidden, read


class Resolved(msgspec.Struct, frozen=True):
    """The result of resolving a bundle: a Desired for each readable environment, and all problems."""

    environments: tuple[str, ...]
    wishes: tuple[Desired, ...]  # an environment with problems is included with its readable objects
    problems: tuple[Problem, ...]
    files: int
    warnings: tuple[Problem, ...] = ()  # problems that do not prevent the use of the policies

    def wish(self, environment: str) -> Desired | None:
        return next((wish for wish in self.wishes if wish.environment == environment), None)


def resolve(bundle: Bundle, only: str | None = None) -> Resolved:
    """Resolves all environments, or only one; then files of other environments are not read.

    Templates are rendered later: see `policy.manifests.render`.
    """
    resolved, seal = _resolved(bundle, only), bundle.seal
    if seal is None:
        return resolved
    if [digest_of(wish) for wish in resolved.wishes] == [seal.digest]:
        claimed = tuple(msgspec.structs.replace(wish, is_claimed=True) for wish in resolved.wishes)
        return msgspec.structs.replace(resolved, wishes=claimed)
    return _resolved(msgspec.structs.replace(bundle, revision=seal.otherwise), only)


def _resolved(bundle: Bundle, only: str | None) -> Resolved:
    names = (bundle.environment,) if bundle.environment else environments(text.path for text in bundle.policies)
    wanted = names if only is None or bundle.environment else tuple(each for each in names if each in {BASE, only})
    documents, problems = _documents(bundle, frozenset(wanted) | {BASE})
    # An object is not missing if it may be in a document that could not be read.
    is_whole = not problems and not bundle.problems
    if only in wanted:
        wanted = (only,)
    if too_many := _too_many(documents, wanted):
        wanted = ()
        problems.append(too_many)
    wishes = []
    for environment in wanted:
        if len(problems) > MOST_PROBLEMS:
            break
        objects, found = layered(documents, environment, by_field=bundle.by_field)
        wish, error = _wish(objects, bundle, environment, is_whole)
        wishes.append(wish)
        problems += found + error
    texts = ((each.place or each.path, each.content.decode("utf-8", "replace")) for each in bundle.templates)
    problems += filter(None, (hidden(file, text) for file, text in texts))
    # Base is part of every environment; its problems are reported once.
    errors, warnings = by_severity(shown(bundle, _first([*bundle.problems, *problems])))
    return Resolved(names, tuple(wishes), errors, len(bundle.policies), warnings)


def _too_many(documents: Sequence[PolicyDocument], names: Sequence[str]) -> Problem | None:
    """Refuses too many objects: each environment contains all objects of base, so the work grows with both numbers."""
    in_base = sum(environment_of(each.at.file) == BASE for each in documents)
    count = len(names) * in_base + len(documents) - in_base
    if len(names) < 2 or count <= MOST_MERGED:
        return None
    text = (
        f"{len(names):,} environments with the {in_base:,} objects of base have {count:,} objects, "
        f"more than {MOST_MERGED:,}"
    )
    file = next(each.at.file for each in documents)
    return Problem(
        file, 0, 0, "RC504", text, "name one environment with --environment, or keep them in several bundles"
    )


def _first(problems: Sequence[Problem]) -> Sequence[Problem]:
    """At most the maximum number of problems; if there are more, a last problem says so."""
    if len(problems) <= MOST_PROBLEMS:
        return problems
    kept = sorted(set(problems))[:MOST_PROBLEMS]
    if len(kept) < MOST_PROBLEMS:
        return kept
    text = f"more than {MOST_PROBLEMS:,} problems: checking stopped"
    return [*kept, Problem(kept[-1].file, 0, 0, "RC504", text, "correct these first")]


def by_severity(problems: Sequence[Problem]) -> tuple[tuple[Problem, ...], tuple[Problem, ...]]:
    """Errors and warnings, without duplicates, in the order of the files."""
    in_order = sorted(set(problems))
    errors = tuple(each for each in in_order if each.severity == "error")
    return errors, tuple(each for each in in_order if each.severity == "warning")


def _documents(bundle: Bundle, names: AbstractSet[str]) -> tuple[list[PolicyDocument], list[Problem]]:
    documents, problems = [], list[Problem]()
    for text in bundle.policies:
        if len(problems) > MOST_PROBLEMS:
            break
        if not bundle.environment and environment_of(text.path) not in names:
            continue
        nodes, errors = read(text.path, text.content)
        problems += errors
        for node in nodes:
            if len(problems) > MOST_PROBLEMS:
                break
            document, errors = read_head(node)
            problems += errors
            if document:
                documents.append(document)
    return documents, problems


def _wish(
    objects: Sequence[Layered], bundle: Bundle, environment: str, is_whole: bool
) -> tuple[Desired, list[Problem]]:
    problems: list[Problem] = []
    declared, partly = list[Declared[Any]](), list[Declared[Any]]()
    marks: dict[tuple[str, str], dict[str, Mark]] = {}
    names = [layers.document.title for layers in objects if layers.in_base]
    for layers in objects:
        if len(problems) > MOST_PROBLEMS:
            break
        document = layers.document
        spec = read_readable(document.kind.shape, layers.spec, document.named_at)
        where = dict(_marks(layers))
        problems += _of_missing_base(layers, spec.problems, names, is_whole)
        if spec.readable is None or _is_part(layers, spec.problems):
            continue
        problems += own_problems(document.kind, spec.readable, where)
        marks[document.kind.name, document.name] = where
        origins = tuple((path, _origin(bundle, mark)) for path, mark in where.items())
        noted = layers.labels, layers.annotations
        found = Declared(document.kind.name, document.name, spec.readable, origins, *noted)
        (partly if spec.value is None else declared).append(found)
    desired = _sorted_by_kind(declared, bundle.revision, environment)
    # An object with problems still counts as declared, so that references to it are not reported as dangling.
    titles = frozenset((layers.document.kind.name, layers.document.name) for layers in objects)
    wish = RuleContext(desired, marks, titles, bundle.by_field, is_whole, *_others(declared))
    for rule in CROSS_RULES:
        problems += rule(wish)
    for each in partly:
        alone = _sorted_by_kind([each], bundle.revision, environment)
        wish = RuleContext(alone, marks, titles, bundle.by_field, is_whole, *_others([each]))
        problems += checked(rule(wish) for rule in REFERENCE_RULES)
    return desired, problems


_DeclaredOfKind = tuple[Declared[Any], ...]


def _others(declared: Sequence[Declared[Any]]) -> tuple[_DeclaredOfKind, _DeclaredOfKind]:
    """The GpuClaims and ChangeApprovals, which are no policies."""
    return _of_kind(declared, "GpuClaim"), _of_kind(declared, "ChangeApproval")


def _is_part(layers: Layered, problems: Sequence[Problem]) -> bool:
    """Whether the object is only an overlay of a base that does not exist, so that its defaults mean nothing."""
    return not layers.in_base and any(each.code == "RC104" for each in problems)


def _origin(bundle: Bundle, mark: Mark) -> Origin:
    return Origin(mark.file, 0 if bundle.by_field else mark.line, bundle.revision)


def _marks(layers: Layered) -> Iterator[tuple[str, Mark]]:
    yield "", layers.document.named_at
    if layers.spec is not None:
        for path, mark in places(layers.spec, ("spec",)):
            yield written(path), mark


def _of_missing_base(layers: Layered, problems: list[Problem], names: Sequence[str], is_whole: bool) -> list[Problem]:
    """The problems of a spec.

    If the base object of an overlay does not exist, one problem replaces the problems of all missing fields. If the
    base object may be in an unreadable document, no problem is reported.
    """
    if layers.in_base or not any(each.code == "RC104" for each in problems):
        return problems
    rest = [each for each in problems if each.code != "RC104"]
    if not is_whole:
        return rest
    title = layers.document.title
    close = meant(title, names)
    text = f"this overlay changes {title}, which {BASE} does not have" + (f'; did you mean "{close}"?' if close else "")
    remedy = "" if close else "write the complete object, or correct the name"
    return [problem(layers.document.named_at, "RC111", text, remedy), *rest]


def _sorted_by_kind(declared: Sequence[Declared[Any]], revision: str, environment: str) -> Desired:
    def of(kind: str) -> tuple[Declared[Any], ...]:
        return _of_kind(declared, kind)

    return Desired(
        revision=revision,
        environment=environment,
        pools=of("GpuPool"),
        provisioners=of("NodeProvisioner"),
        drains=of("DrainPolicy"),
        pressures=of("PressurePolicy"),
        guards=of("ChangeGuard"),
    )


def _of_kind(declared: Sequence[Declared[Any]], kind: str) -> tuple[Declared[Any], ...]:
    return tuple(sorted((each for each in declared if each.kind == kind), key=lambda each: each.name))


def shown(bundle: Bundle, problems: Sequence[Problem]) -> list[Problem]:
    """The same problems as shown to users: with their source lines, or located by field."""
    if bundle.by_field:
        return by_field(bundle, problems)
    wanted = {each.file for each in problems}
    texts = {text.path: text.content for text in bundle.policies if text.path in wanted}
    texts |= {text.place: text.content for text in bundle.templates if text.place in wanted}
    lines = {path: content.decode(errors="replace").splitlines() for path, content in texts.items()}
    return [
        msgspec.structs.replace(each, excerpt=lines[each.file][each.line - 1])
        if each.file in lines
        and 0 < each.line <= len(lines[each.file])
        and len(lines[each.file][each.line - 1]) <= LONGEST_EXCERPT
        else each
        for each in problems
    ]


# --- Selects the environment: the named one, the only one, or the one whose ChangeGuard names the cluster.


class NotChosen(ValueError):
    """No environment matches, or several do; the message says how to choose."""


def chosen(resolved: Resolved, name: str | None, cluster_uid: str = "", choose_with: str = "--environment") -> Desired:
    """The Desired of the selected environment; raises NotChosen if the choice is ambiguous."""
    names = ", ".join(resolved.environments)
    if name is not None:
        wish = resolved.wish(name)
        if wish is None:
            raise NotChosen(f'there is no environment "{name}"; found: {names}')
        return wish
    if len(resolved.wishes) == 1:
        return resolved.wishes[0]
    guarded = ((wish, {guard.spec.cluster_uid for guard in wish.guards}) for wish in resolved.wishes)
    guarding = [wish for wish, uids in guarded if cluster_uid and cluster_uid in uids]
    if len(guarding) == 1:
        return guarding[0]
    why = f", and {'several name' if guarding else 'no ChangeGuard names'} this cluster (uid {cluster_uid})"
    text = f"there are several environments{why if cluster_uid else ''}"
    raise NotChosen(f"{text}; choose one with {choose_with}: {names}")


# --- Selects the custom resources in a cluster that form the current Bundle.
#
# Deployment tools apply the objects of a bundle one by one and prune removed objects last. Therefore each rendered
# object names the digest and the size of its bundle. A bundle is complete if all its objects exist. Incomplete bundles
# are ignored; so are leftovers of other bundles while a complete bundle exists. Objects without a digest were written
# by hand and always count. Two complete bundles are ambiguous and are refused.
#
# An object edited by hand keeps its annotations and still counts, but its content differs from its commit, so the
# bundle gets a revision of its own (see Seal). Anyone with write access to the objects can also write the annotations
# and compute the seal: the commit that objects name is therefore only displayed, and an approval of that commit does
# not pass a guard.
#
# A cluster without policies is valid: nothing is planned, and nothing is removed.

WHERE = "custom resources"  # the file name in problems of all custom resources together
NOT_WHOLE, SEVERAL, UNREAD = "RC521", "RC522", "RC523"

_KIND_NAMES = frozenset(kind.name for kind in POLICY_KINDS)
_TITLES = tuple(each.title for each in RESOURCE_KINDS if each.group == GROUP and each.kind in _KIND_NAMES)


GRANT = "grant the rights that `reconciler rbac` prints"
ADD_TO_FILE = (
    "write the file again with the command that `reconciler dump --kubectl --resources` prints, or add "
    "--complete if the cluster has no such policies"
)


def bundle_of(observed: Observed, remedy: str = GRANT) -> Bundle:
    """The current bundle; contains a problem if the bundle is ambiguous or unreadable. `remedy`: what makes the
    policies readable."""
    if why := observed.why_unread(*_TITLES):
        text = f"custom resources of policies cannot be read: {why}"
        return _refused(Problem(WHERE, 0, 0, UNREAD, text, remedy))
    if refused := next((each for each in observed.set_aside if each.kind in _KIND_NAMES), None):
        text = f"{refused.title} cannot be decoded: {refused.refusal.why}"
        return _refused(Problem(WHERE, 0, 0, UNREAD, text, "correct the object, or delete it"))
    there = [each for each in observed.policies if each.kind in _KIND_NAMES and not each.metadata.deletion_timestamp]
    free, sets = by_bundle(there)
    whole = [each for each in sets if each.is_whole]
    if problem := _several(whole) or (None if whole else _lacking(sets)):
        return _refused(problem)
    taken = whole[0] if whole else None
    objects = sorted((*free, *(taken.objects if taken else ())), key=lambda each: (each.kind, each.name))
    texts = tuple(_text(each) for each in objects)
    environment = (taken.noted(names.ENVIRONMENT) if taken else "") or BASE
    revision, seal = _digest(texts), None
    if taken and not free:
        revision, seal = taken.revision, Seal(taken.digest, revision)
    return Bundle(revision, texts, by_field=True, environment=environment, seal=seal)


def _several(whole: Sequence[BundleObjects]) -> Problem | None:
    if len(whole) < 2:
        return None
    text = " and ".join(f"{len(each.objects)} of {each.title}" for each in whole)
    remedy = "delete the objects of the older bundle, or enable pruning in the tool that applies them"
    return Problem(WHERE, 0, 0, SEVERAL, f"several bundles are complete: {text}", remedy)


def _lacking(sets: Sequence[BundleObjects]) -> Problem | None:
    if not sets:
        return None
    text = f"no bundle is complete: {', '.join(each.progress for each in sets)}"
    remedy = "apply all objects of a bundle in one sync wave"
    return Problem(WHERE, 0, 0, NOT_WHOLE, text, remedy)


def _refused(problem: Problem) -> Bundle:
    return Bundle("", (), problems=(problem,), by_field=True, environment=BASE)


def _text(each: Unstructured) -> Text:
    """The object as a policy file; other fields that the API server stores are left out."""
    named = {"name": each.name} | ({"namespace": each.metadata.namespace} if each.metadata.namespace else {})
    document = {"apiVersion": each.api_version, "kind": each.kind, "metadata": named}
    if "spec" in each.rest:
        document["spec"] = each.rest["spec"]
    encoded = msgspec.json.format(msgspec.json.encode(document, order="sorted"), indent=1)
    return Text(f"{each.kind}/{each.name}", encoded)


def _digest(texts: Sequence[Text]) -> str:
    """Bundles with the same policies have the same revision, as with folders."""
    digest = sha256()
    for text in texts:
        digest.update(f"{text.path} {len(text.content)}\n".encode() + text.content)
    return f"resources:{digest.hexdigest()}"
