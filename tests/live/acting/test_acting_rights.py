"""Acting works with exactly the rights that `reconciler rbac` prints, and not with one fewer."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from reconciler.cli.main import main
from reconciler.model import names
from reconciler.policy.rules.kinds import POLICY_KINDS
from tests.lab import capacity, fleet
from tests.lab.api import Api, Manifest
from tests.lab.lab import Lab
from tests.policies.specimens import smallest
from tests.stages.controlled import Site
from tests.stages.definitions import defined
from tests.stages.granted import HOME, Rights, account, page_of, path_of, until
from tests.stages.hand import Hand
from tests.stages.replica import Replica


def step_of(hand: Hand, namespace: str, resource: str, verb: str) -> Callable[[], bool]:
    """What a right is for."""
    if namespace == names.LEASES_NAMESPACE or resource == "pods/binding":
        return hand.lends_gpus
    if resource == "gpuclaims/status":
        return hand.tells_on_a_claim
    if resource.endswith("/status"):
        kind = next(each.name for each in POLICY_KINDS if resource == f"{each.plural}/status")
        return lambda: hand.tells_on(kind)
    if (resource, verb) == ("configmaps", "patch"):
        return hand.tells_in_a_config_map
    if (resource, verb) == ("events", "patch"):
        return hand.counts_events
    if (resource, verb) == ("pods", "patch"):
        return hand.lets_pods_go
    return {
        "leases": hand.leads,
        "configmaps": hand.remembers,
        "nodepools": hand.keeps_node_pools,
        "nodes": hand.labels_nodes,
        "events": hand.tells_events,
        "pods": hand.makes_pods,
        "poddisruptionbudgets": hand.clears_budgets,
        "priorityclasses": hand.keeps_priorities,
    }[resource]


@pytest.fixture
def site(cluster: Lab, tmp_path: Path) -> Iterator[Site]:
    with defined(cluster):
        made = Site(cluster, tmp_path)
        yield made
        made.clean()
        cluster.admin.delete("leases", "reconciler", HOME)
        for each in cluster.admin.list("configmaps", HOME):
            if each["metadata"]["name"].startswith("reconciler-"):
                cluster.admin.delete("configmaps", each["metadata"]["name"], HOME)


@pytest.fixture
def granted(site: Site, capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[..., tuple[Api, Rights]]]:
    """Somebody with what `rbac` prints for the policies that have been written, to look and to act."""
    given: list[Rights] = []

    def grant(*arguments: str) -> tuple[Api, Rights]:
        admin = site.lab.admin
        given.append(Rights(admin, page_of(site.policies, capsys)))
        given.append(Rights(admin, page_of(site.policies, capsys, "--write", *arguments)))
        found = account(admin, path_of(admin, "leases", HOME))
        for each in rights_of(given[-1]):
            until(lambda each=each: may(found, *each), str(each))  # type: ignore[misc]
        return found, given[-1]

    yield grant
    for each in reversed(given):
        each.take_back()


Right = tuple[str, str, str, str]  # namespace, group, resource, verb


def rights_of(rights: Rights) -> list[Right]:
    return [
        (each["metadata"].get("namespace", ""), group, resource, verb)
        for each in rights.manifests
        for rule in each.get("rules", ())
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    ]


def may(api: Api, namespace: str, group: str, resource: str, verb: str) -> bool:
    plural, _, subresource = resource.partition("/")
    asked = {"namespace": namespace, "verb": verb, "group": group, "resource": plural, "subresource": subresource}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    answer = api.must("POST", path, {**review, "spec": {"resourceAttributes": asked}})
    return bool(answer["status"]["allowed"])


def without(role: Manifest, right: Right) -> Manifest:
    """The role with one verb on one resource taken away."""
    _, group, resource, verb = right
    rules = []
    for rule in role["rules"]:
        if group not in rule["apiGroups"] or resource not in rule["resources"] or verb not in rule["verbs"]:
            rules.append(rule)
            continue
        rules.append({**rule, "resources": [each for each in rule["resources"] if each != resource]})
        rules.append({**rule, "resources": [resource], "verbs": [each for each in rule["verbs"] if each != verb]})
    kept = [each for each in rules if each["resources"] and each["verbs"]]
    return {**{key: role[key] for key in ("apiVersion", "kind", "metadata")}, "rules": kept}


def test_each_right_to_act_is_needed(site: Site, granted: Callable[..., tuple[Api, Rights]]) -> None:
    site.write(adopt=True, smartPods={"namespace": HOME})
    api, in_files = granted()
    hand, roles = Hand(site.lab, api), {}
    tried = set()
    for each in in_files.manifests:
        if each["kind"] in {"Role", "ClusterRole"}:
            roles[each["metadata"].get("namespace", "")] = each
    for right in rights_of(in_files):
        works = step_of(hand, right[0], *right[2:])
        assert works(), f"with all rights: {right}"
        _without(site, hand, roles[right[0]], right)
        assert not works(), f"nothing needs {right}"
        site.lab.admin.apply(roles[right[0]])
        until(lambda right=right: may(api, *right), str(right))  # type: ignore[misc]
        tried.add(right[2:])
    assert tried >= {("leases", "update"), ("configmaps", "list"), ("nodepools", "create"), ("events", "create")}


def _without(site: Site, hand: Hand, role: Manifest, right: Right) -> None:
    site.lab.admin.apply(without(role, right))
    until(lambda: not may(hand.api, *right), str(right))


def test_each_right_to_tell_of_custom_resources_is_needed(
    site: Site, granted: Callable[..., tuple[Api, Rights]]
) -> None:
    site.write()
    for kind in POLICY_KINDS:
        made = {"apiVersion": "gpu.scheduling/v1", "kind": kind.name, "metadata": {"name": "a100"}}
        site.lab.admin.apply({**made, "spec": smallest(kind.shape)})
    api, rights = granted("--resources")
    hand = Hand(site.lab, api)
    (role,) = [each for each in rights.manifests if each["kind"] == "ClusterRole"]
    found = [each for each in rights_of(rights) if each[2].endswith("/status")]
    assert len(found) == len(POLICY_KINDS) + 1  # and of GpuClaims
    for right in found:
        works = step_of(hand, right[0], *right[2:])
        assert works(), right
        _without(site, hand, role, right)
        assert not works(), f"nothing needs {right}"


@pytest.mark.parametrize("resources", [False, True], ids=["files", "resources"])
def test_a_controller_needs_no_more_than_it_says(
    site: Site, granted: Callable[..., tuple[Api, Rights]], resources: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """Makes one NodePool, adopts another and labels its node, keeps its Lease and memory, and tells."""
    admin = site.lab.admin
    admin.create(capacity.NodePool("h100", [capacity.P4D]).manifest())
    admin.create(fleet.nodes(1, fleet.Shape(capacity.P4D, "h100"))[0])
    site.write()
    site.write("h100", adopt=True)
    api, _ = granted(*(["--resources"] if resources else []))
    site.kubeconfig = site.lab.site.kubeconfig("acting", api)
    if resources:
        assert main(["render", "--as-resources", str(site.policies)]) == 0
        for each in yaml.safe_load_all(capsys.readouterr().out):
            admin.apply(each, owner="argocd")
    audit = site.lab.audit()
    with Replica(site.kubeconfig, None if resources else site.policies, "--namespace", HOME) as replica:
        admin.wait_for("nodepools", "a100", bool)
        admin.wait_for("nodes", "gpu-0", lambda node: "gpu.scheduling/gpu-type" in (node or {})["metadata"]["labels"])
        if resources:
            admin.wait_for("gpupools", "a100", lambda pool: '"Followed"' in json.dumps((pool or {}).get("status", {})))
        else:
            admin.wait_for("configmaps", "reconciler-status", lambda found: "Followed" in str(found), HOME)
            site.put("h100.yaml", "kind: Nothing\n")
            told = admin.wait_for(
                "configmaps", "reconciler-status", lambda found: "problems" in (found or {})["data"], HOME
            )
            assert "h100.yaml:1:" in told["data"]["problems"]
        assert replica.terminate()[0] == 0
        refused = [each for each in audit.writes(f"system:serviceaccount:{HOME}:reconciler") if each.code == 403]
        assert refused == []
