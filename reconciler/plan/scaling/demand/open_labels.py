"""Labels that a new node may come to have, because pods ask for them and nothing rules them out.

A pool that demands no zones leaves the zone to Karpenter, which knows the zones of the node class: we know those that
the cluster has nodes in. A zone that a waiting pod names counts as well, and if Karpenter cannot buy there the attempt
fails like any other. The region, and what a cloud's Karpenter tells of its machines, are known of nodes that are alive.
Of a type of which none is alive, a new node is taken to have the value that pods ask for, where they all ask for one.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from reconciler.model import names
from reconciler.model.cluster.pod import Pod

_MOST_ZONES = 20
_OF_CLOUDS = ("karpenter.k8s.aws/", "karpenter.azure.com/", "karpenter.k8s.gcp/")


class OpenLabels(msgspec.Struct, frozen=True):
    """What the waiting pods ask for."""

    zones: tuple[str, ...] = ()
    of_machines: Mapping[str, str] = {}

    @classmethod
    def of(cls, pods: Iterable[Pod]) -> "OpenLabels":
        asked: defaultdict[str, set[str]] = defaultdict(set)
        for pod in pods:
            for key, values in _selected_labels(pod):
                if key in {names.ZONE, names.REGION} or key.startswith(_OF_CLOUDS):
                    asked[key].update(values)
        zones = sorted(asked.pop(names.ZONE, ()))
        return cls(tuple(zones[:_MOST_ZONES]), {key: min(values) for key, values in asked.items() if len(values) == 1})


def _selected_labels(pod: Pod) -> Iterator[tuple[str, Iterable[str]]]:
    yield from ((key, (value,)) for key, value in pod.spec.node_selector.items())
    affinity = pod.spec.affinity
    required = affinity.node_affinity.required if affinity is not None else None
    for term in required.node_selector_terms if required is not None else ():
        yield from ((each.key, each.values) for each in term.match_expressions if each.operator == "In")
