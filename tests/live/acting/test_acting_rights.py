"""Acting works with exactly the rights that `reconciler rbac` prints, and not with one fewer."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.cli.main import main
from reconciler.kube.apply.applying import Applying
from reconciler.kube.client import Client
from reconciler.kube.leader import Candidacy, Leader
from reconciler.kube.memory_store import ConfigMapMemory
from reconciler.model import names
from reconciler.model.instant import Instant
from reconciler.model.planned.action import Apply, Delete, Label, Presumes, Ref, Status, Ungate
from reconciler.model.planned.decision import Decision
from reconciler.model.planned.mark import Mark
from reconciler.model.planned.memory import Memory
from reconciler.plan.manifests.reasons import MISSING
from reconciler.policy.kinds import KINDS
from reconciler.policy.published.rights.writing import POLICIES
from reconciler.ports import Unavailable
from reconciler.protocol.leadership import Pace
from tests.lab import capacity, fleet
from tests.lab.api import Api, Manifest
from tests.lab.lab import Lab
from tests.policies.specimens import smallest
from tests.stages.controlled import Site
from tests.stages.definitions import defined, folder_of
from tests.stages.granted import HOME, Rights, account, page_of, path_of, until
from tests.stages.replica import Replica

WHY = MISSING.reason(object="x")
TARGET = Ref("NodePool", "", "tried")
QUICK = Pace(lease_ms=3_000, renew_ms=2_000, retry_ms=200)  # a Lease that can't be given back runs out


class Standing:
    def holds(self) -> bool:
        return True


class Hand:
    """Somebody with rights, and what each of them is for: a step says whether it worked."""

    def __init__(self, lab: Lab, api: Api) -> None:
        self.admin, self.api = lab.admin, api
        self.client = Client.at(api.url, api.authority, api.credential.token)
        self.applying = Applying(self.client, HOME)

    def leads(self) -> bool:
        """A Lease that is not there yet, and one that somebody gave back."""
        self.admin.delete("leases", "reconciler", HOME)
        return self._leads("one") and self._leads("other")

    def _leads(self, me: str) -> bool:
        leader = Leader(self.client, Candidacy(me, HOME, pace=QUICK))
        leader.start()
        try:
            return leader.wait_for_term(30) is not None
        finally:
            leader.release()

    def remembers(self) -> bool:
        """In several parts, of which none is left behind when there are fewer."""
        self._forget()
        store = ConfigMapMemory(self.client, HOME, part_bytes=64)
        large = Memory(tuple(Mark(Instant(number), "Node", f"n{number}", f"u{number * 7919}") for number in range(50)))
        try:
            stored = store.save(large, store.load())
            parts = len(self._memories())
            store.save(Memory(), stored)
            return parts > 2 and store.load().memory == Memory() and len(self._memories()) == 1
        except Unavailable:
            return False

    def _memories(self) -> list[Manifest]:
        found = self.admin.list("configmaps", HOME)
        return [each for each in found if each["metadata"]["name"].startswith("reconciler-memory")]

    def _forget(self) -> None:
        for each in self._memories():
            self.admin.delete("configmaps", each["metadata"]["name"], HOME)

    def tells_in_a_config_map(self) -> bool:
        self.admin.delete("configmaps", "reconciler-status", HOME)
        metadata = {"name": "reconciler-status", "namespace": HOME}
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}}
        return self._done(Ref("ConfigMap", HOME, "reconciler-status"), Apply(manifest=json.dumps(manifest)))

    def keeps_node_pools(self) -> bool:
        self.admin.delete("nodepools", TARGET.name)
        body = capacity.NodePool(TARGET.name, [capacity.P4D]).manifest()
        if not self._done(TARGET, Apply(manifest=json.dumps(body), presumes=Presumes(absent=True))):
            return False
        made = self.admin.get("nodepools", TARGET.name)
        return made is not None and self._done(Ref("NodePool", "", TARGET.name, made["metadata"]["uid"]), Delete())

    def labels_nodes(self) -> bool:
        self.admin.apply(fleet.nodes(1, prefix="tried")[0])
        node = self.admin.get("nodes", "tried-0")
        assert node
        labelled = Label(labels=(("gpu.scheduling/gpu-type", "a100"),))
        self.admin.merge(
            self.admin.path("nodes", "tried-0"), {"metadata": {"labels": {"gpu.scheduling/gpu-type": None}}}
        )
        return self._done(Ref("Node", "", "tried-0", node["metadata"]["uid"]), labelled)

    def keeps_priorities(self) -> bool:
        ref = Ref("PriorityClass", "", "tried")
        self.admin.delete("priorityclasses", ref.name)
        head = {"apiVersion": "scheduling.k8s.io/v1", "kind": ref.kind, "metadata": {"name": ref.name}}
        if not self._done(ref, Apply(manifest=json.dumps({**head, "value": -7}), presumes=Presumes(absent=True))):
            return False
        made = self.admin.get("priorityclasses", ref.name)
        return made is not None and self._done(Ref(ref.kind, "", ref.name, made["metadata"]["uid"]), Delete())

    def makes_pods(self) -> bool:
        ref = Ref("Pod", HOME, "tried")
        self.admin.delete("pods", ref.name, HOME, grace_seconds=0)
        body = fleet.Pod(ref.name, HOME).unseen().with_spec(terminationGracePeriodSeconds=0).manifest()
        if not self._done(ref, Apply(manifest=json.dumps(body), presumes=Presumes(absent=True))):
            return False
        made = self.admin.get("pods", ref.name, HOME)
        return made is not None and self._done(Ref("Pod", HOME, ref.name, made["metadata"]["uid"]), Delete())

    def lets_pods_go(self) -> bool:
        self.admin.delete("pods", "tried", "default", grace_seconds=0)
        waits = self.admin.create(fleet.Pod("tried").gated(names.CAPACITY_GATE).manifest())
        return self._done(Ref("Pod", "default", "tried", waits["metadata"]["uid"]), Ungate(gate=names.CAPACITY_GATE))

    def tells_events(self) -> bool:
        before = len(self._events())
        assert self.keeps_node_pools()
        return len(self._events()) > before

    def _events(self) -> list[Manifest]:
        path = "/apis/events.k8s.io/v1/namespaces/default/events"
        found: list[Manifest] = self.admin.must("GET", path)["items"]
        return [each for each in found if each["regarding"].get("name") == TARGET.name]

    def tells_on(self, kind: str) -> bool:
        found = self.admin.must("GET", folder_of(next(each for each in KINDS if each.name == kind), "a100"))
        body = {"conditions": [], "problems": [f"{found['metadata']['resourceVersion']} is told"]}
        return self._done(Ref(kind, "", "a100", found["metadata"]["uid"]), Status(body=json.dumps(body)))

    def _done(self, subject: Ref, act: Any) -> bool:
        outcomes = list(self.applying.apply([Decision("tried", subject, act, WHY)], Standing()))
        return [each.result for each in outcomes] == ["done"]


def step_of(hand: Hand, resource: str, verb: str) -> Callable[[], bool]:
    """What a right is for."""
    if resource.endswith("/status"):
        kind = next(each.name for each in POLICIES if resource == f"{each.plural}/status")
        return lambda: hand.tells_on(kind)
    if (resource, verb) == ("configmaps", "patch"):
        return hand.tells_in_a_config_map
    if (resource, verb) == ("pods", "patch"):
        return hand.lets_pods_go
    return {
        "leases": hand.leads,
        "configmaps": hand.remembers,
        "nodepools": hand.keeps_node_pools,
        "nodes": hand.labels_nodes,
        "events": hand.tells_events,
        "pods": hand.makes_pods,
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
        works = step_of(hand, *right[2:])
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
    for kind in POLICIES:
        made = {"apiVersion": "gpu.scheduling/v1", "kind": kind.name, "metadata": {"name": "a100"}}
        site.lab.admin.apply({**made, "spec": smallest(kind.shape)})
    api, rights = granted("--resources")
    hand = Hand(site.lab, api)
    (role,) = [each for each in rights.manifests if each["kind"] == "ClusterRole"]
    found = [each for each in rights_of(rights) if each[2].endswith("/status")]
    assert len(found) == len(POLICIES)
    for right in found:
        works = step_of(hand, *right[2:])
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
