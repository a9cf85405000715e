"""How Flux, which judges readiness by kstatus, sees bundles that are applied object by object beside the controller."""

from collections.abc import Iterator
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as some

from reconciler.kube.policies import ResourcePolicies
from reconciler.model.bundle import Bundle
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.desired import Desired
from reconciler.model.instant import Instant
from reconciler.model.plan.inputs import Inputs
from reconciler.plan.status.conditions import StatusContext
from reconciler.policy.custom_resources import digest_of
from reconciler.policy.resolve import resolve
from reconciler.report.conditions import statuses
from tests.unit.plan.status.stage import NOW, after
from tests.unit.policy.custom_resources.stage import POLICIES, rendered, wish_of

# A bundle may be good or have a bad NodeProvisioner, and may change a spec or not.
VARIANTS = (POLICIES, POLICIES.replace("maxSize: 9", "maxSize: 8"), "bad")
CULPRIT = "NodeProvisioner/a100"


def kstatus(resource: Unstructured) -> str:
    """The generic rules of sigs.k8s.io/cli-utils/pkg/kstatus."""
    status = resource.rest.get("status", {"observedGeneration": -1})  # the definition's default
    if status.get("observedGeneration", resource.metadata.generation) != resource.metadata.generation:
        return "InProgress"
    conditions = {each["type"]: each["status"] for each in status.get("conditions", ())}
    if conditions.get("Reconciling") == "True":
        return "InProgress"
    if conditions.get("Stalled") == "True":
        return "Failed"
    return "Current" if conditions.get("Ready", "True") == "True" else "InProgress"


class Cluster:
    """Custom resources as an API server keeps them, and a controller that follows them."""

    def __init__(self) -> None:
        self.objects: dict[str, Unstructured] = {}
        self.followed = ""
        self.now = NOW
        self._source = ResourcePolicies(self._observe, lambda bundle: not resolve(bundle).problems)

    def _observe(self) -> Observed:
        return Observed(policies=tuple(self.objects.values()))

    def apply(self, new: Unstructured) -> None:
        """A change of anything but metadata and status is a new generation."""
        title = f"{new.kind}/{new.name}"
        old = self.objects.get(title)
        generation, rest = 1, dict(new.rest)
        if old is not None:
            before = {key: value for key, value in old.rest.items() if key != "status"}
            generation = old.metadata.generation + (before != new.rest)
            rest |= {key: value for key, value in old.rest.items() if key == "status"}
        metadata = msgspec.structs.replace(new.metadata, generation=generation)
        self.objects[title] = msgspec.structs.replace(new, metadata=metadata, rest=rest)

    def step(self) -> None:
        """One cycle of the controller, as far as it is about statuses."""
        self.now = Instant(self.now + 1_000)
        good, refused = self._source.latest(), self._source.last_refused
        desired = Desired("", "") if good.problems else resolve(good).wishes[0]
        self.followed = "" if good.problems else digest_of(desired)
        problems = _problems(refused) if refused else ()
        told = StatusContext(problems, are_resources=True)
        decided = statuses(Inputs(desired, self._observe(), self.now), None, told)
        for title, each in zip(self.objects, after(list(self.objects.values()), decided), strict=True):
            self.objects[title] = each


def _problems(refused: Bundle) -> Any:
    return refused.problems or resolve(refused).problems


def bundle(variant: str, revision: str) -> list[Unstructured]:
    if variant != "bad":
        return rendered(wish_of(variant, revision))
    good = rendered(wish_of(POLICIES, revision))
    return [
        msgspec.structs.replace(each, rest={**each.rest, "spec": {**each.rest["spec"], "minSize": 12}})
        if f"{each.kind}/{each.name}" == CULPRIT
        else each
        for each in good
    ]


def seen_in_turn(variants: list[str], order: list[int], steps: set[int]) -> Iterator[tuple[Cluster, str, bool]]:
    """The cluster after each write of a bundle, and after the controller's answers; with what is applied now."""
    cluster, moment = Cluster(), 0
    for number, variant in enumerate(variants):
        objects = bundle(variant, f"{number}")
        for place in order:
            cluster.apply(objects[place])
            yield cluster, variant, False
            moment += 1
            if moment in steps:
                cluster.step()
                yield cluster, variant, False
        yield cluster, variant, False
        for _ in range(3):  # the second step follows what the first one wrote
            cluster.step()
        yield cluster, variant, True


@settings(max_examples=25)
@given(
    some.lists(some.sampled_from(VARIANTS), min_size=1, max_size=3),
    some.permutations(range(4)),
    some.sets(some.integers(1, 12), max_size=6),
)
def test_flux_sees_no_bundle_as_ready_or_failed_before_it_is_judged_and_names_only_the_culprit(
    variants: list[str], order: list[int], steps: set[int]
) -> None:
    for cluster, variant, is_settled in seen_in_turn(variants, order, steps):
        for title, each in cluster.objects.items():
            found, digest = kstatus(each), each.rest["bundle"]
            if found == "Current":
                assert digest == cluster.followed
            if found == "Failed":
                assert title == CULPRIT
                assert each.rest["spec"]["minSize"] == 12
                assert each.rest["status"]["bundle"] == digest
        if is_settled:
            failed = sorted(title for title, each in cluster.objects.items() if kstatus(each) == "Failed")
            assert failed == ([CULPRIT] if variant == "bad" else [])
            if variant != "bad":
                assert {kstatus(each) for each in cluster.objects.values()} == {"Current"}
