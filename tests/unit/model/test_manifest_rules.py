"""What a smart pod may say: an allow list, kept to alike by us and by the admission policy that follows from it."""

import copy
import json
from typing import Any

import cel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model import manifest_rules as profile
from reconciler.model import names
from reconciler.model.manifest_rules import SMART_POD, Fields, ListOf, Shape, faults, manifest_faults, why_not_applied
from reconciler.schema.admission import matches
from tests.stages.abuses.attempt import POLICY
from tests.stages.abuses.pods import CREATED
from tests.stages.abuses.scene import container, smart_pod

ABUSES = [each for each in CREATED if POLICY in each.stopped_by]
USEFUL: dict[str, dict[str, Any]] = {
    "tolerations": {"tolerations": [{"operator": "Exists"}]},
    "nodeSelector": {"nodeSelector": {"team": "search"}},
    "affinity": {"affinity": {"nodeAffinity": {}}},
    "spread": {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone"}]},
    "priority": {"priorityClassName": "below-all"},
    "registry": {"imagePullSecrets": [{"name": "mirror"}], "containers": container(image="mirror/pause:1")},
    "pulling": {"containers": container(imagePullPolicy="IfNotPresent")},
    "resources": {"containers": container(resources={"requests": {"cpu": "1"}, "limits": {"example.com/x": "1"}})},
    "scheduler": {"schedulerName": "gpu-scheduler"},
    "account": {"serviceAccountName": "default"},
}


def is_admitted(pod: dict[str, Any]) -> bool:
    """By the expression of the admission policy."""
    found = cel.compile(matches(SMART_POD, "object")).execute(cel.Context({"object": pod}))
    assert isinstance(found, bool)
    return found


def test_what_the_default_template_yields_may_be_applied() -> None:
    assert manifest_faults(smart_pod()) == []
    assert why_not_applied(json.dumps(smart_pod())) == ""
    assert is_admitted(smart_pod())


@pytest.mark.parametrize("spec", USEFUL.values(), ids=USEFUL)
def test_what_a_platform_team_adds_may_be_applied(spec: dict[str, Any]) -> None:
    assert manifest_faults(smart_pod(**spec)) == []
    assert is_admitted(smart_pod(**spec))


@pytest.mark.parametrize("abuse", ABUSES, ids=lambda each: each.title)
def test_an_abuse_is_refused_with_a_place_and_a_remedy(abuse: Any) -> None:
    found = manifest_faults(abuse.body)
    assert found
    assert all(each.path and each.sentence and each.remedy for each in found)
    assert why_not_applied(json.dumps(abuse.body))


def test_annotations_that_a_runtime_reads_are_refused_and_others_are_not() -> None:
    pod = smart_pod()
    pod["metadata"]["annotations"]["example.com/owner"] = "platform"
    assert manifest_faults(pod) == []
    key = "container.apparmor.security.beta.kubernetes.io/gpu-trigger"
    pod["metadata"]["annotations"][key] = "unconfined"
    assert [each.path for each in manifest_faults(pod)] == [("metadata", "annotations", key)]
    assert not is_admitted(pod)


@pytest.mark.parametrize("namespace", profile.RESERVED_NAMESPACES)
def test_no_smart_pod_is_applied_where_other_pods_run(namespace: str) -> None:
    pod = smart_pod()
    pod["metadata"]["namespace"] = namespace
    assert f"metadata.namespace is {namespace}" in why_not_applied(json.dumps(pod))


def test_a_pod_that_is_no_smart_pod_is_not_applied() -> None:
    pod = smart_pod()
    del pod["metadata"]["labels"][names.COMPONENT]
    assert names.COMPONENT in why_not_applied(json.dumps(pod))


@pytest.mark.parametrize(
    "manifest",
    [
        "nothing",
        "[]",
        "{}",
        '{"kind": []}',
        '{"kind": "ClusterRoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "x"}}',
        '{"kind": "NodePool", "apiVersion": "v1", "metadata": {"name": "x"}, "spec": {}}',
        '{"kind": "NodePool", "apiVersion": "karpenter.sh/v1", "metadata": {"name": "x"}, "spec": {}, "data": {}}',
        '{"kind": "NodePool", "apiVersion": "karpenter.sh/v1", "metadata": "x", "spec": {}}',
        '{"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "kube-root-ca.crt", "namespace": "x"}}',
        '{"kind": "PriorityClass", "apiVersion": "scheduling.k8s.io/v1", "metadata": {"name": "x"}, "value": 1}',
        "[" * 100_000,
    ],
)
def test_nothing_else_is_applied(manifest: str) -> None:
    assert why_not_applied(manifest)


def objects(shape: Shape, value: Any) -> list[dict[str, Any]]:
    """All that the shape closes, within the value."""
    match shape:
        case Fields(entries=entries):
            inner = [
                each for entry in entries if entry.name in value for each in objects(entry.shape, value[entry.name])
            ]
            return [value, *inner]
        case ListOf(item=item):
            return [each for inner in value for each in objects(item, inner)]
        case _:
            return []


@given(st.data())
def test_whatever_else_is_said_anywhere_is_refused_by_us_and_by_the_admission_policy(data: st.DataObject) -> None:
    pod = copy.deepcopy(smart_pod())
    places = objects(SMART_POD, pod)
    assert len(places) > 6
    place = data.draw(st.sampled_from(places))
    name = data.draw(st.from_regex(r"[a-z][A-Za-z]{2,12}", fullmatch=True).filter(lambda each: each not in place))
    known = {entry.name for entry in _entries(SMART_POD)}
    if name in known:
        return
    place[name] = data.draw(st.sampled_from([True, {}, [], "x", 0, None]))
    assert [each.path[-1] for each in faults(SMART_POD, pod)] == [name]
    assert not is_admitted(pod)


@given(st.data())
def test_whatever_must_be_said_and_is_not_is_refused_by_us_and_by_the_admission_policy(data: st.DataObject) -> None:
    pod = copy.deepcopy(smart_pod())
    required = {entry.name for entry in _entries(SMART_POD) if entry.required}
    place = data.draw(st.sampled_from([each for each in objects(SMART_POD, pod) if required & each.keys()]))
    name = data.draw(st.sampled_from(sorted(required & place.keys())))
    before = list(faults(SMART_POD, pod))
    del place[name]
    assert before == []
    found = list(faults(SMART_POD, pod))
    assert is_admitted(pod) == (not found)


def _entries(shape: Shape) -> list[Any]:
    match shape:
        case Fields(entries=entries):
            return [*entries, *(each for entry in entries for each in _entries(entry.shape))]
        case ListOf(item=item):
            return _entries(item)
        case _:
            return []
