"""The pods that are judged, at random: each with one to three wishes, so that now this decides and now that."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.stages.scheduling.draw import amounts, neighbours, places
from tests.stages.scheduling.draw.chance import PRIORITIES, Chance, Manifest, pod
from tests.stages.scheduling.draw.claims import Devices
from tests.stages.scheduling.draw.residents import host_port
from tests.stages.scheduling.draw.volumes import MISSING, Store, own_volume


@dataclass(frozen=True)
class Surroundings:
    """What a pod can name."""

    nodes: Sequence[str]
    store: Store
    devices: Devices


Wish = Callable[[Chance, Manifest, Surroundings], None]


def draw(chance: Chance, count: int, around: Surroundings) -> list[Manifest]:
    return [_pod(chance, f"judged-{number}", around) for number in range(count)]


def _pod(chance: Chance, name: str, around: Surroundings) -> Manifest:
    made = pod(name, chance)
    # Bound by nobody, so that it never has to end.
    made["spec"]["terminationGracePeriodSeconds"] = 0
    wished = chance.sample(list(WISHES), chance.choice([1, 1, 1, 2, 2, 3]))
    amounts.fill(chance, made["spec"], is_demanding="amounts" in wished)
    for wish in wished:
        WISHES[wish](chance, made, around)
    if "tolerations" not in made["spec"] and chance.percent(50):
        made["spec"]["tolerations"] = [{"operator": "Exists"}]
    return made


def _affinity_of(made: Manifest) -> Manifest:
    found: Manifest = made["spec"].setdefault("affinity", {})
    return found


def _select(chance: Chance, made: Manifest, around: Surroundings) -> None:
    made["spec"]["nodeSelector"] = places.node_selector(chance)


def _near_nodes(chance: Chance, made: Manifest, around: Surroundings) -> None:
    _affinity_of(made)["nodeAffinity"] = places.node_affinity(chance, around.nodes)


def _tolerate(chance: Chance, made: Manifest, around: Surroundings) -> None:
    made["spec"]["tolerations"] = places.tolerations(chance)


def _ports(chance: Chance, made: Manifest, around: Surroundings) -> None:
    spec = made["spec"]
    if chance.percent(20):
        spec["hostNetwork"] = True
        spec["containers"][0]["ports"] = [{"containerPort": host_port(chance)["containerPort"]}]
        return
    holder = spec["containers"][0]
    sidecars = [each for each in spec.get("initContainers", ()) if "restartPolicy" in each]
    if sidecars and chance.percent(50):
        holder = sidecars[0]
    holder["ports"] = [host_port(chance)]


def _near_pods(chance: Chance, made: Manifest, around: Surroundings) -> None:
    terms = neighbours.affinity(chance)
    if chance.percent(25):
        # Itself is among those it wants to be near: the rule of the first pod of its kind.
        kept = {key: told for key, told in terms[0].items() if not key.endswith("LabelKeys")}
        terms[0] = {**kept, "labelSelector": {"matchLabels": dict(made["metadata"]["labels"])}}
    _affinity_of(made)["podAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": terms}


def _away_from_pods(chance: Chance, made: Manifest, around: Surroundings) -> None:
    terms = neighbours.affinity(chance)
    _affinity_of(made)["podAntiAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": terms}


def _spread(chance: Chance, made: Manifest, around: Surroundings) -> None:
    made["spec"]["topologySpreadConstraints"] = neighbours.spread(chance)


def _volume(chance: Chance, made: Manifest, around: Surroundings) -> None:
    claims = around.store.named(made["metadata"]["namespace"])
    chosen = [MISSING] if chance.percent(3) else chance.some(claims, 1, 2)
    volumes: list[Manifest] = [
        {"name": f"v{number}", "persistentVolumeClaim": {"claimName": claim}} for number, claim in enumerate(chosen)
    ]
    if chance.percent(8):
        # Its claim is made for it: until then it is held back.
        volumes.append(own_volume(chance))
        made["spec"]["schedulingGates"] = [{"name": "lab.example.com/claims"}]
    if chance.percent(4):
        volumes.append(
            {"name": "inline", "iscsi": {"targetPortal": "10.0.0.1:3260", "iqn": "iqn.2026-11.x:a", "lun": 0}}
        )
    made["spec"]["volumes"] = volumes


def _devices(chance: Chance, made: Manifest, around: Surroundings) -> None:
    # One that does not exist would keep the pod from being judged at all.
    if claims := around.devices.named(made["metadata"]["namespace"]):
        made["spec"]["resourceClaims"] = [{"name": "d", "resourceClaimName": chance.choice(claims)}]


def _priority(chance: Chance, made: Manifest, around: Surroundings) -> None:
    """Who counts among the pods that were promised a node depends on it."""
    made["spec"]["priorityClassName"] = chance.choice(PRIORITIES)
    _PROMISED[chance.randrange(len(_PROMISED))](chance, made, around)


def _amounts(chance: Chance, made: Manifest, around: Surroundings) -> None:
    """They are filled in for every pod; this one just asks for more."""


_PROMISED: tuple[Wish, ...] = (_ports, _near_pods, _away_from_pods, _spread)

WISHES: dict[str, Wish] = {
    "amounts": _amounts,
    "node selector": _select,
    "node affinity": _near_nodes,
    "tolerations": _tolerate,
    "ports": _ports,
    "near pods": _near_pods,
    "away from pods": _away_from_pods,
    "spread": _spread,
    "volumes": _volume,
    "devices": _devices,
    "priority": _priority,
}
