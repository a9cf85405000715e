"""Pods that are there already, at random: bound, finished, resized, leaving, or promised a node."""

from collections.abc import Iterator, Sequence

from tests.stages.scheduling.draw import amounts, neighbours
from tests.stages.scheduling.draw.chance import PRIORITIES, Chance, Manifest, pod
from tests.stages.scheduling.draw.claims import Devices
from tests.stages.scheduling.draw.volumes import Store, own_volume

PORTS = (8080, 9090, 9091)
ALL_ADDRESSES = "0.0.0.0"  # noqa: S104 - a pod says it, nobody listens
_PENDING_RESIZE = {"type": "PodResizePending", "status": "True", "message": "", "reason": "Infeasible"}

Drawn = tuple[Manifest, Manifest, bool]  # the pod, the status it is then given, and whether it is then deleted


def draw(chance: Chance, nodes: Sequence[Manifest], store: Store, devices: Devices) -> list[Drawn]:
    most = chance.choice([1, 2, 3, 4])
    found = []
    for node in nodes:
        name = node["metadata"]["name"]
        found += [_resident(chance, f"{name}-r{n}", name, (store, devices)) for n in range(chance.randint(0, most))]
        if chance.percent(12):
            found.append(_promised(chance, f"{name}-p", name, store))
    return found


def host_port(chance: Chance) -> Manifest:
    """A port of the host, on all of its addresses or on one."""
    number = chance.choice(PORTS)
    found: Manifest = {"containerPort": number, "hostPort": number, "protocol": chance.choice(["TCP", "TCP", "UDP"])}
    if chance.percent(50):
        found["hostIP"] = chance.choice(["127.0.0.1", "10.0.0.1", ALL_ADDRESSES, "::1"])
    return found


def _resident(chance: Chance, name: str, node: str, things: tuple[Store, Devices]) -> Drawn:
    made = _made(chance, name)
    spec = made["spec"]
    # Tolerates all, or a controller would evict it from under the test.
    spec |= {"nodeName": node, "tolerations": [{"operator": "Exists"}], "terminationGracePeriodSeconds": 3600}
    store, devices = things
    _keep(chance, made, store)
    if chance.percent(5) and (named := devices.named(made["metadata"]["namespace"])):
        spec["resourceClaims"] = [{"name": "d", "resourceClaimName": chance.choice(named)}]
    kind = chance.randrange(100)
    if kind < 10:
        return made, {"phase": chance.choice(["Succeeded", "Failed"])}, False
    if kind < 20:
        return made, {}, True
    if kind < 35:
        return made, _resized(chance, spec), False
    return made, {"phase": "Running"}, False


def _promised(chance: Chance, name: str, node: str, store: Store) -> Drawn:
    """Nominated to a node, as a pod for which others were preempted."""
    made = _made(chance, name)
    _keep(chance, made, store)
    return made, {"nominatedNodeName": node}, False


def _keep(chance: Chance, made: Manifest, store: Store) -> None:
    """A volume that others may claim too, or one that is made for it."""
    if chance.percent(45) and (claims := store.named(made["metadata"]["namespace"])):
        made["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": chance.choice(claims)}}]
    elif chance.percent(8):
        made["spec"]["volumes"] = [own_volume(chance)]


def _made(chance: Chance, name: str) -> Manifest:
    made = pod(name, chance)
    spec = made["spec"]
    amounts.fill(chance, spec, is_demanding=chance.percent(60))
    if chance.percent(50):
        spec["priorityClassName"] = chance.choice(PRIORITIES)
    if chance.percent(25):
        spec["containers"][0]["ports"] = [host_port(chance)]
    affinity: Manifest = {}
    if chance.percent(20):
        affinity["podAntiAffinity"] = _required(neighbours.affinity(chance))
    if chance.percent(8):
        affinity["podAffinity"] = _required(neighbours.affinity(chance))
    if affinity:
        spec["affinity"] = affinity
    return made


def _required(terms: list[Manifest]) -> Manifest:
    return {"requiredDuringSchedulingIgnoredDuringExecution": terms}


def _resized(chance: Chance, spec: Manifest) -> Manifest:
    """What the kubelet says that its containers were given, which may be more or less than what is asked for now."""
    found: Manifest = {"phase": "Running", "containerStatuses": _statuses(chance, spec["containers"])}
    if chance.percent(40) and "initContainers" in spec:
        found["initContainerStatuses"] = _statuses(chance, spec["initContainers"])
    if "resources" in spec and chance.percent(60):
        found["resources"] = {"requests": {"cpu": chance.choice(["3", "5"]), "memory": "14G"}}
        found["allocatedResources"] = {"cpu": chance.choice(["3500m", "6"])}
    if chance.percent(35):
        found["conditions"] = [dict(_PENDING_RESIZE) | {"reason": chance.choice(["Infeasible", "Deferred"])}]
    return found


def _statuses(chance: Chance, containers: Sequence[Manifest]) -> list[Manifest]:
    return list(_told(chance, containers))


def _told(chance: Chance, containers: Sequence[Manifest]) -> Iterator[Manifest]:
    for each in containers:
        found: Manifest = {
            "name": each["name"],
            "image": each["image"],
            "imageID": "",
            "ready": True,
            "restartCount": 0,
        }
        if chance.percent(75):
            found["allocatedResources"] = {"cpu": chance.choice(["100m", "1", "2"]), "memory": "1Gi"}
        if chance.percent(75):
            requests = {"cpu": chance.choice(["100m", "1500m"]), "memory": chance.choice(["64Mi", "3Gi"])}
            found["resources"] = {"requests": requests}
        yield found
