"""The digest by which an approval knows a policy: of its content alone, wherever and whenever it was written."""

from typing import Any

import msgspec
import pytest

from reconciler.model.desired import Declared, Desired
from reconciler.model.policy.scaling import NodeProvisioner
from reconciler.model.problem import Origin
from reconciler.plan.guards.approvals import policy_digest
from tests.unit.plan.manifests.stage import WISHED, inputs_of, manifest, patched

ELSEWHERE = Origin("fleet/other.yaml", 99, "b7d0a15")


def digest(desired: Desired, kind: str = "GpuPool", name: str = "a100") -> str | None:
    return policy_digest(desired, kind, name)


def wish(**case: Any) -> Desired:
    return inputs_of(case).desired


def test_a_digest_is_whole_and_absent_for_what_is_not_declared() -> None:
    assert (digest(wish()) or "").startswith("sha256:")
    assert len(digest(wish()) or "") == len("sha256:") + 64
    assert digest(wish(), name="l4") is None
    assert digest(wish(), kind="NodeProvisioner") is None


def test_it_is_the_same_at_another_revision_in_another_file_and_beside_other_policies() -> None:
    first = wish()
    manifests = (msgspec.structs.replace(each, origin=ELSEWHERE, template=ELSEWHERE) for each in first.manifests)
    moved = msgspec.structs.replace(
        first,
        revision="b7d0a15",
        pools=tuple(msgspec.structs.replace(each, origins=(("", ELSEWHERE),)) for each in first.pools),
        manifests=tuple(manifests),
    )
    assert digest(moved) == digest(first)
    assert digest(wish(pools={"a100": {}, "l4": {}})) == digest(first)


@pytest.mark.parametrize(
    "case",
    [
        {"wish": {"spec": {"limits": {"cpu": "1920"}}}},  # the same policy, rendered by another template
        {"wish": "nothing"},
        {"pools": {"a100": {"mode": "Observe"}}},
        {"pools": {"a100": {"adopt": True}}},
    ],
)
def test_another_spec_or_another_rendering_is_another_digest(case: dict[str, Any]) -> None:
    assert digest(wish(**case)) != digest(wish())


def test_one_more_manifest_of_the_pool_is_another_digest_and_one_of_another_pool_is_not() -> None:
    first = wish()
    more = manifest(patched(WISHED, {"metadata": {"name": "second"}}))
    other = manifest(patched(WISHED, {"metadata": {"name": "second"}}), pool="l4")
    assert digest(msgspec.structs.replace(first, manifests=(*first.manifests, more))) != digest(first)
    assert digest(msgspec.structs.replace(first, manifests=(*first.manifests, other))) == digest(first)


def test_a_field_that_says_what_its_default_says_does_not_count() -> None:
    def scaled(**said: Any) -> Desired:
        needed = {"pool_name": "a100", "min_size": 1, "max_size": 9, "min_gpu_utilization_percent": 70}
        spec = NodeProvisioner(**{**needed, **said})
        return Desired("r", "prod", provisioners=(Declared("NodeProvisioner", "p", spec, ()),))

    assert digest(scaled(suspend=False), "NodeProvisioner", "p") == digest(scaled(), "NodeProvisioner", "p")
    assert digest(scaled(suspend=True), "NodeProvisioner", "p") != digest(scaled(), "NodeProvisioner", "p")
    assert digest(scaled(max_size=10), "NodeProvisioner", "p") != digest(scaled(), "NodeProvisioner", "p")
