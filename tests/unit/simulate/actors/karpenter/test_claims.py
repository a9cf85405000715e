"""What the imagined Karpenter makes of what smart pods say: demands on labels, hosts of their own, and shortages."""

from typing import Any

from reconciler.model import names
from reconciler.model.plan.decision import Ref
from reconciler.simulate.actors.karpenter.cloud import Stockout
from reconciler.simulate.actors.karpenter.machines import Timing
from tests.lab.capacity import P4D, P5, NodePool
from tests.lab.fleet import Pod
from tests.unit.simulate.site import Object, Site, labelled

MINE = "gpu.scheduling/smart-pod-1a2b"
ARRIVING = {"key": names.ARRIVING, "effect": "NoSchedule"}
SEEN_FIRST = Timing(launch_ms=3_000, registration_ms=20_000, initialization_ms=10_000)


def wanting(pod: Pod, *expressions: Object) -> Pod:
    terms = {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]}
    return pod.with_spec(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}})


def line(key: str, operator: str, *values: str) -> Object:
    return {"key": key, "operator": operator} | ({"values": list(values)} if values else {})


def requirements(claim: Object) -> dict[str, Any]:
    return {each["key"]: (each["operator"], each.get("values")) for each in claim["spec"]["requirements"]}


def node_of(site: Site, pod: str) -> str:
    body = site.world.get(Ref("Pod", "default", pod))
    assert body is not None
    return str(body["spec"].get("nodeName", ""))


def test_a_gated_pod_buys_nothing_until_its_gate_is_lifted() -> None:
    site = Site(NodePool("a100", [P4D]))
    site.put(Pod("train", gpus=8).gated(names.CAPACITY_GATE))
    site.run(300)
    assert site.claims() == []
    site.world.edit(Ref("Pod", "default", "train"), {"spec": {"schedulingGates": []}})
    site.run(30)
    assert len(site.claims()) == 1


def test_a_claim_says_which_labels_its_pod_will_not_have_and_its_node_has_none_of_them() -> None:
    site = Site(NodePool("a100", [P4D]), timing=SEEN_FIRST)
    site.put(wanting(Pod("smart", gpus=8), line(MINE, "DoesNotExist"), line("team", "NotIn", "a", "b")))
    site.run(120)
    (claim,) = site.claims()
    assert requirements(claim)[MINE] == ("DoesNotExist", None)
    assert requirements(claim)["team"] == ("NotIn", ["a", "b"])
    node = site.world.get(Ref("Node", "", node_of(site, "smart")))
    assert node is not None
    assert MINE not in node["metadata"]["labels"]
    assert MINE not in claim["metadata"]["labels"]


def test_each_claim_bears_what_its_own_pods_demand() -> None:
    site = Site(NodePool("a100", [P4D]))
    for name in ("one", "two"):
        site.put(wanting(Pod(name, gpus=8), line(f"{MINE}-{name}", "DoesNotExist")))
    site.run(30)
    found = [{key for key in requirements(each) if key.startswith(MINE)} for each in site.claims()]
    assert sorted(found, key=sorted) == [{f"{MINE}-one"}, {f"{MINE}-two"}]


def test_hosts_that_will_not_do_are_passed_over_and_no_claim_speaks_of_hosts() -> None:
    site = Site(NodePool("a100", [P4D]), timing=SEEN_FIRST)
    site.put(Pod("first", gpus=1))
    site.run(120)
    (there,) = site.nodes()
    site.put(wanting(Pod("elsewhere", gpus=1), line(names.HOSTNAME, "NotIn", there)))
    site.run(120)
    assert len(site.claims()) == 2
    assert all(names.HOSTNAME not in requirements(each) for each in site.claims())
    assert node_of(site, "elsewhere") not in {"", there}
    site.put(wanting(Pod("anywhere", gpus=1), line(names.HOSTNAME, "Exists")))
    site.run(120)
    assert len(site.claims()) == 2


def test_a_host_that_is_not_there_can_not_be_bought_and_any_host_can() -> None:
    site = Site(NodePool("a100", [P4D]))
    site.put(wanting(Pod("there", gpus=1), line(names.HOSTNAME, "In", "nowhere")))
    site.run(60)
    assert site.claims() == []
    site.put(wanting(Pod("anywhere", gpus=1), line(names.HOSTNAME, "Exists")))
    site.run(60)
    assert len(site.claims()) == 1


def test_pods_that_keep_off_each_others_hosts_get_a_node_each() -> None:
    site = Site(NodePool("a100", [P4D]), timing=SEEN_FIRST)
    term = {"topologyKey": names.HOSTNAME, "labelSelector": {"matchLabels": {"app": "smart"}}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    site.put(*[Pod(f"smart-{n}", gpus=1, labels={"app": "smart"}).with_spec(affinity=apart) for n in range(4)])
    site.run(120)
    assert len(site.claims()) == 4
    assert len({node_of(site, f"smart-{n}") for n in range(4)} - {""}) == 4


def test_who_bears_our_startup_taint_comes_at_once_and_all_others_when_it_is_taken_off() -> None:
    site = Site(NodePool("a100", [P4D], template={"startupTaints": [ARRIVING]}), timing=SEEN_FIRST)
    site.put(Pod("smart", gpus=4).tolerating(names.ARRIVING), Pod("real", gpus=4))
    site.run(600)
    (claim,) = site.claims()
    assert node_of(site, "smart") == claim["status"]["nodeName"]
    assert node_of(site, "real") == "", "and no second node is bought for it"
    assert conditions(claim)["Initialized"] == "Unknown"
    site.world.edit(Ref("Node", "", claim["status"]["nodeName"]), {"spec": {"taints": []}}, names.FIELD_MANAGER)
    site.run(10)
    (claim,) = site.claims()
    assert node_of(site, "real") == claim["status"]["nodeName"]
    assert conditions(claim)["Initialized"] == "True"


def conditions(claim: Object) -> dict[str, str]:
    return {each["type"]: each["status"] for each in claim["status"]["conditions"]}


def test_a_claim_for_which_there_is_no_stock_goes_and_was_never_launched() -> None:
    site = Site(NodePool("a100", [P4D]))
    site.karpenter.cloud.sold_out.append(Stockout(instance_type=P4D.name))
    site.put(Pod("smart", gpus=8))
    site.run(2)
    (claim,) = site.claims()
    assert conditions(claim) == {"Launched": "Unknown", "Registered": "Unknown", "Initialized": "Unknown"}
    site.run(120)
    assert site.claims() == []
    assert launches(site) == 1, "it is not asked for again for three minutes"
    site.run(120)
    assert launches(site) == 2


def launches(site: Site) -> int:
    return sum(what.startswith("launch ") for _, what in site.events)


def test_what_is_not_offered_is_never_asked_for() -> None:
    site = Site(NodePool("a100", [P4D, P5], capacity_types=("on-demand", "reserved")))
    site.karpenter.cloud.withheld.append(Stockout(instance_type=P4D.name))
    site.karpenter.cloud.withheld.append(Stockout(capacity_type="reserved"))
    site.karpenter.cloud.withheld.append(Stockout(zone="eu-1a"))
    site.put(Pod("smart", gpus=8))
    site.run(60)
    (claim,) = site.claims()
    assert launches(site) == 1
    assert requirements(claim)[names.INSTANCE_TYPE] == ("In", [P5.name])
    assert requirements(claim)[names.CAPACITY_TYPE] == ("In", ["on-demand"])
    assert labelled(site, names.ZONE) != ["eu-1a"]


def test_where_nothing_is_offered_no_claim_is_made_until_it_is_again() -> None:
    site = Site(NodePool("a100", [P4D]))
    site.karpenter.cloud.withheld.append(Stockout())
    site.put(Pod("smart", gpus=8))
    site.run(600)
    assert launches(site) == 0
    site.karpenter.cloud.restock(site.karpenter.cloud.withheld, Stockout())
    site.run(60)
    assert len(site.claims()) == 1
