"""Made-up fleets, pods and shapes for packing: small, and full of every constraint."""

from hypothesis import strategies as some

from reconciler.fleet.binpack.offers import Offering, Shape
from reconciler.model import names
from reconciler.model.cluster.metadata import LabelExpression, LabelSelector, Metadata
from reconciler.model.cluster.node import NodeTaint
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import (
    Affinity,
    Container,
    NodeAffinity,
    NodeExpression,
    NodeSelector,
    NodeTerm,
    Pod,
    PodSpec,
    PodTerm,
    PodTerms,
    Port,
    ResourceRequirements,
    Toleration,
    TopologySpreadConstraint,
)
from tests import builders

ZONES = ("a", "b", "c")
APPS = ("x", "y", "z")
KEYS = (names.HOSTNAME, names.ZONE, "rack", names.CAPACITY_TYPE)
GPU = NodeTaint("gpu", "NoSchedule")


@some.composite
def selectors(draw: some.DrawFn) -> LabelSelector:
    if draw(some.integers(0, 4)) == 0:
        return LabelSelector(
            match_expressions=(
                LabelExpression("app", "In", tuple(draw(some.sets(some.sampled_from(APPS), min_size=1)))),
            )
        )
    return LabelSelector({"app": draw(some.sampled_from(APPS))})


@some.composite
def terms(draw: some.DrawFn) -> tuple[PodTerm, ...]:
    return tuple(
        PodTerm(draw(some.sampled_from(KEYS[:3])), draw(selectors())) for _ in range(draw(some.integers(1, 2)))
    )


@some.composite
def spreads(draw: some.DrawFn) -> TopologySpreadConstraint:
    return TopologySpreadConstraint(
        draw(some.integers(1, 2)),
        draw(some.sampled_from(KEYS)),
        draw(some.sampled_from(["DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"])),
        draw(some.none() | selectors()),
        min_domains=draw(some.sampled_from([None, None, 2, 4])),
        node_affinity_policy=draw(some.sampled_from(["Honor", "Ignore"])),
        node_taints_policy=draw(some.sampled_from(["Ignore", "Honor"])),
    )


@some.composite
def specs(draw: some.DrawFn) -> PodSpec:
    kind = draw(some.integers(0, 9))
    requests = {"cpu": f"{draw(some.sampled_from([100, 300, 700, 1500]))}m"}
    if draw(some.booleans()):
        requests["memory"] = draw(some.sampled_from(["100Mi", "1Gi", "3Gi"]))
    if kind == 0:
        requests["nvidia.com/gpu"] = str(draw(some.integers(1, 5)))
    ports = (
        (Port(draw(some.sampled_from([80, 81])), host_ip=draw(some.sampled_from(["", "10.0.0.1"]))),)
        if kind == 1
        else ()
    )
    selector = {names.ZONE: draw(some.sampled_from(ZONES))} if kind == 2 else {}
    node = NodeAffinity()
    if kind == 3:
        expression = NodeExpression("size", draw(some.sampled_from(["In", "NotIn"])), ("small",))
        node = NodeAffinity(NodeSelector((NodeTerm((expression,)),)))
    near = draw(terms()) if kind in {4, 5} else ()
    apart = draw(terms()) if kind in {5, 6} else ()
    return PodSpec(
        node_selector=selector,
        affinity=Affinity(node, PodTerms(near), PodTerms(apart)),
        tolerations=(Toleration("gpu", "Exists"),) if draw(some.booleans()) else (),
        topology_spread_constraints=tuple(draw(some.lists(spreads(), max_size=2))) if kind in {7, 8} else (),
        containers=(Container(resources=ResourceRequirements(requests), ports=ports),),
    )


@some.composite
def pods(draw: some.DrawFn) -> list[Pod]:
    found: list[Pod] = []
    for _ in range(draw(some.integers(1, 5))):
        labels = {"app": draw(some.sampled_from(APPS))}
        spec, namespace = draw(specs()), draw(some.sampled_from(["default", "default", "other"]))
        for _ in range(draw(some.integers(1, 7))):
            name = f"pod-{len(found):02}"
            found.append(Pod(Metadata(name, namespace, uid=f"uid-{name}", labels=labels), spec))
    return found


@some.composite
def shapes(draw: some.DrawFn) -> list[Shape]:
    found = []
    for number in range(draw(some.integers(1, 4))):
        cpu = draw(some.sampled_from([1, 2, 4, 8]))
        gpus = draw(some.sampled_from([0, 0, 4]))
        labels = {"size": "small" if cpu < 4 else "large"} | ({"rack": f"r{number}"} if draw(some.booleans()) else {})
        offered = draw(
            some.lists(
                some.tuples(some.sampled_from(ZONES), some.sampled_from(["spot", "on-demand"])),
                min_size=1,
                max_size=4,
                unique=True,
            )
        )
        offerings = tuple(
            Offering(zone, kind, draw(some.integers(1, 9)) * 1000 * cpu + 50_000 * gpus, draw(some.integers(0, 9)) > 0)
            for zone, kind in offered
        )
        allocatable = {"cpu": str(cpu), "memory": f"{2 * cpu}Gi", "pods": draw(some.sampled_from(["3", "110"]))}
        if gpus:
            allocatable["nvidia.com/gpu"] = str(gpus)
        most = draw(some.sampled_from([None, None, None, 0, 1, 3]))
        found.append(Shape(f"shape-{number}", labels, (GPU,) if gpus else (), allocatable, offerings, most))
    return found


@some.composite
def fleets(draw: some.DrawFn) -> Observed:
    """What stands already: some nodes, and pods on them."""
    nodes = []
    for number in range(draw(some.integers(0, 3))):
        name = f"node-{number}"
        labels = {names.HOSTNAME: name, names.ZONE: draw(some.sampled_from(ZONES)), names.CAPACITY_TYPE: "spot"}
        labels |= {"rack": "r0"} if draw(some.booleans()) else {}
        has = {"cpu": "4", "memory": "8Gi", "pods": "110"}
        taints = (GPU,) if draw(some.booleans()) else ()
        nodes.append(builders.node(name, has=has, labels=labels, taints=taints))
    running = []
    for number in range(draw(some.integers(0, 4)) if nodes else 0):
        name = f"running-{number}"
        spec = draw(specs())
        node = draw(some.sampled_from(nodes)).name
        settled = PodSpec(node_name=node, affinity=spec.affinity, containers=spec.containers)
        running.append(Pod(Metadata(name, "default", uid=name, labels={"app": draw(some.sampled_from(APPS))}), settled))
    return Observed(nodes=tuple(nodes), pods=tuple(running))
