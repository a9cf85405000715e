"""Owner of which pods are on which node; it moves on from one sighting to the next by what changed."""

from collections import defaultdict

from reconciler.fleet.snapshot.diff import changes
from reconciler.model.cluster.pod import Pod


class PodsByNode:
    """Finished ones included, on each node by namespace and name."""

    def __init__(self, pods: tuple[Pod, ...]) -> None:
        self._pods: tuple[Pod, ...] = ()
        self.by_node: dict[str, list[Pod]] = {}
        self.advance(pods)

    def advance(self, pods: tuple[Pod, ...]) -> None:
        """To the pods as they were seen next; lists that were handed out stay as they are."""
        gone, came = changes(self._pods, pods) if self._pods else ([], list(pods))
        self._pods = pods
        left = {id(each) for each in gone}
        joined = defaultdict(list)
        for pod in came:
            joined[pod.node].append(pod)
        for node in sorted({*joined, *(each.node for each in gone)} - {""}):
            there = [each for each in self.by_node.get(node, ()) if id(each) not in left] + joined[node]
            there.sort(key=lambda each: (each.metadata.namespace, each.name))
            if there:
                self.by_node[node] = there
            else:
                self.by_node.pop(node, None)
