"""Server-side apply, on an imagined cluster and on a real one: what we set is ours, and nothing else is."""

from typing import Any

from reconciler.model import names
from reconciler.model.plan.decision import Apply, Preconditions, Ref, Result
from tests.contract import objects
from tests.contract.ground import Ground, apply_of, decision

HELM = "helm"
OURS = {names.MANAGED: "true"}


def wished(name: str, spec: dict[str, Any], labels: dict[str, str] | None = None) -> dict[str, Any]:
    """Part of a NodePool: what we have a say in."""
    metadata = {"name": name, "labels": {"gpu.scheduling/managed": "true", **(labels or {})}}
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": metadata, "spec": spec}


def applied(ground: Ground, ref: Ref, manifest: dict[str, Any], force: bool = False) -> tuple[Result, str]:
    (outcome,) = ground.apply([decision(ref, Apply(manifest=apply_of(manifest), force=force))])
    return outcome.result, outcome.detail


def spec_of(ground: Ground, ref: Ref) -> dict[str, Any]:
    found = ground.get(ref)
    assert found
    return dict(found["spec"])


def managers(ground: Ground, ref: Ref) -> set[tuple[str, str]]:
    found = ground.get(ref)
    assert found
    return {(each["manager"], each["operation"]) for each in found["metadata"]["managedFields"]}


def owners(ground: Ground, ref: Ref, field: str) -> set[str]:
    """Who set a field of the spec."""
    found = ground.get(ref)
    assert found
    entries = found["metadata"]["managedFields"]
    return {each["manager"] for each in entries if f"f:{field}" in each["fieldsV1"].get("f:spec", {})}


def test_what_is_absent_is_made_and_is_ours(ground: Ground, name: str) -> None:
    ref = Ref("NodePool", "", name)
    make = Apply(manifest=apply_of(objects.node_pool(name, **OURS)), presumes=Preconditions(absent=True))
    (outcome,) = ground.apply([decision(ref, make)])
    assert outcome.result == "done"
    assert spec_of(ground, ref)["limits"] == {"cpu": "1000"}
    assert managers(ground, ref) == {("reconciler", "Apply")}
    written = ground.writes
    # After a crash the same again: it is there, as it was to be made.
    assert [each.result for each in ground.apply([decision(ref, make)])] == ["done"]
    assert ground.writes == written


def test_what_was_to_be_absent_and_is_there_otherwise_is_left_alone(ground: Ground, name: str) -> None:
    ref = ground.put(objects.node_pool(name))
    make = Apply(manifest=apply_of(wished(name, {"weight": 7})), presumes=Preconditions(absent=True))
    (outcome,) = ground.apply([decision(Ref("NodePool", "", name), make)])
    assert (outcome.result, outcome.detail) == ("stale", f"NodePool/{name} already exists")
    assert "weight" not in spec_of(ground, ref)


def test_a_field_of_another_is_never_taken_and_its_owner_is_named(ground: Ground, name: str) -> None:
    ref = ground.put(objects.node_pool(name))
    ground.edit(ref, {"spec": {"weight": 9}}, HELM)
    result, detail = applied(ground, ref, wished(name, {"weight": 7}))
    assert result == "refused"
    assert "helm set spec.weight to other values" in detail
    assert spec_of(ground, ref)["weight"] == 9


def test_by_force_a_field_is_taken_and_the_rest_stays_theirs(ground: Ground, name: str) -> None:
    ref = ground.put(objects.node_pool(name))
    ground.edit(ref, {"spec": {"weight": 9, "limits": {"memory": "4Ti"}}}, HELM)
    assert applied(ground, ref, wished(name, {"weight": 7}), force=True) == ("done", "")
    assert spec_of(ground, ref)["weight"] == 7
    assert spec_of(ground, ref)["limits"] == {"cpu": "1000", "memory": "4Ti"}
    assert {("reconciler", "Apply"), (HELM, "Update")} <= managers(ground, ref)
    assert owners(ground, ref, "weight") == {"reconciler"}


def test_what_we_set_and_no_longer_wish_goes_and_theirs_stays(ground: Ground, name: str) -> None:
    ref = ground.put(objects.node_pool(name))
    more = {"weight": 7, "limits": {"memory": "4Ti"}}
    assert applied(ground, ref, wished(name, more, {"gpu.scheduling/pool": "a"})) == ("done", "")
    assert applied(ground, ref, wished(name, {"weight": 8})) == ("done", "")
    found = ground.get(ref)
    assert found
    assert found["metadata"]["labels"] == {**objects.THEIRS, "gpu.scheduling/managed": "true"}
    assert (found["spec"]["weight"], found["spec"]["limits"]) == (8, {"cpu": "1000"})


def test_what_another_sets_anew_is_that_one_s_from_then_on(ground: Ground, name: str) -> None:
    ref = ground.put(objects.node_pool(name))
    assert applied(ground, ref, wished(name, {"weight": 7})) == ("done", "")
    ground.edit(ref, {"spec": {"weight": 9}}, HELM)
    result, detail = applied(ground, ref, wished(name, {"weight": 7}))
    assert (result, "helm" in detail) == ("refused", True)
    assert owners(ground, ref, "weight") == {HELM}
    # And once we no longer wish it, it stays as they have it.
    assert applied(ground, ref, wished(name, {})) == ("done", "")
    assert spec_of(ground, ref)["weight"] == 9


def test_a_field_that_can_t_be_changed_is_refused(ground: Ground, name: str) -> None:
    ref = ground.put(objects.priority(name))
    manifest = {**objects.priority(name), "value": -8}
    result, detail = applied(ground, ref, manifest, force=True)
    assert (result, "422" in detail) == ("refused", True)
    found = ground.get(ref)
    assert found
    assert found["value"] == -7


def test_what_no_template_may_yield_is_not_made(ground: Ground, name: str) -> None:
    for kind, version, rest in (
        ("Pod", "v1", {"spec": {"hostPID": True, "containers": [{"name": "c", "image": "x"}]}}),
        ("PodDisruptionBudget", "policy/v1", {"spec": {"maxUnavailable": 0, "selector": {}}}),
        ("PriorityClass", "scheduling.k8s.io/v1", {"value": -7, "globalDefault": True}),
    ):
        namespace = "" if kind == "PriorityClass" else "default"
        metadata = {"name": name, **({"namespace": namespace} if namespace else {}), "labels": OURS}
        ref = Ref(kind, namespace, name)
        result, detail = applied(ground, ref, {"apiVersion": version, "kind": kind, "metadata": metadata, **rest})
        assert (result, "is not applied" in detail) == ("refused", True)
        assert ground.get(ref) is None


def test_what_we_keep_for_ourselves_is_kept_the_same_way(ground: Ground) -> None:
    ref = Ref("ConfigMap", names.OWN_NAMESPACE, names.STATUS_CONFIG_MAP)
    metadata = {"name": ref.name, "namespace": ref.namespace}
    for entries in ({"a": "1", "b": "2"}, {"a": "2"}):
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": entries}
        written = ground.writes
        for _ in range(2):
            assert applied(ground, ref, manifest) == ("done", "")
        assert (ground.get(ref) or {})["data"] == entries
        assert ground.writes == written + 1, "the second time it was so already"
