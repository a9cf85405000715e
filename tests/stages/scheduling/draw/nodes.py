"""Nodes at random: shapes, labels, taints, and nodes that take no pods."""

from tests.stages.scheduling.draw.chance import (
    DONGLE,
    GENERATION,
    GENERATIONS,
    GPU,
    HOSTNAME,
    HUGE_PAGES,
    RACK,
    RACKS,
    TIER,
    TIERS,
    ZONE,
    ZONES,
    Chance,
    Manifest,
)

UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
TAINTS = (
    {"key": "lab/dedicated", "value": "research", "effect": "NoSchedule"},
    {"key": "lab/dedicated", "value": "serving", "effect": "NoSchedule"},
    {"key": "lab/dedicated", "value": "research", "effect": "NoExecute"},
    {"key": "lab/dedicated", "effect": "NoSchedule"},
    {"key": "lab/soft", "value": "x", "effect": "PreferNoSchedule"},
    {"key": "lab/evicting", "effect": "NoExecute"},
)
READY = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "it says so"}


def draw(chance: Chance, prefix: str) -> list[Manifest]:
    """Six to fourteen nodes."""
    tainted_percent = chance.choice([0, 25, 50])
    return [_node(chance, f"{prefix}-n{number}", tainted_percent) for number in range(chance.randint(6, 14))]


def _node(chance: Chance, name: str, tainted_percent: int) -> Manifest:
    resources = _resources(chance)
    spec: Manifest = {"taints": _taints(chance)} if chance.percent(tainted_percent) else {}
    if chance.percent(14):
        spec["unschedulable"] = True
        if chance.percent(70):
            # A controller would add this taint without a value. With one, a pod can bear the taint and still not be
            # let onto the node, so that the two filters that look at the same thing can be told apart.
            marked = {"key": UNSCHEDULABLE, "value": "drained", "effect": "NoSchedule"}
            spec["taints"] = [*spec.get("taints", ()), marked]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": _labels(chance, name)},
        "spec": spec,
        "status": {"capacity": resources, "allocatable": resources, "conditions": [dict(READY)]},
    }


def _labels(chance: Chance, name: str) -> dict[str, str]:
    found = {HOSTNAME: name, "kubernetes.io/os": "linux", "karpenter.sh/nodepool": chance.choice(["a100", "l4"])}
    for key, values, percent in (
        (ZONE, ZONES, 90),
        (RACK, RACKS, 70),
        (TIER, TIERS, 60),
        (GENERATION, GENERATIONS, 80),
    ):
        if chance.percent(percent):
            found[key] = chance.choice(values)
    if chance.percent(5):
        del found[HOSTNAME]
    return found


def _taints(chance: Chance) -> list[Manifest]:
    """A key and an effect stand at most once on a node."""
    found = {(each["key"], each["effect"]): dict(each) for each in chance.some(TAINTS, 1, 2)}
    return list(found.values())


def _resources(chance: Chance) -> dict[str, str]:
    found = {
        "cpu": chance.choice(["2", "3", "3500m", "4", "8"]),
        "memory": chance.choice(["4Gi", "8Gi", "8G", "16Gi", "7500000k"]),
        "pods": chance.choice(["3", "5", "8", "110", "110"]),
    }
    if chance.percent(60):
        found["ephemeral-storage"] = chance.choice(["10Gi", "20Gi", "100Gi"])
    if chance.percent(60):
        found[GPU] = chance.choice(["0", "1", "4", "8", "8"])
    if chance.percent(25):
        found[DONGLE] = chance.choice(["1", "2"])
    if chance.percent(25):
        found[HUGE_PAGES] = chance.choice(["64Mi", "128Mi"])
    return found
