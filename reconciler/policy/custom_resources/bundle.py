"""Which of the custom resources in a cluster count, and as what Bundle.

Whoever applies a bundle applies it one by one, and takes away what is no longer in it last of all. So what was rendered
together says so: each object bears the digest of the whole and how many there are. A bundle of which all are there is
whole; of one that is not, nothing is taken, and nothing of what others left behind while a whole one is there. Objects
without a digest were written by hand: they count as they are. Two whole bundles could mean
anything, and so mean nothing.

An object that is edited by hand keeps its annotations, and counts as it is too: but what then stands there is not what
its commit says, and has a revision of its own (see Seal). Whoever may write the objects may write the annotations and
compute the seal, too: the commit that objects name is told, and passes no guard by an approval of that commit.

That there are no policies at all is an answer too: nothing is decided then. It takes nothing away either.
"""

from collections.abc import Sequence
from hashlib import sha256

import msgspec

from reconciler.model import names
from reconciler.model.bundle import Bundle, Seal, Text
from reconciler.model.cluster.bundle_objects import BundleObjects, by_bundle
from reconciler.model.cluster.kinds import RESOURCE_KINDS
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.problem import Problem
from reconciler.policy.kind import GROUP
from reconciler.policy.overlay import BASE
from reconciler.policy.rules.kinds import KINDS

WHERE = "custom resources"  # what problems of all of them together are said to be in
NOT_WHOLE, SEVERAL, UNREAD = "RC521", "RC522", "RC523"

POLICY_KINDS = frozenset(kind.name for kind in KINDS if kind.is_policy)
_TITLES = tuple(
    resource_kind.title
    for resource_kind in RESOURCE_KINDS
    if resource_kind.group == GROUP and resource_kind.kind in POLICY_KINDS
)


def bundle_of(observed: Observed) -> Bundle:
    """All that counts now; with a problem where that can't be said."""
    if why := observed.why_unread(*_TITLES):
        text = f"policies that are custom resources can't be read: {why}"
        return _refused(Problem(WHERE, 0, 0, UNREAD, text, "grant what `reconciler rbac` prints, and look again"))
    if refused := next((each for each in observed.set_aside if each.kind in POLICY_KINDS), None):
        text = f"{refused.title} cannot be understood: {refused.refusal.why}"
        return _refused(Problem(WHERE, 0, 0, UNREAD, text, "correct the object, or delete it"))
    there = [each for each in observed.policies if each.kind in POLICY_KINDS and not each.metadata.deletion_timestamp]
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
    remedy = "delete the objects of the older one, or have whatever applies them prune"
    return Problem(WHERE, 0, 0, SEVERAL, f"several bundles are there whole: {text}", remedy)


def _lacking(sets: Sequence[BundleObjects]) -> Problem | None:
    if not sets:
        return None
    text = f"no bundle is complete: {', '.join(each.progress for each in sets)}"
    remedy = "apply all objects of a bundle in one sync wave"
    return Problem(WHERE, 0, 0, NOT_WHOLE, text, remedy)


def _refused(problem: Problem) -> Bundle:
    return Bundle("", (), problems=(problem,), by_field=True, environment=BASE)


def _text(each: Unstructured) -> Text:
    """What a person would have written into a file; whatever else the API server keeps is not policy."""
    named = {"name": each.name} | ({"namespace": each.metadata.namespace} if each.metadata.namespace else {})
    document = {"apiVersion": each.api_version, "kind": each.kind, "metadata": named}
    if "spec" in each.rest:
        document["spec"] = each.rest["spec"]
    encoded = msgspec.json.format(msgspec.json.encode(document, order="sorted"), indent=1)
    return Text(f"{each.kind}/{each.name}", encoded)


def _digest(texts: Sequence[Text]) -> str:
    """Two bundles with the same policies bear the same revision, as with folders."""
    digest = sha256()
    for text in texts:
        digest.update(f"{text.path} {len(text.content)}\n".encode() + text.content)
    return f"resources:{digest.hexdigest()}"
