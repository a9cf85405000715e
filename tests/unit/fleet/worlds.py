"""Made-up fleets in which pods ask for all sorts of things, and what may become of them from one look to the next."""

from typing import Any

import msgspec
from hypothesis import strategies as some

from reconciler.model.cluster.node import Node
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod
from tests.unit.fleet.stage import Words, node, pod

NODE_NAMES = [f"n{number}" for number in range(6)]
_ZONE = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}}


def maybe(words: dict[str, some.SearchStrategy[Any]]) -> some.SearchStrategy[Words]:
    return some.fixed_dictionaries({}, optional=words)


node_words = maybe(
    {
        "labels": maybe({"zone": some.sampled_from("abc"), "level": some.sampled_from(["1", "2", "x", "-5"])}),
        "taints": some.lists(
            some.fixed_dictionaries(
                {
                    "key": some.sampled_from(["gpu", "old"]),
                    "value": some.sampled_from(["", "a"]),
                    "effect": some.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"]),
                }
            ),
            max_size=2,
        ),
        "cordoned": some.booleans(),
        "has": some.fixed_dictionaries(
            {"pods": some.integers(2, 8)},
            optional={"cpu": some.sampled_from([2, 4, "3500m"]), "gpu.com/gpu": some.sampled_from([1, 8])},
        ),
    }
)

_expression = some.one_of(
    some.fixed_dictionaries(
        {
            "key": some.sampled_from(["zone", "level"]),
            "operator": some.sampled_from(["In", "NotIn", "Gt", "Lt", "Near"]),
            "values": some.lists(some.sampled_from(["a", "b", "1", "0"]), max_size=2),
        }
    ),
    some.fixed_dictionaries(
        {"key": some.sampled_from(["zone", "level"]), "operator": some.sampled_from(["Exists", "DoesNotExist"])}
    ),
)
_field = some.fixed_dictionaries(
    {
        "key": some.just("metadata.name"),
        "operator": some.sampled_from(["In", "NotIn"]),
        "values": some.lists(some.sampled_from(NODE_NAMES), min_size=1, max_size=1),
    }
)
_term = maybe(
    {"matchExpressions": some.lists(_expression, max_size=2), "matchFields": some.lists(_field, max_size=1)},
)
_toleration = maybe(
    {
        "key": some.sampled_from(["gpu", "old", "node.kubernetes.io/unschedulable"]),
        "operator": some.sampled_from(["Exists", "Equal", "Gt"]),
        "value": some.sampled_from(["", "a"]),
        "effect": some.sampled_from(["", "NoSchedule", "NoExecute"]),
    }
)
_port = some.fixed_dictionaries(
    {"hostPort": some.sampled_from([0, 80, 443])},
    optional={"hostIP": some.sampled_from(["0.0.0.0", "10.0.0.1"]), "protocol": some.sampled_from(["TCP", "UDP"])},  # noqa: S104
)
_resizing = some.builds(
    lambda cpu, infeasible: {
        "containerStatuses": [{"name": "main", "resources": {"requests": {"cpu": str(cpu)}}}],
        "conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}] if infeasible else [],
    },
    some.integers(0, 3),
    some.booleans(),
)
_status = some.one_of(
    some.just({}),
    some.builds(lambda phase: {"phase": phase}, some.sampled_from(["Running", "Succeeded", "Failed"])),
    some.builds(lambda name: {"nominatedNodeName": name}, some.sampled_from(NODE_NAMES)),
    _resizing,
)

pod_words = maybe(
    {
        "cpu": some.sampled_from(["500m", 1, 2, 0]),
        "gpu.com/gpu": some.sampled_from([1, 4]),
        "labels": some.sampled_from([{"app": "x"}, {"app": "y"}, {}]),
        "nodeSelector": some.sampled_from([{"zone": "a"}, {"zone": "b"}]),
        "affinity": some.lists(_term, max_size=2),
        "tolerations": some.lists(_toleration, max_size=2),
        "ports": some.lists(_port, max_size=2),
        "apart": some.just([_ZONE]),
        "priority": some.integers(0, 1),
        "leaving": some.booleans(),
        "owner": some.sampled_from(["ReplicaSet", "ReplicaSet", "DaemonSet"]),
        "nodeName": some.sampled_from([*NODE_NAMES, ""]),
        "status": _status,
    }
)
# What differs from pod to pod only now and then, so that there are pods of one class.
alike_words = some.sampled_from(
    [{"cpu": 1, "owner": "ReplicaSet"}, {"cpu": "500m"}, {"cpu": 1, "gpu.com/gpu": 1}, {}, {"owner": "DaemonSet"}]
)


class World:
    """Nodes and pods by name; those that nothing became of stay the same objects."""

    def __init__(self, nodes: dict[str, Node], pods: dict[str, Pod]) -> None:
        self.nodes = nodes
        self.pods = pods

    def observed(self) -> Observed:
        return Observed(nodes=tuple(self.nodes.values()), pods=tuple(self.pods.values()))


@some.composite
def worlds(draw: some.DrawFn) -> World:
    names = draw(some.lists(some.sampled_from(NODE_NAMES), unique=True))
    nodes = {name: node(name, draw(node_words)) for name in names}
    bound = some.builds(lambda words, name: {**words, "nodeName": name}, alike_words, some.sampled_from(NODE_NAMES))
    pods = [draw(some.one_of(pod_words, bound)) for _ in range(draw(some.integers(0, 12)))]
    return World(nodes, {f"p{number}": pod(f"p{number}", words) for number, words in enumerate(pods)})


def changed(data: some.DataObject, world: World) -> None:
    """Some things become of some objects: they come, go, or are others now."""
    for _ in range(data.draw(some.integers(0, 4))):
        if data.draw(some.booleans()):
            _change_a_node(data, world.nodes)
        else:
            name = data.draw(some.sampled_from([*sorted(world.pods), f"q{data.draw(some.integers(0, 100))}"]))
            if name in world.pods and data.draw(some.booleans()):
                del world.pods[name]
            else:
                world.pods[name] = pod(name, data.draw(pod_words))


def _change_a_node(data: some.DataObject, nodes: dict[str, Node]) -> None:
    name = data.draw(some.sampled_from(NODE_NAMES))
    if name not in nodes or data.draw(some.booleans()):
        nodes[name] = node(name, data.draw(node_words))
    elif data.draw(some.booleans()):
        nodes[name] = msgspec.structs.replace(nodes[name])
    else:
        del nodes[name]
