"""A fleet at random: nodes, what runs on them, volumes and claims, and the pods that are to be judged."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.stages.scheduling.draw import claims, nodes, residents, volumes, wishes
from tests.stages.scheduling.draw.chance import NAMESPACE_LABELS, NAMESPACES, Chance, Manifest


@dataclass(frozen=True)
class Resident:
    """A pod that is there before anyone is judged: bound, finished, leaving, or promised a node."""

    manifest: Manifest
    status: Manifest = field(default_factory=dict)
    is_leaving: bool = False


@dataclass(frozen=True)
class DrawnFleet:
    """All that stands in a cluster before its pods are judged, and those pods."""

    seed: int
    namespaces: Mapping[str, Mapping[str, str]]
    volumes: Sequence[Manifest]
    volume_claims: Sequence[Manifest]
    volume_limits: Sequence[Manifest]
    device_claims: Sequence[Manifest]
    nodes: Sequence[Manifest]
    residents: Sequence[Resident]
    pods: Sequence[Manifest]


def draw_fleet(seed: int, pods: int) -> DrawnFleet:
    chance = Chance(seed)
    namespaces = {name: _namespace_labels(chance) for name in NAMESPACES}
    drawn_nodes = nodes.draw(chance, f"f{seed}")
    names = [each["metadata"]["name"] for each in drawn_nodes]
    store = volumes.draw(chance, f"f{seed}", names)
    devices = claims.draw(chance, f"f{seed}", names)
    living = [
        Resident(each, status, is_leaving)
        for each, status, is_leaving in residents.draw(chance, drawn_nodes, store, devices)
    ]
    judged = wishes.draw(chance, pods, wishes.Surroundings(names, store, devices))
    return DrawnFleet(
        seed, namespaces, store.volumes, store.claims, store.limits, devices.claims, drawn_nodes, living, judged
    )


def _namespace_labels(chance: Chance) -> dict[str, str]:
    return {key: chance.choice(values) for key, values in NAMESPACE_LABELS.items() if chance.percent(60)}
